// What a crash of a store's server may take back: a claim, because it is answered before it is on disk. Every other write
// is on disk when it is answered, and with it everything that had been answered when it was sent; so a claim can only be
// taken back if no other write that was sent after its answer was confirmed before the crash.
import type { HistoryEvent } from "./event.ts";
import type { Ledger, Run, Track } from "./ledger.ts";

interface Crash {
  /** Whatever was answered before this place in the history was on disk. */
  readonly safeAt: number;
  /** Where in the history the server was gone. */
  goneAt: number;
}

/** The crashes of a history. */
export class Crashes {
  readonly #all: Crash[] = [];
  #safeAt = 0;

  /** A write was confirmed that waits for the disk. */
  noteWritten({ since }: HistoryEvent): void {
    this.#safeAt = Math.max(this.#safeAt, since);
  }

  /** The server is about to be killed, or is gone. */
  onMark(ledger: Ledger, { answer, seq }: HistoryEvent): void {
    if (answer === "server is killed")
      return void this.#all.push({ safeAt: this.#safeAt, goneAt: Number.POSITIVE_INFINITY });
    const crash = this.#all.at(-1);
    if (!crash || answer !== "server is gone") return;
    crash.goneAt = seq;
    // With a claim goes what it said of earlier runs.
    for (const worker of ledger.workers.values()) {
      if (worker.startedAt > crash.safeAt) worker.startedSure = worker.startedKept;
    }
  }

  /** True if this was sent before the server was last gone. */
  isBefore(since: number): boolean {
    return since < (this.#all.at(-1)?.goneAt ?? 0);
  }

  /** Forgets a run if a crash between its claim and this event may have taken it back. */
  takeBack(ledger: Ledger, track: Track, run: Run, event: Pick<HistoryEvent, "seq">): boolean {
    const lost = this.#all.some(
      ({ safeAt, goneAt }) => goneAt < event.seq && run.seenSince < goneAt && run.seenAt > safeAt,
    );
    if (!lost || run.end !== 0 || run.epoch !== track.topEpoch) return false;
    track.runs = track.runs.filter((other) => other !== run);
    track.topEpoch = run.epoch - 1;
    track.claimedEpoch = Math.min(track.claimedEpoch, track.topEpoch);
    ledger.totals.takenBack++;
    return true;
  }
}
