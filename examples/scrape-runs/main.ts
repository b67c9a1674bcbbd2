// The whole example as one command: schedules make runs, some hang, some kill their worker, one comes back from the dead;
// stuck ones are found and tried again later, and books have to balance in the end. Exits with 0 only if they do.
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startDay } from "./day.ts";
import { folder } from "./jobs.ts";
import { killAll } from "./processes.ts";

const USAGE = `Usage: node examples/scrape-runs/start.mjs [options]

  --store URL   where the jobs live: sqlite:PATH or postgres://…
                (default: a new SQLite file in the folder data)
  --small       schedules fire for 4 seconds instead of 10
`;

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

/** An empty folder: what an earlier run left is removed, anything else stays. */
async function prepareFolder(): Promise<void> {
  await mkdir(folder, { recursive: true });
  const ours = /^(journal\.ndjson|worker-\d+\.log|redrive\.db(-wal|-shm)?)$/;
  const names = (await readdir(folder)).filter((name) => ours.test(name));
  await Promise.all(names.map((name) => rm(join(folder, name))));
}

for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)
  process.once(signal, () => process.exit(code));

const { store, small } = parse();
try {
  await prepareFolder();
  const where = store ?? `sqlite:${join(folder, "redrive.db")}`;
  process.exitCode = (await startDay({ store: where, fireMs: small ? 4_000 : 10_000 })) ? 0 : 1;
} catch (error) {
  process.stderr.write(`\n${(error as Error).message}\n`);
  process.exitCode = 1;
} finally {
  killAll();
}
