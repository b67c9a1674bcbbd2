// The store thread: the only thread of its process that writes to the file. (A second one, of the same code, only reads.) Requests that arrive while a group is being
// written go with the next one, so commits are shared under load and no request waits without load. Groups are bounded,
// so that a heartbeat never waits long. A group is synced while the next is written; answers that promise durability
// wait for the sync, others do not.
import { isRedriveError, RedriveError } from "../../core/errors.ts";
import { realSystem } from "../../system/real.ts";
import { blockThread, insideThread } from "../../system/threads.ts";
import { VERBS } from "../verb-facts.ts";
import type { Sync } from "./address.ts";
import { type Engine, openEngine, type Reply, type Request } from "./engine.ts";
import { type ErrorWire, packError } from "./facade.ts";
import { fileIdentity, prepareFile } from "./file.ts";
import { UnsyncedAnswers } from "./unsynced-answers.ts";
import { type Beating, type PulseWire, startPulse } from "./pulse.ts";
import { type WalSync, openWalSync } from "./wal-sync.ts";
import type { NewJobsWire, SettleWire } from "./wire.ts";

/** What a thread is started with. */
export interface ThreadData {
  readonly path: string;
  readonly sync: Sync;
  /** It is asked questions only. */
  readonly readOnly: boolean;
}

/** A request with the number that its answer will carry. */
export type Numbered = readonly [number, Request];
/** A message to the thread: requests, a pulse to start, or the number of one to stop. */
export type Message = readonly Numbered[] | { readonly pulse: PulseWire } | { readonly unpulse: number };
/** An answer of the thread; those of a pulse carry its number, negative. */
export type Answer = readonly [number, { readonly value: unknown } | { readonly error: ErrorWire }];

/** About how many rows one transaction writes; a larger request still goes as a whole. */
const GROUP_ROWS = 1_000;

/** Rows of a request that justify a separate commit and sync. */
const CROWD = 32;

/** How often we check whether the file was deleted or replaced. */
const CHECK_FILE_EVERY_MS = 1_000;

/** True for a request whose answer is sent only when it is on disk. */
function promises({ verb, args }: Request): boolean {
  const { promises: isPromise } = VERBS[verb] as { readonly promises?: (...given: readonly unknown[]) => boolean };
  return isPromise?.(...args) ?? false;
}

interface Opened {
  readonly engine: Engine;
  readonly identity: string | null;
  /** Null where every commit is synced before it returns, or none must be. */
  readonly log: WalSync | null;
  readonly held: UnsyncedAnswers<Answer> | null;
}

const thread = insideThread();
const { path, sync, readOnly } = thread.data as ThreadData;
const pulses = new Map<number, Beating>();
const waiting: Numbered[] = [];
let opened: Opened | null = null;
let syncFailed = false;
/** Rows written with a promise of durability since everything was on disk. */
let unsyncedRows = 0;
let checkedAt = 0;

function rows({ verb, args }: Request): number {
  if (verb === "enqueue") return (args[0] as NewJobsWire).count;
  if (verb === "settle") return (args[0] as SettleWire).flat.length / 4;
  if (verb === "setCells") return (args[0] as unknown[]).length;
  if (verb === "claim") return (args[0] as { limit: number }).limit;
  return 1;
}

/** Takes the first requests that go into one transaction; heartbeats go first. */
function nextGroup(waiting: Numbered[]): Numbered[] {
  const beats = waiting.filter(([, request]) => request.verb === "beat");
  const others = beats.length === 0 ? waiting : waiting.filter(([, request]) => request.verb !== "beat");
  let count = 0;
  let weight = 0;
  while (count < others.length && weight < GROUP_ROWS) {
    const [, request] = others[count++] as Numbered;
    const size = rows(request);
    weight += size;
    // A caller of a large enqueue is answered before the next one is written.
    if (request.verb === "enqueue" && size >= CROWD) break;
  }
  const group = beats.concat(others.slice(0, count));
  waiting.splice(0, waiting.length, ...others.slice(count));
  return group;
}

/** The engine on the file at the path now: opened on first use, and again when the file was replaced. */
function current(): Engine {
  const now = realSystem.monotonic();
  if (opened && now - checkedAt > CHECK_FILE_EVERY_MS) {
    checkedAt = now;
    if (fileIdentity(path) !== opened.identity || opened.log?.isCurrent() === false) close();
  }
  if (opened) return opened.engine;
  prepareFile(path);
  opened = open(fileIdentity(path));
  syncFailed = false;
  checkedAt = now;
  return opened.engine;
}

function open(identity: string | null): Opened {
  const { now: clock, random } = realSystem;
  const whole = { path, clock, blockMs: blockThread, random };
  if (readOnly) return { engine: openEngine({ ...whole, readOnly }), identity, log: null, held: null };
  const engine = openEngine({ ...whole, unsynced: true, emptyLog: syncFailed });
  try {
    const log = engine.unsynced && sync === "full" ? openWalSync(path) : null;
    const release = (answers: Answer[], failed: Error | null): void => {
      if (failed) return fail(log, answers, failed);
      thread.post(answers);
    };
    return { engine, identity, log, held: log && new UnsyncedAnswers<Answer>(log, realSystem, release) };
  } catch (error) {
    engine.close();
    throw error;
  }
}

/** A sync failed: how much of the log is on disk is unknown, so the log is opened and written again. */
function fail(log: WalSync | null, answers: readonly Answer[], cause: Error): void {
  const error = packError(notSynced(cause));
  thread.post(answers.map(([number]): Answer => [number, { error }]));
  syncFailed = true;
  if (opened?.log === log) close();
}

function notSynced(cause: Error): RedriveError {
  const message =
    `The log of the database file could not be synced to disk: ${cause.message}. ` +
    "Whether this was written is unknown; try again with the same id, or check the store.";
  return new RedriveError("store_unavailable", message, { cause });
}

/** Syncs and answers what was written, and closes the file. */
function close(): void {
  const last = opened;
  opened = null;
  last?.held?.finish();
  last?.log?.close();
  last?.engine.close();
}

function carryOut(requests: readonly Request[]): Reply[] {
  try {
    return current().carryOut(requests);
  } catch (error) {
    if (!isRedriveError(error)) throw error;
    return requests.map(() => ({ error }));
  }
}

function answer(number: number, reply: Reply): Answer {
  return [number, "error" in reply ? { error: packError(reply.error) } : reply];
}

function sort(messages: readonly unknown[]): Numbered[] {
  const requests: Numbered[] = [];
  for (const message of messages as Message[]) {
    if ("pulse" in message) {
      const { number } = message.pulse;
      const tell = (reply: Reply): void => thread.post([answer(-number, reply)]);
      pulses.set(
        number,
        startPulse(message.pulse, realSystem, (request) => carryOut([request])[0] as Reply, tell),
      );
    } else if ("unpulse" in message) {
      pulses.get(message.unpulse)?.stop();
      pulses.delete(message.unpulse);
    } else requests.push(...message);
  }
  return requests;
}

/** Carries out one group of the waiting requests; true if more are left. */
function work(messages: unknown[]): boolean {
  waiting.push(...sort(messages));
  if (waiting.length === 0) return false;
  for (const pulse of pulses.values()) pulse.catchUp();
  const group = nextGroup(waiting);
  const replies = carryOut(group.map(([, request]) => request));
  const [now, held]: [Answer[], Answer[]] = [[], []];
  if (!opened?.held?.isBusy) unsyncedRows = 0;
  for (const [, request] of group) if (promises(request)) unsyncedRows += rows(request);
  const isBusy = unsyncedRows >= CROWD;
  group.forEach(([number, request], at) => {
    const reply = replies[at] as Reply;
    const isPromise = promises(request) || (request.verb === "claim" && isBusy);
    const waits = opened?.held && isPromise && !("error" in reply);
    (waits ? held : now).push(answer(number, reply));
  });
  if (now.length > 0) thread.post(now);
  const alone = group.length === 1 && waiting.length === 0 && rows((group[0] as Numbered)[1]) < CROWD;
  if (held.length > 0) opened?.held?.hold(held, alone);
  return waiting.length > 0;
}

thread.on({
  turn: work,
  stop() {
    for (const pulse of pulses.values()) pulse.stop();
    close();
  },
});
