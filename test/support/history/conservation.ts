// Nothing appears and nothing vanishes (R16): at every checkpoint the jobs counted are those enqueued less those purged.
// What is under way or unanswered makes both numbers a range.
import type { HistoryEvent, Kept } from "./event.ts";
import { END, findRun, type Ledger, type Track } from "./ledger.ts";

const KINDS = ["completedMs", "cancelledMs", "deadMs"] as const;
const NEVER = Number.MAX_SAFE_INTEGER;

/** Counts what came and what went. */
export class Conservation {
  readonly #ledger: Ledger;
  readonly #snapshots = new Map<number, { readonly created: number; readonly purged: number }>();
  /** The shortest time that any prune said of jobs that do not say it themselves: one of them gives it, another goes by it. */
  readonly #shortest = { completedMs: NEVER, cancelledMs: NEVER, deadMs: NEVER };
  /** When a prune last may have looked. */
  #pruned = -1;
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
    const ends = possibleEnds(track);
    if (ends.length === 0 || (this.#purging === 0 && track.removes === 0)) return false;
    if (track.removes > 0 || this.#open > 0) return true;
    // A job goes by its own word, whoever prunes.
    const kept = track.kept ?? this.#shortest;
    // Where the clock stepped back, an end may lie before the claim.
    const isSteady = this.#ledger.clockBackAt === 0;
    return ends.some(({ kind, time, isSure }) => {
      return time < 0 || (!isSure && !isSteady) || time + kept[`${kind}Ms`] <= this.#pruned;
    });
  }

  /** `gone` confirmed jobs are missing, and `maybe` more may have existed. */
  finish(gone: number, maybe: number): void {
    if (this.#unsurePurge) return;
    if (this.#purged < gone || this.#purged > gone + maybe) {
      this.#ledger.flag("R16", `${this.#purged} jobs purged, but ${gone} to ${gone + maybe} are gone`, null);
    }
  }

  #cutOff(kept: Kept, storeTime: number): void {
    this.#pruned = Math.max(this.#pruned, storeTime);
    for (const kind of KINDS) this.#shortest[kind] = Math.min(this.#shortest[kind], kept[kind]);
  }
}

interface PossibleEnd {
  readonly kind: "completed" | "cancelled" | "dead";
  /** When it ended, or the time before which it cannot have; -1 where nobody can say. */
  readonly time: number;
  readonly isSure: boolean;
}

/** How a job may have come to its last end: as confirmed, or by a verdict that was neither confirmed nor refused. */
function possibleEnds(track: Track): PossibleEnd[] {
  const ends: PossibleEnd[] = [];
  const { endKind, endTime, deaths, redrives } = track;
  const isBack = endKind === "dead" && redrives.includes(deaths.at(-1) ?? -1);
  if (endKind !== null && !isBack) ends.push({ kind: endKind, time: endTime, isSure: true });
  if (track.cancelUnheard) ends.push({ kind: "cancelled", time: -1, isSure: false });
  const isUnheard = track.recallTried.some((generation) => !track.recalled.includes(generation));
  if (isUnheard) ends.push({ kind: "dead", time: -1, isSure: false });
  const run = findRun(track, track.topEpoch);
  if (run === undefined || (run.end === 0 && run.unheard.length === 0)) return ends;
  const time = run.end === 0 || run.endTime < 0 ? run.claimTime : run.endTime;
  const maybe = run.end === 0 ? run.tried : run.end;
  const isSure = run.end !== 0 && run.endTime >= 0;
  if ((maybe & END.complete) !== 0) ends.push({ kind: "completed", time, isSure });
  if ((maybe & END.dead) !== 0 && !redrives.includes(run.generation)) ends.push({ kind: "dead", time, isSure });
  // Whatever the run says, a job that was asked to stop does not come back.
  if ((maybe & END.cancel) !== 0 || track.cancels > 0) ends.push({ kind: "cancelled", time, isSure });
  return ends;
}
