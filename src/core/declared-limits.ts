// The limits that a job type declares. A job enqueued by type name, without the definition, carries only defaults; a
// process that knows the type supplies the declared limits instead, also to other processes, as JSON.
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

/** What the definition of a job's type declares. */
export interface DeclaredByType {
  readonly limits: DeclaredLimits;
  /** How long jobs of the type are kept; undefined where it is not known. */
  readonly keep?: JobKeep | undefined;
}

/**
 * The terms by which a run of this job is judged where they differ from those on the job; null where they are the same.
 */
export function termsFor(job: Job, { limits, keep }: DeclaredByType): Terms | null {
  const said: Partial<Terms> = job.limited ? NO_LIMITS : limits;
  // Most jobs carry their terms, so no object is made for them.
  const differs = (term: keyof Terms, by: Partial<Terms>): boolean => by[term] !== undefined && by[term] !== job[term];
  if (!LIMIT_NAMES.some((term) => differs(term, said)) && !(keep && KEEP_NAMES.some((term) => differs(term, keep))))
    return null;
  const own = Object.fromEntries(TERM_NAMES.map((term) => [term, job[term]])) as unknown as Terms;
  return { ...own, ...said, ...keep };
}

const NO_LIMITS: DeclaredLimits = {};
