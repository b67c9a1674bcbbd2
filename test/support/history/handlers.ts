// What the history says about handlers and about what workers report of them: nothing is reported that was refused
// (R5), a run is charged as started only if its handler was called (R7), and runs are told to stop once their worker
// knows that it was given up (R9). Judges only workers of which the test said that it watches them.
import type { FinalDump, HistoryEvent } from "./event.ts";
import { END, findRun, type Ledger, type Run, type Track } from "./ledger.ts";

/** A word of the test about a process: it works under a new id, it is about to stop, or it has ended. */
export function onWatched(ledger: Ledger, event: HistoryEvent): void {
  if (event.answer === "ended") ledger.staff.delete(event.actor);
  if (event.worker === null) return;
  ledger.worker(event.worker).watched = event.answer === "watched";
  if (event.answer === "watched") ledger.staff.set(event.actor, event.worker);
}

/** At the end every process that lives must be a worker that lives (R15). */
export function checkStaff(ledger: Ledger, dump: FinalDump): void {
  if (!dump.drained || ledger.staff.size === 0) return;
  const leases = new Map<string, number>();
  for (const { id, leaseEnd } of dump.workers) leases.set(id, leaseEnd);
  for (const [actor, worker] of ledger.staff) {
    if ((leases.get(worker) ?? 0) >= dump.storeTime) continue;
    ledger.flag("R15", `${actor} lives, but as worker ${worker} it has no lease any more`, null);
  }
}

/** A worker learned that the others have given it up. */
export function noteTold(ledger: Ledger, event: HistoryEvent): void {
  if (event.worker === null) return;
  const worker = ledger.worker(event.worker);
  if (worker.toldAt === 0) worker.toldAt = event.seq;
}

/** A handler was called. */
export function onStarted(ledger: Ledger, track: Track, event: HistoryEvent): void {
  const run = findRun(track, event.epoch);
  if (run !== undefined) run.called = true;
  if (run !== undefined && run.nonce !== event.nonce) {
    ledger.flag("R5", `run ${event.epoch} started under another nonce than it was claimed with`, track.id);
  }
  if (findRun(track, event.epoch - 1)?.reaped) ledger.totals.extraRuns++;
}

/** A handler returned, and had been told to stop or not. */
export function onReturned(ledger: Ledger, track: Track, event: HistoryEvent): void {
  if (event.worker === null || event.answer === "stopped") return;
  const { toldAt } = ledger.worker(event.worker);
  if (toldAt > event.since) {
    ledger.flag("R9", `run ${event.epoch} was not told to stop when its worker was given up`, track.id);
  }
}

/** A worker says what became of a run, which must be what the store said. */
export function onReported(ledger: Ledger, track: Track, event: HistoryEvent): void {
  const run = findRun(track, event.epoch);
  const end = END[event.answer as keyof typeof END];
  if (run === undefined || run.end === end) return;
  if (run.end === 0 && run.lostAck && (run.tried & end) !== 0) {
    // The answer was lost, and the worker found out that it had counted: from here on everything must agree.
    run.end = end;
    run.endSince = event.since;
    run.endAt = event.seq;
    return;
  }
  if (event.answer === "complete") ledger.totals.doubleAcked++;
  ledger.flag("R5", `${event.answer} of run ${event.epoch} is reported, but the store did not take it`, track.id);
}

/** A reaper charged an attempt: the handler must have been called, where that can be known. */
export function checkStarted(ledger: Ledger, track: Track, run: Run, event: HistoryEvent): void {
  if (event.worker !== null || event.charge < 1 || run.worker === null || run.claimedAt === 0) return;
  // A run that its worker tried to end was taken care of, and one with a deadline may have been too late to start.
  const excused = run.called || run.ownTries || track.deadline;
  const { watched, actedAt, startedTriedAt } = ledger.worker(run.worker);
  // It said that the run may have started, and was halted before it did anything else: the call of the handler too.
  const isHalted = actedAt > 0 && actedAt === startedTriedAt;
  if (excused || isHalted || !watched) return;
  ledger.flag("R7", `run ${run.epoch} was charged as started, but its handler was never called`, track.id);
}
