// The verbs of a store as plain synchronous functions, and the way from them to the contract. Memory and SQLite both
// decide and write without waiting, so what they share (argument checks, closing, wake-ups) stands here once.
import { RedriveError } from "../core/errors.ts";
import { DEATH_REASONS, LATEST_INSTANT, type Terms } from "../core/job.ts";
import {
  checkDelay,
  checkInteger,
  checkKeep,
  checkName,
  checkNewJob,
  checkOneOf,
  checkPriority,
  checkText,
  JOB_BOUNDS,
} from "../core/new-job.ts";
import { invalid } from "../core/options.ts";
import type { CellChange } from "./cells.ts";
import { readCursor, readDueCursor } from "./cursor.ts";
import type { Keep, LetterFilter, Retain, Retention, SettleRequest, Store, TypeKeep } from "./store.ts";

/** The verbs that reach the data. */
export type Verb = Exclude<keyof Store, "name" | "remote" | "notice" | "pulse" | "within" | "onWake" | "close">;

/** Every verb without its promise. */
export type Verbs = { readonly [K in Verb]: (...args: Parameters<Store[K]>) => Awaited<ReturnType<Store[K]>> };

/** Verbs after which work may have become due. */
const WAKING: ReadonlySet<Verb> = new Set(["enqueue", "cancel", "reschedule", "redrive", "resume", "setService"]);

/** True if work may have become due through this call. */
function wakes(verb: Verb, args: readonly unknown[]): boolean {
  if (verb !== "settle") return WAKING.has(verb);
  const { settlements } = args[0] as SettleRequest;
  return settlements.some(({ verdict, grouped }) => grouped || verdict.kind === "retry" || verdict.kind === "release");
}

const LEASE_MS_MOST = 86_400_000;
const PAGE_MOST = 200;
const SET_MOST = 10_000;
const TEXT_MOST = 200;
/** Room for a word and the longest tenant. */
const CELL_NAME_MOST = 300;

/** What each verb refuses before anything is touched, the same for every store. */
export const CHECKS: { readonly [K in Verb]?: (...args: Parameters<Store[K]>) => void } = {
  enqueue: (jobs) => {
    for (const job of jobs) checkNewJob(job);
  },
  list: ({ limit, sort, state, cursor, payloads = true }) => {
    checkInteger("limit", limit, 1, PAGE_MOST);
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
  deadLetters: (query) => {
    checkInteger("limit", query.limit, 1, PAGE_MOST);
    readCursor(query.cursor);
    checkBoolean("oldest", query.oldest ?? false);
    checkBoolean("payloads", query.payloads ?? true);
    checkFilter(query);
  },
  tally: (filter) => checkFilter(filter),
  reschedule: (changes) => {
    for (const change of changes) {
      if (change.delayMs !== undefined) checkDelay(change.delayMs);
      if (change.priority !== undefined) checkPriority(change.priority);
    }
  },
  lanes: (after, limit) => {
    if (after !== null) checkInteger("after", after, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
    checkInteger("limit", limit, 1, SET_MOST);
  },
  claim: (request) => {
    checkInteger("limit", request.limit, 0, SET_MOST);
    checkText("nonce", request.nonce);
    checkInteger("ticket", request.ticket, 0, Number.MAX_SAFE_INTEGER);
    checkInteger("startedThrough", request.startedThrough, 0, Number.MAX_SAFE_INTEGER);
    for (const quota of request.quotas) checkInteger("quota", quota.limit, 0, SET_MOST);
  },
  settle: ({ settlements, startedThrough = 0 }) => {
    checkInteger("startedThrough", startedThrough, 0, Number.MAX_SAFE_INTEGER);
    for (const { verdict } of settlements) {
      if ("delayMs" in verdict) checkDelay(verdict.delayMs);
      if (verdict.kind === "dead") checkOneOf("reason", verdict.reason, DEATH_REASONS);
      if ("said" in verdict && verdict.said) checkTerms(verdict.said);
    }
  },
  holders: ({ type, group }) => {
    checkName("type", type);
    checkText("group", group);
  },
  register: (worker) => {
    checkName("worker", worker.id);
    checkText("host", worker.host);
    checkInteger("pid", worker.pid, 0, Number.MAX_SAFE_INTEGER);
    if (worker.release !== null) checkText("release", worker.release);
    checkInteger("lease", worker.leaseMs, 10, LEASE_MS_MOST);
  },
  beat: (beat) => {
    checkInteger("lease", beat.leaseMs, 10, LEASE_MS_MOST);
    checkInteger("startedThrough", beat.startedThrough, 0, Number.MAX_SAFE_INTEGER);
  },
  expired: ({ limit, lapsedBy = 0 }) => {
    checkInteger("limit", limit, 1, SET_MOST);
    checkInteger("lapsedBy", lapsedBy, 0, Number.MAX_SAFE_INTEGER);
  },
  overdue: ({ limit, byMs = 0, ranMs = 0, named = [] }) => {
    checkInteger("limit", limit, 1, SET_MOST);
    checkInteger("byMs", byMs, 0, Number.MAX_SAFE_INTEGER);
    checkInteger("ranMs", ranMs, 0, Number.MAX_SAFE_INTEGER);
    for (const { type, stuckMs } of named) {
      checkName("type", type);
      checkInteger("stuck.after", stuckMs, 1, JOB_BOUNDS.delayMs);
    }
  },
  redrive: (requests) => {
    for (const request of requests) checkDelay(request.delayMs);
  },
  pause: ({ kind, name }, { forMs, reason }) => {
    checkOneOf("kind", kind, ["queue", "type", "service", "tenant"]);
    checkText("name", name);
    if (reason !== "") checkText("reason", reason);
    if (forMs !== null) checkInteger("until", forMs, 1, JOB_BOUNDS.delayMs);
  },
  setService: (name, version, value) => {
    checkName("service", name);
    checkInteger("version", version, 0, Number.MAX_SAFE_INTEGER);
    if (typeof value !== "string") throw invalid("value", "text", value, "send JSON text");
  },
  cells: (queries) => {
    for (const { kind, name = "" } of queries) {
      checkName("kind", kind);
      checkCellName("name", name);
    }
  },
  setCells: (changes) => {
    for (const change of changes) checkCell(change);
  },
  prune: (retention) => checkRetention(retention),
  retain: (request) => checkRetain(request),
};

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

function checkFilter({ service, tenant, from, until, text, aside = false }: LetterFilter): void {
  checkBoolean("aside", aside);
  if (service !== undefined) checkText("service", service);
  if (tenant !== undefined) checkText("tenant", tenant);
  if (from !== undefined) checkInteger("from", from, 0, LATEST_INSTANT);
  if (until !== undefined) checkInteger("until", until, 0, LATEST_INSTANT);
  if (text === undefined) return;
  const legal = typeof text === "string" && text.length >= 1 && text.length <= TEXT_MOST;
  if (legal && isPlain(text)) return;
  throw invalid("text", `well-formed text of 1 to ${TEXT_MOST} characters without U+0000`, text, "change it");
}

function checkTerms(terms: Terms): void {
  checkInteger("maxAttempts", terms.maxAttempts, 1, JOB_BOUNDS.attempts);
  checkInteger("maxCrashes", terms.maxCrashes, 1, JOB_BOUNDS.crashes);
  for (const field of ["deadlineMs", "stuckMs", "stuckRetryMs", "stuckLimit"] as const)
    if (terms[field] !== null) checkInteger(field, terms[field], 0, JOB_BOUNDS.delayMs);
  checkKeep(terms);
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

/** Of the bad runs of a generation the first and this many of the last are kept. */
export const HISTORY_TAIL = 9;

/** The error every verb gives after `close`. */
export function closedError(): RedriveError {
  return new RedriveError("closed", "The store was closed. Open a new one to go on.");
}

/** True for something that has the form of a lease; anything else is stale by definition. */
export function isLease(value: { id: unknown; epoch: unknown; nonce: unknown }): boolean {
  return typeof value.id === "string" && Number.isSafeInteger(value.epoch) && typeof value.nonce === "string";
}

/** Tells everybody; what a listener does wrong is not the fault of whoever wrote to the store. */
export function ring(listeners: Iterable<() => void>): void {
  for (const listener of listeners) {
    try {
      listener();
    } catch {
      // A hint less; polling is the truth.
    }
  }
}

/** What a store has beside its verbs. */
export interface StoreLife {
  /** As in the contract. */
  readonly notice?: string;
  /** Who wants to hear that work may have become due. */
  readonly wake: Set<() => void>;
  readonly remote?: boolean;
  readonly pulse?: NonNullable<Store["pulse"]>;
  readonly within?: NonNullable<Store["within"]>;
  readonly close: () => Promise<void>;
}

/** Makes a store from a function that carries out one verb, in this thread or another. */
export function storeFrom(
  name: Store["name"],
  carryOut: (verb: Verb, args: readonly unknown[]) => Promise<unknown>,
  life: StoreLife,
): Store {
  let closing: Promise<void> | null = null;
  const call =
    (verb: Verb) =>
    async (...args: never[]): Promise<unknown> => {
      if (closing) throw closedError();
      (CHECKS[verb] as ((...given: never[]) => void) | undefined)?.(...args);
      const answer = await carryOut(verb, args);
      if (life.wake.size > 0 && wakes(verb, args)) ring(life.wake);
      return answer;
    };
  const verbs = Object.fromEntries(VERB_NAMES.map((verb) => [verb, call(verb)])) as unknown as Pick<Store, Verb>;
  return {
    name,
    remote: life.remote ?? false,
    ...(life.notice !== undefined && { notice: life.notice }),
    ...verbs,
    ...(life.pulse && { pulse: life.pulse }),
    ...(life.within && { within: life.within }),
    onWake(listener) {
      life.wake.add(listener);
      return () => life.wake.delete(listener);
    },
    close() {
      closing ??= life.close();
      return closing;
    },
  };
}

/** Every verb by name; the compiler sees to it that none is missing. */
export const VERB_NAMES = Object.keys({
  migrate: 0,
  enqueue: 0,
  get: 0,
  list: 0,
  count: 0,
  cancel: 0,
  reschedule: 0,
  lanes: 0,
  claim: 0,
  settle: 0,
  holders: 0,
  register: 0,
  beat: 0,
  expired: 0,
  overdue: 0,
  held: 0,
  leave: 0,
  workers: 0,
  deadLetters: 0,
  tally: 0,
  history: 0,
  redrive: 0,
  remove: 0,
  control: 0,
  pause: 0,
  resume: 0,
  setService: 0,
  cells: 0,
  setCells: 0,
  prune: 0,
  retain: 0,
} satisfies Record<Verb, 0>) as Verb[];
