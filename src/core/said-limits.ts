// The limits of a job type that somebody said. A job that was enqueued by the name of its type alone has only defaults; those
// who know the type say what counts instead, also to other processes, as JSON.
import type { JobLimits } from "./job.ts";
import type { ResolvedPolicy } from "./policy.ts";

const COUNTS = ["maxAttempts", "maxCrashes"] as const;
/** Those that may be null for none. */
const OPTIONAL = ["deadlineMs", "stuckMs", "stuckRetryMs", "stuckLimit"] as const;

/** Those limits of a job that were said; it keeps its own for the others. */
export type SaidLimits = Partial<Omit<JobLimits, "limited">>;

/** The limits that a layer of the policy said. */
export function limitsSaid({ policy, origins }: ResolvedPolicy): SaidLimits {
  const said = [...COUNTS, ...OPTIONAL].filter((limit) => origins[limit] !== "default");
  return Object.fromEntries(said.map((limit) => [limit, policy[limit]]));
}

/** The limits in a value that another program wrote; what is none is left out. */
export function limitsFrom(value: unknown): SaidLimits {
  const given = (typeof value === "object" && value !== null ? value : {}) as Readonly<Record<string, unknown>>;
  const isCount = (limit: string): boolean => Number.isSafeInteger(given[limit]) && (given[limit] as number) >= 0;
  const said = [
    ...COUNTS.filter((limit) => isCount(limit) && given[limit] !== 0),
    ...OPTIONAL.filter((limit) => given[limit] === null || isCount(limit)),
  ];
  return Object.fromEntries(said.map((limit) => [limit, given[limit]]));
}
