// A job carries its limits from the moment it was enqueued, so that anybody can judge it. Where whoever enqueued it knew
// only the name of its type, it carries the library's; then the word of the worker counts, which knows the type.
import type { JobLimits } from "../core/job.ts";
import { type Policy, PRESETS } from "../core/policy.ts";
import type { JobDefinition } from "../queue/define-job.ts";
import type { Store } from "../store/store.ts";

const { maxAttempts, maxCrashes, deadlineMs, stuckMs } = PRESETS.default;
const UNSAID: JobLimits = { maxAttempts, maxCrashes, deadlineMs, stuckMs };

/** The store, handing out jobs that nobody set limits for with those of their type. Each limit counts for itself. */
export function withTypeLimits(store: Store, definitions: readonly JobDefinition[]): Store {
  const policies = new Map(
    definitions.filter(({ policy }) => !isDefault(policy)).map(({ type, policy }) => [type, policy]),
  );
  if (policies.size === 0) return store;
  const limited = <J extends JobLimits & { readonly type: string }>(job: J): J => {
    const policy = policies.get(job.type);
    return policy ? { ...job, ...limitsOf(job, policy) } : job;
  };
  return {
    ...store,
    async claim(request) {
      const answer = await store.claim(request);
      return { ...answer, jobs: answer.jobs.map(limited) };
    },
    async expired(request) {
      const runs = await store.expired(request);
      return runs.map((run) => ({ ...run, job: limited(run.job) }));
    },
  };
}

function isDefault(policy: Policy): boolean {
  return (Object.keys(UNSAID) as (keyof JobLimits)[]).every((limit) => policy[limit] === UNSAID[limit]);
}

function limitsOf(job: JobLimits, policy: Policy): JobLimits {
  const of = <K extends keyof JobLimits>(limit: K): JobLimits[K] =>
    job[limit] === UNSAID[limit] ? policy[limit] : job[limit];
  return {
    maxAttempts: of("maxAttempts"),
    maxCrashes: of("maxCrashes"),
    deadlineMs: of("deadlineMs"),
    stuckMs: of("stuckMs"),
  };
}
