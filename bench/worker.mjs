// The worker on SQLite, as safe as at synchronous=FULL, with default settings, in one run beside its peers and the equal-work limit.
// Medians of three with their spread; only ratios travel from one machine to another.
//   node bench/worker.mjs [--short] [--no-peers] [--only throughput,enqueue,…]
import { parseArgs } from "node:util";
import { peersMissing } from "./peers.mjs";
import { bulk, enqueueing } from "./worker/enqueue.mjs";
import { killer } from "./worker/killer.mjs";
import { memory } from "./worker/memory.mjs";
import { pickUp } from "./worker/pick-up.mjs";
import { retries } from "./worker/retries.mjs";
import { scheduled, throughput } from "./worker/throughput.mjs";
import { traces } from "./worker/traces.mjs";

const SUBJECTS = {
  throughput,
  enqueue: enqueueing,
  bulk,
  "pick-up": pickUp,
  retries,
  scheduled,
  memory,
  killer,
  traces,
};

const { values } = parseArgs({
  options: { short: { type: "boolean" }, "no-peers": { type: "boolean" }, only: { type: "string" } },
});
const { short = false } = values;
const settings = { short, rounds: short ? 1 : 3, missing: peersMissing(!values["no-peers"]) };
const wanted = values.only?.split(",") ?? Object.keys(SUBJECTS);
for (const subject of wanted) {
  if (!Object.hasOwn(SUBJECTS, subject))
    throw new Error(`--only knows ${Object.keys(SUBJECTS).join(", ")}; got ${subject}.`);
  await SUBJECTS[subject](settings);
}
