// The whole example as one command: records through a flaky API, a turn of the scheduler after the other, one of them killed
// in the middle, and books that have to balance in the end. Exits with 0 only if they do.
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startDay } from "./day.ts";

const USAGE = `Usage: node examples/records/start.mjs [options]

  --store URL   where the records live: sqlite:PATH or postgres://…
                (default: a new SQLite file in the folder data)
  --records N   how many, 100 to 100000 (default 3000)
`;

const MOST = 100_000;
const folder = process.env.RECORDS_FOLDER ?? fileURLToPath(new URL("data", import.meta.url));

function parse(): { store: string | undefined; records: number } {
  try {
    const options = { store: { type: "string" }, records: { type: "string", default: "3000" } } as const;
    const { store, records } = parseArgs({ options }).values;
    const count = /^\d+$/.test(records) ? Number(records) : Number.NaN;
    if (count >= 100 && count <= MOST) return { store, records: count };
    throw new Error(`--records: expected a whole number from 100 to ${MOST}; got ${JSON.stringify(records)}`);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${USAGE}`);
    process.exit(2);
  }
}

/** An empty folder: what an earlier run left is removed, anything else is refused. */
async function prepareFolder(): Promise<void> {
  await mkdir(folder, { recursive: true });
  const ours = /^(incoming\.ndjson|results\.ndjson(\.part)?|redrive\.db(-\w+)?)$/;
  const names = await readdir(folder);
  const foreign = names.find((name) => !ours.test(name));
  if (foreign !== undefined) throw new Error(`${folder} has files of somebody else, as ${foreign}; empty it first`);
  await Promise.all(names.map((name) => rm(join(folder, name))));
}

for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)
  process.once(signal, () => process.exit(code));

const { store, records } = parse();
try {
  await prepareFolder();
  const balanced = await startDay({ store: store ?? `sqlite:${join(folder, "redrive.db")}`, records, folder });
  process.exitCode = balanced ? 0 : 1;
} catch (error) {
  process.stderr.write(`\n${(error as Error).message}\n`);
  process.exitCode = 1;
}
