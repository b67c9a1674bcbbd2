// The job types of the benchmarks: one that does nothing, one that fails once, one that may kill its process.
import { immediate } from "../../dist/core/backoff.js";
import { defineJob } from "../../dist/jobs/define-job.js";
import { stamp } from "../actor.mjs";

/** How long after it was enqueued each job with a stamp began. */
export const pickups = [];

/** Does nothing; one that carries the time of its enqueue notes how long it waited. */
export const bench = defineJob("bench", {
  run(input) {
    if (input.at !== undefined) pickups.push(stamp() - input.at);
    return { ok: true };
  },
});

/** Fails at its first attempt and is tried again at once. */
export const flaky = defineJob("flaky", {
  maxAttempts: 2,
  backoff: immediate(),
  run(_input, { attempt }) {
    if (attempt === 1) throw new Error("connect ECONNRESET");
    return { ok: true };
  },
});

/** Takes a moment; the one that is told to kills the process it runs in. */
export const deadly = defineJob("deadly", {
  maxCrashes: 3,
  async run(input) {
    if (input.kill) process.kill(process.pid, "SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, 20));
    return { ok: true };
  },
});
