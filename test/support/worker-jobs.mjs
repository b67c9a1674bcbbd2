// Job definitions for workers in processes of their own. Loaded by the worker itself and by the child in which a job
// with its last crash left runs; the library's address comes by the environment, because it is built anew for each run.
import { appendFileSync, writeSync } from "node:fs";

const { defineJob } = await import(`${process.env.REDRIVE_BUILT}jobs/define-job.js`);
const { fixed } = await import(`${process.env.REDRIVE_BUILT}core/backoff.js`);
const wait = (ms, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
/** Holds the event loop, without a processor: other tests have use for that. */
const block = (ms) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
/** Notes for the test, in the file it named; works in any process. */
const note = (what) => appendFileSync(process.env.REDRIVE_NOTES, `${JSON.stringify(what)}\n`);
const onDead = ({ id, type }) => note({ dead: id, type });

export const quick = defineJob("quick", { run: () => process.pid });
/** Calls the service whose address the test gave. */
export const quote = defineJob("quote", {
  service: "pricing",
  backoff: fixed("100ms"),
  async run(_, { signal }) {
    const response = await fetch(process.env.REDRIVE_SERVICE, { signal });
    await response.arrayBuffer();
    if (!response.ok) throw Object.assign(new Error(`HTTP ${response.status}`), { status: response.status });
  },
});
export const sleeper = defineJob("sleeper", {
  async run({ ms }, { signal, job }) {
    note({ sleeps: job.id, pid: process.pid });
    await wait(ms, signal);
    if (signal.aborted) note({ aborted: job.id, reason: String(signal.reason) });
    signal.throwIfAborted();
    return process.pid;
  },
});
/** Does not listen: it goes on whatever happened meanwhile, and says how far it is. */
export const zombie = defineJob("zombie", {
  async run({ ms }, { job, progress }) {
    note({ runs: job.id, pid: process.pid });
    await wait(ms);
    await progress({ pid: process.pid }).catch((error) =>
      note({ refused: job.id, pid: process.pid, code: error.code }),
    );
    return process.pid;
  },
});
export const blocker = defineJob("blocker", {
  run: ({ ms }, { job }) => {
    note({ blocks: job.id, pid: process.pid });
    block(ms);
    return process.pid;
  },
});
/** Gives the loop a turn, in one of its phases, and then blocks it. */
const blockerAfter = (type, turn) =>
  defineJob(type, {
    async run({ ms }, { job }) {
      await turn(() => {
        note({ blocks: job.id, pid: process.pid });
        block(ms);
      });
      return process.pid;
    },
  });
export const laterBlocker = blockerAfter("later-blocker", (work) => wait(20).then(work));
export const timerBlocker = blockerAfter(
  "timer-blocker",
  (work) => new Promise((resolve) => setTimeout(() => resolve(work()), 20)),
);
export const immediateBlocker = blockerAfter("immediate-blocker", (work) =>
  new Promise((resolve) => setImmediate(resolve)).then(work),
);
export const killer = defineJob("killer", {
  onDead,
  run() {
    process.kill(process.pid, "SIGKILL");
    return wait(60_000);
  },
});
export const hungry = defineJob("hungry", {
  onDead,
  run() {
    if (process.argv[1].endsWith("worker-process.mjs")) process.kill(process.pid, "SIGKILL");
    const kept = [];
    for (let n = 0; n < 1e6; n++) kept.push("x".repeat(1_000_000).split(""));
    return kept.length;
  },
});
export const leaver = defineJob("leaver", {
  onDead,
  async run(_input, { job }) {
    if (job.crashes < 2) process.kill(process.pid, "SIGKILL");
    writeSync(1, "the leaver says goodbye\n");
    process.exit(7);
  },
});
export const thrower = defineJob("thrower", {
  onDead,
  maxAttempts: 10,
  backoff: fixed(0),
  run() {
    throw Object.assign(new Error("thrown in the child"), { name: "PermanentError" });
  },
});
export const hanger = defineJob("hanger", {
  onDead,
  run(_input, { job }) {
    note({ hangs: job.id, pid: process.pid });
    block(60_000);
  },
});
