// A worker that tells alerts quickly, until it is killed: each message is a line of a file, and some time passes before
// and after it is written. Its arguments are the folder of the built library, the store and the file.
import { appendFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";

const [library, store, file] = process.argv.slice(2);
const { assemble } = await import(`${library}/redrive.js`);
const { realSystem } = await import(`${library}/system/real.js`);
const { hostId, isAlive } = await import(`${library}/system/processes.js`);
const call = async ({ id, kind }) => {
  await setTimeout(20);
  appendFileSync(file, `${JSON.stringify({ id, kind, pid: process.pid })}\n`);
  await setTimeout(20);
};
const alerts = { rules: { breakerOpen: { for: 0 } }, sinks: { log: false, call } };
const surroundings = {
  system: realSystem,
  process: { pid: process.pid, host: hostId(), isAlive },
  alertPace: { everyMs: 100, claimMs: 700 },
};
const redrive = await assemble({ store, log: "silent", alerts }, surroundings);
await redrive.worker({ lease: "2s", heartbeat: "500ms", concurrency: 1 }).start();
process.send("begun");
