// The facts about every verb of a store, in one table: what it refuses, whether it only reads, whether its answer
// promises durability, and whether it may make work due. A new verb is a row here and its code in each store.
import { checkNewEvent } from "../core/event-log.ts";
import { DAY, FLOW_COUNTS, MINUTE } from "../core/flow.ts";
import { DEATH_REASONS, LATEST_INSTANT } from "../core/job.ts";
import {
  checkDelay,
  checkInteger,
  checkName,
  checkOneOf,
  checkPriority,
  checkTerms,
  checkText,
  JOB_BOUNDS,
} from "../core/new-job.ts";
import { invalid } from "../core/options.ts";
import { readCauseCursor } from "./causes.ts";
import { type CellChange, mustLast } from "./cells.ts";
import { checkNewJobs } from "./checked-jobs.ts";
import { readCursor, readDueCursor, readEnqueuedCursor } from "./cursor.ts";
import { FAILURE_PLACES } from "./failures.ts";
import type {
  EventQuery,
  Keep,
  LetterFilter,
  Reach,
  Retain,
  Retention,
  SettleRequest,
  Store,
  TrendQuery,
  TypeKeep,
} from "./store.ts";

/** The verbs that reach the data. */
export type Verb = Exclude<keyof Store, "name" | "remote" | "describe" | "pulse" | "within" | "onWake" | "close">;

/** The facts of one verb. */
export interface VerbFacts<K extends Verb> {
  /** What it refuses before anything is read or written, the same for every store. */
  readonly check?: (...args: Parameters<Store[K]>) => void;
  /** It changes nothing. */
  readonly reads?: true;
  /**
   * People ask it, and it may take long: a store answers it on a connection of its own, so that no worker waits behind
   * it. It sees everything that was answered before.
   */
  readonly forPeople?: true;
  /**
   * True for a call whose answer must survive a power loss: it is sent when everything is on disk, even if the call
   * wrote nothing, because the row that it reports (the job that has the key) may have been written a moment ago. Not
   * for a claim: in a power loss its worker dies too, and its jobs run again, as after any crash. Nor for cells, except
   * those that people write.
   */
  readonly promises?: (...args: Parameters<Store[K]>) => boolean;
  /** True for a call that may make work due. */
  readonly wakes?: (...args: Parameters<Store[K]>) => boolean;
}

const ALWAYS = (): boolean => true;

function freesWork({ settlements }: SettleRequest): boolean {
  return settlements.some(({ verdict, grouped }) => grouped || verdict.kind === "retry" || verdict.kind === "release");
}

const LEASE_MS_MOST = 86_400_000;
const PAGE_MOST = 200;
const SET_MOST = 10_000;
const TEXT_MOST = 200;
/** The most rows that a question may be told to look at. */
const LOOK_MOST = 1_000_000;
/** Room for a word and the longest tenant name. */
const CELL_NAME_MOST = 300;

/** The table. */
export const VERBS: { readonly [K in Verb]: VerbFacts<K> } = {
  migrate: { promises: ALWAYS },
  enqueue: {
    promises: ALWAYS,
    wakes: ALWAYS,
    check: checkNewJobs,
  },
  get: { reads: true },
  list: {
    reads: true,
    forPeople: true,
    check: ({ limit, sort, state, cursor, payloads = true, ...look }) => {
      checkInteger("limit", limit, 1, PAGE_MOST);
      checkLook(look);
      checkBoolean("payloads", payloads);
      if (sort === undefined) return void readCursor(cursor);
      checkOneOf("sort", sort, ["due"]);
      readDueCursor(cursor);
      if (state !== undefined && state !== "queued")
        throw invalid(
          "sort",
          "no sort, because only waiting jobs have a due time",
          sort,
          "leave it out, or ask for state queued",
        );
    },
  },
  count: {
    reads: true,
    forPeople: true,
    check: (atMost = 1) => checkInteger("atMost", atMost, 1, LOOK_MOST),
  },
  cancel: { promises: ALWAYS, wakes: ALWAYS },
  reschedule: {
    promises: ALWAYS,
    wakes: ALWAYS,
    check: (changes) => {
      for (const change of changes) {
        if (change.delayMs !== undefined) checkDelay(change.delayMs);
        if (change.priority !== undefined) checkPriority(change.priority);
      }
    },
  },
  lanes: {
    check: (after, limit) => {
      if (after !== null) checkInteger("after", after, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
      checkInteger("limit", limit, 1, SET_MOST);
    },
  },
  claim: {
    check: (request) => {
      checkInteger("limit", request.limit, 0, SET_MOST);
      checkText("nonce", request.nonce);
      checkInteger("ticket", request.ticket, 0, Number.MAX_SAFE_INTEGER);
      checkInteger("startedThrough", request.startedThrough, 0, Number.MAX_SAFE_INTEGER);
      for (const quota of request.quotas) checkInteger("quota", quota.limit, 0, SET_MOST);
    },
  },
  settle: {
    promises: ALWAYS,
    wakes: freesWork,
    check: ({ settlements, startedThrough = 0 }) => {
      checkInteger("startedThrough", startedThrough, 0, Number.MAX_SAFE_INTEGER);
      for (const { verdict } of settlements) {
        if ("delayMs" in verdict) checkDelay(verdict.delayMs);
        if (verdict.kind === "dead") checkOneOf("reason", verdict.reason, DEATH_REASONS);
        if ("said" in verdict && verdict.said) checkTerms(verdict.said);
      }
    },
  },
  holders: {
    reads: true,
    check: ({ type, group }) => {
      checkName("type", type);
      checkText("group", group);
    },
  },
  register: {
    check: (worker) => {
      checkName("worker", worker.id);
      checkText("host", worker.host);
      checkInteger("pid", worker.pid, 0, Number.MAX_SAFE_INTEGER);
      if (worker.release !== null) checkText("release", worker.release);
      checkInteger("lease", worker.leaseMs, 10, LEASE_MS_MOST);
    },
  },
  beat: {
    check: (beat) => {
      checkInteger("lease", beat.leaseMs, 10, LEASE_MS_MOST);
      checkInteger("startedThrough", beat.startedThrough, 0, Number.MAX_SAFE_INTEGER);
    },
  },
  expired: {
    check: ({ limit, lapsedBy = 0 }) => {
      checkInteger("limit", limit, 1, SET_MOST);
      checkInteger("lapsedBy", lapsedBy, 0, Number.MAX_SAFE_INTEGER);
    },
  },
  overdue: {
    reads: true,
    check: ({ limit, byMs = 0, ranMs = 0, named = [] }) => {
      checkInteger("limit", limit, 1, SET_MOST);
      checkInteger("byMs", byMs, 0, Number.MAX_SAFE_INTEGER);
      checkInteger("ranMs", ranMs, 0, Number.MAX_SAFE_INTEGER);
      for (const { type, stuckMs } of named) {
        checkName("type", type);
        checkInteger("stuck.after", stuckMs, 1, JOB_BOUNDS.delayMs);
      }
    },
  },
  held: { reads: true },
  leave: {},
  workers: { reads: true },
  deadLetters: {
    reads: true,
    forPeople: true,
    check: (query) => {
      checkInteger("limit", query.limit, 1, PAGE_MOST);
      checkLook(query);
      if (query.sort !== undefined) checkOneOf("sort", query.sort, ["enqueued"]);
      void (query.sort === undefined ? readCursor(query.cursor) : readEnqueuedCursor(query.cursor));
      checkBoolean("oldest", query.oldest ?? false);
      checkBoolean("payloads", query.payloads ?? true);
      checkFilter(query);
    },
  },
  tally: {
    reads: true,
    forPeople: true,
    check: (filter) => {
      checkLook(filter);
      checkFilter(filter);
    },
  },
  history: { reads: true, forPeople: true },
  redrive: {
    promises: ALWAYS,
    wakes: ALWAYS,
    check: (requests) => {
      for (const request of requests) checkDelay(request.delayMs);
    },
  },
  remove: { promises: ALWAYS },
  failures: {
    reads: true,
    check: ({ after, limit }) => {
      checkInteger("after", after, 0, Number.MAX_SAFE_INTEGER);
      checkInteger("limit", limit, 1, PAGE_MOST);
    },
  },
  setFingerprints: {
    check: (changes) => {
      for (const { of, seq, at, was, fingerprint } of changes) {
        checkOneOf("of", of, FAILURE_PLACES);
        checkInteger("seq", seq, 0, Number.MAX_SAFE_INTEGER);
        checkInteger("at", at, 0, Number.MAX_SAFE_INTEGER);
        checkText("was", was);
        checkText("fingerprint", fingerprint);
      }
    },
  },
  control: { reads: true },
  pause: {
    promises: ALWAYS,
    check: ({ kind, name }, { forMs, reason }) => {
      checkOneOf("kind", kind, ["queue", "type", "service", "tenant"]);
      checkText("name", name);
      if (reason !== "") checkText("reason", reason);
      if (forMs !== null) checkInteger("until", forMs, 1, JOB_BOUNDS.delayMs);
    },
  },
  resume: { promises: ALWAYS, wakes: ALWAYS },
  setService: {
    promises: ALWAYS,
    wakes: ALWAYS,
    check: (name, version, value) => {
      checkName("service", name);
      checkInteger("version", version, 0, Number.MAX_SAFE_INTEGER);
      if (typeof value !== "string") throw invalid("value", "text", value, "send JSON text");
    },
  },
  cells: {
    reads: true,
    check: (queries) => {
      for (const { kind, name = "" } of queries) {
        checkName("kind", kind);
        checkCellName("name", name);
      }
    },
  },
  setCells: {
    promises: (changes) => mustLast(changes),
    check: (changes) => {
      for (const change of changes) checkCell(change);
    },
  },
  record: {
    promises: ALWAYS,
    check: (events) => {
      checkInteger("events", events.length, 0, SET_MOST);
      events.forEach(checkNewEvent);
    },
  },
  events: { reads: true, forPeople: true, check: (query) => checkEventQuery(query) },
  prune: { promises: ALWAYS, check: (retention) => checkRetention(retention) },
  retain: { promises: ALWAYS, check: (request) => checkRetain(request) },
  addFlow: {
    check: ({ holder, counts }) => {
      checkText("holder", holder);
      for (const each of counts) {
        checkName("type", each.type);
        for (const count of FLOW_COUNTS) checkInteger(count, each[count], 0, Number.MAX_SAFE_INTEGER);
      }
    },
  },
  causes: {
    reads: true,
    check: ({ limit, cursor, fingerprint, idle = false }) => {
      checkInteger("limit", limit, 1, PAGE_MOST);
      readCauseCursor(cursor);
      if (fingerprint !== undefined) checkText("fingerprint", fingerprint);
      checkBoolean("idle", idle);
    },
  },
  trend: { reads: true, check: (query) => checkTrend(query) },
  fold: { check: ({ limit }) => checkInteger("limit", limit, 1, SET_MOST) },
  recount: {
    check: ({ after, limit }) => {
      checkCellName("after", after);
      checkInteger("limit", limit, 1, SET_MOST);
    },
  },
};

/** Every verb by name. */
export const VERB_NAMES = Object.keys(VERBS) as Verb[];

/** Most steps of one trend. */
const STEPS_MOST = 1_000;

function checkTrend({ fingerprint, type, from, until, stepMs }: TrendQuery): void {
  if (fingerprint !== undefined) checkText("fingerprint", fingerprint);
  if (type !== undefined) checkName("type", type);
  checkInteger("from", from, 0, LATEST_INSTANT);
  checkInteger("until", until, from, LATEST_INSTANT);
  checkInteger("stepMs", stepMs, MINUTE, 366 * DAY);
  if (stepMs % MINUTE !== 0) throw invalid("stepMs", "a number of full minutes", stepMs, "round it");
  if ((until - from) / stepMs <= STEPS_MOST) return;
  throw invalid("stepMs", `at most ${STEPS_MOST} steps between from and until`, stepMs, "use a longer step");
}

function checkCell({ kind, name, holder, version, value }: CellChange): void {
  checkName("kind", kind);
  checkCellName("name", name);
  checkCellName("holder", holder);
  if (version !== null) checkInteger("version", version, 0, Number.MAX_SAFE_INTEGER);
  if (value === null || (typeof value === "string" && isPlain(value))) return;
  throw invalid("value", "null or well-formed text without U+0000", value, "send JSON text");
}

function checkCellName(field: string, value: unknown): void {
  if (typeof value === "string" && value.length <= CELL_NAME_MOST && isPlain(value)) return;
  const expected = `well-formed text of up to ${CELL_NAME_MOST} characters without U+0000`;
  throw invalid(field, expected, value, "correct it; nothing was written");
}

function isPlain(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

function checkLook({ lookAt = 1 }: Reach): void {
  checkInteger("lookAt", lookAt, 1, LOOK_MOST);
}

function checkFilter({ service, tenant, key, from, until, text, aside = false }: LetterFilter): void {
  checkBoolean("aside", aside);
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

function checkEventQuery({ limit, cursor, oldest = false, kind, actor, subject, from, until }: EventQuery): void {
  checkInteger("limit", limit, 1, PAGE_MOST);
  readCursor(cursor);
  checkBoolean("oldest", oldest);
  if (kind !== undefined) checkName("kind", kind);
  if (actor !== undefined) checkText("actor", actor);
  if (subject !== undefined) checkCellName("subject", subject);
  if (from !== undefined) checkInteger("from", from, 0, LATEST_INSTANT);
  if (until !== undefined) checkInteger("until", until, 0, LATEST_INSTANT);
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

function checkRetention({ keep, types, keyMs, laneMs = 0, limit, isFirst }: Retention): void {
  checkKeepMs(keep);
  checkTypes(types);
  checkInteger("keyMs", keyMs, 0, Number.MAX_SAFE_INTEGER);
  checkInteger("laneMs", laneMs, 0, Number.MAX_SAFE_INTEGER);
  checkInteger("limit", limit, 1, SET_MOST);
  checkBoolean("isFirst", isFirst);
}

function checkRetain({ types, after, limit }: Retain): void {
  checkTypes(types);
  for (const { deadMs } of types) checkInteger("deadMs", deadMs, 0, JOB_BOUNDS.keepMs);
  checkInteger("after", after, 0, Number.MAX_SAFE_INTEGER);
  checkInteger("limit", limit, 1, SET_MOST);
}

function checkBoolean(field: string, value: unknown): void {
  if (typeof value !== "boolean") throw invalid(field, "true or false", value, "use one of these");
}
