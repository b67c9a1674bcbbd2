// What a worker has in its hands, and how it gets out of them: runs in their slots, jobs fetched ahead, slots lost to
// handlers that ignore their abort. Jobs start in the order of their tickets, so one number says which have started.
import type { Job, Lease } from "../core/job.ts";
import type { JobDefinition } from "../queue/define-job.ts";
import type { ClaimedJob } from "../store/store.ts";
import type { System } from "../system/system.ts";
import { abandon, execute, type ExecutorOptions } from "./executor.ts";
import { openPace, wantedNow } from "./pace.ts";
import type { Run, StopReason } from "./run.ts";

/** What hands need to work. */
export interface HandsOptions {
  readonly system: System;
  readonly concurrency: number;
  readonly definitions: ReadonlyMap<string, JobDefinition>;
  readonly executor: ExecutorOptions;
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
/** How long a suspect is watched before the next one may join it. */
const SUSPECT_WATCH_MS = 100;

/** The hands of a worker. */
export class Hands {
  readonly running = new Set<Run>();
  /** Jobs fetched ahead, in the order in which they will start, with the time of their claim. */
  readonly ahead: { readonly job: ClaimedJob; readonly claimedMs: number }[] = [];
  /** Every run up to this ticket may have started. */
  startedThrough = 0;
  readonly #options: HandsOptions;
  /** Runs of suspects: claimed singly, in a slot beside the others. */
  readonly #singles = new Set<Run>();
  /** Runs that were settled over the heads of handlers that go on. */
  readonly #leaks = new Set<Run>();
  readonly #pace: ReturnType<typeof openPace>;
  /** The next ticket to give out. */
  #ticket = 1;
  /** Slots kept free for suspects that are due. */
  #reserved = 0;
  /** Jobs that are on their way back without having started. */
  #returning = 0;
  #emptied: (() => void) | null = null;

  constructor(options: HandsOptions) {
    this.#options = options;
    this.#pace = openPace(options.system.monotonic());
  }

  /** Jobs held in all. */
  get held(): number {
    return this.running.size + this.ahead.length;
  }

  /**
   * Suspects come one by one: while one is watched, only as many may join as have run for a while without harm, so that
   * a dead worker's many long jobs are all at work again within a second.
   */
  get mayTakeSuspect(): boolean {
    const { system } = this.#options;
    if (this.free === 0) return false;
    const now = system.monotonic();
    let watched = 0;
    for (const { startedMs } of this.#singles) if (now - startedMs < SUSPECT_WATCH_MS) watched += 1;
    return watched === 0 || watched < this.#singles.size - watched;
  }

  /** True while a job with its last crash left runs in this process. */
  get isAlone(): boolean {
    for (const { job } of this.#singles) if (job.crashes >= job.maxCrashes - 1) return true;
    return false;
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
    return Math.max(0, this.slots - this.running.size);
  }

  /** Jobs that can start within moments. */
  get soon(): number {
    const { system } = this.#options;
    return Math.max(0, this.free + Math.floor(this.#pace.read(system.monotonic()) * SOON_MS) - this.ahead.length);
  }

  /** Slots that any job may have now. */
  get #open(): number {
    return Math.max(0, this.free - this.#reserved);
  }

  /** Keeps so many slots free for suspects that are due; with fewer than before, what waits may start. */
  reserve(slots: number): void {
    this.#reserved = slots;
    this.#fill();
  }

  /** How many jobs to take now. */
  want(): number {
    const { concurrency, system } = this.#options;
    // Later tickets that start would make these count as started, and a crash now would charge them for it.
    if (this.#returning > 0) return 0;
    return wantedNow({
      free: this.#open,
      ahead: this.ahead.length,
      concurrency,
      pace: this.#pace.read(system.monotonic()),
    });
  }

  /** Jobs of a type in hand, for types with a limit of their own. */
  countOf(type: string): number {
    let count = 0;
    for (const { job } of this.running) if (job.type === type) count += 1;
    for (const { job } of this.#leaks) if (job.type === type) count += 1;
    for (const { job } of this.ahead) if (job.type === type) count += 1;
    return count;
  }

  /**
   * Tickets for a claim of this size. Jobs that go straight into free slots are marked as started by the claim itself,
   * because they may kill us before the next write.
   */
  tickets(limit: number): { ticket: number; startedThrough: number } {
    const ticket = this.#ticket;
    const atOnce = this.ahead.length > 0 ? 0 : Math.min(this.#open, limit);
    // Numbers that the claim does not use are not used again: they may count as started by now.
    this.#ticket += limit;
    if (atOnce > 0) this.startedThrough = Math.max(this.startedThrough, ticket + atOnce - 1);
    return { ticket, startedThrough: this.startedThrough };
  }

  /** Takes over what was claimed; a single one starts at once, the others as slots are free. */
  accept(jobs: readonly ClaimedJob[], single: boolean, stopping: boolean): void {
    const claimedMs = this.#options.system.monotonic();
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
    const all = this.ahead.splice(0);
    if (service !== undefined) this.ahead.push(...all.filter(({ job }) => job.service !== service));
    for (const { job } of all) {
      if (service !== undefined && job.service !== service) continue;
      const verdict = { kind: "release", reason: service ? "breaker" : "not_started", delayMs: 0 } as const;
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
    return this.ahead.some(({ job }) => isUnder(job, lease));
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
    if (this.running.size === 0) return;
    const done = new AbortController();
    this.#emptied = () => done.abort();
    await this.#options.system.sleep(withinMs, AbortSignal.any([done.signal, hurry]));
  }

  /** Releases over their handlers' heads what still runs. */
  abandon(): void {
    for (const run of this.running) abandon(run, this.#options.executor);
  }

  #begin(job: ClaimedJob, claimedMs: number): Run {
    const { definitions, executor } = this.#options;
    this.startedThrough = Math.max(this.startedThrough, job.ticket);
    const definition = definitions.get(job.type) as JobDefinition;
    const run = execute(job, definition, claimedMs, executor, (ended, returned) => this.#finish(ended, returned));
    this.running.add(run);
    return run;
  }

  #fill(): void {
    while (this.#open > 0) {
      const next = this.ahead.shift();
      if (!next) return;
      this.#begin(next.job, next.claimedMs);
    }
  }

  #finish(run: Run, returned: boolean): void {
    this.running.delete(run);
    const single = this.#singles.delete(run);
    this.#pace.finished();
    if (!returned) this.#leak(run);
    if (this.running.size === 0) this.#emptied?.();
    this.#fill();
    // A slot of a suspect or of a limited type may be all that was missing, however many others are free.
    const special = single || Number.isFinite(run.definition.concurrency);
    if (special || this.want() > 0) this.#options.onFree(special);
  }

  /** Hands back, uncharged, what was fetched ahead too long ago: the work has become slow, others may be free. */
  #releaseOld(): void {
    const before = this.#options.system.monotonic() - AHEAD_MOST_MS;
    if ((this.ahead[0]?.claimedMs ?? before) <= before && this.#open === 0) this.releaseAhead();
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

/** Epoch and nonce: a server that crashed may forget its last claims, and give out an epoch again. */
function isUnder({ id, epoch, nonce }: ClaimedJob, lease: Lease): boolean {
  return id === lease.id && epoch === lease.epoch && nonce === lease.nonce;
}
