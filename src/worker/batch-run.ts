// Carries several jobs of a type through one call of their handler. What the handler says of an item is settled at once;
// items that it says nothing about are of unknown outcome: one alone is charged for it, several go back uncharged, to be
// run again in smaller batches, until the guilty one is alone. Judging and settling are the executor's, item by item.
import { encodeResult } from "../core/payload.ts";
import type { Outcome } from "../core/verdict.ts";
import {
  type BatchContext,
  type BatchItem,
  type BatchSettings,
  ItemFailure,
  type ItemOutcome,
  noOutcome,
  outcomesOf,
  outcomeWords,
} from "../queue/batch.ts";
import type { JobDefinition } from "../queue/define-job.ts";
import { type ExecutorOptions, judgeThrown, makeReady, outcomeOfStop, settle } from "./executor.ts";
import type { Fetched } from "./gathering.ts";
import { abortError, Run, type StopReason } from "./run.ts";

/** Hears of the end of items, and of the end of the batch: `returned` is false if its handler ignored the abort. */
export interface BatchEnds {
  item(run: Run): void;
  all(returned: boolean): void;
}

/** One call of a batch handler. */
export class BatchRun {
  readonly definition: JobDefinition;
  readonly runs: readonly Run[];
  readonly #options: ExecutorOptions;
  readonly #ends: BatchEnds;
  /** Items without an outcome, by the id of their job. */
  readonly #open: Map<string, Run>;
  readonly #started = new Set<string>();
  readonly #controller = new AbortController();
  readonly #disarm: (() => void)[] = [];
  /** Items that are being settled. */
  readonly #settling: Promise<void>[] = [];
  #over = false;

  constructor(fetched: readonly Fetched[], definition: JobDefinition, options: ExecutorOptions, ends: BatchEnds) {
    const startedMs = options.system.monotonic();
    this.definition = definition;
    this.#options = options;
    this.#ends = ends;
    this.runs = fetched.map(({ job, claimedMs }) => new Run(job, definition, claimedMs, startedMs));
    this.#open = new Map(this.runs.map((run) => [run.job.id, run]));
    for (const run of this.runs) run.onStop = () => this.#onStop();
  }

  /** Calls the handler. */
  begin(): void {
    this.#arm();
    const returned = this.#work();
    for (const run of this.runs) run.returned = returned;
  }

  async #work(): Promise<void> {
    const { definition } = this;
    const { log } = this.#options;
    const items = await this.#items();
    let thrown: unknown = null;
    if (items.length > 0) {
      log.info({ type: definition.type, jobs: items.length }, `processing a batch of ${items.length}`);
      const context: BatchContext = {
        signal: this.#controller.signal,
        log,
        started: (id) => void this.#started.add(id),
        ...outcomeWords((id, outcome) => this.#hear(id, outcome)),
      };
      try {
        const returned = await (definition.batch as BatchSettings).run(items, context);
        for (const [id, outcome] of outcomesOf(returned, items)) this.#hear(id, outcome);
      } catch (error) {
        thrown = error;
      }
    }
    await this.#judgeRest(thrown ?? noOutcome());
    this.#finish(true);
  }

  /** What the handler gets: items that the gate lets through and whose input is as it should be. */
  async #items(): Promise<BatchItem[]> {
    const { gate } = this.#options;
    const items: BatchItem[] = [];
    for (const run of this.runs) {
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
    this.#settleOne(run, { kind: "failed", failure: judgeThrown(run, new ItemFailure(outcome), this.#options) });
  }

  /** Settles an item by its own outcome; the gate hears of it first, as of any run. */
  #settleOne(run: Run, outcome: Outcome): void {
    if (!this.#open.delete(run.job.id)) return;
    if (run.job.service === null) return this.#end(run, outcome);
    const heard = Promise.resolve(this.#options.gate.heard(run.job, outcome));
    this.#settling.push(heard.then((known) => this.#end(run, known)));
  }

  #end(run: Run, outcome: Outcome): void {
    this.#open.delete(run.job.id);
    settle(run, outcome, this.#options);
    this.#ends.item(run);
  }

  /** Settles what the handler said nothing about; `thrown` is why. */
  async #judgeRest(thrown: unknown): Promise<void> {
    const unknown: Run[] = [];
    for (const run of this.#open.values()) {
      const { stopped } = run;
      if (stopped === null || stopped === "timeout" || stopped === "stuck") unknown.push(run);
      else this.#settleOne(run, outcomeOfStop(run, stopped, this.#options));
    }
    const started = unknown.filter(({ job }) => this.#started.has(job.id));
    const suspects = this.#started.size > 0 ? started : unknown;
    for (const run of unknown) {
      if (!suspects.includes(run)) this.#settleOne(run, { kind: "released", reason: "not_started", delayMs: 0 });
    }
    const [first] = suspects;
    if (first && suspects.length === 1) this.#settleOne(first, this.#blame(first, thrown));
    else if (first) await this.#split(suspects, this.#blame(first, thrown));
    await Promise.all(this.#settling);
  }

  #blame(run: Run, thrown: unknown): Outcome {
    if (run.stopped) return outcomeOfStop(run, run.stopped, this.#options);
    return { kind: "failed", failure: judgeThrown(run, thrown, this.#options) };
  }

  /** Nobody knows who is to blame: all go back uncharged, to be run in smaller batches. One word to the gate is enough. */
  async #split(suspects: readonly Run[], blamed: Outcome): Promise<void> {
    const { gate, log } = this.#options;
    const { type, batch } = this.definition;
    const { onUnknown, retrySize, splitDelayMs } = batch as BatchSettings;
    const [first, ...others] = suspects as [Run, ...Run[]];
    for (const { job } of suspects) this.#open.delete(job.id);
    const heard = first.job.service === null ? blamed : await gate.heard(first.job, blamed);
    const most = Math.min(retrySize, onUnknown === "single" ? 1 : Math.ceil(suspects.length / 2));
    const again: Outcome = { kind: "released", reason: "split", delayMs: splitDelayMs, batchMost: most };
    // A breaker that has just opened has the last word: the service is to blame, and the batch stays together.
    const outcome = heard.kind === "released" ? heard : again;
    const why = blamed.kind === "failed" ? `${blamed.failure.name}: ${blamed.failure.message}` : blamed.kind;
    if (outcome === again)
      log.warn(
        { type, jobs: suspects.length, most },
        `the outcome of ${suspects.length} jobs of a batch is unknown (${why}); they are run again by ${most}, and nobody is charged`,
      );
    this.#end(first, outcome);
    for (const run of others) {
      if (run.job.service !== null) void gate.heard(run.job, outcome);
      this.#end(run, outcome);
    }
  }

  /** The timeout is the batch's; a stuck limit is as short as the shortest of its jobs'. */
  #arm(): void {
    const { system } = this.#options;
    const { timeoutMs } = this.definition.policy;
    const stuck = this.runs.map(({ job }) => job.stuckMs ?? Number.POSITIVE_INFINITY);
    const stuckMs = Math.min(...stuck);
    if (timeoutMs !== null) this.#disarm.push(system.after(timeoutMs, () => this.#stopAll("timeout")));
    if (Number.isFinite(stuckMs)) this.#disarm.push(system.after(stuckMs, () => this.#stopAll("stuck")));
  }

  #stopAll(reason: StopReason): void {
    for (const run of this.#open.values()) run.stop(reason);
  }

  /** Once nobody waits for any item, the handler is told; what does not stop then is settled over its head. */
  #onStop(): void {
    const open = [...this.#open.values()];
    const reason = open[0]?.stopped;
    if (!reason || this.#controller.signal.aborted || open.some(({ stopped }) => stopped === null)) return;
    this.#controller.abort(abortError(reason));
    if (reason === "shutdown") return;
    const giveUp = this.#options.system.after(this.#options.abortGraceMs, () => {
      for (const run of this.#open.values()) run.isGivenUp = true;
      void this.#judgeRest(null).then(() => this.#finish(false));
    });
    this.#disarm.push(giveUp);
  }

  #finish(returned: boolean): void {
    if (this.#over) return;
    this.#over = true;
    for (const disarm of this.#disarm) disarm();
    this.#ends.all(returned);
  }
}

function itemOf(run: Run, input: unknown): BatchItem {
  const { id, epoch, nonce, attempts, maxAttempts } = run.job;
  return {
    id,
    input,
    attempt: attempts + 1,
    maxAttempts,
    lease: { id, epoch, nonce },
    get signal() {
      return run.signal;
    },
  };
}
