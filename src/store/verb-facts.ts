// The facts about every verb of a store, in one table: what it refuses, whether it only reads, whether its answer
// promises durability, and whether it may make work due. A new verb is a row here and its code in each store.
import { checkNewEvent } from "../core/event-log.ts";
import { FLOW_COUNTS } from "../core/flow.ts";
import { DEATH_REASONS, LATEST_INSTANT } from "../core/job.ts";
import {
  checkDelay,
  checkInteger,
  checkName,
  checkOneOf,
  checkPayload,
  checkPriority,
  checkTerms,
  checkText,
  JOB_BOUNDS,
} from "../core/new-job.ts";
import { invalid } from "../core/options.ts";
import { readCauseCursor } from "./causes.ts";
import { mustLast } from "./cells.ts";
import { checkNewJobs } from "./checked-jobs.ts";
import { readCursor, readDueCursor, readEnqueuedCursor } from "./cursor.ts";
import { checkPayloadChange } from "./payloads.ts";
import { FAILURE_PLACES } from "./failures.ts";
import {
  checkBoolean,
  checkCell,
  checkCellName,
  checkEventQuery,
  checkFilter,
  checkLook,
  checkPauseTarget,
  checkRetain,
  checkRetention,
  checkListRange,
  checkRange,
  checkTrend,
  LOOK_MOST,
  PAGE_MOST,
  SET_MOST,
} from "./verb-checks.ts";
import type { SettleRequest, Store } from "./store.ts";

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
      checkListRange(query);
      checkFilter(query);
    },
  },
  tally: {
    reads: true,
    forPeople: true,
    check: (filter) => {
      checkLook(filter);
      checkRange(filter);
      checkFilter(filter);
    },
  },
  history: { reads: true, forPeople: true },
  redrive: {
    promises: ALWAYS,
    wakes: ALWAYS,
    check: (requests, fence) => {
      for (const { delayMs, redrive, payload } of requests) {
        checkDelay(delayMs);
        if (redrive !== undefined) checkName("redrive", redrive);
        if (payload !== undefined) checkPayload(payload);
      }
      if (fence !== undefined) checkCell(fence);
    },
  },
  recall: {
    promises: ALWAYS,
    wakes: ALWAYS,
    check: (targets) => {
      checkInteger("targets", targets.length, 0, SET_MOST);
      for (const { repair, ...target } of targets)
        if (repair !== undefined) checkPayloadChange({ ...target, ...repair });
    },
  },
  redriveCounts: {
    reads: true,
    check: (ids) => {
      checkInteger("ids", ids.length, 0, SET_MOST);
      for (const id of ids) checkName("redrive", id);
    },
  },
  repair: {
    promises: ALWAYS,
    check: (changes) => {
      checkInteger("changes", changes.length, 0, SET_MOST);
      changes.forEach(checkPayloadChange);
    },
  },
  payloads: { reads: true, forPeople: true },
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
    check: (target, { forMs, reason }) => {
      checkPauseTarget(target);
      if (reason !== "") checkText("reason", reason);
      if (forMs !== null) checkInteger("until", forMs, 1, JOB_BOUNDS.delayMs);
    },
  },
  resume: { promises: ALWAYS, wakes: ALWAYS, check: (target) => checkPauseTarget(target) },
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
    forPeople: true,
    check: ({ limit, cursor, fingerprint, idle = false, since = 0 }) => {
      checkInteger("limit", limit, 1, PAGE_MOST);
      readCauseCursor(cursor);
      if (fingerprint !== undefined) checkText("fingerprint", fingerprint);
      checkBoolean("idle", idle);
      checkInteger("since", since, 0, LATEST_INSTANT);
    },
  },
  trend: { reads: true, forPeople: true, check: (query) => checkTrend(query) },
  figures: {
    reads: true,
    forPeople: true,
    check: ({ lanes, jobs, letters, notes }) => {
      checkInteger("lanes", lanes, 1, SET_MOST);
      checkInteger("jobs", jobs, 1, LOOK_MOST);
      checkInteger("letters", letters, 1, LOOK_MOST);
      checkName("notes", notes);
    },
  },
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
