// What the history says about new jobs: one job per request (R2), nothing runs that nobody enqueued or with another
// body (R3), and one job per key (R13).
import type { HistoryEvent } from "./event.ts";
import { mayHaveBody, onModeAnswered, onModeAsked } from "./keys.ts";
import { findRun, type Ledger, type Track } from "./ledger.ts";

interface KeyTrack {
  id: string;
  payloadHash: number;
  takenTime: number;
  /** Where in the history the key went over from an earlier job; 0 for never. */
  renewedAt: number;
}

/** Keys and the jobs behind them. */
export class Intake {
  readonly #ledger: Ledger;
  readonly #keys = new Map<string, KeyTrack>();
  /** The shortest time any prune asked keys to be kept. */
  #keyMs = Number.POSITIVE_INFINITY;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  onEnqueue(event: HistoryEvent): void {
    const id = event.asked ?? event.job;
    if (id === null) return;
    const asked = this.#ledger.track(id);
    if (event.phase === "invoke") return this.#onAsked(asked, event);
    if (event.phase === "unknown") {
      asked.unsure = true;
      return;
    }
    const named = event.job === null || event.job === id ? asked : this.#ledger.track(event.job);
    if (event.mode !== null) onModeAnswered(this.#ledger, asked, named, event);
    if (event.phase === "fail") return;
    if (event.mode !== null && event.answer !== "created") {
      if (!named.asked) this.#ledger.flag("R13", `named as ${event.answer}, but nobody enqueued it`, named.id);
      if (named.ackedAt === 0) named.ackedAt = event.seq;
      return;
    }
    if (event.answer === "conflict") return this.#onConflict(named, event);
    if (event.answer === "created") this.#onCreated(named, event);
    else this.#onDuplicate(named, asked, event);
    if (named.ackedAt === 0) named.ackedAt = event.seq;
  }

  /** Prunes end the time for which keys are kept. */
  onPrune(event: HistoryEvent): void {
    if (event.kept !== null) this.#keyMs = Math.min(this.#keyMs, event.kept.keyMs);
  }

  /** A run must belong to a job somebody enqueued, with the same body. */
  onRun(track: Track, event: HistoryEvent): void {
    if (!track.asked) this.#ledger.flag("R3", `${event.op} of a job that nobody enqueued`, track.id);
    else if (event.payloadHash >= 0 && !this.#isBody(track, event)) {
      this.#ledger.flag("R3", `${event.op} with another payload than was enqueued`, track.id);
    }
  }

  /** A run has the body of its claim, and a claim one that the job may have had then. */
  #isBody(track: Track, event: HistoryEvent): boolean {
    const run = event.op === "run" ? findRun(track, event.epoch) : undefined;
    if (run !== undefined && run.payloadHash >= 0) return run.payloadHash === event.payloadHash;
    return mayHaveBody(this.#ledger, track, event.payloadHash, event.since);
  }

  #onAsked(track: Track, event: HistoryEvent): void {
    track.asked = true;
    if (track.askedAt === 0) track.askedAt = event.seq;
    track.payloadHash = event.payloadHash;
    track.key = event.key;
    track.mode = event.mode;
    if (event.mode !== null) onModeAsked(this.#ledger, event);
    track.fifo = event.fifo;
    track.kept = event.kept;
    if (event.deadlineMs >= 0) track.deadline = true;
  }

  #onCreated(track: Track, event: HistoryEvent): void {
    if (track.created && !this.#mayBeGone(track)) this.#ledger.flag("R2", "created twice under one id", track.id);
    track.created = true;
    if (event.storeTime >= 0) {
      const isSure = !this.#ledger.mayHaveSteppedBack(event.since);
      track.notBefore = isSure ? event.storeTime + Math.max(0, event.delayMs) : -1;
      track.notBeforeIn = 1;
      track.place = track.notBefore;
      track.placeBy = Math.max(event.storeTime, event.latest) + Math.max(0, event.delayMs);
    }
    if (event.key === null || event.mode !== null) return;
    const known = this.#keys.get(event.key);
    if (known?.id === track.id) return;
    if (known !== undefined && !this.#mayBeFree(known, event)) {
      this.#ledger.flag("R13", `a second job for key ${event.key}, which is ${known.id}'s`, track.id);
    }
    this.#take(event.key, track.id, event);
  }

  #onDuplicate(track: Track, asked: Track, event: HistoryEvent): void {
    if (!track.asked) this.#ledger.flag("R13", "named as duplicate, but nobody enqueued it", track.id);
    if (event.key === null) {
      if (track !== asked) this.#ledger.flag("R13", `named as duplicate of ${asked.id}, which has no key`, track.id);
      return;
    }
    if (track === asked) return;
    if (track.key !== event.key)
      this.#ledger.flag("R13", `named for key ${event.key}, which it does not have`, track.id);
    if (track.payloadHash !== event.payloadHash) {
      this.#ledger.flag("R13", `another body for key ${event.key} was taken as a duplicate`, track.id);
    }
    const known = this.#keys.get(event.key);
    if (known === undefined) this.#take(event.key, track.id, event);
    else if (known.id !== track.id) this.#confirm(known, track, event);
  }

  #onConflict(track: Track, event: HistoryEvent): void {
    const known = event.key === null ? undefined : this.#keys.get(event.key);
    if (event.key === null) this.#ledger.flag("R13", "a conflict without a key", track.id);
    else if (track.payloadHash === event.payloadHash) {
      this.#ledger.flag("R13", `the same body for key ${event.key} was refused as a conflict`, track.id);
    } else if (known === undefined) this.#take(event.key, track.id, { ...event, payloadHash: track.payloadHash });
    else if (known.id !== track.id) this.#confirm(known, track, event);
  }

  /** Another id than before is right only once the key was free again, or for an answer from before it was. */
  #confirm(known: KeyTrack, track: Track, event: HistoryEvent): void {
    if (event.since < known.renewedAt || this.#mayBeFree(known, event)) return;
    this.#ledger.flag("R13", `two ids answer for key ${event.key}: ${known.id} and this`, track.id);
  }

  #take(key: string, id: string, event: HistoryEvent): void {
    const renewedAt = this.#keys.has(key) ? event.seq : 0;
    this.#keys.set(key, { id, payloadHash: event.payloadHash, takenTime: event.storeTime, renewedAt });
  }

  #mayBeFree(known: KeyTrack, event: HistoryEvent): boolean {
    const track = this.#ledger.jobs.get(known.id);
    if (track === undefined || !this.#mayBeGone(track)) return false;
    return known.takenTime < 0 || event.storeTime < 0 || event.storeTime - known.takenTime >= this.#keyMs;
  }

  #mayBeGone(track: Track): boolean {
    return track.removes > 0 || (track.terminalTried && this.#keyMs !== Number.POSITIVE_INFINITY);
  }
}
