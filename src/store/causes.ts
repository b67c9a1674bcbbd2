// Counts by cause and by type: what is asked, what is answered, and how changes of one write are added up first.
import type { CauseCounts, FlowCounts } from "../core/flow.ts";
import type { ReleaseFailures } from "../core/recovery/cause-state.ts";
import { cursorError } from "./cursor.ts";

/** Counts of one type that a process has added up. */
export interface TypeFlow extends FlowCounts {
  readonly type: string;
}

/** What a process adds to the counts of the present minute. */
export interface FlowAddition {
  /** The process; each has rows of its own, so that none waits for another. */
  readonly holder: string;
  /** Each type once. */
  readonly counts: readonly TypeFlow[];
}

/** Which causes to list. */
export interface CauseQuery {
  readonly limit: number;
  /** The `next` of the page before. */
  readonly cursor?: string | null;
  /** Only this cause. */
  readonly fingerprint?: string;
  /** True adds causes without a live letter; default false. */
  readonly idle?: boolean;
  /** Only causes by which a run failed in the minute of this instant, in milliseconds, or later. */
  readonly since?: number;
}

/** A cause: errors with one fingerprint. */
export interface Cause {
  /** The fingerprint of its failures. */
  readonly fingerprint: string;
  /** Its dead letters that were neither sent back to work nor deleted. */
  readonly live: number;
  /** All dead letters that it ever had. */
  readonly deaths: number;
  /** All runs that failed by it. */
  readonly failures: number;
  /** The minute of its first failure; null where only its end was seen. */
  readonly firstAt: number | null;
  /** The minute of its last failure. */
  readonly lastAt: number | null;
  /** The types of its jobs, by name, at most 20. */
  readonly types: readonly string[];
  /** The releases whose runs failed by it, the last seen first, at most 20. */
  readonly releases: readonly string[];
  /** How many runs of each of them failed by it; those of workers without a release under the empty name. */
  readonly byRelease: readonly ReleaseFailures[];
  /** The error of its newest dead letter; null where it has none any more. */
  readonly sample: { readonly name: string; readonly message: string } | null;
}

/** Most types, and most releases, that are listed of a cause. */
export const NAMES_MOST = 20;

/** Which counts over time: of a cause, or of a type, or of all types. */
export interface TrendQuery {
  /** Counts of this cause instead of the flow. */
  readonly fingerprint?: string;
  /** Only this type. */
  readonly type?: string;
  /** From this instant on, in milliseconds; the step in which it lies is the first. */
  readonly from: number;
  /** Before this instant. */
  readonly until: number;
  /** The length of a step: a number of minutes, in milliseconds. */
  readonly stepMs: number;
}

/** The counts of one step. */
export interface TrendPoint {
  /** When the step begins, in milliseconds. */
  readonly at: number;
  /** `FlowCounts`, or the `CauseCounts` of the cause. */
  readonly counts: Readonly<Record<string, number>>;
}

/** One step of folding: how many rows of each kind it may fold. */
export interface FoldRequest {
  readonly limit: number;
}

/** One step of a recount: the causes after this one, at most so many. */
export interface RecountRequest {
  /** The `next` of the step before; empty to begin. */
  readonly after: string;
  readonly limit: number;
}

/** How many letters were missing from the counts, or counted too often, and where to continue; null at the end. */
export interface RecountAnswer {
  readonly mended: number;
  readonly next: string | null;
}

/** The holder of what no worker has done: an operator, or upkeep. */
export const NO_WORKER = "-";

/** A cause and where it was seen. */
export interface CausePlace {
  readonly fingerprint: string;
  readonly type: string;
  /** Empty where the worker has none. */
  readonly release: string;
}

/** The key of a place in a map; neither a type nor a release contains U+0000. */
export function placeName({ fingerprint, type, release }: CausePlace): string {
  return `${fingerprint}\0${type}\0${release}`;
}

/** What one write changes of causes, added up: a row is written once, however many jobs it is about. */
export class CauseChanges {
  readonly #all = new Map<string, CausePlace & { -readonly [K in keyof CauseCounts]: number }>();

  /** Adds to a count of a cause. */
  add(place: CausePlace, counts: Partial<CauseCounts>): void {
    const name = placeName(place);
    let sum = this.#all.get(name);
    if (!sum) {
      const { fingerprint, type, release } = place;
      sum = { fingerprint, type, release, failures: 0, deaths: 0, redriven: 0, removed: 0 };
      this.#all.set(name, sum);
    }
    sum.failures += counts.failures ?? 0;
    sum.deaths += counts.deaths ?? 0;
    sum.redriven += counts.redriven ?? 0;
    sum.removed += counts.removed ?? 0;
  }

  /** The sums. */
  all(): IterableIterator<CausePlace & CauseCounts> {
    return this.#all.values();
  }
}

/** A live letter leaves its cause for another one, whose fingerprint later rules have given it. */
export function moveLetter(changes: CauseChanges, place: CausePlace, fingerprint: string): void {
  changes.add(place, { removed: 1 });
  changes.add({ ...place, fingerprint }, { deaths: 1 });
}

/** The place of a page of causes: those with fewer live letters follow, and of as many those with a later name. */
export interface CausePosition {
  readonly live: number;
  readonly fingerprint: string;
}

/** The cursor of a page of causes. */
export function causeCursor({ live, fingerprint }: CausePosition): string {
  return `${live}.${fingerprint}`;
}

/** The position after which such a page begins; null for the first page. */
export function readCauseCursor(cursor: string | null | undefined): CausePosition | null {
  if (cursor === null || cursor === undefined) return null;
  const [, live, fingerprint] = /^([0-9]{1,15})\.(.{0,200})$/s.exec(cursor) ?? [];
  if (live === undefined || fingerprint === undefined || !fingerprint.isWellFormed() || fingerprint.includes("\0"))
    throw cursorError(cursor);
  return { live: Number(live), fingerprint };
}

/** A type and a release of a cause, how many runs failed there by it, and when the last did. */
export interface CauseSighting extends CausePlace {
  readonly failures: number;
  readonly lastAt: number | null;
}

/** The types and releases of a cause, from where it was seen. */
export function namesOfCause(seen: readonly CauseSighting[]): Pick<Cause, "types" | "releases" | "byRelease"> {
  const found = new Map<string, { readonly release: string; failures: number; lastAt: number }>();
  for (const { release, failures, lastAt } of seen) {
    // A letter that came from another cause is not counted as a failure of this one again, so it has no time.
    if (lastAt === null && release === "") continue;
    const sum = found.get(release) ?? { release, failures: 0, lastAt: 0 };
    found.set(release, { release, failures: sum.failures + failures, lastAt: Math.max(sum.lastAt, lastAt ?? 0) });
  }
  const lastFirst = [...found.values()].sort((a, b) => b.lastAt - a.lastAt || (a.release < b.release ? -1 : 1));
  const named = lastFirst.filter(({ release }) => release !== "").slice(0, NAMES_MOST);
  const shown = lastFirst.filter((each) => each.failures > 0 && (each.release === "" || named.includes(each)));
  return {
    types: [...new Set(seen.map(({ type }) => type))].sort().slice(0, NAMES_MOST),
    releases: named.map(({ release }) => release),
    byRelease: shown.map(({ release, failures }) => ({ release, failures })),
  };
}
