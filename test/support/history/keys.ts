// What the history says about keys that stand for one job only while it waits or runs (R13): modes `queued`, `active`,
// `replace` and `debounce`. The last job that was created holds the key; where answers overlap there are several that may.
// Also the bodies that such keys give to waiting jobs (R3). Judges keys that are used in one mode only.
import type { HistoryEvent } from "./event.ts";
import { END, findRun, type Ledger, noteMoved, type Run, type Track } from "./ledger.ts";

interface Holder {
  readonly track: Track;
  readonly since: number;
  readonly at: number;
}

/** What is known of a key of such a mode. */
export interface ModeKey {
  readonly holders: Holder[];
  /** Enqueues under way or without an answer, by their place in the history. */
  readonly asking: Map<number, HistoryEvent>;
}

/** Modes in which a waiting holder gets the body of the new job. */
const REPLACING: readonly (string | null)[] = ["replace", "debounce"];

/** An enqueue under such a key was sent. */
export function onModeAsked(ledger: Ledger, event: HistoryEvent): void {
  keyOf(ledger, event).asking.set(event.since, event);
}

/** It was answered, or it is certain that it changed nothing. */
export function onModeAnswered(ledger: Ledger, asked: Track, named: Track, event: HistoryEvent): void {
  const key = keyOf(ledger, event);
  key.asking.delete(event.since);
  if (event.phase === "fail") return;
  if (event.answer === "created") {
    checkFree(ledger, key, asked, event);
    key.holders.push({ track: named, since: event.since, at: event.seq });
    return;
  }
  // The repeated write of a job is known by its id, whatever became of it.
  if (event.answer === "duplicate" && named === asked) return;
  const right = REPLACING.includes(event.mode) ? "replaced" : "duplicate";
  if (event.answer !== right) {
    ledger.flag("R13", `${event.answer} under key ${event.key}, which is ${event.mode}`, named.id);
  }
  checkNamed(ledger, key, named, event);
  if (event.answer === "replaced") replaceBody(named, event);
}

/** True if a job may have this body for a claim that was sent at this place in the history. */
export function mayHaveBody(ledger: Ledger, track: Track, hash: number, since: number): boolean {
  if (track.bodies.length === 0 && hash === track.payloadHash) return true;
  const { bodies } = track;
  const isOld = (at: number): boolean => bodies.some((other) => at < other.since && other.at < since);
  if (hash === track.payloadHash && !isOld(track.ackedAt)) return true;
  if (bodies.some((body) => body.hash === hash && !isOld(body.at))) return true;
  const asking = track.key === null ? undefined : ledger.modeKeys.get(track.key)?.asking;
  for (const asked of asking?.values() ?? [])
    if (asked.payloadHash === hash && REPLACING.includes(asked.mode)) return true;
  return false;
}

/** True while a debounce of this job's key is under way, or nobody knows what became of it. */
export function mayBeMoved(ledger: Ledger, { key }: Track): boolean {
  for (const asked of (key === null ? undefined : ledger.modeKeys.get(key)?.asking)?.values() ?? [])
    if (asked.mode === "debounce") return true;
  return false;
}

/** A run of the job is known, which may show that the job still waited when its key was given away. */
export function settleDoubts(ledger: Ledger, track: Track, epoch: number, since: number): void {
  if (track.doubts.length === 0) return;
  for (const doubt of track.doubts) {
    const isNext = epoch === doubt.epoch + 1 && since > doubt.seq && !ledger.crashes.isBefore(doubt.seq);
    if (isNext) ledger.flag("R13", doubt.message, doubt.job);
  }
  track.doubts = track.doubts.filter((doubt) => doubt.epoch >= epoch);
}

/** The job was found at the end with this epoch. */
export function settleDoubtsFound(ledger: Ledger, track: Track, epoch: number): void {
  for (const doubt of track.doubts) if (doubt.epoch === epoch) ledger.flag("R13", doubt.message, doubt.job);
}

/** A job was created, so the holder of its key must have let go of it. */
function checkFree(ledger: Ledger, key: ModeKey, created: Track, event: HistoryEvent): void {
  const [holder, ...more] = key.holders.filter(({ at }) => !key.holders.some(({ since }) => at < since));
  if (!holder || more.length > 0 || holder.at > event.since || holder.track === created) return;
  const { track } = holder;
  if (track.cancels > 0 || track.removes > 0) return;
  const message = `a second job for key ${event.key} (${event.mode}) while ${track.id} held it`;
  if (event.mode === "active") {
    if (!track.terminalTried) ledger.flag("R13", message, created.id);
    return;
  }
  const run = findRun(track, track.topEpoch);
  const isBack = run !== undefined && (run.end & (END.retry | END.release)) !== 0 && run.endAt < event.since;
  // One that ran may have lost its key meanwhile to a job that nobody was told of.
  if (track.topEpoch > 0 && (!isBack || key.asking.size > 0)) return;
  // A claim whose answer comes later may have taken it away by now.
  track.doubts = [...track.doubts, { epoch: track.topEpoch, seq: event.seq, message, job: created.id }];
}

/** A job was named as the holder of the key, so it must be, and must have waited, or run where that counts. */
function checkNamed(ledger: Ledger, { holders }: ModeKey, named: Track, event: HistoryEvent): void {
  const where = `named for key ${event.key} (${event.mode})`;
  if (named.key !== event.key) return ledger.flag("R13", `${where}, which it does not have`, named.id);
  const own = holders.find(({ track }) => track === named);
  const isOld = own && holders.some((other) => own.at < other.since && other.at < event.since);
  if (isOld) ledger.flag("R13", `${where}, which a later job had taken over`, named.id);
  const run = findRun(named, named.topEpoch);
  if (isOver(named, run, event.since)) ledger.flag("R13", `${where} although it had ended`, named.id);
  const running = run !== undefined && run.claimedAt !== 0 && run.claimedAt < event.since && run.end === 0;
  if (event.mode !== "active" && running && run.tries === 0 && !ledger.crashes.isBefore(run.claimedAt)) {
    ledger.flag("R13", `${where} although it was running`, named.id);
  }
}

function isOver(track: Track, run: Run | undefined, since: number): boolean {
  if (track.final !== null) return track.finalAt < since;
  return run !== undefined && run.end === END.dead && run.endAt < since && track.redriveTried < run.generation;
}

function replaceBody(track: Track, event: HistoryEvent): void {
  track.bodies = [...track.bodies, { hash: event.payloadHash, since: event.since, at: event.seq }];
  if (event.mode === "debounce") noteMoved(track, event);
}

function keyOf(ledger: Ledger, { key }: HistoryEvent): ModeKey {
  const known = ledger.modeKeys.get(key as string) ?? { holders: [], asking: new Map<number, HistoryEvent>() };
  ledger.modeKeys.set(key as string, known);
  return known;
}
