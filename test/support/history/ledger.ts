// What the checker remembers while a history streams past: a track per job with its last few runs, and a little about
// every worker. Memory follows the number of jobs, not the number of events.
import { Crashes } from "./crashes.ts";
import type { HistoryEvent, Kept, Rule, Violation } from "./event.ts";
import type { ModeKey } from "./keys.ts";

/** Runs of a job that are kept; an answer that comes later than this many claims is not looked at closely. */
const KEPT_RUNS = 4;
const MOST_VIOLATIONS = 200;
const NONE: readonly number[] = [];
const NO_RUNS: readonly Run[] = [];
const NO_BODIES: Track["bodies"] = [];
const NO_DOUBTS: readonly Doubt[] = [];

/** The ways a run can end, as bits, so that everything somebody tried fits one number. */
export const END = { complete: 1, retry: 2, release: 4, dead: 8, cancel: 16 } as const;
/** The ends after which a job does not wait any more. */
export const TERMINAL_ENDS = END.complete | END.dead | END.cancel;

/** One claim of a job and what is known of its end. */
export interface Run {
  readonly epoch: number;
  nonce: string | null;
  /** When the claim was answered; 0 while nobody was told. */
  claimedAt: number;
  /** Where in the history it was first told that the claim counted, and the last question that showed it. */
  seenAt: number;
  seenSince: number;
  generation: number;
  attempts: number;
  crashes: number;
  worker: string | null;
  ticket: number;
  service: string | null;
  /** So many runs of its service were let through when it was claimed, as probes; 0 for as many as there are. */
  probes: number;
  /** The body it was claimed with, and the time. */
  payloadHash: number;
  claimTime: number;
  /** Verdicts that were sent and neither confirmed nor refused, by their places in the history. */
  unheard: readonly number[];
  /** Settles under this lease that may have taken effect. */
  tries: number;
  /** The ends that were tried. */
  tried: number;
  chargeLeast: number;
  chargeMost: number;
  crashLeast: number;
  crashMost: number;
  /** The end that was confirmed, 0 for none. */
  end: number;
  endSince: number;
  endTime: number;
  notBefore: number;
  endAt: number;
  lostAck: boolean;
  reaped: boolean;
  /** Its handler was called, and its own worker tried to end it. */
  called: boolean;
  ownTries: boolean;
}

/** Attempts or crashes as far as they can be known. */
export interface Tally {
  epoch: number;
  generation: number;
  attemptsLeast: number;
  attemptsMost: number;
  crashesLeast: number;
  crashesMost: number;
}

/** Everything known of one job. */
export interface Track {
  readonly id: string;
  /** Somebody tried to enqueue it. */
  asked: boolean;
  /** An answer named it, at this place in the history; 0 for never. */
  ackedAt: number;
  askedAt: number;
  created: boolean;
  unsure: boolean;
  payloadHash: number;
  key: string | null;
  /** What its key means, where that is not one job for each key. */
  mode: string | null;
  fifo: string | null;
  deadline: boolean;
  /** How long it says that it is kept; null if it does not. */
  kept: Kept | null;
  /** The due time that enqueue or redrive gave, and the generation it is for. */
  notBefore: number;
  notBeforeIn: number;
  runs: readonly Run[];
  base: Tally | null;
  /** The highest epoch anybody knew of. */
  topEpoch: number;
  /** The highest epoch that a claim answered with, and where in the history. */
  claimedEpoch: number;
  claimedAt: number;
  /** Terminal answers, and the last one. */
  ends: number;
  deaths: readonly number[];
  final: "completed" | "cancelled" | null;
  finalAt: number;
  finalGeneration: number;
  endTime: number;
  endKind: "completed" | "cancelled" | "dead" | null;
  terminalTried: boolean;
  cancels: number;
  /** One of them was never answered. */
  cancelUnheard: boolean;
  redrives: readonly number[];
  /** The highest generation somebody tried to redrive. */
  redriveTried: number;
  /** Generations that ended by a recall, for certain and perhaps. */
  recalled: readonly number[];
  recallTried: readonly number[];
  /** Reschedules under way or without an answer, and the last one that changed the due time. */
  reschedules: number;
  rescheduledAt: number;
  rescheduledSince: number;
  /** It went to another lane, where it meets others of its group. */
  changedLane: boolean;
  /** Removes under way or without an answer, and those that removed it. */
  removes: number;
  /** The due time by which it waits in its group; -1 where nobody can say. */
  place: number;
  /** The same at the latest. */
  placeBy: number;
  /** Bodies that it was given while it waited, beside that of its enqueue. */
  bodies: readonly { readonly hash: number; readonly since: number; readonly at: number }[];
  /** Jobs that were created under its key, perhaps while it held that, after its claim of this epoch. */
  doubts: readonly Doubt[];
  found: number;
}

/** A violation if it turns out that no claim was under way at that place in the history. */
export interface Doubt {
  readonly epoch: number;
  readonly seq: number;
  readonly message: string;
  readonly job: string;
}

/** What is known of a worker. */
export interface WorkerTrack {
  registers: number;
  leaseMs: number;
  leaseEnd: number;
  /** Where in the history the lease was asked for and confirmed. */
  leaseSince: number;
  leaseAt: number;
  excused: boolean;
  givenUpAt: number;
  startedTried: number;
  /** Where it last said more of this than before, and where it last did anything that is in the history. */
  startedTriedAt: number;
  actedAt: number;
  startedSure: number;
  startedAt: number;
  /** What it said in writes that no crash takes back. */
  startedKept: number;
  /** The test sees every handler it calls. */
  watched: boolean;
  /** Where in the history it learned that it was given up; 0 for never. */
  toldAt: number;
}

/** The memory of one check. */
export class Ledger {
  readonly jobs = new Map<string, Track>();
  readonly workers = new Map<string, WorkerTrack>();
  /** Nonces of claims whose answer is not known. */
  readonly openNonces = new Set<string>();
  /** Where in the history the clock of the store last stepped back. */
  clockBackAt = 0;
  /** It may be stepping back just now. */
  clockSteps = false;
  /** Processes that live, with the id under which each works. */
  readonly staff = new Map<string, string>();
  /** The last word of every reaper about the time it has been in contact. */
  readonly judging = new Map<string, HistoryEvent>();
  readonly crashes = new Crashes();
  /** Keys that stand for a job only while it waits or runs. */
  readonly modeKeys = new Map<string, ModeKey>();
  readonly violations: Violation[] = [];

  /** True if the clock of the store may have stepped back since: then the times of one call may be of before and after it. */
  mayHaveSteppedBack(since: number): boolean {
    return this.clockSteps || (this.clockBackAt !== 0 && this.clockBackAt >= since);
  }
  readonly totals = { events: 0, lost: 0, doubleAcked: 0, staleRefused: 0, extraRuns: 0, ambiguous: 0, takenBack: 0 };

  flag(rule: Rule, message: string, job: string | null): void {
    if (this.violations.length < MOST_VIOLATIONS) this.violations.push({ rule, message, job });
  }

  track(id: string): Track {
    let track = this.jobs.get(id);
    if (track === undefined) {
      track = blankTrack(id);
      this.jobs.set(id, track);
    }
    return track;
  }

  worker(id: string): WorkerTrack {
    let worker = this.workers.get(id);
    if (worker === undefined) {
      worker = { ...BLANK_WORKER };
      this.workers.set(id, worker);
    }
    return worker;
  }

  /** True if a claim may have given out this nonce for this run. */
  mayHold(run: Run | undefined, nonce: string | null): boolean {
    if (run !== undefined && run.nonce !== null) return run.nonce === nonce;
    return nonce !== null && this.openNonces.has(nonce);
  }
}

/** The run of this epoch, if it is still kept. */
export function findRun(track: Track, epoch: number): Run | undefined {
  for (let i = track.runs.length - 1; i >= 0; i--) if (track.runs[i]?.epoch === epoch) return track.runs[i];
  return undefined;
}

/** The run of this epoch, made if need be; undefined if it is too old to be kept. */
export function openRun(track: Track, epoch: number, fold: (track: Track, oldest: Run) => Tally): Run | undefined {
  const known = findRun(track, epoch);
  if (known !== undefined || (track.base !== null && epoch <= track.base.epoch)) return known;
  const run = blankRun(epoch);
  let at = track.runs.length;
  while (at > 0 && (track.runs[at - 1] as Run).epoch > epoch) at--;
  // Always a new array of exactly this length: an array that grows takes room for seventeen.
  track.runs = [...track.runs.slice(0, at), run, ...track.runs.slice(at)];
  if (track.runs.length > KEPT_RUNS) {
    track.base = fold(track, track.runs[0] as Run);
    track.runs = track.runs.slice(1);
  }
  return run;
}

/** A waiting job was given another due time, or another lane, which leaves its due time as it is. */
export function noteMoved(track: Track, { since, seq, storeTime, latest, delayMs }: HistoryEvent): void {
  if (delayMs < 0) {
    track.changedLane = true;
    return;
  }
  const isAlone = track.rescheduledAt < since && track.ackedAt !== 0 && track.ackedAt < since;
  track.place = isAlone && storeTime >= 0 ? storeTime + delayMs : -1;
  track.placeBy = isAlone && storeTime >= 0 ? Math.max(storeTime, latest) + delayMs : -1;
  track.rescheduledAt = seq;
  track.rescheduledSince = since;
}

/** Whether a verdict or answer ends a job, by its name. */
export function endOf(answer: string | null): number {
  return answer !== null && answer in END ? END[answer as keyof typeof END] : 0;
}

/** Takes over what an answer tells about a run. */
export function noteRun(run: Run, event: HistoryEvent): void {
  if (run.seenAt === 0) run.seenAt = event.seq;
  run.seenSince = Math.max(run.seenSince, event.since);
  run.nonce = event.nonce;
  run.generation = event.generation;
  run.attempts = event.attempts;
  run.crashes = event.crashes;
  run.worker = event.worker;
  if (event.ticket >= 0) run.ticket = event.ticket;
}

const BLANK_WORKER: WorkerTrack = {
  registers: 0,
  leaseMs: 0,
  leaseEnd: -1,
  leaseSince: 0,
  leaseAt: 0,
  excused: false,
  givenUpAt: 0,
  startedTried: 0,
  startedTriedAt: 0,
  actedAt: 0,
  startedSure: 0,
  startedAt: 0,
  startedKept: 0,
  watched: false,
  toldAt: 0,
};

function blankRun(epoch: number): Run {
  return {
    epoch,
    nonce: null,
    claimedAt: 0,
    seenAt: 0,
    seenSince: 0,
    generation: -1,
    attempts: -1,
    crashes: -1,
    worker: null,
    ticket: -1,
    service: null,
    probes: 0,
    payloadHash: -1,
    claimTime: -1,
    unheard: NONE,
    tries: 0,
    tried: 0,
    chargeLeast: 1,
    chargeMost: 0,
    crashLeast: 1,
    crashMost: 0,
    end: 0,
    endSince: 0,
    endTime: -1,
    notBefore: -1,
    endAt: 0,
    lostAck: false,
    reaped: false,
    called: false,
    ownTries: false,
  };
}

function blankTrack(id: string): Track {
  return {
    id,
    asked: false,
    ackedAt: 0,
    askedAt: 0,
    created: false,
    unsure: false,
    payloadHash: -1,
    key: null,
    mode: null,
    fifo: null,
    deadline: false,
    kept: null,
    notBefore: -1,
    notBeforeIn: -1,
    runs: NO_RUNS,
    base: null,
    topEpoch: 0,
    claimedEpoch: 0,
    claimedAt: 0,
    ends: 0,
    deaths: NONE,
    final: null,
    finalAt: 0,
    finalGeneration: -1,
    endTime: -1,
    endKind: null,
    terminalTried: false,
    cancels: 0,
    cancelUnheard: false,
    redrives: NONE,
    redriveTried: 0,
    recalled: NONE,
    recallTried: NONE,
    reschedules: 0,
    rescheduledAt: 0,
    rescheduledSince: 0,
    changedLane: false,
    removes: 0,
    place: -1,
    placeBy: -1,
    bodies: NO_BODIES,
    doubts: NO_DOUBTS,
    found: 0,
  };
}
