// Tells results of records to whoever listens: those that this call finished, and those of the stream that were done before.
import { RedriveError } from "./core/errors.ts";
import type { Job } from "./core/job.ts";
import type { ProcessBatchOptions } from "./process-batch.ts";
import type { EnqueuedJob } from "./queue/enqueued.ts";
import type { Store } from "./store/store.ts";

/** What a result is made of. */
type DoneJob = Pick<Job, "id" | "key" | "result" | "attempts" | "worker">;

/** Those who hear of results. */
export interface Results {
  add(done: DoneJob): void;
  /** Records of a chunk that were known: those that others did, or a call before, are told too. */
  known(jobs: readonly EnqueuedJob[]): void;
  /** How many wait to be told. */
  behind(): number;
  /** Resolves when all that came before is told. */
  written(): Promise<void>;
}

/** Tells results in the order in which they come, one after the other. */
export function openResults(
  store: Pick<Store, "get">,
  worker: { readonly id: string },
  onResult: ProcessBatchOptions["onResult"],
  since: () => number,
): Results {
  // The workers that are heard here, under all their ids: what they did since this call began was told when it was done.
  const heard = new Set<string | null>();
  const wasTold = (job: Job): boolean => heard.has(job.worker) && (job.finishedAt ?? 0) >= since();
  let writing: Promise<void> = Promise.resolve();
  let behind = 0;
  const then = (count: number, step: () => Promise<void> | void): void => {
    behind += count;
    writing = writing.then(step).finally(() => (behind -= count));
    // Whoever waits for it next hears of it.
    writing.catch(() => undefined);
  };
  const tell = ({ id, key, result, attempts }: DoneJob): void | Promise<void> =>
    onResult?.({ id: key ?? id, result: result === null ? null : JSON.parse(result), attempts: attempts + 1 });
  return {
    add(done) {
      heard.add(done.worker);
      if (onResult) then(1, () => tell(done));
    },
    known(jobs) {
      heard.add(worker.id);
      const before = jobs.filter(({ duplicate, state }) => duplicate && state === "completed").map(({ id }) => id);
      if (!onResult || before.length === 0) return;
      then(before.length, async () => {
        for (const job of await store.get(before)) if (job && !wasTold(job)) await tell(job);
      });
    },
    behind: () => behind,
    async written() {
      try {
        await writing;
      } catch (error) {
        if (error instanceof RedriveError) throw error;
        const said = error instanceof Error ? error.message : String(error);
        throw new RedriveError("aborted", `A result could not be passed on: ${said}`, { cause: error });
      }
    },
  };
}
