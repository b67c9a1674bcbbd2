// The whole example as one command: a service with a bad day, jobs and visitors that call it, and books that have to
// balance in the end. Exits with 0 only if they do.
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startDay } from "./day.ts";

const USAGE = `Usage: node examples/api-client/start.mjs [options]

  --store URL   where the jobs live: sqlite:PATH or postgres://…
                (default: a new SQLite file in the folder data)
  --small       a short day of about 12 seconds instead of 30
`;

const folder = fileURLToPath(new URL("data", import.meta.url));

function parse(): { store: string | undefined; small: boolean } {
  try {
    const options = { store: { type: "string" }, small: { type: "boolean", default: false } } as const;
    const { store, small } = parseArgs({ options }).values;
    return { store, small };
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${USAGE}`);
    process.exit(2);
  }
}

/** A new file in the folder `data`; that of an earlier run is removed. */
async function freshFile(): Promise<string> {
  await mkdir(folder, { recursive: true });
  const ours = (await readdir(folder)).filter((name) => /^redrive\.db(-\w+)?$/.test(name));
  await Promise.all(ours.map((name) => rm(join(folder, name))));
  return `sqlite:${join(folder, "redrive.db")}`;
}

for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)
  process.once(signal, () => process.exit(code));

const { store, small } = parse();
try {
  const balanced = await startDay({ store: store ?? (await freshFile()), size: small ? "small" : "full" });
  process.exitCode = balanced ? 0 : 1;
} catch (error) {
  process.stderr.write(`\n${(error as Error).message}\n`);
  process.exitCode = 1;
}
