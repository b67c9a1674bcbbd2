// One step of one redrive run: read what became of its jobs, let core decide, carry it out. Letters and record are
// written in one commit, and only if the record is still the one that was read: of two drivers one is refused, and after a
// kill the next driver goes on exactly there.
import { redriveChanged } from "../core/event-log.ts";
import { isRedriveError } from "../core/errors.ts";
import type { Explanation, ReasonKind } from "../core/explain.ts";
import { textOf } from "../core/failure.ts";
import type { DeadLetter, Job } from "../core/job.ts";
import { rhythmOf, spreadMs } from "../core/recovery/allowance.ts";
import { type CountedRun, isCanary, pendingOf } from "../core/recovery/judge.ts";
import { openPatch } from "../core/recovery/merge-patch.ts";
import {
  drivenBy,
  type HeldRun,
  type Move,
  moved,
  nextMove,
  recalledOf,
  type RedriveRun,
  sentOf,
} from "../core/recovery/run.ts";
import type { Limits } from "../core/service.ts";
import type { RedriveRequest, Store } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import { type NextLetters, nextOfCanary, nextOfRest } from "./redrive-letters.ts";
import { runChange, type StoredRun } from "./run-cells.ts";

/** What driving a run needs. */
export interface RunDriving {
  readonly store: Store;
  readonly system: Pick<System, "monotonic">;
  readonly log: Log;
  readonly limits: Limits;
  /** Who drives. */
  readonly worker: () => string;
  /** Why a job is not running. */
  readonly explain: (job: Job) => Promise<Explanation>;
}

/** What a driver remembers of a run between two steps. */
export interface RunMemory {
  /** The counts that were seen last. */
  seen: string;
  /** Steps in which they did not change. */
  still: number;
  /** Nothing is sent before this moment of the monotonic clock. */
  notBefore: number;
}

/** The lease of a driver. */
export const DRIVER_LEASE_MS = 10_000;
/** How soon to look again at a run that another process has changed. */
const SOON_MS = 50;
/** The longest wait between two looks at the outcomes. */
const LOOK_MOST_MS = 2_000;
/** Letters that are taken back, and pending jobs that are explained, at a time. */
const RECALL_PAGE = 200;
const EXPLAINED = 3;

/** What holds a job back without its own fault; time in which it does is not counted. */
const HOLDS: ReadonlySet<ReasonKind> = new Set([
  "paused",
  "breaker",
  "hold",
  "group",
  "no_worker",
  "rate_limit",
] satisfies ReasonKind[]);

/** One step of a run; answers how long to wait before the next. */
export async function driveRun(
  driving: RunDriving,
  stored: StoredRun,
  memory: RunMemory,
  now: number,
): Promise<number> {
  const { store } = driving;
  const run = drivenBy(stored.run, driving.worker(), DRIVER_LEASE_MS, now);
  const [counts] = await store.redriveCounts([run.id]);
  if (!counts) return LOOK_MOST_MS;
  const seen = JSON.stringify(counts);
  memory.still = seen === memory.seen ? memory.still + 1 : 0;
  memory.seen = seen;
  const held = memory.still > 0 && run.state === "running" ? await holdOf(driving, run, counts) : null;
  const move = nextMove(run, { counts, held }, now);
  switch (move.kind) {
    case "rest":
      return LOOK_MOST_MS;
    case "send":
      return send(driving, stored, { run, memory, n: move.n, now });
    case "recall":
      return recall(driving, { ...stored, run });
    case "wait":
      return wait(driving, stored, run, { move, now, still: memory.still });
    default:
      return settle(driving, stored, { run, move, counts }, now);
  }
}

/** Writes a wait where it changes something that others must know: who drives, and what holds the run back. */
async function wait(
  { store, worker }: RunDriving,
  { run: before, version }: StoredRun,
  run: RedriveRun,
  { move, now, still }: { readonly move: Move & { kind: "wait" }; readonly now: number; readonly still: number },
): Promise<number> {
  const isOurs = before.driver?.worker === worker() && before.driver.until - now > DRIVER_LEASE_MS / 2;
  const isSame = before.waits === (move.held?.why ?? null);
  if (!isOurs || !isSame) await store.setCells([runChange(moved(run, move, now), version)]);
  return Math.max(move.ms, Math.min(LOOK_MOST_MS, move.ms * still));
}

/** Writes a move that changes the state or the step of the run, and tells the event log. */
async function settle(
  { store, worker }: RunDriving,
  { version }: StoredRun,
  { run, move, counts }: { readonly run: RedriveRun; readonly move: Move; readonly counts: CountedRun },
  now: number,
): Promise<number> {
  const after = moved(run, move, now);
  const [isWritten] = await store.setCells([runChange(after, version)]);
  const kind = isWritten ? EVENTS[move.kind] : undefined;
  if (kind !== undefined) {
    const { recent: _, ...sums } = counts;
    const details = { ...sums, step: run.step + 1, reason: after.reason, driver: worker() };
    await store.record([redriveChanged(kind, run.id, details)]);
  }
  return isWritten ? 0 : SOON_MS;
}

const EVENTS: { readonly [K in Move["kind"]]?: string } = {
  pass: "redrive.step",
  stop: "redrive.stopped",
  pause: "redrive.paused",
  finish: "redrive.completed",
};

/** The run as its driver has it, and how many letters it may send. */
interface Sending {
  readonly run: RedriveRun;
  readonly memory: RunMemory;
  readonly n: number;
  readonly now: number;
}

async function send(driving: RunDriving, stored: StoredRun, sending: Sending): Promise<number> {
  const { store, system } = driving;
  const { run, memory, n, now } = sending;
  const { version } = stored;
  const early = memory.notBefore - system.monotonic();
  if (early > 0) return early;
  const next = await (isCanary(run) ? nextOfCanary(driving, run, n) : nextOfRest(driving, run, n));
  const requests = requestsOf(driving, run, next);
  if (requests.length === 0) return sendNone(driving, stored, next, sending);
  const { everyMs } = rhythmOf(run.rate);
  const after = sentOf(run, { ...next, nextAt: now + everyMs }, now);
  const answers = await store.redrive(requests, runChange(after, version));
  // The commit was before the answer: a beat from here is a beat from there, however long it took.
  memory.notBefore = system.monotonic() + everyMs;
  return answers.includes("fenced") ? SOON_MS : 0;
}

/** Nothing to send now: the walk has passed letters that are not meant, is at its end, or something holds it back. */
async function sendNone(
  driving: RunDriving,
  stored: StoredRun,
  { cursor, walked, held }: NextLetters,
  { run, memory, now }: Sending,
): Promise<number> {
  if (held === null || cursor !== run.cursor) {
    const { version } = stored;
    const after = sentOf(run, { cursor, walked, nextAt: run.nextAt }, now);
    const [isWritten] = await driving.store.setCells([runChange(after, version)]);
    return isWritten ? 0 : SOON_MS;
  }
  memory.still += 1;
  return wait(driving, stored, run, { move: { kind: "wait", held, ms: 500 }, now, still: memory.still });
}

function requestsOf({ log }: RunDriving, run: RedriveRun, { letters }: NextLetters): RedriveRequest[] {
  const patch = run.patch === null ? null : openPatch(run.patch);
  return letters.flatMap(({ job, generation }, place) => {
    const request = { id: job.id, generation, delayMs: spreadMs(run.rate, place), redrive: run.id };
    if (patch === null) return [request];
    try {
      return [{ ...request, payload: patch(job.payload) }];
    } catch (error) {
      if (!isRedriveError(error)) throw error;
      log.warn(
        { job: job.id, redrive: run.id, error: textOf(error) },
        "a payload cannot be patched; its job stays dead",
      );
      return [];
    }
  });
}

/** Takes back a page of what was sent and not taken. */
async function recall({ store, worker }: RunDriving, { run, version }: StoredRun): Promise<number> {
  const page = await store.deadLetters({
    redrive: run.id,
    outcome: "none",
    sort: "enqueued",
    payloads: false,
    limit: RECALL_PAGE,
    cursor: run.cursor,
  });
  if (page.items.length > 0) await store.recall(page.items.map(({ job, generation }) => ({ id: job.id, generation })));
  const after = recalledOf(run, page.next);
  const [isWritten] = await store.setCells([runChange(after, version)]);
  if (isWritten && !after.recall) {
    const [counts] = await store.redriveCounts([run.id]);
    await store.record([redriveChanged("redrive.recalled", run.id, { recalled: counts?.recalled, driver: worker() })]);
  }
  return isWritten ? 0 : SOON_MS;
}

/** What holds back the jobs that were sent and have not run; null where one of those looked at may run. */
async function holdOf({ store, explain }: RunDriving, { id }: RedriveRun, counts: CountedRun): Promise<HeldRun | null> {
  if (pendingOf(counts) === 0) return null;
  const sent = { redrive: id, outcome: "none", sort: "enqueued", payloads: false } as const;
  const { items } = await store.deadLetters({ ...sent, limit: EXPLAINED });
  const waiting = items.filter(isWaiting).map(({ job }) => job);
  if (waiting.length === 0 || waiting.length < items.length) return null;
  const holds = (await Promise.all(waiting.map(explain))).map(({ reasons }) =>
    reasons.find(({ kind }) => HOLDS.has(kind)),
  );
  const [first] = holds;
  return first && holds.every((hold) => hold !== undefined) ? { why: first.message, until: first.at } : null;
}

/** True for a letter whose job waits as it was sent. */
function isWaiting({ job, generation }: DeadLetter): boolean {
  return job.state === "queued" && job.generation === generation + 1;
}
