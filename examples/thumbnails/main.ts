// The whole example as one command: makes media, lets real worker processes work on a bad day, kills one of them, looks
// at the dead letters with SQL, recovers by hand, and balances the books. Exits with 0 only if they balance.
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startDay } from "./day.ts";
import { defaultStore, folder } from "./object-store.ts";
import { killAll } from "./processes.ts";

const USAGE = `Usage: npm start -- [options]

  --store URL   where the jobs live: sqlite:PATH or postgres://…
                (default: a new SQLite file in the folder data)
  --small       about a dozen files instead of 85
  RETRY_DELAY_SECONDS in the environment is the wait before every retry (default here 1)
`;

const options = { store: { type: "string" }, small: { type: "boolean", default: false } } as const;

function parse(): { store: string | undefined; small: boolean } {
  try {
    const { store, small } = parseArgs({ options }).values;
    return { store, small };
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${USAGE}`);
    process.exit(2);
  }
}

/** An empty folder: what an earlier run left is removed, anything else is refused. */
async function prepareFolder(): Promise<void> {
  await mkdir(folder, { recursive: true });
  const ours = /^(objects|thumbnails|faults|unfinished|worker-\d+\.log|redrive\.db(-wal|-shm)?|drawing-.*)$/;
  const names = await readdir(folder);
  const foreign = names.filter((name) => !ours.test(name));
  if (foreign.length > 0) throw new Error(`${folder} has files of somebody else, as ${foreign[0]}; empty it first`);
  await Promise.all(names.map((name) => rm(join(folder, name), { recursive: true })));
}

for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)
  process.once(signal, () => process.exit(code));

const { store, small } = parse();
try {
  await prepareFolder();
  const balanced = await startDay({
    store: store ?? defaultStore,
    size: small ? "small" : "full",
    delaySeconds: process.env.RETRY_DELAY_SECONDS ?? (small ? "0.2" : "1"),
  });
  process.exitCode = balanced ? 0 : 1;
} catch (error) {
  process.stderr.write(`\n${(error as Error).message}\n`);
  process.exitCode = 1;
} finally {
  killAll();
}
