// What the history says about operators and observers: cancel, redrive and recall (R4, R9, R14), and what people saw of jobs and
// their dead letters (R1, R7, R8, R9).
import type { Conservation } from "./conservation.ts";
import type { HistoryEvent } from "./event.ts";
import { END, findRun, type Ledger, noteMoved, type Track } from "./ledger.ts";
import { noteEnd } from "./leases.ts";

/** A cancel, sent or answered. */
export function onCancel(ledger: Ledger, track: Track, event: HistoryEvent): void {
  if (event.phase === "invoke") {
    track.cancels++;
    return;
  }
  if (event.phase === "fail") {
    track.cancels--;
    return;
  }
  if (event.phase === "unknown") {
    track.terminalTried = true;
    track.cancelUnheard = true;
    return;
  }
  if (event.answer === "requested") track.terminalTried = true;
  if (event.answer === "finished" && track.cancels === 1 && !track.terminalTried) {
    ledger.flag("R9", "called finished although nothing had ended it", track.id);
  }
  if (event.answer !== "cancelled") return;
  const run = findRun(track, track.topEpoch);
  const underWay = run !== undefined && run.claimedAt !== 0 && run.claimedAt < event.since && run.end === 0;
  if (underWay && run.tries === 0 && !ledger.crashes.takeBack(ledger, track, run, event)) {
    ledger.flag("R9", `cancelled at once while run ${run.epoch} was under way`, track.id);
  }
  track.terminalTried = true;
  noteEnd(ledger, track, "cancelled", -1, event);
}

/** A redrive, sent or answered. */
export function onRedrive(ledger: Ledger, track: Track, event: HistoryEvent): void {
  const { generation } = event;
  if (event.phase === "invoke") {
    // Only a generation that may have died can be left behind.
    if (mayHaveDied(track, generation)) track.redriveTried = Math.max(track.redriveTried, generation);
    return;
  }
  if (event.phase !== "ok" || event.answer !== "redriven") return;
  if (track.redrives.includes(generation)) {
    ledger.flag("R14", `generation ${generation} was redriven twice`, track.id);
  }
  if (!mayHaveDied(track, generation))
    ledger.flag("R9", `redriven although generation ${generation} had not died`, track.id);
  track.redriveTried = Math.max(track.redriveTried, generation);
  track.redrives = [...track.redrives, generation];
  if (event.storeTime >= 0) {
    const isSure = !ledger.mayHaveSteppedBack(event.since);
    track.notBefore = isSure ? event.storeTime + Math.max(0, event.delayMs) : -1;
    track.notBeforeIn = generation + 1;
  }
}

/** A recall of a death, sent or answered: it ends the generation that follows, if no worker has taken the job in it. */
export function onRecall(ledger: Ledger, track: Track, event: HistoryEvent): void {
  const generation = event.generation + 1;
  if (event.phase === "invoke") track.recallTried = [...track.recallTried, generation];
  const changedNothing = event.phase === "fail" || (event.phase === "ok" && event.answer !== "recalled");
  if (changedNothing) {
    const at = track.recallTried.indexOf(generation);
    track.recallTried = track.recallTried.filter((_, other) => other !== at);
  }
  if (event.phase !== "ok" || event.answer !== "recalled") return;
  const taken = track.runs.find((run) => run.generation === generation && run.claimedAt !== 0);
  if (taken && !ledger.crashes.takeBack(ledger, track, taken, event))
    ledger.flag("R9", `recalled although run ${taken.epoch} had begun in generation ${generation}`, track.id);
  track.recalled = [...track.recalled, generation];
  noteEnd(ledger, track, "dead", generation, event);
}

/** A change of due time or priority: while it is under way nobody knows when the job is due. */
export function onReschedule(track: Track, event: HistoryEvent): void {
  if (event.phase === "invoke") track.reschedules++;
  if (event.phase === "ok" || event.phase === "fail") track.reschedules--;
  if (event.phase === "ok" && event.answer === "changed") noteMoved(track, event);
}

/** Another payload for a dead job: one that was refused was never there. */
export function onRepair(track: Track, event: HistoryEvent): void {
  const { seq, since, payloadHash: hash } = event;
  // Without an answer it may have it, and may have any other.
  if (event.phase === "invoke") track.bodies = [...track.bodies, { hash, since: seq, at: Number.POSITIVE_INFINITY }];
  const isDone = event.phase === "ok" && event.answer === "repaired";
  const isRefused = event.phase === "fail" || (event.phase === "ok" && !isDone);
  if (isDone) track.bodies = track.bodies.map((body) => (body.since === since ? { hash, since, at: seq } : body));
  if (isRefused) track.bodies = track.bodies.filter((body) => body.since !== since);
}

/** A removal by its id, sent or answered. */
export function onRemove(track: Track, event: HistoryEvent): void {
  if (event.phase === "invoke") track.removes++;
  if (event.phase === "fail" || (event.phase === "ok" && event.count === 0)) track.removes--;
}

/** Somebody looked at a job and at its dead letters. */
export function onObserved(ledger: Ledger, track: Track, event: HistoryEvent, conservation: Conservation): void {
  if (event.phase !== "ok") return;
  const state = event.answer;
  if (state === "missing") {
    const known = track.ackedAt !== 0 && track.ackedAt < event.since;
    if (known && !conservation.mayBePurged(track))
      ledger.flag("R1", "not found although its enqueue was confirmed", track.id);
    return;
  }
  if (event.count >= 0 && (state === "dead") !== (event.count === 1)) {
    const letters = `${event.count} dead letters of generation ${event.generation}`;
    ledger.flag("R8", `seen ${state} with ${letters}`, track.id);
  }
  if (track.final !== null && track.finalAt < event.since && state !== track.final) {
    ledger.flag("R9", `seen ${state} after it was ${track.final}`, track.id);
  }
  if (event.maxAttempts >= 0 && event.attempts > event.maxAttempts) {
    ledger.flag("R7", `seen with ${event.attempts} attempts, allowed are ${event.maxAttempts}`, track.id);
  }
}

function mayHaveDied(track: Track, generation: number): boolean {
  if (track.deaths.includes(generation) || track.recallTried.includes(generation)) return true;
  if (track.base !== null && track.runs.every((run) => run.generation > generation)) return true;
  return track.runs.some(
    (run) => (run.tried & END.dead) !== 0 && (run.generation === generation || run.generation === -1),
  );
}
