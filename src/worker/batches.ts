// The batches that a worker has in its hands: which slots they take, and how many jobs a slot takes in turn.
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
  /** All runs of the worker; those of batches are among them. */
  readonly running: Bag<Run>;
  /** A batch that has waited for more jobs is to begin; its slot is free. */
  readonly onGathered: (fetched: Fetched[]) => void;
  /** A batch has ended, told by its first run. */
  readonly onEnd: (first: Run, returned: boolean) => void;
  /** The last job of a batch is settled. */
  readonly onSettled: () => void;
}

/** The batches of one worker. */
export class Batches {
  readonly gathering: BatchForming;
  /** False where no type of the worker is run in batches. */
  readonly areUsed: boolean;
  readonly #options: BatchesOptions;
  readonly #running = new Set<BatchRun>();
  /** How many runs are in them. */
  #together = 0;
  /** How many jobs of a type a slot took when some were last claimed: after a bad batch they go in small ones. */
  readonly #perSlot = new Map<string, number>();

  constructor(options: BatchesOptions) {
    this.#options = options;
    this.gathering = new BatchForming(options.executor.system, options.onGathered);
    this.areUsed = [...options.definitions.values()].some(({ batch }) => batch !== null);
    for (const { type, batch } of options.definitions.values()) if (batch) this.#perSlot.set(type, batch.size);
  }

  /** Slots in which something runs. */
  get taken(): number {
    return this.#options.running.size - this.#together + this.#running.size;
  }

  /** How many jobs of a type one slot takes. */
  perSlot(type: string): number {
    return this.#perSlot.get(type) ?? 1;
  }

  /** How many jobs a slot takes at most, of any type. */
  get widest(): number {
    return Math.max(1, ...this.#perSlot.values());
  }

  /** Slots that these jobs will take. */
  slotsFor(fetched: readonly Fetched[]): number {
    if (!this.areUsed) return fetched.length;
    return Math.ceil(fetched.reduce((slots, { job }) => slots + 1 / this.perSlot(job.type), 0));
  }

  /** Slots that a type takes, batches that wait for more jobs among them. */
  slotsOf(type: string): number {
    let count = this.gathering.slotsOf(type);
    for (const run of this.#options.running) if (run.job.type === type && !run.isTogether) count += 1;
    for (const { definition } of this.#running) if (definition.type === type) count += 1;
    return count;
  }

  /** Takes note of what was claimed: the next of a type will be like the last. */
  claimed(jobs: readonly ClaimedJob[]): void {
    if (!this.areUsed) return;
    for (const job of jobs) {
      const batch = this.#options.definitions.get(job.type)?.batch;
      if (batch) this.#perSlot.set(job.type, mostWith(job, batch));
    }
  }

  /** Runs several jobs of a type together. */
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
