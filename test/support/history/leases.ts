// What the history says about runs: one end per generation (R4), only under the current lease (R5), epochs that rise
// and runs that do not overlap (R6), legal transitions (R9).
import { checkCharges, foldOldest, tallyBefore } from "./charges.ts";
import type { HistoryEvent } from "./event.ts";
import { checkStarted } from "./handlers.ts";
import { END, endOf, findRun, type Ledger, noteRun, openRun, type Run, TERMINAL_ENDS, type Track } from "./ledger.ts";

/** Checks the answer to a claim for one job; returns its run unless that is too old to judge. */
export function onClaimed(ledger: Ledger, track: Track, event: HistoryEvent): Run | undefined {
  const { epoch } = event;
  const known = knownRun(ledger, track, event);
  if (known !== undefined && known.claimedAt !== 0) ledger.flag("R6", `epoch ${epoch} was given out twice`, track.id);
  if (epoch <= track.claimedEpoch && event.since > track.claimedAt) {
    ledger.flag("R6", `epoch ${epoch} came after epoch ${track.claimedEpoch}`, track.id);
  }
  if (known !== undefined && known.nonce !== null && known.nonce !== event.nonce) {
    ledger.flag("R5", `epoch ${epoch} is known under another nonce`, track.id);
  }
  const givenUpAt = event.worker === null ? 0 : ledger.worker(event.worker).givenUpAt;
  if (givenUpAt !== 0 && event.since > givenUpAt) ledger.flag("R9", "claimed by a worker that was given up", track.id);
  checkBefore(ledger, track, event);
  const run = openRun(track, epoch, foldOldest);
  if (run === undefined) return undefined;
  checkCharges(ledger, track, event, tallyBefore(track, epoch, event.generation), `claim ${epoch}`);
  if (event.maxAttempts >= 0 && event.attempts === event.maxAttempts) {
    ledger.flag("R7", `claim ${epoch} although all ${event.attempts} attempts are used up`, track.id);
  }
  noteRun(run, event);
  run.service = event.service;
  run.payloadHash = event.payloadHash;
  run.claimTime = event.storeTime;
  run.claimedAt = event.seq;
  track.topEpoch = Math.max(track.topEpoch, epoch);
  if (epoch > track.claimedEpoch) {
    track.claimedEpoch = epoch;
    track.claimedAt = event.seq;
  }
  return run;
}

/** The run of this epoch, unless a crash took it back and the epoch is given out again. */
function knownRun(ledger: Ledger, track: Track, event: HistoryEvent): Run | undefined {
  const known = findRun(track, event.epoch);
  const again = known !== undefined && known.nonce !== null && known.nonce !== event.nonce;
  return again && ledger.crashes.takeBack(ledger, track, known, event) ? undefined : known;
}

/** What came before a claim must allow it. */
function checkBefore(ledger: Ledger, track: Track, event: HistoryEvent): void {
  const { epoch, generation } = event;
  const before = findRun(track, epoch - 1);
  const forgotten = track.base !== null && epoch - 1 <= track.base.epoch;
  if (epoch > 1 && !forgotten && (before === undefined || (before.end === 0 && before.tries === 0))) {
    ledger.flag("R6", `claim ${epoch} while run ${epoch - 1} had not ended`, track.id);
  }
  if (before !== undefined && (before.end & TERMINAL_ENDS) !== 0 && before.generation === generation) {
    ledger.flag("R9", `claim ${epoch} of a job that had ended in this generation`, track.id);
  }
  if (track.final !== null && event.since > track.finalAt) {
    ledger.flag("R9", `claim ${epoch} of a job that was ${track.final}`, track.id);
  }
  if (track.recalled.includes(generation)) {
    ledger.flag("R9", `claim ${epoch} in generation ${generation}, which a recall has ended`, track.id);
  }
  if (generation > 1 + track.redriveTried) {
    const rule = track.redriveTried === 0 ? "R9" : "R14";
    ledger.flag(rule, `generation ${generation} after redrives of generation ${track.redriveTried} at most`, track.id);
  }
}

/** A settle was sent: from now on it may take effect. */
export function onSettleSent(ledger: Ledger, track: Track, event: HistoryEvent): void {
  if (!ledger.mayHold(findRun(track, event.epoch), event.nonce)) return;
  const run = openRun(track, event.epoch, foldOldest);
  if (run === undefined) return;
  run.tries++;
  if (event.worker !== null) run.ownTries = true;
  if (event.answer === "progress") return;
  const end = endOf(event.answer);
  if (run.end === 0) {
    run.chargeLeast = run.tried === 0 ? event.charge : Math.min(run.chargeLeast, event.charge);
    run.chargeMost = run.tried === 0 ? event.charge : Math.max(run.chargeMost, event.charge);
    run.crashLeast = run.tried === 0 ? event.crash : Math.min(run.crashLeast, event.crash);
    run.crashMost = run.tried === 0 ? event.crash : Math.max(run.crashMost, event.crash);
  }
  run.tried |= end;
  run.unheard = [...run.unheard, event.seq];
  if ((end & TERMINAL_ENDS) !== 0 || track.cancels > 0) track.terminalTried = true;
  if (event.epoch > track.topEpoch) track.topEpoch = event.epoch;
}

/** A word of progress was answered, or never will be: either way it has not ended the run. */
export function onSettleUnheard(track: Track, event: HistoryEvent): void {
  const run = findRun(track, event.epoch);
  if (run !== undefined && run.tries > 0) run.tries--;
}

/** A settle was confirmed. */
export function onSettled(ledger: Ledger, track: Track, event: HistoryEvent): void {
  const run = findRun(track, event.epoch);
  const end = endOf(event.answer);
  const old = run === undefined && track.base !== null && event.epoch <= track.base.epoch;
  if (!old && !ledger.mayHold(run, event.nonce)) {
    ledger.flag("R5", `${event.answer} of run ${event.epoch} with a nonce that no claim gave out`, track.id);
  }
  if (track.claimedEpoch > event.epoch && track.claimedAt < event.since) {
    ledger.flag("R5", `${event.answer} of run ${event.epoch} after claim ${track.claimedEpoch}`, track.id);
  }
  if (event.answer === "progress") {
    if (run !== undefined && run.end !== 0 && run.endAt < event.since) {
      ledger.flag("R5", `progress of run ${event.epoch} after its end`, track.id);
    }
    return onSettleUnheard(track, event);
  }
  if (run !== undefined) {
    checkStarted(ledger, track, run, event);
    if (run.end !== 0) ledger.flag("R5", `run ${event.epoch} ended twice under one lease`, track.id);
    run.end = end;
    run.endSince = event.since;
    run.endAt = event.seq;
    run.endTime = event.storeTime;
    run.chargeLeast = run.chargeMost = event.charge;
    run.crashLeast = run.crashMost = event.crash;
    run.reaped = event.worker === null && event.crash > 0;
    const isTimed = event.storeTime >= 0 && !ledger.mayHaveSteppedBack(event.since);
    if (isTimed && event.delayMs >= 0) run.notBefore = event.storeTime + event.delayMs;
  }
  if ((end & TERMINAL_ENDS) === 0) return;
  const generation = event.generation >= 0 ? event.generation : (run?.generation ?? -1);
  noteEnd(
    ledger,
    track,
    end === END.complete ? "completed" : end === END.dead ? "dead" : "cancelled",
    generation,
    event,
  );
}

/** A settle was confirmed or refused, so that nobody need guess what became of it. */
export function onSettleHeard(track: Track, event: HistoryEvent): void {
  const run = findRun(track, event.epoch);
  if (run !== undefined && run.unheard.length > 0) run.unheard = run.unheard.filter((seq) => seq !== event.since);
}

/** A settle was refused because its lease was not current, which must be true. */
export function onStale(ledger: Ledger, track: Track, event: HistoryEvent): void {
  ledger.totals.staleRefused++;
  const run = findRun(track, event.epoch);
  if (run === undefined || !ledger.mayHold(run, event.nonce)) return;
  const isCurrent = event.epoch === track.topEpoch && run.end === 0 && run.tries === 1 && run.claimedAt !== 0;
  if (isCurrent && !ledger.crashes.takeBack(ledger, track, run, event)) {
    ledger.flag("R5", `${event.answer} of run ${event.epoch} was refused although its lease was current`, track.id);
  }
}

/** A job came to an end: once per generation, and for good unless it died. */
export function noteEnd(
  ledger: Ledger,
  track: Track,
  kind: "completed" | "cancelled" | "dead",
  generation: number,
  event: HistoryEvent,
): void {
  const known = generation !== -1 && (track.deaths.includes(generation) || track.finalGeneration === generation);
  const again = known || (kind !== "dead" && track.final !== null);
  if (++track.ends > 1 + track.redriveTried || again) {
    ledger.totals.doubleAcked++;
    ledger.flag("R4", `${kind} although generation ${generation} had already ended`, track.id);
  }
  if (kind !== "dead" || track.final === null) {
    track.endKind = kind;
    track.endTime = event.storeTime;
  }
  if (kind === "dead") {
    track.deaths = [...track.deaths, generation];
    return;
  }
  track.final = kind;
  track.finalGeneration = generation;
  track.finalAt = event.seq;
}
