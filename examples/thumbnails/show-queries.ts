// `npm run queries`: the queries of queries.sql on the store of the last run, with everything they answer. For another
// store or job: `npm run queries -- --store postgres://… --job ID`.
import { parseArgs } from "node:util";
import { defaultStore } from "./object-store.ts";
import { askAll, newestDeath } from "./queries.ts";
import { heading, quote, showInFull, table } from "./screen.ts";

showInFull();
try {
  const options = { store: { type: "string" }, job: { type: "string" } } as const;
  const { values } = parseArgs({ options });
  const store = values.store ?? defaultStore;
  const job = values.job ?? (await newestDeath(store)) ?? "none";
  for (const { title, sql, rows } of await askAll(store, job)) {
    heading(title);
    quote(sql, "dim");
    const { error_stacktrace: stack, input_data: input } = rows[0] ?? {};
    if (typeof stack === "string" && typeof input === "string") quote(`${stack}\n${input}`);
    else table(rows);
  }
} catch (error) {
  process.stderr.write(`queries: ${(error as Error).message}; run npm start first, or give --store\n`);
  process.exitCode = 1;
}
