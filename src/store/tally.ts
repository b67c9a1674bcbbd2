// Counts dead letters from groups of equal ones, however a store found them.
import type { Failure } from "../core/job.ts";
import type { CauseCount, Tally } from "./dead-letters.ts";

/** Dead letters of one cause that are equal in everything that is counted. */
export interface LetterGroup {
  readonly fingerprint: string;
  readonly class: string;
  readonly type: string;
  readonly reason: string;
  readonly count: number;
  readonly firstAt: number;
  readonly lastAt: number;
  /** The position of the newest of them. */
  readonly newest: number;
}

const CAUSES_MOST = 100;

/**
 * The tally of all groups; `failureOf` is called for the newest letter of each listed cause. `bound` is the oldest letter
 * that was looked at, where that was not all.
 */
export function tallyOf(
  groups: readonly LetterGroup[],
  failureOf: (newest: number) => Failure,
  bound: { readonly at: number } | null = null,
): Tally {
  const causes = [...byCause(groups).values()].sort(mostFirst);
  const listed = causes.slice(0, CAUSES_MOST).map(({ newest, ...cause }): CauseCount => {
    const { name, message, class: failureClass } = failureOf(newest);
    return { ...cause, name, message, class: failureClass };
  });
  const sum = (all: readonly { readonly count: number }[]): number =>
    all.reduce((total, { count }) => total + count, 0);
  return {
    total: sum(causes),
    byClass: countsOf(groups, "class"),
    byType: countsOf(groups, "type"),
    byReason: countsOf(groups, "reason"),
    causes: listed,
    otherCauses: sum(causes.slice(CAUSES_MOST)),
    ...(bound && { seenTo: bound.at }),
  };
}

type Cause = Pick<LetterGroup, "fingerprint" | "count" | "firstAt" | "lastAt" | "newest">;

function mostFirst(a: Cause, b: Cause): number {
  return b.count - a.count || (a.fingerprint < b.fingerprint ? -1 : 1);
}

function byCause(groups: readonly LetterGroup[]): Map<string, Cause> {
  const causes = new Map<string, Cause>();
  for (const { fingerprint, count, firstAt, lastAt, newest } of groups) {
    const known = causes.get(fingerprint);
    causes.set(fingerprint, {
      fingerprint,
      count: (known?.count ?? 0) + count,
      firstAt: Math.min(known?.firstAt ?? firstAt, firstAt),
      lastAt: Math.max(known?.lastAt ?? lastAt, lastAt),
      newest: Math.max(known?.newest ?? newest, newest),
    });
  }
  return causes;
}

/** Counts by one field, the largest first; made from entries, so that a type called `__proto__` is counted too. */
function countsOf(groups: readonly LetterGroup[], field: "class" | "type" | "reason"): Record<string, number> {
  const counts = new Map<string, number>();
  for (const group of groups) counts.set(group[field], (counts.get(group[field]) ?? 0) + group.count);
  return Object.fromEntries([...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)));
}
