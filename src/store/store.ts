// The store contract. A store applies, it never judges: no delay, no attempt limit and no failure class is computed
// behind this interface. Every verb takes and returns sets and is atomic as a whole unless it says otherwise. Time is
// the store's own; callers send durations. Payloads, results and failures are opaque and come back byte for byte.
//
// A verb either does all of what it says, or throws and has done nothing (`store_unavailable`: try again later). When
// the answer is lost on the way, whoever asked does not know; that is why writes about runs carry their lease and new
// jobs carry their id.
import type { AttemptRecord, DeadLetter, Job, Lease, State, Terms } from "../core/job.ts";
import type { ActiveLane } from "../core/lane.ts";
import type { NewJob } from "../core/new-job.ts";
import type { Quota } from "../core/plan.ts";
import type { JudgedBy, Verdict } from "../core/verdict.ts";
import type { Cell, CellChange, CellQuery } from "./cells.ts";
import type { Control, PauseTarget } from "./control.ts";
import type {
  DeadTarget,
  DeadLetterQuery,
  LetterFilter,
  RedriveAnswer,
  RedriveRequest,
  Tally,
} from "./dead-letters.ts";
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
import type { PruneAnswer, Retain, RetainAnswer, Retention } from "./retention.ts";
import type { Signs } from "./signs.ts";

export type { Lease } from "../core/job.ts";
export type { Cell, CellChange, CellKey, CellQuery } from "./cells.ts";
export type * from "./control.ts";
export type * from "./dead-letters.ts";
export type * from "./presence.ts";
export type { Signs } from "./signs.ts";
export type { Keep, PruneAnswer, Retain, RetainAnswer, Retention, TypeKeep } from "./retention.ts";

/** Where jobs live. */
export interface Store {
  /** Which store this is, for messages and for people; as in its description. */
  readonly name: StoreDescription["name"];
  /** Every question goes to a server and back, so that one less is worth a claim in vain. */
  readonly remote: boolean;
  /** What the store is, where it is and what it promises; asks nothing of it. */
  describe(): StoreDescription;

  /** Brings the schema up to date; safe to call twice and from several processes at once. */
  migrate(): Promise<void>;

  /**
   * Writes new jobs, each answered for itself; a repeated id is a duplicate, and a key that is taken means what the job's
   * `unique` says. A job that takes over a key leaves the one that held it as it is: that one runs, dies and is redriven
   * as before, it just does not answer to the key any more.
   */
  enqueue(jobs: readonly NewJob[]): Promise<EnqueueAnswer[]>;
  /** Writes inside a transaction of the caller's, where the store has such: they commit and roll back with it. */
  within?(tx: unknown): Within;
  /** The jobs of these ids, null where there is none. */
  get(ids: readonly string[]): Promise<(Job | null)[]>;
  /** A page of jobs, newest first unless asked otherwise. */
  list(query: JobQuery): Promise<Page<Job>>;
  /** How many jobs there are in each state. */
  count(): Promise<Record<State, number>>;
  /** Cancels waiting jobs at once and asks running ones to stop. */
  cancel(ids: readonly string[]): Promise<CancelAnswer[]>;
  /** Changes due time or priority of waiting jobs. */
  reschedule(changes: readonly Reschedule[]): Promise<RescheduleAnswer[]>;

  /** Lanes with work due now and room in their group, in the order of their numbers, after the one given. */
  lanes(after: number | null, limit: number): Promise<LanePage>;
  /**
   * Works through the quotas in order until `limit` jobs are taken, and gives each a new lease under the worker. A job of
   * a group takes a place there, and is not taken where there is none left.
   */
  claim(request: ClaimRequest): Promise<ClaimAnswer>;
  /**
   * Applies verdicts, each only where its lease is current, and says which were stale, and which could not be applied now
   * because somebody holds their job: no row keeps the verdicts about others from being written. A job that has ended frees its
   * place in its group; one that goes back to the queue keeps it where the group goes one after the other.
   */
  settle(request: SettleRequest): Promise<SettleAnswer>;
  /** The jobs that hold a place in a group, in the order of enqueue. */
  holders(group: GroupKey): Promise<Job[]>;

  /** Adds a worker with a lease of its own. */
  register(worker: NewWorker): Promise<void>;
  /** Moves the end of a worker's lease; refused once the worker was given up. */
  beat(beat: Beat): Promise<BeatAnswer>;
  /** Beats from a thread of the store's own, where it has one, so that a blocked event loop does not cost the lease. */
  pulse?(request: PulseRequest, listener: PulseListener): Pulse;
  /** Gives up the workers whose lease has ended, and those named, and lists runs that such workers still hold. */
  expired(request: ExpiredRequest): Promise<ExpiredRun[]>;
  /** Runs that take longer than they may, by the store's clock, in the order of enqueue. */
  overdue(request: OverdueRequest): Promise<OverdueRun[]>;
  /** The leases a worker holds, so that it can hand back those of a claim whose answer was lost. */
  held(worker: string): Promise<Lease[]>;
  /** Removes a worker that holds nothing any more; one that does is given up instead. */
  leave(worker: string): Promise<void>;
  /** Every worker known. */
  workers(): Promise<WorkerRecord[]>;

  /** A page of dead letters, newest first unless asked otherwise. */
  deadLetters(query: DeadLetterQuery): Promise<Page<DeadLetter>>;
  /** How many dead letters match, by class, type, reason and cause. */
  tally(filter: LetterFilter): Promise<Tally>;
  /** The bad runs of a job, oldest first: of each generation the first and the last nine. */
  history(id: string): Promise<AttemptRecord[]>;
  /** Sends dead jobs back to work, each only if its generation is still the one the caller saw. */
  redrive(requests: readonly RedriveRequest[]): Promise<RedriveAnswer[]>;
  /** Removes finished jobs with everything that belongs to them; waiting and running ones stay, and of deaths all but those named. */
  remove(targets: readonly (string | DeadTarget)[]): Promise<number>;

  /** Everything that holds work back, with the version that a claim must name. */
  control(): Promise<Control>;
  /** Pauses a queue, type, service or tenant; a second pause takes the place of the first. */
  pause(target: PauseTarget, pause: { readonly forMs: number | null; readonly reason: string }): Promise<void>;
  /** Ends a pause; false if none was in force. */
  resume(target: PauseTarget): Promise<boolean>;
  /** Replaces the state of a service if its version is still the one given (0 for a new one); false if not. */
  setService(name: string, version: number, value: string): Promise<boolean>;

  /** Small values that processes share: all of a kind, or of a kind and name; each once, by key, with the store's time. */
  cells(queries: readonly CellQuery[]): Promise<{ readonly cells: readonly Cell[]; readonly now: number }>;
  /**
   * Writes cells in turn, each answered for itself: false if its version is not the one given (0 for a new one; null
   * overwrites whatever is there), or where somebody holds it who may change it. A null value deletes, and a deleted cell
   * begins anew. Schedules and the state of batches are on disk before the answer; any other write may be lost with the
   * power, as a claim may.
   */
  setCells(changes: readonly CellChange[]): Promise<boolean[]>;

  /**
   * One step of deleting what is over: gives up to `limit` jobs that ended without a time the one that the retention says,
   * deletes up to `limit` jobs whose time has come, those first that should have gone first, and up to `limit` keys of jobs
   * that are gone, once old enough. Dead ones that only an archive lets go are set aside instead. A job goes by its own
   * time, whoever prunes, and the cost of a step depends on its limit alone. The first step also deletes what nobody needs
   * any more: workers that were given up and hold nothing, and pauses that ended, once they are as old as the dead of
   * `keep` may get (30 days where those stay for ever), and cells with a holder that were not written for a day, or buckets
   * of limits and notes about types that were not for 30.
   */
  prune(retention: Retention): Promise<PruneAnswer>;
  /**
   * One step of moving the time at which ended jobs of some types go: looks at up to `limit` jobs in the order of enqueue,
   * and has those of the types kept for as long as is said here, counted from their end.
   */
  retain(request: Retain): Promise<RetainAnswer>;
  /**
   * Calls back when work may have become due; a hint, never the truth. Says why where it notices that none can come.
   * Returns the way to stop listening.
   */
  onWake(listener: () => void, onDeaf?: (why: string) => void): () => void;
  /** Finishes what is under way and lets go of everything. */
  close(): Promise<void>;
}

/** What a store says of itself. */
export interface StoreDescription {
  /** Its kind. */
  readonly name: "memory" | "sqlite" | "postgres" | "redis";
  /** Where it is, safe to show: the file, or the server and what is ours on it, without a password. */
  readonly shown: string;
  /** The file that the store is embedded in; null for a server, and for memory. */
  readonly file: string | null;
  /** What people should know where it was opened to promise less than usual, else null; workers log it at their start. */
  readonly notice: string | null;
}

/**
 * What became of one new job. A conflict means that the key is taken by another body; replaced, that the job of this id,
 * which waits, goes by the new body from now on.
 */
export type EnqueueAnswer =
  | { readonly kind: "created"; readonly id: string }
  | { readonly kind: "duplicate"; readonly id: string; readonly state: State | null }
  | { readonly kind: "conflict"; readonly id: string }
  | { readonly kind: "replaced"; readonly id: string };

/** What can be written inside a transaction of the caller's. */
export interface Within {
  enqueue(jobs: readonly NewJob[]): Promise<EnqueueAnswer[]>;
  /** Completes a run, and writes what it was judged by; false if its lease is not current any more, and then the caller rolls back. */
  complete(lease: Lease, result: string | null, said?: Terms): Promise<boolean>;
}

/** A page and the cursor of the next one. */
export interface Page<T> {
  /** What is on the page. */
  readonly items: readonly T[];
  /** The cursor of the next page; null on the last. */
  readonly next: string | null;
}

/** Which jobs to list; every field narrows. */
export interface JobQuery {
  readonly limit: number;
  readonly cursor?: string | null;
  /** Only jobs in this stored state. */
  readonly state?: State;
  /** Only jobs of this type; this and the next are compared exactly. */
  readonly type?: string;
  /** Only jobs of this queue. */
  readonly queue?: string;
  /** Only jobs of this service. */
  readonly service?: string;
  /** Only jobs of this tenant. */
  readonly tenant?: string;
  /** Only jobs with this key. */
  readonly key?: string;
  /** Only waiting jobs that are due (true) or not yet (false). */
  readonly due?: boolean;
  /** Only jobs with a charged attempt (true) or without one (false). */
  readonly tried?: boolean;
  /** Only waiting jobs, those due first before the others. */
  readonly sort?: "due";
  /** False leaves out payload, progress and result: the payload comes as `null`, the others as nothing. Default true. */
  readonly payloads?: boolean;
}

/** What a cancel did; `requested` means that it runs and was asked to stop. */
export type CancelAnswer = "cancelled" | "requested" | "finished" | "missing";

/** A change of a waiting job; absent fields stay. */
export interface Reschedule {
  readonly id: string;
  readonly delayMs?: number;
  readonly priority?: number;
}

/** What a reschedule did; `refused` means that the job does not wait. */
export type RescheduleAnswer = "changed" | "refused" | "missing";

/** Lanes found, and where to go on; null when the last lane was seen. */
export interface LanePage {
  readonly lanes: readonly ActiveLane[];
  readonly next: number | null;
  /** When the first job falls due among the lanes seen that have nothing due yet; null if none waits there. */
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
  /** The version of `control` the quotas were planned with; another one now means nothing is taken. */
  readonly control: number;
  /** Number of the first job taken, in the order in which this worker will start them; 0 for one that starts at once. */
  readonly ticket: number;
  /** Every run of this worker up to this ticket may have started. */
  readonly startedThrough: number;
  /** Nothing is taken while anything waits in a lane before this one: for a claim without a look. */
  readonly unlessBefore?: number;
}

/** A job with its lease, and its place in the order of its worker; what its verdicts are to say is the worker's own note. */
export interface ClaimedJob extends Job, JudgedBy {
  readonly nonce: string;
  readonly ticket: number;
}

/** What a claim took; `refused` says why it took nothing. */
export interface ClaimAnswer {
  readonly jobs: readonly ClaimedJob[];
  /** Store time of the claim. */
  readonly now: number;
  readonly refused: "worker" | "control" | null;
}

/** What a run says on its way; it keeps its lease. */
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

/** A verdict, or a word about progress, under the lease of its run. */
export interface Settlement extends Lease {
  readonly verdict: Verdict | Progress;
  /** The job is of a group: others may wait for its place, and want to hear of it. */
  readonly grouped?: boolean;
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
  /** The leases that were not current any more; nothing was written for them. */
  readonly stale: readonly Lease[];
  /**
   * The leases of jobs that somebody holds in an open transaction: nothing was written for them either, and nobody knows
   * yet whether they are current. Settle them again later. Only a store with transactions of others says so.
   */
  readonly locked?: readonly Lease[];
  /** Store time of the settle. */
  readonly now: number;
}
