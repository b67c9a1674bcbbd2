// Lists runs: the jobs that wait for their next attempt and when, and everything that happened to one job.
import { RUN_STATUSES, jobOfRun, latestRun, type RunRecord, type RunStatus, runsOf } from "../core/run-record.ts";
import { invalid, parseOptions } from "../core/options.ts";
import type { JobQuery, Page, Store } from "../store/store.ts";
import { LOOK_AT } from "../enqueue/paging.ts";
import { checkCursor, checkId, checkKinds } from "./filter.ts";
import { noJob } from "./jobs.ts";

/** Which runs to list; every field narrows. */
export interface RunQuery {
  /** Only runs in this state; `failed` are the last runs of dead jobs. */
  readonly status?: RunStatus;
  /** Only runs of jobs of this type. */
  readonly type?: string;
  /** Runs on a page, 1 to 200; default 50. */
  readonly limit?: number;
  /** The `next` of the page before; default the first page. */
  readonly cursor?: string | null;
}

/** Lists the runs of jobs. */
export interface Runs {
  /**
   * A page of jobs, newest first, each shown by its present or last run; with `status: "pending_retry"` by the time
   * they are due.
   */
  list(query?: RunQuery): Promise<Page<RunRecord>>;
  /**
   * All runs of a job, oldest first, by the id of the job or of any of its runs: of each generation the first and the
   * last nine that failed, and the present one. Rejects with `not_found` if there is no such job.
   */
  history(id: string): Promise<RunRecord[]>;
}

const QUERIES: Readonly<Record<RunStatus, Partial<JobQuery>>> = {
  queued: { state: "queued", tried: false },
  pending_retry: { state: "queued", tried: true, sort: "due" },
  running: { state: "running" },
  failed: { state: "dead" },
  completed: { state: "completed" },
  cancelled: { state: "cancelled" },
};

/** The runs of a store. */
export function openRuns(store: Store): Runs {
  return {
    async list(query = {}) {
      const {
        status,
        type,
        limit = 50,
        cursor = null,
      } = parseOptions(query, ["status", "type", "limit", "cursor"], "runs");
      checkCursor(cursor);
      checkKinds({ type }, { text: ["type"], yesOrNo: [] });
      const known = RUN_STATUSES.find((each) => each === status);
      if (status !== undefined && known === undefined)
        throw invalid("runs.status", RUN_STATUSES.join(", "), status, "use one of these");
      const narrowed = { ...(known && QUERIES[known]), ...(type === undefined ? {} : { type }) };
      const page = { limit, cursor, payloads: false, lookAt: LOOK_AT };
      const { items, ...rest } = await store.list({ ...narrowed, ...page } as JobQuery);
      return { items: items.map(latestRun), ...rest };
    },
    async history(id) {
      const jobId = checkId(typeof id === "string" ? jobOfRun(id) : id);
      const [[job], history] = await Promise.all([store.get([jobId]), store.history(jobId)]);
      if (!job) throw noJob(jobId);
      return runsOf(job, history);
    },
  };
}
