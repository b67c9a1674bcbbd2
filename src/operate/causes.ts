// The causes of failures: lists them with their counts, shows one, and records what people say of it. Counts are read
// from sums, so that the answer takes as long for a million letters as for ten; what only letters know (tenants, services,
// classes) comes from a bounded look at the newest.
import { type Duration, parseDuration } from "../core/duration.ts";
import { RedriveError } from "../core/errors.ts";
import { subjectOf } from "../core/event-log.ts";
import { HOUR, MINUTE } from "../core/flow.ts";
import { checkInteger, checkText, JOB_BOUNDS } from "../core/new-job.ts";
import { invalid, namesOf, parseOptions } from "../core/options.ts";
import {
  type CauseAction,
  causeFrom,
  type CauseRecord,
  type CauseState,
  causeText,
  fixed,
  muted,
  opened,
  OPEN_CAUSE,
  type ReleaseFailures,
  type SeenRelease,
  stateText,
  whyNotNow,
} from "../core/recovery/cause-state.ts";
import type { ActionOptions, EventLog } from "../report/event-log.ts";
import type { Cause, CauseQuery, Cell, Page, Store } from "../store/store.ts";
import { CAUSE_CELLS, causeRecords, causeTurn, releaseReader } from "../upkeep/cause-news.ts";
import { causeTrend } from "./cause-trend.ts";
import { checkCursor } from "./filter.ts";
import { type LettersSeen, lettersOfCause } from "./cause-letters.ts";
import { isoTime } from "./json-form.ts";

/** A cause as shown to people. Times are epoch milliseconds by the store's clock. */
export interface CauseView
  extends Pick<Cause, "fingerprint" | "deaths" | "failures" | "firstAt" | "lastAt" | "types" | "sample"> {
  /** `open`, `muted`, `fixed`, or `regressed`: fixed and back. */
  readonly state: CauseState;
  /** The state in words: who gave it, when, and what ends it. */
  readonly says: string;
  /** Its dead letters that were neither sent back to work nor deleted. */
  readonly dead: number;
  /** The failures of the last hour, in steps of ten minutes, the oldest first. */
  readonly trend: readonly number[];
  /** How many runs of each release failed by it, the last seen first; an empty release is that of workers without one. */
  readonly releases: readonly ReleaseFailures[];
  /** When it got its state; null if it has always been open. */
  readonly since: number | null;
  /** The operator that gave it its state; null where a worker did. */
  readonly by: string | null;
  /** When its mute ends; null where it is not muted for a time. */
  readonly until: number | null;
  /** How many more deaths end its mute; null where it is not muted by deaths. */
  readonly more: number | null;
  /** The release that has the fix; null for none. */
  readonly fixedIn: string | null;
  /** The release in which it came back; null if it did not, or the workers have no release. */
  readonly backIn: string | null;
  /** Failures since the fix that do not reopen it, by release. */
  readonly still: readonly ReleaseFailures[];
  /** What people noted; null for nothing. */
  readonly note: string | null;
  /** The person or team that takes care of it; null for none. */
  readonly owner: string | null;
}

/** A cause with what its newest letters say. */
export interface CauseDetails extends CauseView {
  /** What its newest letters say. */
  readonly letters: LettersSeen;
}

/** Lists causes and records what people say of them. Every change is an action in the event log. */
export interface Causes {
  /**
   * A page of causes, those with the most dead letters first. `limit` is 1 to 200 (default 50), `cursor` the `next` of the
   * page before; `idle: true` adds causes without a dead letter.
   */
  list(query?: Partial<Pick<CauseQuery, "limit" | "cursor" | "idle">>): Promise<Page<CauseView>>;
  /** One cause; rejects with `not_found` if the store has none of this fingerprint. */
  get(fingerprint: string): Promise<CauseDetails>;
  /** Mutes it for a time (1 ms to 10 years), until so many more died (1 to 1,000,000,000), or whichever comes first. */
  mute(
    fingerprint: string,
    options: { readonly for?: Duration; readonly more?: number } & ActionOptions,
  ): Promise<CauseView>;
  /** Ends its mute. */
  unmute(fingerprint: string, options?: ActionOptions): Promise<CauseView>;
  /**
   * Marks it as fixed in a release, which need not run yet, or from now on. A failure of that release, or of one that the
   * store saw first later, reopens it as `regressed`; without a release, a failed run that started after the fix.
   */
  fix(fingerprint: string, options?: { readonly in?: string } & ActionOptions): Promise<CauseView>;
  /** Takes back that it was fixed, or that it came back. */
  reopen(fingerprint: string, options?: ActionOptions): Promise<CauseView>;
  /** Replaces its note, of up to 1,000 characters; null removes it. */
  note(fingerprint: string, text: string | null, options?: ActionOptions): Promise<CauseView>;
  /** Names the person or team that takes care of it; null removes the name. */
  own(fingerprint: string, owner: string | null, options?: ActionOptions): Promise<CauseView>;
}

const QUERY = namesOf<NonNullable<Parameters<Causes["list"]>[0]>>()(["limit", "cursor", "idle"]);
const STEP_MS = 10 * MINUTE;
const MORE_MOST = 1_000_000_000;
const NOTE_MOST = 1_000;
/** A write that meets another one is tried again so often, where the state is still the one that was read. */
const TRIES = 3;

/** The causes of a store. */
export function openCauses({ store, eventLog }: { readonly store: Store; readonly eventLog: EventLog }): Causes {
  const releases = releaseReader(store);
  const change = openChanges(store, eventLog, releases);
  const why = (options: object, verb: string): unknown => parseOptions(options, ["why"], verb).why;
  return {
    list: (query = {}) => listCauses(store, query, releases),
    async get(fingerprint) {
      const found = await readCause(store, fingerprint);
      const [view, letters] = await Promise.all([viewOf(store, found, releases), lettersOfCause(store, fingerprint)]);
      return { ...view, letters };
    },
    async mute(fingerprint, options) {
      const { for: span, more = null, why: said } = parseOptions(options, ["for", "more", "why"], "mute");
      const forMs = span === undefined ? null : parseDuration(span, "for", { minMs: 1, maxMs: JOB_BOUNDS.delayMs });
      if (more !== null) checkInteger("more", more, 1, MORE_MOST);
      if (forMs === null && more === null)
        throw invalid("mute", "for, more or both", "neither", "say when the mute ends");
      const mute = { forMs, more: more as number | null };
      return change(fingerprint, { kind: "muted", action: "mute", why: said, details: mute }, (record, cause, now) => {
        const end = { until: forMs === null ? null : now + forMs, more: mute.more, deaths: cause.deaths };
        return muted(record, end, eventLog.actor, now);
      });
    },
    unmute: async (fingerprint, options = {}) =>
      change(fingerprint, { kind: "unmuted", action: "unmute", why: why(options, "unmute") }, (record, _cause, now) =>
        opened(record, eventLog.actor, now),
      ),
    async fix(fingerprint, options = {}) {
      const { in: release = null, why: said } = parseOptions(options, ["in", "why"], "fix");
      if (release !== null) checkText("in", release);
      const act = { kind: "fixed", action: "fix", why: said, details: { release } } as const;
      return change(fingerprint, act, (record, { byRelease }, now) =>
        fixed(record, { release: release as string | null, before: byRelease }, eventLog.actor, now),
      );
    },
    reopen: async (fingerprint, options = {}) =>
      change(fingerprint, { kind: "reopened", action: "reopen", why: why(options, "reopen") }, (record, _cause, now) =>
        opened(record, eventLog.actor, now),
      ),
    async note(fingerprint, note, options = {}) {
      if (note !== null) checkNote(note);
      const act = { kind: "noted", action: null, why: why(options, "note"), details: { note } } as const;
      return change(fingerprint, act, (record) => ({ ...record, note }));
    },
    async own(fingerprint, owner, options = {}) {
      if (owner !== null) checkText("owner", owner);
      const act = { kind: "noted", action: null, why: why(options, "own"), details: { owner } } as const;
      return change(fingerprint, act, (record) => ({ ...record, owner }));
    },
  };
}

function checkNote(text: unknown): void {
  const isText = typeof text === "string" && text !== "" && text.isWellFormed() && !text.includes("\0");
  if (!isText || text.length > NOTE_MOST)
    throw invalid("note", `well-formed text of 1 to ${NOTE_MOST} characters`, text, "shorten it, or pass null");
}

/** A cause, its record and the cell of the record. */
interface FoundCause {
  readonly cause: Cause;
  /** As it is now; the cell may say what was true before the news. */
  readonly record: CauseRecord;
  readonly cell: Cell | null;
  readonly now: number;
}

type ReadReleases = () => Promise<readonly SeenRelease[]>;

async function listCauses(
  store: Store,
  query: Parameters<Causes["list"]>[0] = {},
  releases: ReadReleases,
): Promise<Page<CauseView>> {
  const { limit = 50, cursor = null, idle = false } = parseOptions(query, QUERY, "causes") as Partial<CauseQuery>;
  checkCursor(cursor);
  const [page, { cells, now }] = await Promise.all([
    store.causes({ limit, cursor, idle }),
    store.cells([{ kind: CAUSE_CELLS }]),
  ]);
  const records = causeRecords(cells);
  const found = page.items.map((cause) => {
    return { cause, record: records.get(cause.fingerprint) ?? OPEN_CAUSE, now };
  });
  return { ...page, items: await Promise.all(found.map((each) => viewOf(store, each, releases))) };
}

/** True where the cause has still the state that was read; its notes may differ. */
function isSameState(a: FoundCause, b: FoundCause): boolean {
  const [one, other] = [a, b].map(({ cell }) => (cell ? causeFrom(cell.value) : OPEN_CAUSE));
  return one?.state === other?.state && one?.at === other?.at;
}

/** Reads a cause; throws for one that the store does not know. */
async function readCause(store: Store, fingerprint: string): Promise<FoundCause> {
  checkText("fingerprint", fingerprint);
  const [{ items }, { cells, now }] = await Promise.all([
    store.causes({ fingerprint, idle: true, limit: 1 }),
    store.cells([{ kind: CAUSE_CELLS, name: fingerprint }]),
  ]);
  const [cause] = items;
  const [cell = null] = cells;
  if (!cause) {
    const message = `There is no cause ${JSON.stringify(fingerprint.slice(0, 80))}. Copy its fingerprint from the list of causes.`;
    throw new RedriveError("not_found", message, { details: { fingerprint } });
  }
  return { cause, cell, record: cell ? causeFrom(cell.value) : OPEN_CAUSE, now };
}

/** The cause as it is now, also where no worker has looked at it yet. */
async function viewOf(
  store: Store,
  { cause, record: stored, now }: Pick<FoundCause, "cause" | "record" | "now">,
  releases: ReadReleases,
): Promise<CauseView> {
  const { fingerprint, live, deaths, failures, firstAt, lastAt, types, byRelease, sample } = cause;
  const span = { from: Math.max(0, now - HOUR + STEP_MS), until: now + 1, stepMs: STEP_MS };
  const [trend, { cause: record, still }] = await Promise.all([
    causeTrend(store, { ...span, fingerprint }),
    causeTurn(store, stored, cause, releases, now),
  ]);
  const { state, at, by, until, more, release, back, note, owner } = record;
  return {
    fingerprint,
    state,
    says: stateText(record, now),
    dead: live,
    deaths,
    failures,
    firstAt,
    lastAt,
    trend: trend.map((step) => step.failures),
    types,
    releases: byRelease,
    sample,
    since: at === 0 ? null : at,
    by,
    until,
    more: more === null ? null : more - (deaths - record.deathsAtMute),
    fixedIn: release,
    backIn: back === "" ? null : back,
    still,
    note,
    owner,
  };
}

/** A change of what people say of a cause, for the event log. */
interface Saying {
  readonly kind: "muted" | "unmuted" | "fixed" | "reopened" | "noted";
  /** What it does to the state; null for a change that does not concern it. */
  readonly action: CauseAction | null;
  readonly why: unknown;
  readonly details?: object;
}

type NextCause = (record: CauseRecord, cause: Cause, now: number) => CauseRecord;

/**
 * Changes records. A state that does not allow the change is refused before the event log has an intent; one that another
 * operator, or a worker, has changed meanwhile is a conflict that names who and when.
 */
function openChanges(store: Store, eventLog: EventLog, releases: ReadReleases) {
  const current = async (fingerprint: string): Promise<FoundCause> => {
    const found = await readCause(store, fingerprint);
    const { cause } = await causeTurn(store, found.record, found.cause, releases, found.now);
    return { ...found, record: cause };
  };
  const write = async (seen: FoundCause, next: NextCause): Promise<void> => {
    let found = seen;
    for (let tries = 0; tries < TRIES; tries++) {
      const { cause, record, cell, now } = found;
      const { fingerprint } = cause;
      const value = causeText(next(record, cause, now));
      const key = { kind: CAUSE_CELLS, name: fingerprint, holder: "" };
      const [isWritten] = await store.setCells([{ ...key, version: cell?.version ?? 0, value }]);
      if (isWritten) return;
      found = await current(fingerprint);
      if (!isSameState(found, seen)) break;
    }
    const { fingerprint } = seen.cause;
    const said = stateText(found.record, found.now);
    const message = `Cause ${fingerprint} has changed meanwhile: ${said}. Look at it again, and repeat what you still want.`;
    throw new RedriveError("conflict", message, { details: { fingerprint, by: found.record.by, at: found.record.at } });
  };
  return async (fingerprint: string, saying: Saying, next: NextCause): Promise<CauseView> => {
    const { kind, action, why, details = {} } = saying;
    const seen = await current(fingerprint);
    const refusal = action === null ? null : whyNotNow(seen.record, action, seen.now);
    if (refusal !== null) {
      const { by, at, state } = seen.record;
      const message = `Cause ${fingerprint} was not changed: ${refusal}.`;
      throw new RedriveError("illegal_transition", message, { details: { fingerprint, state, by, at } });
    }
    const act = { kind: `cause.${kind}`, subject: subjectOf("cause", fingerprint), why, details };
    await eventLog.act(act, () => write(seen, next));
    return viewOf(store, await readCause(store, fingerprint), releases);
  };
}

/** A cause as JSON for callers. Scripts rely on the first seven fields. */
export function causeForm(view: CauseView): object {
  const { fingerprint, state, dead, firstAt, lastAt, types, sample, since, until, ...rest } = view;
  return {
    fingerprint,
    state,
    dead,
    firstSeen: isoTime(firstAt),
    lastSeen: isoTime(lastAt),
    types,
    sample: sample ?? { name: "", message: "" },
    since: isoTime(since),
    until: isoTime(until),
    ...rest,
  };
}
