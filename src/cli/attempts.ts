// Attempts that the surroundings of a worker set (environment, config file) for types that do not set them themselves.
// A job carries its limit from the moment it was enqueued; where nobody said anything then, the worker's word counts.
import { type PolicyOptions, PRESETS, resolvePolicy } from "../core/policy.ts";
import type { JobDefinition } from "../queue/define-job.ts";
import type { Store } from "../store/store.ts";

/** The store, handing out jobs with the attempts that the defaults say where neither type nor job said otherwise. */
export function withAttempts(store: Store, jobs: readonly JobDefinition[], library: PolicyOptions): Store {
  const limits = new Map<string, number>();
  for (const { type, options } of jobs) {
    const { policy, origins } = resolvePolicy({ library, type: options });
    if (origins.maxAttempts === "library") limits.set(type, policy.maxAttempts);
  }
  if (limits.size === 0) return store;
  const limited = <J extends { readonly type: string; readonly maxAttempts: number }>(job: J): J => {
    const maxAttempts = limits.get(job.type);
    const isUntouched = job.maxAttempts === PRESETS.default.maxAttempts;
    return maxAttempts === undefined || !isUntouched ? job : { ...job, maxAttempts };
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
