// The canary: the first few letters of a run, which are judged before the others follow. They are spread over types,
// tenants and time, so that a bug that hits only some of them shows early.

/** A letter that may be picked. */
export interface Candidate {
  readonly type: string;
  readonly tenant: string | null;
  readonly group: string | null;
  readonly diedAt: number;
}

/** The steps of a run where the operator names none. */
export const DEFAULT_STEPS: readonly number[] = [5, 50];

/**
 * The steps of a run over so many letters: steps beyond the last letter are cut. The rest of the letters follows the last
 * step.
 */
export function stepsFor(steps: readonly number[], toSend: number): number[] {
  let left = toSend;
  return steps.flatMap((size) => {
    const cut = Math.min(size, left);
    left -= cut;
    return cut > 0 ? [cut] : [];
  });
}

/**
 * Picks up to `n` of these, which are in the order of enqueue, and answers them in that order. Of a group only the oldest
 * may be picked, because those behind it must not run before it. Each pick is of the type that has the fewest picks so
 * far, then of the tenant with the fewest, then the furthest in time from all picks.
 */
export function pickCanary<C extends Candidate>(candidates: readonly C[], n: number): C[] {
  const open = firstOfGroups(candidates).map((candidate) => ({ candidate, apartMs: Number.POSITIVE_INFINITY }));
  const picked = new Set<C>();
  const ofType = new Map<string, number>();
  const ofTenant = new Map<string | null, number>();
  while (picked.size < n && picked.size < open.length) {
    let best: (typeof open)[number] | null = null;
    for (const each of open) if (!picked.has(each.candidate) && (best === null || isBetter(each, best))) best = each;
    if (best === null) break;
    const { type, tenant, diedAt } = best.candidate;
    picked.add(best.candidate);
    ofType.set(type, (ofType.get(type) ?? 0) + 1);
    ofTenant.set(tenant, (ofTenant.get(tenant) ?? 0) + 1);
    for (const each of open) each.apartMs = Math.min(each.apartMs, Math.abs(each.candidate.diedAt - diedAt));
  }
  return candidates.filter((candidate) => picked.has(candidate));

  function isBetter(a: (typeof open)[number], b: (typeof open)[number]): boolean {
    const types = (ofType.get(a.candidate.type) ?? 0) - (ofType.get(b.candidate.type) ?? 0);
    if (types !== 0) return types < 0;
    const tenants = (ofTenant.get(a.candidate.tenant) ?? 0) - (ofTenant.get(b.candidate.tenant) ?? 0);
    if (tenants !== 0) return tenants < 0;
    return a.apartMs > b.apartMs;
  }
}

/** These without the letters of a group that are not its oldest. */
export function firstOfGroups<C extends Candidate>(candidates: readonly C[]): C[] {
  const seen = new Set<string>();
  return candidates.filter(({ type, group }) => {
    if (group === null) return true;
    const name = `${type}\0${group}`;
    return !seen.has(name) && seen.add(name);
  });
}

/** The chance that is left for a wrong conclusion. */
const DOUBT = 0.05;

/** The largest share of failing letters that so many good ones leave possible, with 95 % confidence: 5 leave 0.45. */
export function failingAtMost(good: number): number {
  return good <= 0 ? 1 : 1 - DOUBT ** (1 / good);
}
