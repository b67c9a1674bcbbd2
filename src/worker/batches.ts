// The batches that a worker holds: which slots they take, and how many jobs a slot takes.
import type { JobDefinition } from "../jobs/define-job.ts";
import type { ClaimedJob } from "../store/store.ts";
import type { Bag } from "./bag.ts";
import { BatchRun } from "./batch-run.ts";
import type { ExecutorOptions } from "./executor.ts";
import { type Fetched, BatchForming, mostWith } from "./batch-forming.ts";
import type { Run } from "./run.ts";

/** What batches need. */
export interface BatchesOptions {
  readonly executor: ExecutorOptions;
  readonly definitions: ReadonlyMap<string, JobDefinition>;
  /** All runs of the worker, including those of batches. */
  readonly running: Bag<Run>;
  /** Called when a batch that waited for more jobs must begin; its slot is free. */
  readonly onFormed: (fetched: Fetched[]) => void;
  /** Called at the end of a batch, with its first run. */
  readonly onEnd: (first: Run, returned: boolean) => void;
  /** Called when the last job of a batch is settled. */
  readonly onSettled: () => void;
}

/** The batches of one worker. */
export class Batches {
  readonly forming: BatchForming;
  /** False where no type of the worker runs in batches. */
  readonly areUsed: boolean;
  readonly #options: BatchesOptions;
  readonly #running = new Set<BatchRun>();
  /** How many runs are in batches. */
  #together = 0;
  /** How many jobs of a type a slot took at the last claim: after a bad batch they run in small ones. */
  readonly #perSlot = new Map<string, number>();

  constructor(options: BatchesOptions) {
    this.#options = options;
    this.forming = new BatchForming(options.executor.system, options.onFormed);
    this.areUsed = [...options.definitions.values()].some(({ batch }) => batch !== null);
    for (const { type, batch } of options.definitions.values()) if (batch) this.#perSlot.set(type, batch.size);
  }

  /** Slots with runs in them. */
  get taken(): number {
    return this.#options.running.size - this.#together + this.#running.size;
  }

  /** How many jobs of a type one slot takes. */
  perSlot(type: string): number {
    return this.#perSlot.get(type) ?? 1;
  }

  /** The most jobs that a slot takes, of any type. */
  get widest(): number {
    return Math.max(1, ...this.#perSlot.values());
  }

  /** Slots that these jobs will take. */
  slotsFor(fetched: readonly Fetched[]): number {
    if (!this.areUsed) return fetched.length;
    return Math.ceil(fetched.reduce((slots, { job }) => slots + 1 / this.perSlot(job.type), 0));
  }

  /** Slots that a type takes, including batches that wait for more jobs. */
  slotsOf(type: string): number {
    let count = this.forming.slotsOf(type);
    for (const run of this.#options.running) if (run.job.type === type && !run.isTogether) count += 1;
    for (const { definition } of this.#running) if (definition.type === type) count += 1;
    return count;
  }

  /** Records what was claimed: the next jobs of a type will be like the last. */
  claimed(jobs: readonly ClaimedJob[]): void {
    if (!this.areUsed) return;
    for (const job of jobs) {
      const batch = this.#options.definitions.get(job.type)?.batch;
      if (batch) this.#perSlot.set(job.type, mostWith(job, batch));
    }
  }

  /** Runs several jobs of a type as a batch. */
  begin(fetched: readonly Fetched[], definition: JobDefinition): void {
    const { executor, running, onEnd, onSettled } = this.#options;
    let unsettled = fetched.length;
    const batch = new BatchRun(fetched, definition, executor, {
      item: (run) => {
        if (running.delete(run)) this.#together -= 1;
      },
      all: (returned) => {
        this.#running.delete(batch);
        const [first] = batch.runs;
        if (first) onEnd(first, returned);
      },
    });
    this.#running.add(batch);
    for (const run of batch.runs) {
      run.isTogether = true;
      run.onSettled = () => {
        unsettled -= 1;
        if (unsettled === 0) onSettled();
      };
      running.add(run);
      this.#together += 1;
    }
    batch.begin();
  }
}
