// What holds work back: due times (R11), breakers (R10) and FIFO keys (R12).
import { Breakers } from "./breakers.ts";
import type { FinalDump, HistoryEvent } from "./event.ts";
import { mayBeMoved } from "./keys.ts";
import { END, findRun, type Ledger, type Run, TERMINAL_ENDS, type Track } from "./ledger.ts";

const LATE_SHARE = 0.01;
/** A job with a crash on its record waits for a worker that is otherwise empty, but no longer than this. */
const SUSPECT_MS = 300_000;

interface FifoTrack {
  readonly line: Track[];
  holder: { readonly track: Track; readonly run: Run } | null;
}

/** Everything that may forbid a claim. */
export class Holds {
  readonly #ledger: Ledger;
  readonly breakers: Breakers;
  readonly #fifos = new Map<string, FifoTrack>();
  #healthySince = 0;
  #lateMs = 0;
  #claims = 0;
  #late = 0;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
    this.breakers = new Breakers(ledger);
  }

  /** From here on nothing is wrong in the world, and claims must be on time. */
  onHealthy(event: HistoryEvent): void {
    this.#healthySince = event.seq;
    this.#lateMs = event.delayMs;
  }

  onEnqueued(track: Track, event: HistoryEvent): void {
    if (event.service !== null) this.breakers.onEnqueued(track, event.service);
    if (event.fifo === null || event.answer !== "created") return;
    const fifo = this.#fifos.get(event.fifo) ?? { line: [], holder: null };
    fifo.line.push(track);
    this.#fifos.set(event.fifo, fifo);
  }

  onClaimed(track: Track, run: Run, event: HistoryEvent): void {
    this.#checkDue(track, event);
    if (event.service !== null) this.breakers.check(track, run, event);
    if (track.fifo !== null) this.#checkFifo(track, run, event);
  }

  finish(dump: FinalDump): void {
    if (dump.drained) this.breakers.finish(dump);
    if (this.#claims > 0 && this.#late / this.#claims > LATE_SHARE) {
      const share = `${this.#late} of ${this.#claims} claims`;
      this.#ledger.flag("R11", `${share} came more than ${this.#lateMs} ms late although all was well`, null);
    }
  }

  #checkDue(track: Track, event: HistoryEvent): void {
    const notBefore = notBeforeOf(this.#ledger, track, event);
    const due = Math.max(notBefore, event.runAt);
    if (event.storeTime < due && !this.#ledger.mayHaveSteppedBack(event.since)) {
      this.#ledger.flag("R11", `claim ${event.epoch} came ${due - event.storeTime} ms before it was due`, track.id);
    }
    if (this.#healthySince === 0 || event.since <= this.#healthySince || event.runAt < 0) return;
    const freeTime = this.#freeTime(track, event);
    if (freeTime === null) return;
    this.#claims++;
    const most = event.crashes > 0 ? this.#lateMs + SUSPECT_MS : this.#lateMs;
    if (event.storeTime - Math.max(due, freeTime) > most) this.#late++;
  }

  /** When the last thing that may have held the job back was over; null where nobody can say. */
  #freeTime(track: Track, event: HistoryEvent): number | null {
    const closed = event.service === null ? 0 : this.breakers.closedSince(event.service, event.since);
    const holder = track.fifo === null ? null : (this.#fifos.get(track.fifo)?.holder ?? null);
    if (closed === null || holder === null || holder.track === track) return closed;
    // Others of its group may have been before it.
    return holder.track.endKind === null || holder.track.endTime < 0 ? null : Math.max(closed, holder.track.endTime);
  }

  #checkFifo(track: Track, run: Run, event: HistoryEvent): void {
    const fifo = this.#fifos.get(track.fifo as string);
    // Whose run was given up meanwhile: a halted worker hears of its claim when the place has long passed on.
    if (fifo === undefined || run.end !== 0 || event.epoch < track.topEpoch) return;
    const { holder } = fifo;
    if (holder !== null && holder.track !== track && holder.run.end === 0 && holder.run.tries === 0) {
      this.#ledger.flag("R12", `claimed while ${holder.track.id} of the same FIFO key was running`, track.id);
    }
    while (fifo.line[0] !== undefined && isOver(fifo.line[0])) fifo.line.shift();
    // Who holds the place keeps it while it waits for its next try.
    const passed =
      holder?.track === track ? undefined : fifo.line.find((other) => this.#goesFirst(other, track, event));
    if (passed) this.#ledger.flag("R12", `claimed before ${passed.id}, whose turn it was under its FIFO key`, track.id);
    fifo.holder = { track, run };
  }

  /** Whether the other job of a FIFO key had its turn before this one, which was claimed. */
  #goesFirst(other: Track, track: Track, event: HistoryEvent): boolean {
    const unsure = [other, track].some(
      (each) => each.reschedules > 0 || each.changedLane || mayBeMoved(this.#ledger, each),
    );
    if (other === track || unsure || isOver(other) || other.ackedAt === 0 || other.ackedAt > event.since) return false;
    const run = findRun(other, other.topEpoch);
    if (run !== undefined) return run.claimedAt !== 0 && run.claimedAt < event.since;
    if (this.#ledger.clockBackAt === 0 && other.rescheduledAt === 0 && track.rescheduledAt === 0) {
      return other.ackedAt < track.askedAt;
    }
    // A clock that steps back and a reschedule change who is first: due times decide.
    return event.epoch === 1 && other.placeBy >= 0 && other.rescheduledAt < event.since && other.placeBy < event.runAt;
  }
}

function isOver(track: Track): boolean {
  return track.ends > 0 || track.cancels > 0 || track.runs.some((run) => (run.tried & TERMINAL_ENDS) !== 0);
}

/** The earliest due time that follows from what is known; -1 where a reschedule may have changed it. */
function notBeforeOf(ledger: Ledger, track: Track, event: HistoryEvent): number {
  if (track.reschedules > 0 || mayBeMoved(ledger, track)) return -1;
  const before = findRun(track, event.epoch - 1);
  const fresh = before === undefined ? event.epoch === 1 : isLeftBehind(before, event.generation);
  // One that nothing else moved since is due when the reschedule said.
  const isLast = track.rescheduledAt !== 0 && track.rescheduledAt < event.since && track.place >= 0;
  if (isLast && (before === undefined ? fresh : before.end !== 0 && before.endAt < track.rescheduledSince)) {
    return track.place;
  }
  if (fresh) return track.rescheduledAt === 0 && track.notBeforeIn === event.generation ? track.notBefore : -1;
  if (before === undefined || before.end === 0 || track.rescheduledAt >= before.endSince) return -1;
  return before.notBefore;
}

/** Whether this run was of an earlier generation; where its own is not known, only a death leads to the next one. */
function isLeftBehind(run: Run, generation: number): boolean {
  return run.generation === -1 ? (run.end & END.dead) !== 0 : run.generation !== generation;
}
