// Redrive on Postgres with default settings, in one run beside its peers and the equal-work limit, fsync and
// synchronous_commit on. Medians of three with their spread; only ratios travel from one machine to another.
//   node bench/postgres.mjs [--short] [--no-peers] [--only throughput,enqueue,…]
import { rmSync } from "node:fs";
import { parseArgs } from "node:util";
import { inScratch } from "./measure.mjs";
import { peersHere } from "./postgres/contenders.mjs";
import { crowded } from "./postgres/crowded.mjs";
import { enqueueing } from "./postgres/enqueue.mjs";
import { idle } from "./postgres/idle.mjs";
import { pickUp } from "./postgres/pick-up.mjs";
import { retries } from "./postgres/retries.mjs";
import { startPostgres } from "./postgres/server.mjs";
import { sqlEnqueueing } from "./postgres/sql-enqueue.mjs";
import { throughput } from "./postgres/throughput.mjs";
import { unsettled } from "./postgres/unsettled.mjs";

const SUBJECTS = {
  throughput,
  enqueue: enqueueing,
  "sql-enqueue": sqlEnqueueing,
  "pick-up": pickUp,
  idle,
  retries,
  unsettled,
  crowded,
};

const { values } = parseArgs({
  options: { short: { type: "boolean" }, "no-peers": { type: "boolean" }, only: { type: "string" } },
});
const { short = false } = values;
const wanted = values.only?.split(",") ?? Object.keys(SUBJECTS);
for (const subject of wanted)
  if (!Object.hasOwn(SUBJECTS, subject))
    throw new Error(`--only knows ${Object.keys(SUBJECTS).join(", ")}; got ${subject}.`);
// A signal ends the server and its folder with this process.
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));
await inScratch(async (folder) => {
  const server = await startPostgres(folder);
  // After the server was told to end, which is what its own listener does before this one.
  process.once("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
  try {
    const settings = { server, short, rounds: short ? 1 : 3, ...peersHere(!values["no-peers"]) };
    for (const subject of wanted) await SUBJECTS[subject](settings);
  } finally {
    await server.stop();
  }
});
