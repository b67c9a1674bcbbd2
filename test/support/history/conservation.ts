// Nothing appears and nothing vanishes (R16): at every checkpoint the jobs counted are those enqueued less those purged.
// What is under way or unanswered makes both numbers a range.
import type { HistoryEvent, Kept } from "./event.ts";
import type { Ledger, Track } from "./ledger.ts";

const ENDED = ["completed", "cancelled", "dead"] as const;

/** Counts what came and what went. */
export class Conservation {
  readonly #ledger: Ledger;
  readonly #snapshots = new Map<number, { readonly created: number; readonly purged: number }>();
  readonly #cut = { completed: -1, cancelled: -1, dead: -1 };
  #created = 0;
  #asked = 0;
  #purged = 0;
  #purging = 0;
  #open = 0;
  #unsurePurge = false;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** True once anything may have been purged. */
  get purging(): boolean {
    return this.#purging > 0;
  }

  onAsked(track: Track): void {
    if (!track.asked) this.#asked++;
  }

  onCreated(): void {
    this.#created++;
  }

  /** A prune or remove, sent or answered. */
  onPurge(event: HistoryEvent): void {
    if (event.phase === "invoke") {
      this.#purging++;
      this.#open++;
      return;
    }
    this.#open--;
    if (event.phase === "unknown") this.#unsurePurge = true;
    if (event.phase === "unknown" && event.kept !== null) this.#cutOff(event.kept, Number.MAX_SAFE_INTEGER);
    if (event.phase !== "ok") return;
    this.#purged += event.count;
    if (event.kept !== null && event.storeTime >= 0) this.#cutOff(event.kept, event.storeTime);
  }

  /** A count of everything, sent or answered. */
  onCount(event: HistoryEvent): void {
    if (event.phase === "invoke") this.#snapshots.set(event.seq, { created: this.#created, purged: this.#purged });
    const before = this.#snapshots.get(event.since);
    if (event.phase === "invoke" || before === undefined) return;
    this.#snapshots.delete(event.since);
    if (event.phase !== "ok" || event.counts === null) return;
    const { queued, running, completed, dead, cancelled } = event.counts;
    const found = queued + running + completed + dead + cancelled;
    const least = this.#open > 0 || this.#unsurePurge ? 0 : before.created - this.#purged;
    const most = this.#asked - before.purged;
    if (found < least || found > most) {
      this.#ledger.flag("R16", `${found} jobs counted, there must be ${least} to ${most}`, null);
    }
  }

  /** Whether a job that is not there may have been purged. */
  mayBePurged(track: Track): boolean {
    if (track.removeTried && track.terminalTried) return true;
    if (!track.terminalTried || this.#purging === 0) return false;
    if (track.endKind === null || track.endTime < 0) return true;
    return this.#cut[track.endKind] >= track.endTime || track.deaths.length > 0;
  }

  /** `gone` confirmed jobs are missing, and `maybe` more may have existed. */
  finish(gone: number, maybe: number): void {
    if (this.#unsurePurge) return;
    if (this.#purged < gone || this.#purged > gone + maybe) {
      this.#ledger.flag("R16", `${this.#purged} jobs purged, but ${gone} to ${gone + maybe} are gone`, null);
    }
  }

  #cutOff(kept: Kept, storeTime: number): void {
    for (const kind of ENDED) this.#cut[kind] = Math.max(this.#cut[kind], storeTime - kept[`${kind}Ms`]);
  }
}
