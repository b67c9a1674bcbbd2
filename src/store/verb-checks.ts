// The checks of arguments that several verbs share, or that are long.
import { checkActor, checkSubject, isPlain } from "../core/event-log.ts";
import { DAY, MINUTE } from "../core/flow.ts";
import { LATEST_INSTANT, LETTER_OUTCOMES } from "../core/job.ts";
import { checkInteger, checkName, checkOneOf, checkText, JOB_BOUNDS } from "../core/new-job.ts";
import { invalid } from "../core/options.ts";
import type { CellChange } from "./cells.ts";
import { readCursor, readEnqueuedCursor } from "./cursor.ts";
import type {
  DeadLetterQuery,
  EventQuery,
  Keep,
  LetterFilter,
  LetterRange,
  PauseTarget,
  Reach,
  Retain,
  Retention,
  TrendQuery,
  TypeKeep,
} from "./store.ts";

/** Most items of a page. */
export const PAGE_MOST = 200;
/** Most items of one call. */
export const SET_MOST = 10_000;
const TEXT_MOST = 200;
/** The most rows that a question may be told to look at. */
export const LOOK_MOST = 1_000_000;
/** Room for a word and the longest tenant name. */
const CELL_NAME_MOST = 300;

/** Most steps of one trend. */
const STEPS_MOST = 1_000;

/** Refuses a trend that is no question about steps. */
export function checkTrend({ fingerprint, type, from, until, stepMs }: TrendQuery): void {
  if (fingerprint !== undefined) checkText("fingerprint", fingerprint);
  if (type !== undefined) checkName("type", type);
  checkInteger("from", from, 0, LATEST_INSTANT);
  checkInteger("until", until, from, LATEST_INSTANT);
  checkInteger("stepMs", stepMs, MINUTE, 366 * DAY);
  if (stepMs % MINUTE !== 0) throw invalid("stepMs", "a number of full minutes", stepMs, "round it");
  if ((until - from) / stepMs <= STEPS_MOST) return;
  throw invalid("stepMs", `at most ${STEPS_MOST} steps between from and until`, stepMs, "use a longer step");
}

/** Refuses a cell that cannot be stored. */
export function checkCell({ kind, name, holder, version, value }: CellChange): void {
  checkName("kind", kind);
  checkCellName("name", name);
  checkCellName("holder", holder);
  if (version !== null) checkInteger("version", version, 0, Number.MAX_SAFE_INTEGER);
  if (value === null || (typeof value === "string" && isPlain(value))) return;
  throw invalid("value", "null or well-formed text without U+0000", value, "send JSON text");
}

/** Refuses a name that cannot be one of a cell. */
export function checkCellName(field: string, value: unknown): void {
  if (typeof value === "string" && value.length <= CELL_NAME_MOST && isPlain(value)) return;
  const expected = `well-formed text of up to ${CELL_NAME_MOST} characters without U+0000`;
  throw invalid(field, expected, value, "correct it; nothing was written");
}

/** Refuses a look at nothing, or without a bound. */
export function checkLook({ lookAt = 1 }: Reach): void {
  checkInteger("lookAt", lookAt, 1, LOOK_MOST);
}

/** Refuses an upper end that is none. */
export function checkRange({ through, upTo }: LetterRange): void {
  if (through !== undefined) checkInteger("through", through, 0, Number.MAX_SAFE_INTEGER);
  if (upTo !== undefined) readEnqueuedCursor(upTo);
}

/** Refuses an upper end where the letters are not in the order of enqueue. */
export function checkListRange(query: DeadLetterQuery): void {
  checkRange(query);
  const end = query.through ?? query.upTo;
  if (end !== undefined && query.sort === undefined)
    throw invalid("through", 'no upper end without sort "enqueued"', end, "leave it out");
}

/** Refuses a filter of letters that means nothing. */
export function checkFilter(filter: LetterFilter): void {
  const { service, tenant, key, from, until, text, redrive, outcome, aside = false } = filter;
  checkBoolean("aside", aside);
  if (redrive !== undefined) checkName("redrive", redrive);
  if (outcome !== undefined) checkOneOf("outcome", outcome, [...LETTER_OUTCOMES, "none"]);
  if (key !== undefined) checkText("key", key);
  if (service !== undefined) checkText("service", service);
  if (tenant !== undefined) checkText("tenant", tenant);
  if (from !== undefined) checkInteger("from", from, 0, LATEST_INSTANT);
  if (until !== undefined) checkInteger("until", until, 0, LATEST_INSTANT);
  if (text === undefined) return;
  const legal = typeof text === "string" && text.length >= 1 && text.length <= TEXT_MOST;
  if (legal && isPlain(text)) return;
  throw invalid("text", `well-formed text of 1 to ${TEXT_MOST} characters without U+0000`, text, "change it");
}

/** Refuses a question about events that means nothing. */
export function checkEventQuery({
  limit,
  cursor,
  oldest = false,
  kind,
  actor,
  subject,
  from,
  until,
  intents = [],
}: EventQuery): void {
  checkInteger("limit", limit, 1, PAGE_MOST);
  readCursor(cursor);
  checkBoolean("oldest", oldest);
  if (kind !== undefined) checkName("kind", kind);
  if (actor !== undefined) checkActor("actor", actor);
  if (subject !== undefined) checkSubject(subject);
  if (from !== undefined) checkInteger("from", from, 0, LATEST_INSTANT);
  if (until !== undefined) checkInteger("until", until, 0, LATEST_INSTANT);
  checkInteger("intents", intents.length, 0, PAGE_MOST);
  for (const intent of intents) checkInteger("intents", intent, 1, Number.MAX_SAFE_INTEGER);
}

/** Refuses what cannot be paused. */
export function checkPauseTarget({ kind, name }: PauseTarget): void {
  checkOneOf("kind", kind, ["queue", "type", "service", "tenant"]);
  checkText("name", name);
}

function checkKeepMs({ finishedMs, deadMs }: Keep): void {
  checkInteger("finishedMs", finishedMs, 0, JOB_BOUNDS.keepMs);
  if (deadMs !== null) checkInteger("deadMs", deadMs, 0, JOB_BOUNDS.keepMs);
}

function checkTypes(types: readonly TypeKeep[]): void {
  types.forEach(checkKeepMs);
  const seen = new Set<string>();
  for (const { type } of types) {
    checkName("type", type);
    if (seen.has(type)) throw invalid("types", "each type once", type, "leave one of the two out");
    seen.add(type);
  }
}

/** Refuses a retention that means nothing. */
export function checkRetention({ keep, types, keyMs, laneMs = 0, limit, isFirst, holdDead = false }: Retention): void {
  checkKeepMs(keep);
  checkTypes(types);
  checkInteger("keyMs", keyMs, 0, Number.MAX_SAFE_INTEGER);
  checkInteger("laneMs", laneMs, 0, Number.MAX_SAFE_INTEGER);
  checkInteger("limit", limit, 1, SET_MOST);
  checkBoolean("isFirst", isFirst);
  checkBoolean("holdDead", holdDead);
}

/** Refuses a move of expiries that means nothing. */
export function checkRetain({ types, after, limit }: Retain): void {
  checkTypes(types);
  for (const { deadMs } of types) checkInteger("deadMs", deadMs, 0, JOB_BOUNDS.keepMs);
  checkInteger("after", after, 0, Number.MAX_SAFE_INTEGER);
  checkInteger("limit", limit, 1, SET_MOST);
}

/** Refuses what is neither true nor false. */
export function checkBoolean(field: string, value: unknown): void {
  if (typeof value !== "boolean") throw invalid(field, "true or false", value, "use one of these");
}
