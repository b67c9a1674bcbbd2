// Tells results of records to whoever listens: those that this call finished, those of the stream that were done before, and
// those of the stream that other workers finish meanwhile.
import { RedriveError } from "../core/errors.ts";
import type { Job } from "../core/job.ts";
import { isPromise } from "../core/promise.ts";
import type { ProcessRecordsOptions } from "./process-records.ts";
import type { EnqueuedJob } from "../enqueue/enqueue-result.ts";
import type { Store } from "../store/store.ts";
import type { System } from "../system/system.ts";

/** What a result is made of. */
type DoneJob = Pick<Job, "id" | "key" | "result" | "attempts" | "worker">;

/** Jobs to look up in the store: this process did not hear how they ended. */
interface UnheardJobs {
  readonly ids: readonly string[];
}

/** Those who hear of results. */
export interface Results {
  add(done: DoneJob): void;
  /** This one has ended without a result. */
  dead(id: string): void;
  /** Records of a chunk: those that others do, or a call before has done, are told too. */
  enqueued(jobs: readonly EnqueuedJob[]): void;
  /** How many wait to be told. */
  behind(): number;
  /** Resolves when all that came before is told. */
  written(): Promise<void>;
  /**
   * For the end of a call, when its own worker has stopped: waits for records that other workers run and tells their results.
   * Answers how many results are missing, because the worker died or the store has deleted the job, now or long ago.
   */
  fromOthers(signal: AbortSignal | undefined): Promise<number>;
}

/** What results are made with. */
export interface ResultParts {
  readonly store: Pick<Store, "get" | "workers" | "control">;
  readonly system: Pick<System, "sleep">;
  readonly worker: { readonly id: string };
  readonly onResult: ProcessRecordsOptions["onResult"];
  /** When the call began, by the store's clock. */
  readonly since: () => number;
  /** Other workers run so many records that are waited for; called once. */
  readonly onWait: (records: number) => void;
}

/** With so many more records of which nothing was heard, they are looked up: others may have done them. */
const UNHEARD_MORE = 20_000;
/** How many are looked up at a time. */
const PAGE = 1_000;
/** How long to wait between two looks at what other workers run: first, and at most. */
const LOOK_MS = 200;
const LOOK_MOST_MS = 2_000;

/** Tells results in the order in which they come, one after the other. */
export function openResults(parts: ResultParts): Results {
  const { store, worker, onResult, since } = parts;
  // The workers that are heard here, under all their ids: what they did since this call began was told when it was done.
  const heard = new Set<string | null>();
  const wasTold = (job: Job): boolean => heard.has(job.worker) && (job.finishedAt ?? 0) >= since();
  const told = openRecent();
  const fates = openFates();
  let lookAt = UNHEARD_MORE;
  const tell = ({ id, key, result, attempts }: DoneJob): void | Promise<void> =>
    onResult?.({ id: key ?? id, result: result === null ? null : JSON.parse(result), attempts: attempts + 1 });
  /** Tells what is done of these; answers those that are running, and how many are gone from the store. */
  const lookUp = async (ids: readonly string[]): Promise<{ running: Job[]; gone: number }> => {
    const found = { running: [] as Job[], gone: 0 };
    const jobs = await store.get(ids);
    for (const [at, id] of ids.entries()) {
      const job = jobs[at];
      if (!job) found.gone += 1;
      else if (job.state === "running") found.running.push(job);
      else if (job.state !== "queued") fates.unheard.delete(id);
      if (job?.state === "completed" && !wasTold(job) && told.isNew(id)) await tell(job);
    }
    return found;
  };
  const line = openLine<DoneJob | UnheardJobs>((next) =>
    "ids" in next ? lookUp(next.ids).then(() => undefined) : tell(next),
  );
  const written = (): Promise<void> => line.done().catch((error: unknown) => Promise.reject(notPassedOn(error)));
  return {
    add(done) {
      heard.add(done.worker);
      if (!onResult) return;
      fates.ended(done.id);
      line.add(done, 1);
    },
    dead: fates.ended,
    enqueued(jobs) {
      heard.add(worker.id);
      if (!onResult) return;
      const done = jobs.filter(({ duplicate, state }) => duplicate && state === "completed").map(({ id }) => id);
      for (const job of jobs) fates.enqueued(job);
      if (done.length > 0) line.add({ ids: done }, done.length);
      if (fates.unheard.size < lookAt) return;
      for (const ids of pagesOf([...fates.unheard])) line.add({ ids }, 0);
      lookAt = fates.unheard.size + UNHEARD_MORE;
    },
    behind: line.behind,
    written,
    async fromOthers(signal) {
      await written();
      return fates.gone.size + (await awaitOthers(parts, [...fates.unheard], lookUp, signal));
    },
  };
}

/** What is known here of the records of a stream. */
function openFates() {
  // Those that have not ended, as far as is known: as many as wait or run, not as many as were read.
  const unheard = new Set<string>();
  // Those that are known by their key alone: their jobs were deleted, by calls before or while this one worked.
  const gone = new Set<string>();
  // What this process has done of late: it may end before the answer to its enqueue has come, and come again later.
  const recent = openRecent();
  return {
    unheard,
    gone,
    ended(id: string): void {
      unheard.delete(id);
      gone.delete(id);
      recent.isNew(id);
    },
    enqueued({ id, state }: EnqueuedJob): void {
      if (recent.has(id)) return;
      if (state === "queued" || state === "running") unheard.add(id);
      if (state === null) gone.add(id);
    },
  };
}

/** Looks jobs up until none of them runs with a live worker; answers how many are gone, or lost with their worker. */
async function awaitOthers(
  { store, system, onWait }: ResultParts,
  unheard: readonly string[],
  lookUp: (ids: readonly string[]) => Promise<{ readonly running: Job[]; readonly gone: number }>,
  signal: AbortSignal | undefined,
): Promise<number> {
  let missing = 0;
  let open = unheard;
  for (let pauseMs = LOOK_MS; ; pauseMs = Math.min(pauseMs * 2, LOOK_MOST_MS)) {
    const running: Job[] = [];
    for (const ids of pagesOf(open)) {
      const found = await lookUp(ids).catch((error: unknown) => Promise.reject(notPassedOn(error)));
      missing += found.gone;
      running.push(...found.running);
    }
    const alive = await withLiveWorker(store, running);
    missing += running.length - alive.length;
    if (alive.length === 0 || signal?.aborted) return missing;
    if (pauseMs === LOOK_MS) onWait(alive.length);
    await system.sleep(pauseMs, signal);
    open = alive.map(({ id }) => id);
  }
}

/** Those of the running jobs whose worker is within its lease. */
async function withLiveWorker(store: ResultParts["store"], running: readonly Job[]): Promise<Job[]> {
  if (running.length === 0) return [];
  const [workers, { now }] = await Promise.all([store.workers(), store.control()]);
  const alive = new Set(workers.filter(({ givenUp, leaseEnd }) => !givenUp && leaseEnd > now).map(({ id }) => id));
  return running.filter(({ worker }) => worker !== null && alive.has(worker));
}

function* pagesOf(ids: readonly string[]): Generator<readonly string[]> {
  for (let at = 0; at < ids.length; at += PAGE) yield ids.slice(at, at + PAGE);
}

function notPassedOn(error: unknown): RedriveError {
  if (error instanceof RedriveError) return error;
  const said = error instanceof Error ? error.message : String(error);
  return new RedriveError("aborted", `A result could not be passed on: ${said}`, { cause: error });
}

/** Records done before the call of which is remembered at least that they were told: the last so many. */
const REMEMBERED = 10_000;

/** Remembers ids in two halves, of which the older one is dropped as a whole: no set of all ids of a long stream. */
function openRecent() {
  let [recent, older] = [new Set<string>(), new Set<string>()];
  return {
    has: (id: string): boolean => recent.has(id) || older.has(id),
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
