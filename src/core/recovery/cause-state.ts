// What people have said about a cause, and when its news end that: a mute by time or by new deaths, a fix by a failure of
// what was said to have it.
//
//   open ──mute──► muted ──its time is over, or so many more died──► open
//   open, muted, regressed ──fix──► fixed ──a failure of the fixing release or a later one──► regressed
//   fixed, regressed ──reopen──► open
//
// A release is later than another if this store saw it first later; names are never compared. Failures of releases that
// the store saw before the fixing one are named and change nothing: their workers do not have the fix.
import { formatDuration } from "../duration.ts";
import { fieldsFrom } from "../options.ts";

/** The states of a cause. */
export const CAUSE_STATES = ["open", "muted", "fixed", "regressed"] as const;
/** One of `CAUSE_STATES`. */
export type CauseState = (typeof CAUSE_STATES)[number];

/** How many runs of a release have failed by a cause; an empty release is that of workers without one. */
export interface ReleaseFailures {
  /** The release of the worker; empty for a worker without one. */
  readonly release: string;
  /** Its failed runs. */
  readonly failures: number;
}

/** A release that the store has seen, and when first. */
export interface SeenRelease {
  readonly release: string;
  readonly at: number;
}

/** What is recorded about a cause. Times are those of the store. */
export interface CauseRecord {
  readonly state: CauseState;
  /** When it got this state; 0 if it has always been open. */
  readonly at: number;
  /** The operator that gave it this state; null where a worker did. */
  readonly by: string | null;
  /** When a mute ends; null for one that new deaths end. */
  readonly until: number | null;
  /** How many more deaths end a mute; null for one that time ends. */
  readonly more: number | null;
  /** The deaths that it had when it was muted. */
  readonly deathsAtMute: number;
  /** The release that has the fix; null for a fix that holds from its time on. */
  readonly release: string | null;
  /** The failures of each release when it was marked fixed. */
  readonly before: readonly ReleaseFailures[];
  /** The release in which it came back; empty for one without a name, null if it did not come back. */
  readonly back: string | null;
  readonly note: string | null;
  readonly owner: string | null;
  /** The event about this state that the log may not have yet; null for none. */
  readonly untold: CauseChange | null;
}

/** What a worker finds out about a cause. */
export type CauseChange = "unmuted" | "regressed";

/** The record of a cause about which there is nothing to say. */
export const OPEN_CAUSE: CauseRecord = Object.freeze({
  state: "open",
  at: 0,
  by: null,
  until: null,
  more: null,
  deathsAtMute: 0,
  release: null,
  before: Object.freeze([]),
  back: null,
  note: null,
  owner: null,
  untold: null,
});

/** Reads a record from its stored text; what is not readable counts as open. */
export function causeFrom(text: string): CauseRecord {
  const fields = fieldsFrom(text);
  const number = (name: string): number | null =>
    Number.isSafeInteger(fields[name]) ? (fields[name] as number) : null;
  const word = (name: string): string | null => (typeof fields[name] === "string" ? (fields[name] as string) : null);
  const before = Array.isArray(fields.before) ? (fields.before as unknown[]) : [];
  return {
    state: CAUSE_STATES.find((state) => state === fields.state) ?? "open",
    at: number("at") ?? 0,
    by: word("by"),
    until: number("until"),
    more: number("more"),
    deathsAtMute: number("deathsAtMute") ?? 0,
    release: word("release"),
    before: before.filter(isCounted),
    back: word("back"),
    note: word("note"),
    owner: word("owner"),
    untold: (["unmuted", "regressed"] as const).find((change) => change === fields.untold) ?? null,
  };
}

function isCounted(value: unknown): value is ReleaseFailures {
  const { release, failures } = (value ?? {}) as Partial<Record<keyof ReleaseFailures, unknown>>;
  return typeof release === "string" && Number.isSafeInteger(failures);
}

/** The record as stored: without what says nothing. */
export function causeText(cause: CauseRecord): string {
  const said = Object.entries(cause).filter(([, value]) => value !== null && value !== 0 && !isEmpty(value));
  return JSON.stringify(Object.fromEntries(said));
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

/** What the store knows of a cause now. */
export interface CauseNews {
  /** All deaths that it ever had. */
  readonly deaths: number;
  /** All failures that it ever had, by release. */
  readonly failures: readonly ReleaseFailures[];
  /** Failed runs known to have started after the cause got its state. */
  readonly startedSince: number;
}

/** The cause after its news. */
export interface CauseTurn {
  readonly cause: CauseRecord;
  readonly change: CauseChange | null;
  /** Failures since the fix that do not reopen it. */
  readonly still: readonly ReleaseFailures[];
}

/** The cause after its news; `releases` are in the order in which the store saw them first. */
export function causeAfter(
  cause: CauseRecord,
  news: CauseNews,
  releases: readonly SeenRelease[],
  now: number,
): CauseTurn {
  if (cause.state === "muted" && isMuteOver(cause, news, now))
    return { cause: turned(cause, "open", null, now, { untold: "unmuted" }), change: "unmuted", still: [] };
  if (cause.state !== "fixed") return { cause, change: null, still: [] };
  const since = failuresSince(cause, news);
  const unfixed = since.filter(({ release }) => hasFix(cause, release, releases));
  if (unfixed.length > 0 || (cause.release === null && news.startedSince > 0)) {
    const order = releases.map(({ release }) => release);
    const [first = since[0]] = unfixed.toSorted((a, b) => order.indexOf(a.release) - order.indexOf(b.release));
    const { release, before } = cause;
    const back = { release, before, back: first?.release ?? "", untold: "regressed" } as const;
    return { cause: turned(cause, "regressed", null, now, back), change: "regressed", still: [] };
  }
  return { cause, change: null, still: since };
}

function isMuteOver({ until, more, deathsAtMute }: CauseRecord, { deaths }: CauseNews, now: number): boolean {
  return (until !== null && now >= until) || (more !== null && deaths - deathsAtMute >= more);
}

function failuresSince({ before }: CauseRecord, { failures }: CauseNews): ReleaseFailures[] {
  const known = new Map(before.map((each) => [each.release, each.failures]));
  return failures
    .map(({ release, failures: all }) => ({ release, failures: all - (known.get(release) ?? 0) }))
    .filter((since) => since.failures > 0);
}

/**
 * True for a release that should have the fix: the fixing one, or one that the store saw first later. Where no release
 * was named, one that it saw first after the fix.
 */
function hasFix({ release: fixing, at }: CauseRecord, release: string, releases: readonly SeenRelease[]): boolean {
  const place = releases.findIndex((seen) => seen.release === release);
  if (place < 0) return false;
  if (fixing === null) return (releases[place] as SeenRelease).at > at;
  const from = releases.findIndex((seen) => seen.release === fixing);
  return from >= 0 && place >= from;
}

function turned(
  { note, owner }: CauseRecord,
  state: CauseState,
  by: string | null,
  at: number,
  rest: Partial<CauseRecord> = {},
): CauseRecord {
  return { ...OPEN_CAUSE, note, owner, ...rest, state, by, at };
}

/** A mute: until a time, until so many more died, or whichever comes first. */
export interface Mute {
  readonly until: number | null;
  readonly more: number | null;
  /** The deaths that the cause has now. */
  readonly deaths: number;
}

/** The cause after an operator muted it. */
export function muted(cause: CauseRecord, { until, more, deaths }: Mute, by: string, now: number): CauseRecord {
  return turned(cause, "muted", by, now, { until, more, deathsAtMute: deaths });
}

/** The cause after an operator marked it fixed: in a release, or from now on. */
export function fixed(
  cause: CauseRecord,
  { release, before }: Pick<CauseRecord, "release" | "before">,
  by: string,
  now: number,
): CauseRecord {
  return turned(cause, "fixed", by, now, { release, before });
}

/** The cause after an operator ended its mute, or reopened it. */
export function opened(cause: CauseRecord, by: string, now: number): CauseRecord {
  return turned(cause, "open", by, now);
}

/** What an operator does to the state of a cause. */
export type CauseAction = "mute" | "unmute" | "fix" | "reopen";

/** Why the state of the cause does not allow it, with who gave it that state and when, and what to do; null if it does. */
export function whyNotNow(cause: CauseRecord, action: CauseAction, now: number): string | null {
  const { state } = cause;
  if (action === "mute" && state === "fixed") return `${stateText(cause, now)}; reopen it before you mute it`;
  if (action === "fix" && state === "fixed") return `${stateText(cause, now)}; reopen it before you mark it again`;
  if (action === "unmute" && state !== "muted") return `it is not muted: ${stateText(cause, now)}`;
  if (action !== "reopen" || state === "fixed" || state === "regressed") return null;
  const rest = state === "muted" ? "; unmute it instead" : "";
  return `it is neither fixed nor regressed: ${stateText(cause, now)}${rest}`;
}

/** The state of a cause as a sentence: who gave it, when, and what ends it. */
export function stateText(cause: CauseRecord, now: number): string {
  const { state, by, at, until, more, release, back } = cause;
  const ago = at === 0 ? "" : now - at < 1_000 ? " just now" : ` ${formatDuration(now - at)} ago`;
  if (state === "muted") {
    const time = until === null ? [] : [`for ${formatDuration(Math.max(0, until - now))} more`];
    const deaths = more === null ? [] : [`until ${more} more died`];
    return `${by ?? "a worker"} muted it${ago}, ${[...time, ...deaths].join(" or ")}`;
  }
  const where = release === null ? "" : ` in ${release}`;
  if (state === "fixed") return `${by ?? "a worker"} marked it fixed${where}${ago}`;
  if (state === "regressed") return `it was fixed${where} and came back${back ? ` in ${back}` : ""}${ago}`;
  return at === 0 ? "it is open" : `${by === null ? "its mute ended" : `${by} opened it`}${ago}`;
}

/** `still 12 from 1.4.1, 3 without a release`; empty for none. */
export function stillText(still: readonly ReleaseFailures[]): string {
  const parts = still.map(({ release, failures }) =>
    release === "" ? `${failures} without a release` : `${failures} from ${release}`,
  );
  return parts.length === 0 ? "" : `still ${parts.join(", ")}`;
}
