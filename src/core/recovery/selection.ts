// Which dead letters a redrive run is about. A selection is frozen when it is planned: relative times become instants, and
// the number of the newest letter is its upper end, so that a job that dies later is not of the run.
import type { FailureClass } from "../job.ts";
import { namesOf } from "../options.ts";

/** What dead letters have in common; every field narrows. */
export interface LetterFields {
  /** Only those of this type. */
  readonly type?: string;
  /** Only those of this service. */
  readonly service?: string;
  /** Only those of this tenant. */
  readonly tenant?: string;
  /** Only those of jobs with this key. */
  readonly key?: string;
  /** Only failures of this class. */
  readonly class?: FailureClass;
  /** Only those of one cause. */
  readonly fingerprint?: string;
  /** Died at this instant or later, in epoch milliseconds. */
  readonly from?: number;
  /** Died before this instant, in epoch milliseconds. */
  readonly until?: number;
  /** Only those whose error's name or message contains this, 1 to 200 characters, in upper or lower case (A to Z). */
  readonly text?: string;
}

/** Their names. */
export const LETTER_FIELDS = namesOf<LetterFields>()([
  "type",
  "service",
  "tenant",
  "key",
  "class",
  "fingerprint",
  "from",
  "until",
  "text",
]);
/** Those that two letters of one selection have in common. */
const EXACT = ["type", "service", "tenant", "key", "class", "fingerprint"] as const;

/** Which dead letters; every field narrows. */
export interface Selection extends LetterFields {
  /** Only the letters of these jobs, at most 1,000. */
  readonly ids?: readonly string[];
  /** At most so many, the first in the order of enqueue. */
  readonly limit?: number;
}

/** A selection that no longer changes. */
export interface FrozenSelection extends Selection {
  /** The number of the newest letter that belongs to it. */
  readonly through: number;
  /** The place in the order of enqueue of the last letter that belongs to it, where its limit has cut others off. */
  readonly upTo?: string;
}

/** An instant in epoch milliseconds, or so long ago. */
export type Moment = number | { readonly agoMs: number };

/** A selection as it was asked for. */
export type AskedSelection = Omit<Selection, "from" | "until"> & {
  readonly from?: Moment;
  readonly until?: Moment;
};

/** Most ids of a selection: they are part of the record of the run. */
export const IDS_MOST = 1_000;

/** The selection with instants instead of relative times, up to the letter of this number. */
export function freeze(asked: AskedSelection, now: number, through: number): FrozenSelection {
  const { from, until, ...rest } = asked;
  const instant = (moment: Moment): number => (typeof moment === "number" ? moment : now - moment.agoMs);
  return {
    ...rest,
    ...(from !== undefined && { from: instant(from) }),
    ...(until !== undefined && { until: instant(until) }),
    through,
  };
}

/** False only where no letter can be of both: an exact field differs, the times are disjoint, or no id is of both. */
export function mayOverlap(a: Selection, b: Selection): boolean {
  if (EXACT.some((field) => a[field] !== undefined && b[field] !== undefined && a[field] !== b[field])) return false;
  if (endsBefore(a, b) || endsBefore(b, a)) return false;
  if (a.ids === undefined || b.ids === undefined) return true;
  const known = new Set(a.ids);
  return b.ids.some((id) => known.has(id));
}

function endsBefore({ until }: Selection, { from }: Selection): boolean {
  return until !== undefined && from !== undefined && until <= from;
}

/** The selection as a filter of dead letters; ids, limit and upper ends are left to the caller. */
export function filterOf(selection: Selection & Partial<FrozenSelection>): LetterFields {
  const { ids: _ids, limit: _limit, through: _through, upTo: _upTo, ...filter } = selection;
  return filter;
}

/** The selection for people, such as `cause 7f3a, type charge`. */
export function selectionText(selection: Selection & Partial<FrozenSelection>): string {
  const { ids, limit, from, until } = selection;
  const { fingerprint, from: _from, until: _until, ...rest } = filterOf(selection);
  const time = (at: number): string => new Date(at).toISOString();
  return [
    ...(ids ? [`${ids.length} ${ids.length === 1 ? "id" : "ids"}`] : []),
    ...(fingerprint === undefined ? [] : [`cause ${fingerprint}`]),
    ...Object.entries(rest).map(([field, value]) => `${field} ${String(value)}`),
    ...(from === undefined ? [] : [`from ${time(from)}`]),
    ...(until === undefined ? [] : [`until ${time(until)}`]),
    ...(limit === undefined ? [] : [`the first ${limit}`]),
  ].join(", ");
}
