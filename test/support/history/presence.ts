// What the history says about workers: nobody is given up before the end of the lease (R6), nobody works on after
// being given up (R9), and a lost run is called started exactly when its worker had said so (R7).
import { foldOldest } from "./charges.ts";
import type { HistoryEvent } from "./event.ts";
import { noteTold } from "./handlers.ts";
import { type Ledger, noteRun, openRun, type Track, type WorkerTrack } from "./ledger.ts";

/** A worker registered or beat. */
export function onContact(ledger: Ledger, event: HistoryEvent): void {
  if (event.worker === null) return;
  const worker = ledger.worker(event.worker);
  if (event.phase === "invoke") {
    if (event.op === "register") worker.registers++;
    worker.leaseMs = event.leaseMs;
    noteTried(worker, event);
    return;
  }
  if (event.phase === "ok" && event.answer === "given_up") return noteTold(ledger, event);
  if (event.phase !== "ok") return;
  if (event.op === "beat" && worker.givenUpAt !== 0 && event.since > worker.givenUpAt) {
    ledger.flag("R9", `worker ${event.worker} lives on after it was given up`, null);
  }
  // A repeated register does not move the lease, and which one counted is not known.
  if (event.storeTime >= 0 && (event.op === "beat" || worker.registers === 1)) {
    worker.leaseEnd = event.storeTime + event.leaseMs;
    worker.leaseSince = event.since;
    worker.leaseAt = event.seq;
  }
  noteStarted(ledger, event);
}

/** A worker says, in a call that it sends, how far its runs may have started; one settle is several events. */
export function noteTried(worker: WorkerTrack, { startedThrough, seq }: HistoryEvent): void {
  const isSameCall = startedThrough === worker.startedTried && worker.startedTriedAt === seq - 1;
  if (startedThrough > worker.startedTried || (isSameCall && seq > 1)) worker.startedTriedAt = seq;
  worker.startedTried = Math.max(worker.startedTried, startedThrough);
}

/** A worker's word that its runs up to a ticket have started reached the store. */
export function noteStarted(ledger: Ledger, event: HistoryEvent): void {
  if (event.worker === null || event.startedThrough < 0) return;
  const worker = ledger.worker(event.worker);
  if (event.op !== "claim") worker.startedKept = Math.max(worker.startedKept, event.startedThrough);
  else if (ledger.crashes.isBefore(event.since)) return;
  if (event.startedThrough <= worker.startedSure) return;
  worker.startedSure = event.startedThrough;
  worker.startedAt = event.seq;
}

/** A worker's process is known to be gone, or it left by itself: its lease protects nothing. */
export function onExcused(ledger: Ledger, event: HistoryEvent): void {
  if (event.worker !== null) ledger.worker(event.worker).excused = true;
}

/** A run was listed as lost. */
export function onListed(ledger: Ledger, track: Track, event: HistoryEvent): void {
  const run = openRun(track, event.epoch, foldOldest);
  if (run === undefined || event.worker === null) return;
  const worker = ledger.worker(event.worker);
  // After a step back a worker given up rightly is listed before its lease end, and a beat nobody heard of may have
  // lowered that end; so only leases asked for since then are judged.
  const known = worker.leaseAt !== 0 && worker.leaseAt < event.since && worker.leaseSince > ledger.clockBackAt;
  if (!worker.excused && known && event.storeTime < worker.leaseEnd) {
    const early = worker.leaseEnd - event.storeTime;
    ledger.flag("R6", `run ${event.epoch} was taken from its worker ${early} ms before the lease end`, track.id);
  }
  checkReaper(ledger, track, event);
  if (run.nonce !== null && run.nonce !== event.nonce) {
    ledger.flag("R5", `run ${event.epoch} is listed under another nonce`, track.id);
  }
  if (run.ticket >= 0 && event.started && run.ticket > worker.startedTried) {
    ledger.flag("R7", `run ${event.epoch} is called started, but its worker never said so`, track.id);
  }
  if (run.ticket >= 0 && !event.started && run.ticket <= worker.startedSure && worker.startedAt < event.since) {
    ledger.flag("R7", `run ${event.epoch} is called not started, but its worker had said so`, track.id);
  }
  if (worker.givenUpAt === 0) worker.givenUpAt = event.seq;
  noteRun(run, event);
  if (event.epoch > track.topEpoch) track.topEpoch = event.epoch;
}

/** Whoever judges a worker by its lease must have been in contact for all of that lease. */
function checkReaper(ledger: Ledger, track: Track, event: HistoryEvent): void {
  const worker = ledger.worker(event.worker ?? "");
  const judging = ledger.judging.get(event.actor);
  if (judging === undefined || judging.seq !== event.since - 1 || worker.excused || worker.givenUpAt !== 0) return;
  const leaseMs = worker.leaseMs || judging.leaseMs;
  if (judging.delayMs >= leaseMs) return;
  const contact = `${judging.delayMs} of ${leaseMs} ms`;
  ledger.flag("R9", `run ${event.epoch} was judged by a reaper in contact for ${contact}`, track.id);
}
