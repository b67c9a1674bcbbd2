// The store contract. A store applies, it never judges: no delay, no attempt limit and no failure class is computed
// behind this interface. Every verb takes and returns sets and is atomic as a whole unless it says otherwise. Time is
// the store's own; callers send durations. Payloads, results and failures are opaque and come back byte for byte.
//
// A verb either does everything it says, or throws and has done nothing (`store_unavailable`: try again later). When
// the answer is lost, the caller does not know the result; that is why writes about runs carry their lease and new jobs
// carry their id.
import type { LoggedEvent, NewEvent } from "../core/event-log.ts";
import type { AttemptRecord, Job, Lease, State, Terms } from "../core/job.ts";
import type { ActiveLane } from "../core/lane.ts";
import type { NewJob } from "../core/new-job.ts";
import type { Quota } from "../core/claim-plan.ts";
import type { JudgedBy, Verdict } from "../core/verdict.ts";
import type {
  Cause,
  CauseQuery,
  FlowAddition,
  FoldRequest,
  RecountAnswer,
  RecountRequest,
  TrendPoint,
  TrendQuery,
} from "./causes.ts";
import type { Cell, CellChange, CellQuery } from "./cells.ts";
import type { FigureQuery, StoreFigures } from "./figures.ts";
import type { FailurePage, FailureQuery, NewFingerprint } from "./failures.ts";
import type { Control, PauseTarget } from "./control.ts";
import type {
  DeadTarget,
  DeadLetterQuery,
  LetterFilter,
  LetterPage,
  LetterRange,
  RecallAnswer,
  RecallTarget,
  RedriveAnswer,
  RedriveCounts,
  RedriveRequest,
  Tally,
} from "./dead-letters.ts";
import type { EventQuery } from "./event-log.ts";
import type {
  Beat,
  BeatAnswer,
  ExpiredRequest,
  ExpiredRun,
  NewWorker,
  OverdueRequest,
  OverdueRun,
  Pulse,
  PulseListener,
  PulseRequest,
  WorkerRecord,
} from "./presence.ts";
import type { CancelAnswer, JobQuery, Page, Reach, Reschedule, RescheduleAnswer } from "./job-queries.ts";
import type { PayloadChange, PayloadVersion, RepairAnswer } from "./payloads.ts";
import type { PruneAnswer, Retain, RetainAnswer, Retention } from "./retention.ts";
import type { Signs } from "./signs.ts";

export type { LoggedEvent, NewEvent } from "../core/event-log.ts";
export type { Lease } from "../core/job.ts";
export type { Cell, CellChange, CellKey, CellQuery } from "./cells.ts";
export type * from "./causes.ts";
export type * from "./control.ts";
export type * from "./dead-letters.ts";
export type * from "./job-queries.ts";
export type { DueCount, FigureQuery, StoreFigures } from "./figures.ts";
export type { PayloadChange, PayloadVersion, RepairAnswer } from "./payloads.ts";
export type * from "./presence.ts";
export type { EventQuery } from "./event-log.ts";
export type { Signs } from "./signs.ts";
export type { FailurePage, FailureQuery, KeptFailure, NewFingerprint } from "./failures.ts";
export type { Keep, PruneAnswer, Retain, RetainAnswer, Retention, TypeKeep } from "./retention.ts";

/** Where jobs live. */
export interface Store {
  /** The kind of store, for messages; the same as in its description. */
  readonly name: StoreDescription["name"];
  /** Every call is a trip to a server and back, so that saving one is worth an empty claim. */
  readonly remote: boolean;
  /** The kind of store, its address and its warning; makes no call to the database. */
  describe(): StoreDescription;

  /**
   * Migrates the schema to the current version; safe to call twice and from several processes at once. Answers a notice
   * where the schema is newer than this program and the program may use it; otherwise null.
   */
  migrate(): Promise<string | null>;

  /**
   * Writes new jobs, each answered separately. A repeated id is a duplicate, and the job's `unique` says what a taken
   * key means. A job that takes over a key leaves the job that held it unchanged: that one runs, dies and is redriven
   * as before, but no longer holds the key.
   */
  enqueue(jobs: readonly NewJob[]): Promise<EnqueueAnswer[]>;
  /** Writes inside a caller's transaction, where the store supports it: the writes commit and roll back with it. */
  within?(tx: unknown): Within;
  /** The jobs of these ids, null where there is none. */
  get(ids: readonly string[]): Promise<(Job | null)[]>;
  /** A page of jobs, newest first unless asked otherwise. */
  list(query: JobQuery): Promise<Page<Job>>;
  /** How many jobs there are in each state; counts no further than `atMost` of each, where it is given. */
  count(atMost?: number): Promise<Record<State, number>>;
  /** Cancels waiting jobs at once and asks running ones to stop. */
  cancel(ids: readonly string[]): Promise<CancelAnswer[]>;
  /** Changes due time or priority of waiting jobs. */
  reschedule(changes: readonly Reschedule[]): Promise<RescheduleAnswer[]>;

  /** Lanes with work due now and room in their group, in the order of their numbers, after the given one. */
  lanes(after: number | null, limit: number): Promise<LanePage>;
  /**
   * Works through the quotas in order until `limit` jobs are taken, and gives each a new lease under the worker. A job
   * of a group takes a place there, and is not taken where none is left.
   */
  claim(request: ClaimRequest): Promise<ClaimAnswer>;
  /**
   * Applies verdicts, each only where its lease is current. Answers which were stale, and which could not be applied
   * now because another transaction holds their job: no row keeps the verdicts about others from being written. An
   * ended job frees its place in its group; one that goes back to the queue keeps it in a group of one.
   */
  settle(request: SettleRequest): Promise<SettleAnswer>;
  /** The jobs that hold a place in a group, in the order of enqueue. */
  holders(group: GroupKey): Promise<Job[]>;

  /** Adds a worker with its own lease. */
  register(worker: NewWorker): Promise<void>;
  /** Moves the end of a worker's lease; refused once the worker was given up. */
  beat(beat: Beat): Promise<BeatAnswer>;
  /**
   * Sends heartbeats from a thread of the store, where it has one, so that a blocked event loop does not cost the
   * lease.
   */
  pulse?(request: PulseRequest, listener: PulseListener): Pulse;
  /** Gives up the workers whose lease has ended, and those named, and lists runs that such workers still hold. */
  expired(request: ExpiredRequest): Promise<ExpiredRun[]>;
  /** Runs that exceed their limit, by the store's clock, in the order of enqueue. */
  overdue(request: OverdueRequest): Promise<OverdueRun[]>;
  /** The leases a worker holds, so that it can release those of a claim whose answer was lost. */
  held(worker: string): Promise<Lease[]>;
  /** Removes a worker that holds no run; a worker that does is given up instead. */
  leave(worker: string): Promise<void>;
  /** Every worker known. */
  workers(): Promise<WorkerRecord[]>;

  /** A page of dead letters, newest first unless asked otherwise. */
  deadLetters(query: DeadLetterQuery): Promise<LetterPage>;
  /** How many dead letters match, by class, type, reason and cause; of the newest ones where it may not look at all. */
  tally(filter: LetterFilter & Reach & LetterRange): Promise<Tally>;
  /** The failed runs of a job, oldest first: of each generation the first and the last nine. */
  history(id: string): Promise<AttemptRecord[]>;
  /**
   * Sends dead jobs back to work, each only if its generation is still the one the caller saw. With a fence, a change of
   * one cell, all of it is written together with the cell, and only if the cell has the version that the change names;
   * where it has another, nothing is written and every answer is `fenced`.
   */
  redrive(requests: readonly RedriveRequest[], fence?: CellChange): Promise<RedriveAnswer[]>;
  /**
   * Takes back jobs that were sent back to work, named by the death that was redriven: each only if it waits in the
   * generation that follows and no worker has taken it there. It is dead again under that generation, which never falls,
   * with a letter like the one before; its letter of before has the outcome `recalled`. Its cause counts one redriven less
   * and no new death. A target may have another payload for the job, as in `repair`; both are written, or neither.
   */
  recall(targets: readonly RecallTarget[]): Promise<RecallAnswer[]>;
  /**
   * What became of the jobs that redrive runs have sent, in the order of the ids; zeros for a run that sent none. Each
   * count is written in the transaction that it counts. Jobs that a Redrive with schema version 1 settles or deletes are
   * not counted: they stay pending. A later fingerprint of a letter moves nothing between `same` and `other`.
   */
  redriveCounts(ids: readonly string[]): Promise<RedriveCounts[]>;
  /**
   * Gives dead jobs another payload, each only if its generation and its payload are still those that the caller saw, and
   * keeps the payload before as a version. Their keys stay as they are: a repeat of the first payload is a duplicate.
   */
  repair(changes: readonly PayloadChange[]): Promise<RepairAnswer[]>;
  /**
   * The payloads that a job has had, the first one first; none where no repair and no redrive gave it another. A payload
   * by which its producer replaces a repaired one is added. Deleted with the job.
   */
  payloads(id: string): Promise<PayloadVersion[]>;
  /**
   * Removes finished jobs with everything that belongs to them; waiting and running ones stay, and dead ones that are
   * not the named death.
   */
  remove(targets: readonly (string | DeadTarget)[]): Promise<number>;

  /** A page of the failures that are kept: the last of each job, those of the history and those of dead letters. */
  failures(query: FailureQuery): Promise<FailurePage>;
  /**
   * Gives kept failures another fingerprint, each only where it still has the one that was read and no other
   * transaction holds its row. Answers how many got it.
   */
  setFingerprints(changes: readonly NewFingerprint[]): Promise<number>;

  /** Everything that holds work back, with the version that a claim must name. */
  control(): Promise<Control>;
  /** Pauses a queue, type, service or tenant; a second pause replaces the first. */
  pause(target: PauseTarget, pause: { readonly forMs: number | null; readonly reason: string }): Promise<void>;
  /** Ends a pause; false if none was in force. */
  resume(target: PauseTarget): Promise<boolean>;
  /** Replaces the state of a service if its version is still the one given (0 for a new one); false if not. */
  setService(name: string, version: number, value: string): Promise<boolean>;

  /** Small values that processes share: all of a kind, or of a kind and name; each once, by key, with the store's time. */
  cells(queries: readonly CellQuery[]): Promise<{ readonly cells: readonly Cell[]; readonly now: number }>;
  /**
   * Writes cells in turn, each answered separately: false if its version is not the given one (0 for a new one; null
   * overwrites any), or if another transaction that may change it holds it. A null value deletes; a deleted cell begins
   * again with version 1. Schedules, the state of batches, redrive runs, their plans and the states of causes are on disk
   * before the answer; any other write may be lost in a power loss, like a claim.
   */
  setCells(changes: readonly CellChange[]): Promise<boolean[]>;

  /**
   * Adds events to the log, in this order; answers the number of each, or null for one that is written only once and was
   * before. Numbers follow the order of commits: a reader that has seen a number has seen all before it, or finds them
   * deleted.
   */
  record(events: readonly NewEvent[]): Promise<(number | null)[]>;
  /** A page of the event log, newest first unless asked otherwise. */
  events(query: EventQuery): Promise<Page<LoggedEvent>>;

  /**
   * One step of deleting what has expired: gives up to `limit` jobs that ended without an expiry the one that the
   * retention says, deletes up to `limit` expired jobs, the earliest expiry first, up to `limit` keys of deleted jobs, once
   * old enough, and up to `limit` events that are 90 days old, except the first sight of a release, or that are not
   * among the last million. Dead jobs that must go through an archive are set aside instead. A job expires by its own
   * time, whichever process prunes, and the cost of a step depends only on its limit. The first step also deletes
   * given-up workers that hold nothing, and ended pauses, once they are as old as the dead of `keep` may get (30 days
   * where those stay forever), and cells with a holder that were not written for a day, or buckets of limits and notes
   * about types that were not for 30.
   */
  prune(retention: Retention): Promise<PruneAnswer>;
  /**
   * One step of moving the expiry of ended jobs of some types: reads up to `limit` jobs in the order of enqueue, and
   * sets the expiry of those of the types to the time given here, counted from their end.
   */
  retain(request: Retain): Promise<RetainAnswer>;
  /**
   * Adds to the counts per minute and type, in the present minute. A write may be lost in a power loss, like a claim; a
   * caller whose answer was lost may count twice.
   */
  addFlow(addition: FlowAddition): Promise<void>;
  /**
   * A page of causes, those with the most live letters first. Every verb that writes a dead letter, sends one back to
   * work or deletes one counts it in the same transaction.
   */
  causes(query: CauseQuery): Promise<Page<Cause>>;
  /** Counts over time, of all types, one type or one cause: each step that has any, the oldest first. */
  trend(query: TrendQuery): Promise<TrendPoint[]>;
  /**
   * What monitors ask: due work by lane, live dead letters by type, causes, the oldest live letter. Counts of letters and
   * causes are exact; due work is counted as far as the query allows.
   */
  figures(query: FigureQuery): Promise<StoreFigures>;
  /**
   * One step of folding counts: closed minutes of all holders into one, minutes older than six hours into hours, hours
   * older than 14 days into days, at most `limit` rows of each kind. Deletes counts older than 400 days. Beyond 10,000
   * causes it counts rare ones together as `other` that were not seen for an hour and have no live letter. True for
   * `more` if there may be more to do; false, too, while another process folds.
   */
  fold(request: FoldRequest): Promise<{ readonly more: boolean }>;
  /**
   * One step of comparing the counts of causes with their dead letters, in the order of fingerprints: corrects what
   * programs of an older version, or people, have changed without counting. Right also while others write.
   */
  recount(request: RecountRequest): Promise<RecountAnswer>;
  /**
   * Calls back when work may have become due; only a hint. Calls `onDeaf` with the reason where no hint can come.
   * Returns a function that stops listening.
   */
  onWake(listener: () => void, onDeaf?: (why: string) => void): () => void;
  /** Finishes what is under way and releases all resources. */
  close(): Promise<void>;
}

/** The description of a store. */
export interface StoreDescription {
  /** The kind of store. */
  readonly name: "memory" | "sqlite" | "postgres" | "redis";
  /** The address, safe to show: the file, or the server and our schema on it, without a password. */
  readonly shown: string;
  /** The file that the store is embedded in; null for a server, and for memory. */
  readonly file: string | null;
  /** A warning for operators if the store promises less than usual, else null; workers log it at their start. */
  readonly notice: string | null;
}

/**
 * The result of one new job. A conflict means that the key is taken by another payload; replaced, that the waiting job
 * of this id has the new payload from now on.
 */
export type EnqueueAnswer =
  | { readonly kind: "created"; readonly id: string }
  | { readonly kind: "duplicate"; readonly id: string; readonly state: State | null }
  | { readonly kind: "conflict"; readonly id: string }
  | { readonly kind: "replaced"; readonly id: string };

/** What can be written inside a caller's transaction. */
export interface Within {
  enqueue(jobs: readonly NewJob[]): Promise<EnqueueAnswer[]>;
  /**
   * Completes a run, and writes the terms by which it was judged; false if its lease is no longer current, and then the
   * caller rolls back.
   */
  complete(lease: Lease, result: string | null, said?: Terms): Promise<boolean>;
}

/** Lanes found, and where to continue; null when the last lane was read. */
export interface LanePage {
  readonly lanes: readonly ActiveLane[];
  readonly next: number | null;
  /** When the first job is due among the lanes read that have nothing due yet; null if none waits there. */
  readonly nextRunAt: number | null;
  readonly now: number;
  readonly signs?: Signs;
}

/** A request to take work. */
export interface ClaimRequest {
  readonly worker: string;
  readonly quotas: readonly Quota[];
  readonly limit: number;
  /** Fresh random bits for the leases of this claim. */
  readonly nonce: string;
  /** The version of `control` the quotas were planned with; if it has changed, nothing is taken. */
  readonly control: number;
  /** Number of the first job taken, in the order in which this worker starts them; 0 for one that starts at once. */
  readonly ticket: number;
  /** Every run of this worker up to this ticket may have started. */
  readonly startedThrough: number;
  /** Nothing is taken while a job waits in a lane before this one: for a claim without a look. */
  readonly unlessBefore?: number;
}

/** A job with its lease, and its place in the order of its worker; the terms to judge it by are added by the worker. */
export interface ClaimedJob extends Job, JudgedBy {
  readonly nonce: string;
  readonly ticket: number;
}

/** What a claim took; `refused` tells why it took nothing. */
export interface ClaimAnswer {
  readonly jobs: readonly ClaimedJob[];
  /** Store time of the claim. */
  readonly now: number;
  readonly refused: "worker" | "control" | null;
}

/** Progress that a run reports; it keeps its lease. */
export interface Progress {
  readonly kind: "progress";
  /** JSON text. */
  readonly value: string;
}

/** A group of jobs. */
export interface GroupKey {
  readonly type: string;
  readonly group: string;
}

/** A verdict, or a progress report, under the lease of its run. */
export interface Settlement extends Lease {
  readonly verdict: Verdict | Progress;
  /** The job is of a group: other jobs may wait for its place, so settling it may make work due. */
  readonly grouped?: boolean;
  /**
   * The job was sent back to work (its generation is above 1): what becomes of it is written to the dead letter of the
   * generation before, in the same transaction.
   */
  readonly redriven?: boolean;
}

/** Verdicts to apply together. */
export interface SettleRequest {
  readonly settlements: readonly Settlement[];
  /** The worker that settles, with its progress; absent for a reaper. */
  readonly worker?: string;
  readonly startedThrough?: number;
}

/** What was not applied; everything else was. */
export interface SettleAnswer {
  /** The leases that were no longer current; nothing was written for them. */
  readonly stale: readonly Lease[];
  /**
   * The leases of jobs that another open transaction holds: nothing was written for them either, and whether they are
   * current is not known yet. Settle them again later. Only a store that allows foreign transactions returns this.
   */
  readonly locked?: readonly Lease[];
  /** Store time of the settle. */
  readonly now: number;
}
