// What a worker has in its hands, and how it gets out of them: runs in their slots, jobs fetched ahead, slots lost to
// handlers that ignore their abort. Jobs start in the order of their tickets, so one number says which have started.
import type { Job, Lease } from "../core/job.ts";
import { jobsIn, type Quota } from "../core/plan.ts";
import { unstartedVerdict } from "../core/verdict.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import type { ClaimedJob } from "../store/store.ts";
import type { System } from "../system/system.ts";
import { Bag } from "./bag.ts";
import { Batches } from "./batches.ts";
import { abandon, execute, type ExecutorOptions } from "./executor.ts";
import { type Fetched, headBatch } from "./batch-forming.ts";
import { HORIZON_MS, mayHold, openPrefetch, wantedNow } from "./prefetch.ts";
import { isUnder, mayJoinSuspects, type Run, type StopReason } from "./run.ts";

/** What hands need to work. */
export interface InFlightOptions {
  readonly system: System;
  readonly concurrency: number;
  /** The store is a server away. */
  readonly isRemote: boolean;
  readonly definitions: ReadonlyMap<string, JobDefinition>;
  readonly executor: ExecutorOptions;
  /** How long the store has been at work on verdicts so far. */
  readonly settlingMs: () => number;
  /** How long the write has taken so far that is under way, or is being answered. */
  readonly writingMs: () => number;
  /** Nothing is claimed because of full hands, so that it matters that a slot is free. */
  readonly isAwaited: () => boolean;
  /** A slot is free; `special` if it is one that only some jobs were waiting for. */
  readonly onFree: (special: boolean) => void;
  /** A handler ignored its abort; so many slots are lost now. */
  readonly onLeak: (job: Job, leaked: number) => void;
}

/** What was fetched ahead and has not started after this long goes back. */
const AHEAD_MOST_MS = 500;
/** Timers of Node may fire this much before their time by the clock that counts. */
const TIMER_SLACK_MS = 2;
/** What starts within this time starts at once, as far as limits go. */
const SOON_MS = 20;

/** The hands of a worker. */
export class InFlight {
  readonly running = new Bag<Run>();
  /** Jobs fetched ahead, in the order in which they will start, with the time of their claim. */
  readonly ahead: Fetched[] = [];
  /** Every run up to this ticket may have started. */
  startedThrough = 0;
  readonly #options: InFlightOptions;
  /** Runs of suspects: claimed singly, in a slot beside the others. */
  readonly #singles = new Set<Run>();
  /** Runs that were settled over the heads of handlers that go on. */
  readonly #leaks = new Set<Run>();
  readonly #pace = openPrefetch();
  /** The same by the clock of the settler. */
  readonly #settling = openPrefetch();
  readonly #batches: Batches;
  /** The next ticket to give out. */
  #ticket = 1;
  /** Slots kept free for suspects that are due. */
  #reserved = 0;
  /** Jobs that are on their way back without having started. */
  #returning = 0;
  /** Slots whose jobs have begun and are not all settled, whether they still run or not. */
  #unsettled = 0;
  #emptied: (() => void) | null = null;
  readonly #ended = (run: Run, returned: boolean): void => this.#finish(run, returned);
  /** Slots that were settled by the write that is being answered. */
  #answered = 0;
  readonly #settled = (): void => {
    this.#unsettled -= 1;
    // All that one write settled counts at once: what it takes to read the clocks is much, for each job.
    if (this.#answered++ === 0) queueMicrotask(this.#count);
  };
  readonly #count = (): void => {
    this.#pace.settled(this.#options.system.monotonic(), this.#answered);
    this.#settling.settled(this.#options.settlingMs(), this.#answered, this.#options.writingMs());
    this.#answered = 0;
    this.#freed();
  };

  constructor(options: InFlightOptions) {
    this.#options = options;
    this.#batches = new Batches({
      ...options,
      running: this.running,
      onGathered: (fetched) => this.#beginAll(fetched),
      onEnd: (first, returned) => this.#finish(first, returned),
      onSettled: this.#settled,
    });
  }

  /** Jobs held in all. */
  get held(): number {
    return this.running.size + this.ahead.length + this.#batches.gathering.fetched.length;
  }

  /**
   * Suspects come one by one: while one is watched, only as many may join as have run for a while without harm, so that
   * a dead worker's many long jobs are all at work again within a second.
   */
  get mayTakeSuspect(): boolean {
    const { concurrency, settlingMs, system } = this.#options;
    const hasRoom = this.#slotsHeld < mayHold(concurrency, this.#settling.read(settlingMs()));
    return this.free > 0 && hasRoom && mayJoinSuspects(this.#singles, system.monotonic());
  }

  /** How long the job with its last crash left has been running that began last; null where none runs. */
  get aloneMs(): number | null {
    const began = [...this.#singles].filter(({ job }) => job.crashes >= job.maxCrashes - 1).map((run) => run.startedMs);
    return began.length === 0 ? null : this.#options.system.monotonic() - Math.max(...began);
  }

  /** True if nothing at all is claimed and not settled. */
  get isIdle(): boolean {
    return this.held + this.#unsettled + this.#returning === 0;
  }

  /** True once no slot is left but those of handlers that ignore their abort. */
  get isSpent(): boolean {
    return this.#leaks.size >= this.#options.concurrency;
  }

  /** Slots that are not lost. */
  get slots(): number {
    return Math.max(0, this.#options.concurrency - this.#leaks.size);
  }

  /** Slots that are free now. */
  get free(): number {
    return Math.max(0, this.slots - this.#batches.taken - this.#batches.gathering.slots);
  }

  /** Jobs that can start within moments. */
  get soon(): number {
    const settled = this.#pace.read(this.#options.system.monotonic());
    const slots = this.free + Math.floor((settled * SOON_MS) / HORIZON_MS);
    return Math.max(0, slots * this.#batches.widest - this.ahead.length);
  }

  /** How many jobs of a type one slot takes. */
  perSlot(type: string): number {
    return this.#batches.perSlot(type);
  }

  /** Slots that any job may have now. */
  get #open(): number {
    return Math.max(0, this.free - this.#reserved);
  }

  /** The same, and batches that wait for more jobs, which are as good as a free slot. */
  get #fillable(): number {
    return this.#open + this.#batches.gathering.slots;
  }

  /** Keeps so many slots free for suspects that are due; with fewer than before, what waits may start. */
  reserve(slots: number): void {
    this.#reserved = slots;
    this.#fill();
  }

  /** How many slots to fill now. */
  want(): number {
    // Later tickets that start would make these count as started, and a crash now would charge them for it.
    if (this.#returning > 0) return 0;
    // What is fetched ahead waits for slots that come back, and those of leaked handlers may not.
    const usable = { concurrency: this.slots, isRemote: this.#options.isRemote };
    return wantedNow(usable, {
      free: this.#fillable,
      ahead: this.#batches.slotsFor(this.ahead),
      held: this.#slotsHeld,
      settled: this.#pace.read(this.#options.system.monotonic()),
      settling: this.#settling.read(this.#options.settlingMs()),
    });
  }

  /** Slots of jobs that were claimed and are not settled. */
  get #slotsHeld(): number {
    const waiting = this.#batches.slotsFor(this.ahead) + this.#batches.gathering.slots;
    return waiting + this.#unsettled + this.#returning;
  }

  /** Slots that a type takes or will take, for types with a limit of their own. */
  countOf(type: string): number {
    return this.#slotsOf(type) + this.#batches.slotsFor(this.ahead.filter(({ job }) => job.type === type));
  }

  #slotsOf(type: string): number {
    return this.#batches.slotsOf(type) + [...this.#leaks].filter(({ job }) => job.type === type).length;
  }

  /**
   * Tickets for a claim of this size and these quotas. Jobs that go straight into free slots are marked as started by the claim itself,
   * because they may kill us before the next write.
   */
  tickets(limit: number, quotas: readonly Quota[]): { ticket: number; startedThrough: number } {
    const ticket = this.#ticket;
    const atOnce = this.ahead.length > 0 ? 0 : Math.min(limit, jobsIn(quotas, this.#fillable));
    // Numbers that the claim does not use are not used again: they may count as started by now.
    this.#ticket += limit;
    if (atOnce > 0) this.startedThrough = Math.max(this.startedThrough, ticket + atOnce - 1);
    return { ticket, startedThrough: this.startedThrough };
  }

  /** Takes over what was claimed; a single one starts at once, the others as slots are free. */
  accept(jobs: readonly ClaimedJob[], single: boolean, stopping: boolean): void {
    const claimedMs = this.#options.system.monotonic();
    this.#batches.claimed(jobs);
    if (stopping) {
      for (const job of jobs) this.ahead.push({ job, claimedMs });
      this.releaseAhead();
    } else if (single) for (const job of jobs) this.#singles.add(this.#begin(job, claimedMs));
    else {
      for (const job of jobs) this.ahead.push({ job, claimedMs });
      this.#fill();
      if (this.ahead.length > 0) this.#options.system.after(AHEAD_MOST_MS + TIMER_SLACK_MS, () => this.#releaseOld());
    }
  }

  /** Hands back, uncharged, what was fetched ahead; of one service where one is named. */
  releaseAhead(service?: string): void {
    const { settle, report } = this.#options.executor;
    const all = [...this.#batches.gathering.takeBack(service), ...this.ahead.splice(0)];
    if (service !== undefined) this.ahead.push(...all.filter(({ job }) => job.service !== service));
    for (const { job } of all) {
      if (service !== undefined && job.service !== service) continue;
      const verdict = unstartedVerdict(service === undefined ? "not_started" : "breaker");
      this.#returning += 1;
      settle(job, verdict, (settled) => {
        this.#returning -= 1;
        report(job, verdict, settled);
        if (this.#returning === 0) this.#options.onFree(false);
      });
    }
  }

  /** True for a job that was claimed and is still in hand. */
  holds(lease: Lease): boolean {
    for (const { job } of this.running) if (isUnder(job, lease)) return true;
    return [...this.#batches.gathering.fetched, ...this.ahead].some(({ job }) => isUnder(job, lease));
  }

  /** Asks all runs to stop. */
  stop(reason: StopReason): void {
    for (const run of this.running) run.stop(reason);
  }

  /** Asks those runs to stop that somebody has cancelled. */
  cancel(leases: readonly Lease[]): void {
    for (const run of this.running) {
      if (leases.some((lease) => isUnder(run.job, lease))) run.stop("cancel");
    }
  }

  /** Resolves when nothing runs any more, at the latest after the time given or when asked to hurry. */
  async empty(withinMs: number, hurry: AbortSignal): Promise<void> {
    if (this.#batches.taken === 0) return;
    const done = new AbortController();
    this.#emptied = () => done.abort();
    await this.#options.system.sleep(withinMs, AbortSignal.any([done.signal, hurry]));
  }

  /** Releases over their handlers' heads what still runs. */
  abandon(): void {
    for (const run of this.running) abandon(run, this.#options.executor);
  }

  #begin(job: ClaimedJob, claimedMs: number): Run {
    this.startedThrough = Math.max(this.startedThrough, job.ticket);
    const run = execute(job, this.#definitionOf(job), claimedMs, this.#options.executor, this.#ended);
    run.onSettled = this.#settled;
    this.#unsettled += 1;
    this.running.add(run);
    return run;
  }

  #definitionOf({ type }: Job): JobDefinition {
    return this.#options.definitions.get(type) as JobDefinition;
  }

  #fill(): void {
    if (this.#batches.areUsed) return this.#fillBatches();
    while (this.#open > 0) {
      const next = this.ahead.shift();
      if (!next) return;
      this.#begin(next.job, next.claimedMs);
    }
  }

  #fillBatches(): void {
    const { gathering } = this.#batches;
    for (let [next] = this.ahead; next; [next] = this.ahead) {
      const isJoining = gathering.joins(next);
      if (!isJoining && !this.#mayBegin(next)) return;
      const { batch } = this.#definitionOf(next.job);
      const fetched = this.ahead.splice(0, batch && !isJoining ? headBatch(this.ahead, batch) : 1);
      this.startedThrough = Math.max(this.startedThrough, next.job.ticket + fetched.length - 1);
      if (!isJoining && !(batch && gathering.keeps(fetched, batch))) this.#beginAll(fetched);
    }
  }

  /** A claim for one slot may bring jobs that have to go in several; the type's own limit holds for these too. */
  #mayBegin({ job }: Fetched): boolean {
    const { batch, concurrency, type } = this.#definitionOf(job);
    return this.#open > 0 && (batch === null || this.#slotsOf(type) < concurrency);
  }

  #beginAll(fetched: readonly Fetched[]): void {
    const [first] = fetched;
    if (first && fetched.length > 1) {
      this.#unsettled += 1;
      this.#batches.begin(fetched, this.#definitionOf(first.job));
    } else if (first) this.#begin(first.job, first.claimedMs);
  }

  #finish(run: Run, returned: boolean): void {
    this.running.delete(run);
    const single = this.#singles.delete(run);
    if (!returned) this.#leak(run);
    if (this.#batches.taken === 0) this.#emptied?.();
    this.#fill();
    // A slot of a suspect or of a limited type may be all that was missing, however many others are free.
    const special = single || Number.isFinite(run.definition.concurrency);
    if (special) this.#options.onFree(true);
    else this.#freed();
  }

  #freed(): void {
    if (this.#options.isAwaited() && this.want() > 0) this.#options.onFree(false);
  }

  /** Hands back, uncharged, what was fetched ahead too long ago: the work has become slow, others may be free. */
  #releaseOld(): void {
    const [next] = this.ahead;
    const before = this.#options.system.monotonic() - AHEAD_MOST_MS;
    if (next && next.claimedMs <= before && !this.#mayBegin(next)) this.releaseAhead();
  }

  #leak(run: Run): void {
    this.#leaks.add(run);
    void run.returned.then(() => {
      this.#leaks.delete(run);
      this.#fill();
      this.#options.onFree(true);
    });
    if (this.isSpent) this.releaseAhead();
    this.#options.onLeak(run.job, this.#leaks.size);
  }
}
