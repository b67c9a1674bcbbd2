// The limits of a job type that somebody said. A job that was enqueued by the name of its type alone has only defaults; those
// who know the type say what counts instead, also to other processes, as JSON.
import {
  hasSameTerms,
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

/** The terms that a job carries, and whether its limits among them were set for it. */
export type JobTerms = Terms & Pick<Job, "limited">;

/** What those who know its type say of a job. */
export interface DeclaredByType {
  readonly limits: DeclaredLimits;
  /** How long jobs of the type are kept; undefined where that is not known. */
  readonly keep?: JobKeep | undefined;
}

/** What a run of this job is judged by, if it is not what the job carries itself; null if it is, or no type is known. */
export function termsFor(job: JobTerms, declared: DeclaredByType | undefined): Terms | null {
  if (!declared) return null;
  const { limits, keep } = declared;
  const said: Partial<Terms> = job.limited ? NO_LIMITS : limits;
  const differs = (term: keyof Terms, by: Partial<Terms>): boolean => by[term] !== undefined && by[term] !== job[term];
  if (!LIMIT_NAMES.some((term) => differs(term, said)) && !(keep && KEEP_NAMES.some((term) => differs(term, keep))))
    return null;
  return { ...carriedTerms(job), ...said, ...keep };
}

/** The same for many jobs of a type: jobs that carry the same share one answer, because a worker asks for every job. */
export function termsForAll(declared: DeclaredByType): (job: JobTerms) => Terms | null {
  let [last, terms]: [JobTerms | null, Terms | null] = [null, null];
  return (job) => {
    if (last === null || last.limited !== job.limited || !hasSameTerms(last, job)) {
      last = { ...carriedTerms(job), limited: job.limited };
      terms = termsFor(job, declared);
    }
    return terms;
  };
}

function carriedTerms(job: Terms): Terms {
  return Object.fromEntries(TERM_NAMES.map((term) => [term, job[term]])) as unknown as Terms;
}

const NO_LIMITS: DeclaredLimits = {};
