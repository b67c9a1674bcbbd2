// The jobs that a worker holds: runs in their slots, jobs fetched ahead, slots lost to handlers that ignore their abort
// signal. Jobs start in the order of their tickets, so one number tells which have started.
import { fillable, wantedNow, type WorkInHand } from "../core/in-hand.ts";
import type { Job, Lease } from "../core/job.ts";
import { jobsIn, type Quota } from "../core/claim-plan.ts";
import { unstartedVerdict } from "../core/verdict.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { aboutJob } from "../report/about-job.ts";
import type { Reporter, WorkerCounts } from "../report/reporter.ts";
import type { Services } from "../services/services.ts";
import type { ClaimedJob } from "../store/store.ts";
import { Bag } from "./bag.ts";
import { Batches } from "./batches.ts";
import type { WorkerDependencies, WorkerIdentity } from "./dependencies.ts";
import { abandon, execute, type ExecutorOptions } from "./executor.ts";
import { type Fetched, headBatch } from "./batch-forming.ts";
import { HORIZON_MS, openPrefetch } from "./prefetch.ts";
import { isUnder, type Run, type StopReason } from "./run.ts";
import type { Settler } from "./settler.ts";
import type { WakeableSleep } from "./wakeable-sleep.ts";

/** What it needs. */
export interface InFlightOptions
  extends Pick<WorkerDependencies, "system" | "store" | "settings" | "log" | "events" | "traces"> {
  readonly self: WorkerIdentity;
  readonly definitions: ReadonlyMap<string, JobDefinition>;
  readonly settler: Settler;
  readonly services: Services;
  readonly report: Reporter;
  readonly counts: WorkerCounts;
  /** Woken when slots become free. */
  readonly sleep: WakeableSleep;
}

/** Jobs that were fetched ahead and have not started after this long go back. */
const AHEAD_MOST_MS = 500;
/** Node's timers may fire this much too early by the monotonic clock. */
const TIMER_SLACK_MS = 2;
/** For rate limits, a start within this time counts as now. */
const SOON_MS = 20;

/** The jobs that a worker holds; readable as `WorkInHand`. */
export class InFlight implements WorkInHand {
  readonly running = new Bag<Run>();
  readonly concurrency: number;
  /** Slots reserved for suspects that are due. */
  reserved = 0;
  /** Jobs being released without having started. */
  returning = 0;
  readonly self: WorkerIdentity;
  /** Jobs fetched ahead, in the order in which they will start, with the time of their claim. */
  readonly #fetched: Fetched[] = [];
  readonly #options: InFlightOptions;
  readonly #executor: ExecutorOptions;
  /** Runs of suspects: claimed singly, in a slot beside the others. */
  readonly #singles = new Set<Run>();
  /** Runs that were settled while their handlers still run. */
  readonly #leaks = new Set<Run>();
  readonly #pace = openPrefetch();
  /** The same by the clock of the settler. */
  readonly #settling = openPrefetch();
  readonly #batches: Batches;
  /** The next ticket to give out. */
  #ticket = 1;
  /** Slots whose jobs have started and are not all settled, whether they still run or not. */
  #unsettled = 0;
  #emptied: (() => void) | null = null;
  readonly #ended = (run: Run, returned: boolean): void => this.#finish(run, returned);
  /** Slots that were settled by the write that is being answered. */
  #answered = 0;
  readonly #settled = (): void => {
    this.#unsettled -= 1;
    // Everything that one write settled is counted at once, because reading the clocks for each job is expensive.
    if (this.#answered++ === 0) queueMicrotask(this.#count);
  };
  readonly #count = (): void => {
    const { settler, system } = this.#options;
    this.#pace.settled(system.monotonic(), this.#answered);
    this.#settling.settled(settler.settlingMs(), this.#answered, settler.writingMs());
    this.#answered = 0;
    this.#freed();
  };

  constructor(options: InFlightOptions) {
    const { system, store, settings, log, report, self, settler, services, definitions } = options;
    this.#options = options;
    this.self = self;
    this.concurrency = settings.concurrency;
    this.#executor = {
      system,
      store,
      log,
      report,
      abortGraceMs: settings.abortGraceMs,
      settle: settler.settle,
      gate: services,
      heldMs: (job, until) => services.heldMs(job, until),
      isStopping: () => self.isStopping,
      ...(options.traces && { traces: options.traces }),
    };
    this.#batches = new Batches({
      executor: this.#executor,
      definitions,
      running: this.running,
      onFormed: (fetched) => this.#beginAll(fetched),
      onEnd: (first, returned) => this.#finish(first, returned),
      onSettled: this.#settled,
    });
  }

  /** The number of held jobs. */
  get jobs(): number {
    return this.running.size + this.#fetched.length + this.#batches.forming.fetched.length;
  }

  /** How long each suspect that runs here has been running. */
  get suspectsMs(): readonly number[] {
    const nowMs = this.#options.system.monotonic();
    return Array.from(this.#singles, ({ startedMs }) => nowMs - startedMs);
  }

  /** How long the job with one crash left that began last has been running; null where none runs. */
  get aloneMs(): number | null {
    const began = [...this.#singles].filter(({ job }) => job.crashes >= job.maxCrashes - 1).map((run) => run.startedMs);
    return began.length === 0 ? null : this.#options.system.monotonic() - Math.max(...began);
  }

  /** True if every claimed job is settled. */
  get isIdle(): boolean {
    return this.jobs + this.#unsettled + this.returning === 0;
  }

  /** True once all slots are lost to handlers that ignore their abort signal. */
  get isSpent(): boolean {
    return this.#leaks.size >= this.concurrency;
  }

  /** Slots that are not lost. */
  get slots(): number {
    return Math.max(0, this.concurrency - this.#leaks.size);
  }

  /** Slots that are free now. */
  get free(): number {
    return Math.max(0, this.slots - this.#batches.taken - this.#batches.forming.slots);
  }

  /** Jobs that can start within moments. */
  get soon(): number {
    const slots = this.free + Math.floor((this.settled * SOON_MS) / HORIZON_MS);
    return Math.max(0, slots * this.#batches.widest - this.#fetched.length);
  }

  /** How many jobs of a type one slot takes. */
  perSlot(type: string): number {
    return this.#batches.perSlot(type);
  }

  /** Slots that any job may take now. */
  get #open(): number {
    return Math.max(0, this.free - this.reserved);
  }

  /** Batches that wait in a slot for more jobs. */
  get forming(): number {
    return this.#batches.forming.slots;
  }

  /** Slots of the jobs fetched ahead. */
  get ahead(): number {
    return this.#batches.slotsFor(this.#fetched);
  }

  /** Slots of jobs that were claimed and are not settled. */
  get held(): number {
    return this.ahead + this.forming + this.#unsettled + this.returning;
  }

  /** Slots that were settled in the last tenth of a second. */
  get settled(): number {
    return this.#pace.read(this.#options.system.monotonic());
  }

  /** The same by the clock of the settler. */
  get settling(): number {
    return this.#settling.read(this.#options.settler.settlingMs());
  }

  /** Reserves so many slots for suspects that are due; with fewer than before, waiting jobs may start. */
  reserve(slots: number): void {
    this.reserved = slots;
    this.#fill();
  }

  /** Slots that a type takes or will take, for types with a concurrency limit. */
  countOf(type: string): number {
    return this.#slotsOf(type) + this.#batches.slotsFor(this.#fetched.filter(({ job }) => job.type === type));
  }

  #slotsOf(type: string): number {
    return this.#batches.slotsOf(type) + [...this.#leaks].filter(({ job }) => job.type === type).length;
  }

  /**
   * Tickets for a claim of this size and these quotas. The claim itself marks jobs that go straight into free slots as
   * started, because they may kill this process before the next write.
   */
  tickets(limit: number, quotas: readonly Quota[]): { ticket: number; startedThrough: number } {
    const ticket = this.#ticket;
    const atOnce = this.#fetched.length > 0 ? 0 : Math.min(limit, jobsIn(quotas, fillable(this)));
    // Unused numbers of the claim are not used again: they may already count as started.
    this.#ticket += limit;
    if (atOnce > 0) this.self.startedThrough = Math.max(this.self.startedThrough, ticket + atOnce - 1);
    return { ticket, startedThrough: this.self.startedThrough };
  }

  /** Takes over claimed jobs; a single one starts at once, the others as slots become free. */
  accept(jobs: readonly ClaimedJob[], single: boolean, stopping: boolean): void {
    const claimedMs = this.#options.system.monotonic();
    this.#batches.claimed(jobs);
    if (stopping) {
      for (const job of jobs) this.#fetched.push({ job, claimedMs });
      this.releaseAhead();
    } else if (single) for (const job of jobs) this.#singles.add(this.#begin(job, claimedMs));
    else {
      for (const job of jobs) this.#fetched.push({ job, claimedMs });
      this.#fill();
      if (this.#fetched.length > 0)
        this.#options.system.after(AHEAD_MOST_MS + TIMER_SLACK_MS, () => this.#releaseOld());
    }
  }

  /** Releases, uncharged, the jobs fetched ahead, or those of one service. */
  releaseAhead(service?: string): void {
    const { settle, report } = this.#executor;
    const all = [...this.#batches.forming.takeBack(service), ...this.#fetched.splice(0)];
    if (service !== undefined) this.#fetched.push(...all.filter(({ job }) => job.service !== service));
    for (const { job } of all) {
      if (service !== undefined && job.service !== service) continue;
      const verdict = unstartedVerdict(service === undefined ? "not_started" : "breaker");
      this.returning += 1;
      settle(job, verdict, (settled) => {
        this.returning -= 1;
        report(job, verdict, settled);
        if (this.returning === 0) this.#options.sleep.nudge();
      });
    }
  }

  /** True for a claimed job that is still held. */
  holds(lease: Lease): boolean {
    for (const { job } of this.running) if (isUnder(job, lease)) return true;
    return [...this.#batches.forming.fetched, ...this.#fetched].some(({ job }) => isUnder(job, lease));
  }

  /** Asks all runs to stop. */
  stop(reason: StopReason): void {
    for (const run of this.running) run.stop(reason);
  }

  /** Asks cancelled runs to stop. */
  cancel(leases: readonly Lease[]): void {
    for (const run of this.running) {
      if (leases.some((lease) => isUnder(run.job, lease))) run.stop("cancel");
    }
  }

  /** Resolves when nothing runs any more, at the latest after the given time or when asked to hurry. */
  async empty(withinMs: number, hurry: AbortSignal): Promise<void> {
    if (this.#batches.taken === 0) return;
    const done = new AbortController();
    this.#emptied = () => done.abort();
    await this.#options.system.sleep(withinMs, AbortSignal.any([done.signal, hurry]));
  }

  /** Releases the runs that still run, without waiting for their handlers. */
  abandon(): void {
    for (const run of this.running) abandon(run, this.#executor);
  }

  #begin(job: ClaimedJob, claimedMs: number): Run {
    this.self.startedThrough = Math.max(this.self.startedThrough, job.ticket);
    const run = execute(job, this.#definitionOf(job), claimedMs, this.#executor, this.#ended);
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
      const next = this.#fetched.shift();
      if (!next) return;
      this.#begin(next.job, next.claimedMs);
    }
  }

  #fillBatches(): void {
    const { forming } = this.#batches;
    for (let [next] = this.#fetched; next; [next] = this.#fetched) {
      const isJoining = forming.joins(next);
      if (!isJoining && !this.#mayBegin(next)) return;
      const { batch } = this.#definitionOf(next.job);
      const fetched = this.#fetched.splice(0, batch && !isJoining ? headBatch(this.#fetched, batch) : 1);
      this.self.startedThrough = Math.max(this.self.startedThrough, next.job.ticket + fetched.length - 1);
      if (!isJoining && !(batch && forming.keeps(fetched, batch))) this.#beginAll(fetched);
    }
  }

  /** A claim for one slot may bring jobs that need several; the type's concurrency limit applies to these too. */
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
    // A slot of a suspect or of a limited type may be the only one missing, however many others are free.
    const special = single || Number.isFinite(run.definition.concurrency);
    if (special) this.#options.sleep.ring();
    else this.#freed();
  }

  #freed(): void {
    const { sleep, store } = this.#options;
    if (sleep.awaitsSlot && wantedNow(this, store.remote) > 0) sleep.ring();
  }

  /**
   * Releases, uncharged, jobs that were fetched ahead too long ago: the work has become slow, and other workers may be
   * free.
   */
  #releaseOld(): void {
    const [next] = this.#fetched;
    const before = this.#options.system.monotonic() - AHEAD_MOST_MS;
    if (next && next.claimedMs <= before && !this.#mayBegin(next)) this.releaseAhead();
  }

  #leak(run: Run): void {
    this.#leaks.add(run);
    void run.returned.then(() => {
      this.#leaks.delete(run);
      this.#fill();
      this.#options.sleep.ring();
    });
    if (this.isSpent) this.releaseAhead();
    const { counts, log, events } = this.#options;
    counts.leaked += 1;
    log.error(aboutJob(run.job, run.trace), "the handler ignored its abort signal; its slot is lost until it returns");
    const leaked = this.#leaks.size;
    if (leaked * 2 >= this.concurrency) events.emit({ kind: "worker.spent", worker: this.self.id, leaked });
  }
}
