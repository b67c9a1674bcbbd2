// Runs several jobs of a type through their batch handler. A reported outcome is settled at once. Items without one
// have an unknown outcome: a single one is charged for it; of several, further calls search for the bad one and the
// others go back uncharged, or all go back, to run in smaller batches. The executor judges and settles.
import { halfOf, type Search, searchAmong } from "../core/bisect.ts";
import type { ItemOutcome } from "../core/item-outcome.ts";
import { encodeResult } from "../core/payload.ts";
import type { Outcome } from "../core/verdict.ts";
import {
  type BatchContext,
  type BatchItem,
  type BatchSettings,
  noOutcome,
  outcomeWords,
  tellReturned,
} from "../jobs/batch-handler.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { aboutBatch, logAbout } from "../report/about-job.ts";
import { type ExecutorOptions, judgeThrown, makeReady, outcomeOfStop, settle } from "./executor.ts";
import { type Fetched, isAgain } from "./batch-forming.ts";
import { abortError, itemOf, Run, type StopReason } from "./run.ts";

/**
 * Called at the end of each item, and at the end of the batch: `returned` is false if its handler ignored the abort
 * signal.
 */
export interface BatchEnds {
  item(run: Run): void;
  all(returned: boolean): void;
}

/** One batch, with all calls of its handler. */
export class BatchRun {
  readonly definition: JobDefinition;
  readonly runs: readonly Run[];
  readonly #options: ExecutorOptions;
  readonly #ends: BatchEnds;
  /** Items without an outcome, by the id of their job. */
  readonly #open: Map<string, Run>;
  readonly #started = new Set<string>();
  readonly #controller = new AbortController();
  /** Functions that disarm the limits of a call. */
  readonly #timers: (() => void)[] = [];
  #giveUp: (() => void) | null = null;
  /** Items that are being settled. */
  readonly #settling: Promise<void>[] = [];
  /** Which jobs the handler is called with, and which wait for the result. */
  #search: Search<Run>;
  /** Every item that ended since the last call began has succeeded. */
  #allGood = true;
  /** Once a search has begun: how many of its jobs may share a batch when they are put back. */
  #most: number | null = null;
  #over = false;

  constructor(fetched: readonly Fetched[], definition: JobDefinition, options: ExecutorOptions, ends: BatchEnds) {
    const startedMs = options.system.monotonic();
    this.definition = definition;
    this.#options = options;
    this.#ends = ends;
    this.runs = fetched.map(({ job, claimedMs }) => new Run(job, definition, claimedMs, startedMs));
    this.#open = new Map(this.runs.map((run) => [run.job.id, run]));
    this.#search = { next: this.runs, rest: [], aside: [] };
    const [first, ...others] = this.runs.map(({ job }) => job);
    const trace = (first && options.traces?.run([first, ...others])) ?? null;
    for (const run of this.runs) {
      run.trace = trace;
      run.onStop = () => this.#onStop();
    }
  }

  /** Calls the handler. */
  begin(): void {
    const returned = this.#work();
    for (const run of this.runs) run.returned = returned;
  }

  async #work(): Promise<void> {
    for (;;) {
      const thrown = await this.#call(this.#search.next);
      // The handler has returned, so its run need not be given up.
      this.#giveUp?.();
      const search = await this.#judge(thrown);
      if (!search || this.#over) break;
      this.#search = search;
    }
    this.#finish(true);
  }

  /** Calls the handler with some of the jobs; answers what it threw, or that outcomes are missing. */
  async #call(runs: readonly Run[]): Promise<unknown> {
    const { definition } = this;
    const { log } = this.#options;
    this.#started.clear();
    this.#allGood = true;
    const items = await this.#items(runs);
    if (items.length === 0) return noOutcome();
    this.#arm();
    const trace = runs[0]?.trace ?? null;
    const about = aboutBatch(definition.type, items.length, trace);
    log.info(about, `processing a batch of ${items.length}`);
    const context: BatchContext = {
      signal: this.#controller.signal,
      log: logAbout(log, about),
      started: (id) => void this.#started.add(id),
      ...outcomeWords((id, outcome) => this.#hear(id, outcome)),
    };
    try {
      const { run } = definition.batch as BatchSettings;
      const returned = await (trace ? trace.within(() => run(items, context)) : run(items, context));
      await tellReturned(returned, items, (id, outcome) => this.#hear(id, outcome));
    } catch (error) {
      return error;
    } finally {
      for (const disarm of this.#timers.splice(0)) disarm();
    }
    return noOutcome();
  }

  /** The items for the handler: those that the gate lets through and whose input is valid. */
  async #items(runs: readonly Run[]): Promise<BatchItem[]> {
    const { gate } = this.#options;
    const items: BatchItem[] = [];
    for (const run of runs) {
      const held = run.job.service === null ? null : gate.start(run.job);
      if (held) {
        this.#end(run, held);
        continue;
      }
      let ready = makeReady(run, this.#options);
      if (ready instanceof Promise) ready = await ready;
      if (ready.outcome) this.#settleOne(run, ready.outcome);
      else if (this.#open.has(run.job.id)) items.push(itemOf(run, ready.input));
    }
    return items;
  }

  #hear(id: string, outcome: ItemOutcome): void {
    const run = this.#open.get(id);
    if (!run) return;
    if (outcome.status === "done")
      return this.#settleOne(run, { kind: "completed", result: encodeResult(outcome.result) });
    this.#settleOne(run, { kind: "failed", failure: judgeThrown(run, outcome, this.#options) });
  }

  /** Settles an item by its own outcome; the gate learns it first, as for any run. */
  #settleOne(run: Run, outcome: Outcome): void {
    if (!this.#open.delete(run.job.id)) return;
    if (run.job.service === null) return this.#end(run, outcome);
    const heard = Promise.resolve(this.#options.gate.heard(run.job, outcome));
    this.#settling.push(heard.then((known) => this.#end(run, known)));
  }

  #end(run: Run, outcome: Outcome): void {
    if (outcome.kind !== "completed") this.#allGood = false;
    this.#open.delete(run.job.id);
    settle(run, outcome, this.#options);
    this.#ends.item(run);
  }

  /**
   * Settles what the last call left open, for the reason `thrown`; answers where to continue, or null if nothing is
   * left.
   */
  async #judge(thrown: unknown): Promise<Search<Run> | null> {
    const { next, rest, aside } = this.#search;
    const { suspects, isShared } = this.#suspectsOf(next);
    const others = [...aside, ...rest];
    const [first] = suspects;
    if (!first && rest.length > 0 && this.#allGood && this.#mayStay(rest, aside)) return searchAmong(rest, aside);
    if (suspects.length > 1 && this.#mayStay(suspects, others)) {
      this.#most ??= halfOf(suspects.length);
      this.#tell(suspects, thrown, "searching for the bad one by halves");
      return searchAmong(suspects, others);
    }
    if (first && suspects.length === 1 && !isShared)
      this.#settleOne(first, this.#blame(first, thrown, next.length === 1));
    else if (first) await this.#split(suspects, thrown);
    for (const run of this.#open.values()) this.#settleOne(run, this.#putBack(run));
    await Promise.all(this.#settling);
    return null;
  }

  /**
   * The runs of a call that may have caused its end, and whether one of the others may have too; the others are
   * settled.
   */
  #suspectsOf(called: readonly Run[]): { readonly suspects: Run[]; readonly isShared: boolean } {
    const unknown = called.filter(({ job }) => this.#open.has(job.id));
    const began = ({ job }: Run): boolean => this.#started.size === 0 || this.#started.has(job.id);
    const suspects: Run[] = [];
    let isShared = false;
    for (const run of unknown) {
      const { stopped } = run;
      const isAsked = stopped !== null && stopped !== "timeout" && stopped !== "stuck";
      if (isAsked) {
        isShared ||= began(run);
        this.#settleOne(run, this.#putBack(run));
      } else if (began(run)) suspects.push(run);
      else this.#settleOne(run, { kind: "released", reason: "not_started", delayMs: 0 });
    }
    return { suspects, isShared };
  }

  /**
   * True if the search may continue in this slot. Jobs that were asked to stop go back. So do jobs of a service or a
   * tenant, because their runs may be limited; jobs with a stuck limit, because a search takes as long as several runs;
   * and jobs that must run later, or in batches smaller than half of this one.
   */
  #mayStay(bad: readonly Run[], others: readonly Run[]): boolean {
    const { onUnknown, retrySize, splitDelayMs } = this.definition.batch as BatchSettings;
    const isOver = this.#options.isStopping?.() === true || this.#controller.signal.aborted;
    if (onUnknown !== "bisect" || halfOf(bad.length) > retrySize || isOver) return false;
    return [...bad, ...others].every(({ job, stopped }) => {
      const isFirst = !isAgain(job);
      const isFree = job.service === null && job.tenant === null && job.stuckMs === null;
      return stopped === null && isFree && !(splitDelayMs > 0 && isFirst);
    });
  }

  /** A job that failed alone stays alone: in a batch it would spoil the run of others again. */
  #blame(run: Run, thrown: unknown, isAlone: boolean): Outcome {
    const outcome: Outcome = run.stopped
      ? outcomeOfStop(run, run.stopped, this.#options)
      : { kind: "failed", failure: judgeThrown(run, thrown, this.#options) };
    return isAlone && outcome.kind === "failed" ? { ...outcome, batchMost: 1 } : outcome;
  }

  /** A job without blame goes back; once a search has begun, to run in smaller batches. */
  #putBack(run: Run): Outcome {
    const { splitDelayMs } = this.definition.batch as BatchSettings;
    const outcome: Outcome = run.stopped
      ? outcomeOfStop(run, run.stopped, this.#options)
      : { kind: "released", reason: "split", delayMs: splitDelayMs };
    return outcome.kind === "released" && this.#most !== null ? { ...outcome, batchMost: this.#most } : outcome;
  }

  /** The cause is unknown: all go back uncharged, to run in smaller batches. The gate is told once. */
  async #split(suspects: readonly Run[], thrown: unknown): Promise<void> {
    const { gate } = this.#options;
    const { onUnknown, retrySize, splitDelayMs } = this.definition.batch as BatchSettings;
    const [first, ...others] = suspects as [Run, ...Run[]];
    for (const { job } of suspects) this.#open.delete(job.id);
    const blamed = this.#blame(first, thrown, false);
    const heard = first.job.service === null ? blamed : await gate.heard(first.job, blamed);
    const most = Math.min(retrySize, onUnknown === "single" ? 1 : halfOf(suspects.length));
    const again: Outcome = { kind: "released", reason: "split", delayMs: splitDelayMs, batchMost: most };
    // If the breaker has just opened, the service is to blame, and the batch stays together.
    const outcome = heard.kind === "released" ? heard : again;
    if (outcome === again) this.#tell(suspects, thrown, `they run again in batches of ${most}`);
    this.#end(first, outcome);
    for (const run of others) {
      if (run.job.service !== null) void gate.heard(run.job, outcome);
      this.#end(run, outcome);
    }
  }

  #tell(suspects: readonly Run[], thrown: unknown, then: string): void {
    const blamed = this.#blame(suspects[0] as Run, thrown, false);
    const why = blamed.kind === "failed" ? `${blamed.failure.name}: ${blamed.failure.message}` : blamed.kind;
    const jobs = suspects.length;
    this.#options.log.warn(
      aboutBatch(this.definition.type, jobs, suspects[0]?.trace ?? null),
      `the outcome of ${jobs} jobs of a batch is unknown (${why}); ${then}, and no attempt is charged`,
    );
  }

  /** The timeout applies to the batch; the stuck limit is the shortest of its jobs'. */
  #arm(): void {
    const { system } = this.#options;
    const { timeoutMs } = this.definition.policy;
    const stuck = this.runs.map(({ job }) => job.stuckMs ?? Number.POSITIVE_INFINITY);
    const stuckMs = Math.min(...stuck);
    if (timeoutMs !== null) this.#timers.push(system.after(timeoutMs, () => this.#stopAll("timeout")));
    if (Number.isFinite(stuckMs)) this.#timers.push(system.after(stuckMs, () => this.#stopAll("stuck")));
  }

  #stopAll(reason: StopReason): void {
    for (const run of this.#called()) run.stop(reason);
  }

  /** Jobs that the handler was called with and that have no outcome. */
  #called(): Run[] {
    return this.#search.next.filter(({ job }) => this.#open.has(job.id));
  }

  /**
   * Once no item is needed any more, the handler's signal fires; a handler that ignores it is settled without waiting
   * for it.
   */
  #onStop(): void {
    const open = this.#called();
    const reason = open[0]?.stopped;
    if (!reason || this.#controller.signal.aborted || open.some(({ stopped }) => stopped === null)) return;
    this.#controller.abort(abortError(reason));
    if (reason === "shutdown") return;
    const { system, abortGraceMs } = this.#options;
    this.#giveUp = system.after(abortGraceMs, () => void this.#judge(null).then(() => this.#finish(false)));
  }

  #finish(returned: boolean): void {
    if (this.#over) return;
    this.#over = true;
    for (const disarm of this.#timers.splice(0)) disarm();
    this.#giveUp?.();
    this.#ends.all(returned);
  }
}
