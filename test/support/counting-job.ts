// A job type that counts how many of its handlers are at work, and how many were at most.
import { defineJob, type JobDefinition, type JobOptions } from "../../src/jobs/define-job.ts";
import type { Bench } from "./worker-bench.ts";

/** A type whose handlers take so long and take no notice of their abort, and what was seen of them. */
export function counting(
  bench: Bench,
  type: string,
  ms: number,
  options: Partial<Omit<JobOptions<unknown, unknown>, "run">> = {},
) {
  const seen = { now: 0, most: 0, started: 0 };
  const job: JobDefinition = defineJob(type, {
    ...options,
    run: async () => {
      seen.started += 1;
      seen.most = Math.max(seen.most, ++seen.now);
      await bench.sleep(ms);
      seen.now -= 1;
    },
  });
  return { job, seen };
}
