// Tells results of records to whoever listens: those that this call finished, and those of the stream that were done before.
import { RedriveError } from "./core/errors.ts";
import type { Job } from "./core/job.ts";
import { isPromise } from "./core/promise.ts";
import type { ProcessBatchOptions } from "./process-batch.ts";
import type { EnqueuedJob } from "./queue/enqueued.ts";
import type { Store } from "./store/store.ts";

/** What a result is made of. */
type DoneJob = Pick<Job, "id" | "key" | "result" | "attempts" | "worker">;

/** Jobs that were known before. */
interface KnownJobs {
  readonly ids: readonly string[];
}

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
  const told = openRecent();
  const tell = ({ id, key, result, attempts }: DoneJob): void | Promise<void> =>
    onResult?.({ id: key ?? id, result: result === null ? null : JSON.parse(result), attempts: attempts + 1 });
  const tellKnown = async (ids: readonly string[]): Promise<void> => {
    for (const job of await store.get(ids)) if (job && !wasTold(job) && told.isNew(job.id)) await tell(job);
  };
  const line = openLine<DoneJob | KnownJobs>((next) => ("ids" in next ? tellKnown(next.ids) : tell(next)));
  return {
    add(done) {
      heard.add(done.worker);
      if (onResult) line.add(done, 1);
    },
    known(jobs) {
      heard.add(worker.id);
      const ids = jobs.filter(({ duplicate, state }) => duplicate && state === "completed").map(({ id }) => id);
      if (onResult && ids.length > 0) line.add({ ids }, ids.length);
    },
    behind: line.behind,
    async written() {
      try {
        await line.done();
      } catch (error) {
        if (error instanceof RedriveError) throw error;
        const said = error instanceof Error ? error.message : String(error);
        throw new RedriveError("aborted", `A result could not be passed on: ${said}`, { cause: error });
      }
    },
  };
}

/** Records done before the call of which is remembered at least that they were told: the last so many. */
const REMEMBERED = 10_000;

/** Remembers ids in two halves, of which the older one is dropped as a whole: no set of all ids of a long stream. */
function openRecent() {
  let [recent, older] = [new Set<string>(), new Set<string>()];
  return {
    /** False for an id that it remembers; from now on it does. */
    isNew(id: string): boolean {
      if (recent.has(id) || older.has(id)) return false;
      if (recent.size === REMEMBERED) [recent, older] = [new Set(), recent];
      recent.add(id);
      return true;
    },
  };
}

/** Passes things on one after the other, waiting only for those that take their time; after a failure no more. */
function openLine<T>(pass: (next: T) => void | Promise<void>) {
  let waiting: { readonly next: T; readonly count: number }[] = [];
  let behind = 0;
  let passing: Promise<void> | null = null;
  const passAll = async (): Promise<void> => {
    // Not in the moment in which they come: whoever brings them has more to do.
    await Promise.resolve();
    while (waiting.length > 0) {
      const all = waiting;
      waiting = [];
      for (const { next, count } of all) {
        const passed = pass(next);
        if (isPromise(passed)) await passed;
        behind -= count;
      }
    }
    passing = null;
  };
  return {
    add(next: T, count: number): void {
      behind += count;
      waiting.push({ next, count });
      if (passing) return;
      passing = passAll();
      // Whoever waits for it next hears of it.
      passing.catch(() => undefined);
    },
    behind: () => behind,
    /** Resolves when all that came before is passed on. */
    async done(): Promise<void> {
      await passing;
    },
  };
}
