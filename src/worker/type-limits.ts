// A job carries its limits from the moment it was enqueued, so that anybody can judge it. Where whoever enqueued it knew
// only the name of its type, the word of the worker counts, which knows the type.
import type { Job, JobLimits } from "../core/job.ts";
import { type PolicyOptions, resolvePolicy } from "../core/policy.ts";
import type { JobDefinition } from "../queue/define-job.ts";
import type { Store } from "../store/store.ts";

const LIMITS = ["maxAttempts", "maxCrashes", "deadlineMs", "stuckMs", "stuckRetryMs", "stuckLimit"] as const;

/** The store, handing out jobs enqueued by name with the limits that their type says, or the defaults of this queue. */
export function withTypeLimits(store: Store, definitions: readonly JobDefinition[], defaults: PolicyOptions): Store {
  const said = new Map(definitions.map((definition) => [definition.type, limitsSaid(definition, defaults)]));
  const named = [...said].flatMap(([type, { stuckMs = null }]) => (stuckMs === null ? [] : [{ type, stuckMs }]));
  const judgeable = <J extends Job>(job: J): J => (job.limited ? job : { ...job, ...said.get(job.type) });
  return {
    ...store,
    async claim(request) {
      const answer = await store.claim(request);
      return { ...answer, jobs: answer.jobs.map(judgeable) };
    },
    async overdue(request) {
      const runs = await store.overdue({ ...request, named });
      return runs.map((run) => ({ ...run, job: judgeable(run.job) }));
    },
    async expired(request) {
      const runs = await store.expired(request);
      return runs.map((run) => ({ ...run, job: judgeable(run.job) }));
    },
  };
}

/** The limits that somebody on this side said; for the others the job keeps what it was enqueued with. */
function limitsSaid({ options }: JobDefinition, library: PolicyOptions): Partial<JobLimits> {
  const { policy, origins } = resolvePolicy({ library, type: options });
  return Object.fromEntries(
    LIMITS.filter((limit) => origins[limit] !== "default").map((limit) => [limit, policy[limit]]),
  );
}
