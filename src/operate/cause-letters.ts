// What the newest dead letters of a cause say that its counts do not: tenants, services, classes and reasons. The look is
// bounded, so that a cause with a million letters answers as fast as one with a thousand.
import type { DeadLetter } from "../core/job.ts";
import type { Store } from "../store/store.ts";

/** A name and how many of the letters have it. */
export interface CountedName {
  /** The name of a tenant, service, class or reason. */
  readonly name: string;
  /** How many letters have it. */
  readonly count: number;
}

/** What the newest letters of a cause say; each list has the most frequent first, at most 20. */
export interface LettersSeen {
  /** How many letters were looked at: the newest, up to 1,000. */
  readonly looked: number;
  /** The tenants of their jobs. */
  readonly tenants: readonly CountedName[];
  /** The services of their jobs. */
  readonly services: readonly CountedName[];
  /** The classes of their failures. */
  readonly classes: readonly CountedName[];
  /** Why they died. */
  readonly reasons: readonly CountedName[];
}

const PAGE = 200;
const MOST = 1_000;
const NAMES = 20;

/** Looks at the newest waiting letters of a cause. */
export async function lettersOfCause(store: Pick<Store, "deadLetters">, fingerprint: string): Promise<LettersSeen> {
  const letters = await newestLetters(store, fingerprint, MOST);
  return {
    looked: letters.length,
    tenants: namesIn(letters.map(({ job }) => job.tenant)),
    services: namesIn(letters.map(({ job }) => job.service)),
    classes: namesIn(letters.map(({ failure }) => failure.class)),
    reasons: namesIn(letters.map(({ reason }) => reason)),
  };
}

/** The newest waiting letters of a cause, without their payloads. */
export async function newestLetters(
  store: Pick<Store, "deadLetters">,
  fingerprint: string,
  most: number,
): Promise<DeadLetter[]> {
  const letters: DeadLetter[] = [];
  for (let cursor: string | null = null; letters.length < most; ) {
    const page = await store.deadLetters({ fingerprint, payloads: false, limit: PAGE, cursor });
    letters.push(...page.items);
    cursor = page.next;
    if (cursor === null) break;
  }
  return letters;
}

/** How often each name occurs, the most frequent first, at most 20. */
export function namesIn(names: readonly (string | null)[]): CountedName[] {
  const counts = new Map<string, number>();
  for (const name of names) if (name !== null) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts]
    .map(([name, count]) => ({ name, count }))
    .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1))
    .slice(0, NAMES);
}
