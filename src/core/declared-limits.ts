// The limits that a job type declares. A job enqueued by type name, without the definition, carries only defaults; a
// process that knows the type supplies the declared limits instead, also to other processes, as JSON.
import {
  hasSameTerms,
  type Job,
  type JobKeep,
  type JobLimits,
  KEEP_NAMES,
  LIMIT_NAMES,
  TERMS,
  type Terms,
  termsOf,
} from "./job.ts";
import type { ResolvedPolicy } from "./policy.ts";

/** The declared limits of a type; for the others a job keeps its own. */
export type DeclaredLimits = Partial<Omit<JobLimits, "limited">>;

/** The limits that a layer of the policy sets. */
export function declaredLimits({ policy, origins }: ResolvedPolicy): DeclaredLimits {
  const said = LIMIT_NAMES.filter((limit) => origins[limit] !== "default");
  return Object.fromEntries(said.map((limit) => [limit, policy[limit]]));
}

/** The limits in a value that another program wrote; invalid fields are left out. */
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

/** What the definition of a job's type declares. */
export interface DeclaredByType {
  readonly limits: DeclaredLimits;
  /** How long jobs of the type are kept; undefined where it is not known. */
  readonly keep?: JobKeep | undefined;
}

/**
 * The terms by which a run of this job is judged where they differ from those on the job; null where they are the same,
 * or no type is known.
 */
export function termsFor(job: JobTerms, declared: DeclaredByType | undefined): Terms | null {
  if (!declared) return null;
  const { limits, keep } = declared;
  const said: Partial<Terms> = job.limited ? NO_LIMITS : limits;
  const differs = (term: keyof Terms, by: Partial<Terms>): boolean => by[term] !== undefined && by[term] !== job[term];
  if (!LIMIT_NAMES.some((term) => differs(term, said)) && !(keep && KEEP_NAMES.some((term) => differs(term, keep))))
    return null;
  return { ...termsOf(job), ...said, ...keep };
}

/** The same for many jobs of a type: jobs that carry the same share one answer, because a worker asks for every job. */
export function termsForAll(declared: DeclaredByType): (job: JobTerms) => Terms | null {
  let [last, terms]: [JobTerms | null, Terms | null] = [null, null];
  return (job) => {
    if (last === null || last.limited !== job.limited || !hasSameTerms(last, job)) {
      last = { ...termsOf(job), limited: job.limited };
      terms = termsFor(job, declared);
    }
    return terms;
  };
}

const NO_LIMITS: DeclaredLimits = {};
