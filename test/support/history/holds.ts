// What holds work back: due times (R11), breakers (R10) and FIFO keys (R12).
import type { HistoryEvent } from "./event.ts";
import { END, findRun, type Ledger, type Run, TERMINAL_ENDS, type Track } from "./ledger.ts";

const LATE_SHARE = 0.01;

interface BreakerTrack {
  /** Null where nobody can say what holds: the answer to a change was lost. */
  state: string | null;
  /** The version that is known, and the changes under way. */
  version: number;
  readonly pending: Set<number>;
  since: number;
  probes: number;
  held: Set<Run>;
}

interface FifoTrack {
  readonly line: Track[];
  holder: { readonly track: Track; readonly run: Run } | null;
}

/** Everything that may forbid a claim. */
export class Holds {
  readonly #ledger: Ledger;
  readonly #breakers = new Map<string, BreakerTrack>();
  readonly #fifos = new Map<string, FifoTrack>();
  #healthySince = 0;
  #lateMs = 0;
  #claims = 0;
  #late = 0;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** From here on nothing is wrong in the world, and claims must be on time. */
  onHealthy(event: HistoryEvent): void {
    this.#healthySince = event.seq;
    this.#lateMs = event.delayMs;
  }

  onEnqueued(track: Track, event: HistoryEvent): void {
    if (event.fifo === null || event.answer !== "created") return;
    const fifo = this.#fifos.get(event.fifo) ?? { line: [], holder: null };
    fifo.line.push(track);
    this.#fifos.set(event.fifo, fifo);
  }

  onBreaker(event: HistoryEvent): void {
    if (event.service === null) return;
    const fresh = { state: null, version: 0, pending: new Set<number>(), since: 0, probes: 0, held: new Set<Run>() };
    const breaker = this.#breakers.get(event.service) ?? fresh;
    if (event.phase === "invoke") breaker.pending.add(event.seq);
    else breaker.pending.delete(event.since);
    if (event.phase === "unknown") breaker.state = null;
    // Answers may overtake each other; one that lost to another change says nothing.
    if (event.phase === "ok" && (event.epoch === -1 || event.epoch > breaker.version)) {
      breaker.state = event.answer;
      breaker.version = event.epoch;
      breaker.probes = event.count;
      breaker.held.clear();
    }
    breaker.since = event.seq;
    this.#breakers.set(event.service, breaker);
  }

  onClaimed(track: Track, run: Run, event: HistoryEvent): void {
    this.#checkDue(track, event);
    if (event.service !== null && this.#breakers.size > 0) this.#checkBreaker(track, run, event);
    if (track.fifo !== null) this.#checkFifo(track, run);
  }

  finish(): void {
    if (this.#claims > 0 && this.#late / this.#claims > LATE_SHARE) {
      const share = `${this.#late} of ${this.#claims} claims`;
      this.#ledger.flag("R11", `${share} came more than ${this.#lateMs} ms late although all was well`, null);
    }
  }

  #checkDue(track: Track, event: HistoryEvent): void {
    const notBefore = notBeforeOf(track, event);
    const due = Math.max(notBefore, event.runAt);
    if (event.storeTime < due) {
      this.#ledger.flag("R11", `claim ${event.epoch} came ${due - event.storeTime} ms before it was due`, track.id);
    }
    if (this.#healthySince === 0 || event.since <= this.#healthySince || event.crashes > 0 || event.runAt < 0) return;
    // Others of its group may have been before it, and the breaker of its service may have been open.
    if (track.fifo !== null || event.service !== null) return;
    this.#claims++;
    if (event.storeTime - due > this.#lateMs) this.#late++;
  }

  #checkBreaker(track: Track, run: Run, event: HistoryEvent): void {
    const breaker = this.#breakers.get(event.service as string);
    // While a change is under way nobody can say what holds.
    if (breaker === undefined || event.since <= breaker.since || breaker.pending.size > 0) return;
    if (breaker.state === "open") {
      this.#ledger.flag("R10", `claim ${event.epoch} while the breaker of ${event.service} was open`, track.id);
    }
    if (breaker.state !== "half-open") return;
    for (const held of breaker.held) if (held.end !== 0 || held.tries > 0) breaker.held.delete(held);
    breaker.held.add(run);
    if (breaker.held.size > breaker.probes) {
      const held = `${breaker.held.size} runs of ${event.service} at once`;
      this.#ledger.flag("R10", `${held} while its breaker let ${breaker.probes} through`, track.id);
    }
  }

  #checkFifo(track: Track, run: Run): void {
    const fifo = this.#fifos.get(track.fifo as string);
    if (fifo === undefined) return;
    const { holder } = fifo;
    if (holder !== null && holder.track !== track && holder.run.end === 0 && holder.run.tries === 0) {
      this.#ledger.flag("R12", `claimed while ${holder.track.id} of the same FIFO key was running`, track.id);
    }
    while (fifo.line[0] !== undefined && isOver(fifo.line[0])) fifo.line.shift();
    const first = fifo.line.find((other) => !isOver(other));
    // Due times decide who is first, and a clock that steps back or a reschedule changes them.
    const moved = [track, first].some((each) => each && (each.reschedules > 0 || each.rescheduledAt > 0));
    if (moved || this.#ledger.clockBackAt !== 0) fifo.holder = { track, run };
    else if (first !== undefined && first !== track && first.ackedAt < track.askedAt) {
      this.#ledger.flag("R12", `claimed before ${first.id}, which came earlier under the same FIFO key`, track.id);
    }
    fifo.holder = { track, run };
  }
}

function isOver(track: Track): boolean {
  return track.ends > 0 || track.cancels > 0 || track.runs.some((run) => (run.tried & TERMINAL_ENDS) !== 0);
}

/** The earliest due time that follows from what is known; -1 where a reschedule may have changed it. */
function notBeforeOf(track: Track, event: HistoryEvent): number {
  if (track.reschedules > 0) return -1;
  const before = findRun(track, event.epoch - 1);
  const fresh = before === undefined ? event.epoch === 1 : isLeftBehind(before, event.generation);
  if (fresh) return track.rescheduledAt === 0 && track.notBeforeIn === event.generation ? track.notBefore : -1;
  if (before === undefined || before.end === 0 || track.rescheduledAt >= before.endSince) return -1;
  return before.notBefore;
}

/** Whether this run was of an earlier generation; where its own is not known, only a death leads to the next one. */
function isLeftBehind(run: Run, generation: number): boolean {
  return run.generation === -1 ? (run.end & END.dead) !== 0 : run.generation !== generation;
}
