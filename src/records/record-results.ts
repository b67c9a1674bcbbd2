// Passes results of records to a callback: those that this call finished, those of the stream that were done before,
// and those of the stream that other workers finish meanwhile.
import { RedriveError } from "../core/errors.ts";
import type { Job } from "../core/job.ts";
import { isPromise } from "../core/promise.ts";
import type { ProcessRecordsOptions } from "./process-records.ts";
import type { EnqueuedJob } from "../enqueue/enqueue-result.ts";
import type { Store } from "../store/store.ts";
import type { System } from "../system/system.ts";

/** The fields of a result. */
type DoneJob = Pick<Job, "id" | "key" | "result" | "attempts" | "worker">;

/** Jobs to look up in the store: no event told this process how they ended. */
interface UnheardJobs {
  readonly ids: readonly string[];
}

/** Collects and passes on results. */
export interface Results {
  add(done: DoneJob): void;
  /** This one has ended without a result. */
  dead(id: string): void;
  /** Records of a chunk: those that other workers do, or an earlier call has done, are reported too. */
  enqueued(jobs: readonly EnqueuedJob[]): void;
  /** How many results wait to be passed on. */
  behind(): number;
  /** Resolves when all earlier results are passed on. */
  written(): Promise<void>;
  /**
   * At the end of a call, when its own worker has stopped: waits for records that other workers run and passes their
   * results on. Answers how many results are missing, because the worker died or the store has deleted the job, now or
   * long ago.
   */
  fromOthers(signal: AbortSignal | undefined): Promise<number>;
}

/** What results are made with. */
export interface ResultDependencies {
  readonly store: Pick<Store, "get" | "workers" | "control">;
  readonly system: Pick<System, "sleep">;
  readonly worker: { readonly id: string };
  readonly onResult: ProcessRecordsOptions["onResult"];
  /** When the call began, by the store's clock. */
  readonly since: () => number;
  /** Called once with the number of awaited records that other workers run. */
  readonly onWait: (records: number) => void;
}

/** After this many more records without an event, they are looked up: other workers may have done them. */
const UNHEARD_MORE = 20_000;
/** How many are looked up at a time. */
const PAGE = 1_000;
/** The first and the longest wait between two looks at what other workers run. */
const LOOK_MS = 200;
const LOOK_MOST_MS = 2_000;

/** Passes results on in the order of arrival, one after the other. */
export function openResults(parts: ResultDependencies): Results {
  const { store, worker, onResult, since } = parts;
  // The workers whose events arrive here, under all their ids: what they did since this call began was passed on when
  // it was done.
  const heard = new Set<string | null>();
  const wasTold = (job: Job): boolean => heard.has(job.worker) && (job.finishedAt ?? 0) >= since();
  const told = openRecent();
  const fates = openFates();
  let lookAt = UNHEARD_MORE;
  const tell = ({ id, key, result, attempts }: DoneJob): void | Promise<void> =>
    onResult?.({ id: key ?? id, result: result === null ? null : JSON.parse(result), attempts: attempts + 1 });
  /** Passes on the results among these; answers the running ones, and how many are deleted. */
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

/** What is known here about the records of a stream. */
function openFates() {
  // Records that have not ended, as far as is known: as many as wait or run, not as many as were read.
  const unheard = new Set<string>();
  // Records known only by their key: their jobs were deleted, by earlier calls or during this one.
  const gone = new Set<string>();
  // What this process has done lately: a record may end before its enqueue is answered, and come again later.
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

/** Looks jobs up until none runs on a living worker; answers how many are deleted, or lost with their worker. */
async function awaitOthers(
  { store, system, onWait }: ResultDependencies,
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

/** The running jobs whose worker is within its lease. */
async function withLiveWorker(store: ResultDependencies["store"], running: readonly Job[]): Promise<Job[]> {
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

/** How many records from before the call are remembered as passed on: the last so many. */
const REMEMBERED = 10_000;

/** Remembers ids in two halves and drops the older half as a whole, so that no set holds all ids of a long stream. */
function openRecent() {
  let [recent, older] = [new Set<string>(), new Set<string>()];
  return {
    has: (id: string): boolean => recent.has(id) || older.has(id),
    /** False for a remembered id; from now on it is remembered. */
    isNew(id: string): boolean {
      if (recent.has(id) || older.has(id)) return false;
      if (recent.size === REMEMBERED) [recent, older] = [new Set(), recent];
      recent.add(id);
      return true;
    },
  };
}

/** Passes items on one after the other, awaiting only promises; after a failure no more. */
function openLine<T>(pass: (next: T) => void | Promise<void>) {
  let waiting: { readonly next: T; readonly count: number }[] = [];
  let behind = 0;
  let passing: Promise<void> | null = null;
  const passAll = async (): Promise<void> => {
    // Not synchronously, because the code that adds an item has more to do.
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
      // The next caller that awaits it gets the error.
      passing.catch(() => undefined);
    },
    behind: () => behind,
    /** Resolves when all earlier items are passed on. */
    async done(): Promise<void> {
      await passing;
    },
  };
}
