// The limits of a job type that somebody said. A job that was enqueued by the name of its type alone has only defaults; those
// who know the type say what counts instead, also to other processes, as JSON.
import {
  type Job,
  type JobKeep,
  type JobLimits,
  KEEP_NAMES,
  LIMIT_NAMES,
  TERM_NAMES,
  TERMS,
  type Terms,
} from "./job.ts";
import type { ResolvedPolicy } from "./policy.ts";

/** Those limits of a job that were said; it keeps its own for the others. */
export type DeclaredLimits = Partial<Omit<JobLimits, "limited">>;

/** The limits that a layer of the policy said. */
export function declaredLimits({ policy, origins }: ResolvedPolicy): DeclaredLimits {
  const said = LIMIT_NAMES.filter((limit) => origins[limit] !== "default");
  return Object.fromEntries(said.map((limit) => [limit, policy[limit]]));
}

/** The limits in a value that another program wrote; what is none is left out. */
export function limitsFrom(value: unknown): DeclaredLimits {
  const given = (typeof value === "object" && value !== null ? value : {}) as Readonly<Record<string, unknown>>;
  const isCount = (limit: string): boolean => Number.isSafeInteger(given[limit]) && (given[limit] as number) >= 0;
  const said = LIMIT_NAMES.filter((limit) =>
    TERMS[limit].mayBeNull ? given[limit] === null || isCount(limit) : isCount(limit) && given[limit] !== 0,
  );
  return Object.fromEntries(said.map((limit) => [limit, given[limit]]));
}

/** What those who know its type say of a job. */
export interface DeclaredByType {
  readonly limits: DeclaredLimits;
  /** How long jobs of the type are kept; undefined where that is not known. */
  readonly keep?: JobKeep | undefined;
}

/** What a run of this job is judged by, if it is not what the job carries itself; null if it is. */
export function termsFor(job: Job, { limits, keep }: DeclaredByType): Terms | null {
  const said: Partial<Terms> = job.limited ? NO_LIMITS : limits;
  // Nothing is made for jobs that carry it themselves, which most do.
  const differs = (term: keyof Terms, by: Partial<Terms>): boolean => by[term] !== undefined && by[term] !== job[term];
  if (!LIMIT_NAMES.some((term) => differs(term, said)) && !(keep && KEEP_NAMES.some((term) => differs(term, keep))))
    return null;
  const own = Object.fromEntries(TERM_NAMES.map((term) => [term, job[term]])) as unknown as Terms;
  return { ...own, ...said, ...keep };
}

const NO_LIMITS: DeclaredLimits = {};
