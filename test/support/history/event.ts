// The history of a run: what every actor asked of the store and what it was told, one flat record per job concerned.
// A history is what actors saw, not what the store knows: an answer that never came is `unknown`, never `fail`.
import type { State } from "../../../src/core/job.ts";

/**
 * What was asked; `run` is a handler that is called and returns, `report` what a worker says became of a run, `gone` a
 * worker reported dead, `mark` a word of the test itself.
 */
export type Op =
  | "enqueue"
  | "claim"
  | "run"
  | "report"
  | "settle"
  | "cancel"
  | "reschedule"
  | "redrive"
  | "recall"
  | "remove"
  | "prune"
  | "register"
  | "beat"
  | "leave"
  | "expired"
  | "gone"
  | "breaker"
  | "record"
  | "repair"
  | "count"
  | "observe"
  | "mark";

/** `fail` is certain to have changed nothing; `unknown` may have changed something or nothing. */
export type Phase = "invoke" | "ok" | "fail" | "unknown";

/** How long finished jobs and keys are kept, by the word of a prune or of the job itself. */
export interface Kept {
  readonly completedMs: number;
  readonly cancelledMs: number;
  readonly deadMs: number;
  readonly keyMs: number;
}

/** One line of a history. Numbers that do not apply are -1, everything else null or false. */
export interface HistoryEvent {
  /** The place in the whole history. */
  readonly seq: number;
  /** The place of the invoke this answers; its own for an invoke. */
  readonly since: number;
  readonly actor: string;
  readonly op: Op;
  readonly phase: Phase;
  readonly job: string | null;
  /** The id an enqueue asked for, where the answer names another one. */
  readonly asked: string | null;
  /** Type and key as one text. */
  readonly key: string | null;
  /** What the key means, where it is not one job for each key. */
  readonly mode: string | null;
  readonly epoch: number;
  readonly nonce: string | null;
  readonly generation: number;
  readonly attempts: number;
  readonly crashes: number;
  readonly maxAttempts: number;
  readonly storeTime: number;
  /** The store's time at the latest, where `storeTime` is only the earliest. */
  readonly latest: number;
  readonly payloadHash: number;
  /** What was answered, or the kind of verdict settled, or the state seen. */
  readonly answer: string | null;
  readonly worker: string | null;
  readonly ticket: number;
  readonly startedThrough: number;
  readonly started: boolean;
  /** The redrive run that a letter is sent by, or whose record is written. */
  readonly run: string | null;
  /** What a settle charges. */
  readonly charge: number;
  readonly crash: number;
  readonly delayMs: number;
  readonly deadlineMs: number;
  readonly runAt: number;
  readonly leaseMs: number;
  readonly service: string | null;
  /** The FIFO key. */
  readonly fifo: string | null;
  /** Letters seen, jobs removed, probes allowed, jobs that a worker may hold. */
  readonly count: number;
  readonly counts: Readonly<Record<State, number>> | null;
  readonly kept: Kept | null;
}

/** The fields of an event that its op decides. */
export type Line = Partial<Omit<HistoryEvent, "seq" | "since" | "actor" | "op" | "phase">>;

/** An event from what is known of it; every one has the same shape, which keeps reading millions of them fast. */
export function makeEvent(seq: number, since: number, actor: string, op: Op, phase: Phase, line: Line): HistoryEvent {
  const blank: HistoryEvent = {
    seq,
    since,
    actor,
    op,
    phase,
    job: null,
    asked: null,
    key: null,
    mode: null,
    epoch: -1,
    nonce: null,
    generation: -1,
    attempts: -1,
    crashes: -1,
    maxAttempts: -1,
    storeTime: -1,
    latest: -1,
    payloadHash: -1,
    answer: null,
    worker: null,
    ticket: -1,
    startedThrough: -1,
    started: false,
    run: null,
    charge: -1,
    crash: -1,
    delayMs: -1,
    deadlineMs: -1,
    runAt: -1,
    leaseMs: -1,
    service: null,
    fifo: null,
    count: -1,
    counts: null,
    kept: null,
  };
  return Object.assign(blank, line);
}

/** A job as the store was found to hold it at the end. */
export interface FinalJob {
  readonly id: string;
  readonly key: string | null;
  readonly state: State;
  readonly epoch: number;
  readonly generation: number;
  readonly attempts: number;
  readonly crashes: number;
  readonly maxAttempts: number;
  readonly runAt: number;
  readonly payloadHash: number;
}

/** A redrive run as the store was found to hold it at the end. */
export interface FinalRun {
  readonly id: string;
  /** Letters that it has sent, and that were recalled, by its counts. */
  readonly sent: number;
  readonly recalled: number;
  /** What is left of them by its counts, and its letters without an outcome. */
  readonly left: number;
  readonly pending: number;
  /** Letters without an outcome whose jobs have ended. */
  readonly unheard: number;
  /** Letters that it has not sent although it is complete. */
  readonly missed: readonly string[];
}

/** What the store was found to hold at the end. */
export interface FinalDump {
  readonly jobs: Iterable<FinalJob>;
  readonly letters: Iterable<{ readonly job: string; readonly generation: number; readonly redriven: boolean }>;
  readonly workers: Iterable<{ readonly id: string; readonly leaseEnd: number; readonly running: number }>;
  readonly storeTime: number;
  readonly redrives?: readonly FinalRun[];
  /** True when faults ended long enough ago that everything must have come to its end. */
  readonly drained: boolean;
}

/** A rule of the guarantees, or of what an audit found; R18 is about stores that fail over and has no history yet. */
export type Rule = `R${1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12 | 13 | 14 | 15 | 16 | 17 | 19 | 20 | 21}`;

/** Something that must not have happened. */
export interface Violation {
  readonly rule: Rule;
  readonly message: string;
  readonly job: string | null;
}

/** What the checker found. */
export interface Report {
  readonly violations: readonly Violation[];
  readonly events: number;
  readonly jobs: number;
  readonly lost: number;
  readonly doubleAcked: number;
  readonly staleRefused: number;
  /** Runs that followed a run which had started and was given up. */
  readonly extraRuns: number;
  /** Verdicts whose answer never came. */
  readonly ambiguous: number;
  /** Claims that a crash of the server took back. */
  readonly takenBack: number;
}

/** A 32-bit hash of a text, for payloads and for whole histories. */
export function hashText(text: string, start = 0x811c9dc5): number {
  let hash = start;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash ^ (hash >>> 16)) >>> 0;
}
