// Lists jobs, and cancels or reschedules them, one by one or by filter.
import { type Duration, parseDuration } from "../core/duration.ts";
import type { Explanation } from "../core/explain.ts";
import { RedriveError } from "../core/errors.ts";
import { type AttemptRecord, type Job, type State, STATES } from "../core/job.ts";
import { checkPriority, JOB_BOUNDS } from "../core/new-job.ts";
import { invalid, objectOf, namesOf, parseOptions } from "../core/options.ts";
import type { Limits } from "../core/service.ts";
import type { CancelAnswer, JobQuery, Page, RescheduleAnswer, Store } from "../store/store.ts";
import { cancelJobs } from "../enqueue/cancel-jobs.ts";
import type { ActionOptions, EventLog } from "../report/event-log.ts";
import type { Events } from "../report/events.ts";
import { explainJob } from "./explain.ts";
import { aboutTarget, checkCursor, checkId, checkKinds, checkNarrow } from "./filter.ts";
import { instantOf } from "../enqueue/new-jobs.ts";
import { everyItem, inChunks, LOOK_AT, PAGE } from "../enqueue/paging.ts";

/** Which jobs; every field narrows. Where no field is given, `cancel` and `reschedule` need `all: true`. */
export type JobFilter = Omit<JobQuery, "limit" | "cursor" | "sort" | "payloads" | "lookAt"> & {
  /** Selects every job, where no other field is given. */
  readonly all?: true;
};

/** One job, several, or all that match. */
export type JobTarget = string | readonly string[] | JobFilter;

/** The changes to waiting jobs. */
export interface RescheduleOptions extends ActionOptions {
  /** Due this long from now, at most 10 years; not together with `runAt`. */
  readonly delay?: Duration;
  /** Due at this time: a date, epoch milliseconds or an ISO 8601 text; a past time means at once. */
  readonly runAt?: Date | number | string;
  /** 0 to 9, higher first. */
  readonly priority?: number;
}

/** A job with everything known about it. */
export interface JobDetails {
  /** The job. */
  readonly job: Job;
  /** Its failed runs, oldest first: of each generation the first and the last nine. */
  readonly history: readonly AttemptRecord[];
}

/** Lists jobs, and cancels or reschedules them. */
export interface Jobs {
  /** The job; null if there is none of this id. */
  get(id: string): Promise<Job | null>;
  /** The job with its history; rejects with `not_found` if there is none. */
  show(id: string): Promise<JobDetails>;
  /** Why the job is not running, and what happens next; rejects with `not_found` if there is none. */
  explain(id: string): Promise<Explanation>;
  /**
   * A page of jobs, newest first. Besides the filter: `limit` (1 to 200; default 50), `cursor` (the `next` of the page
   * before), `sort: "due"` for waiting jobs in order of due time, `payloads: false` to leave out payload, progress and
   * result, and `lookAt` (default 10,000): the most jobs that it looks at. A page that is not full for that reason has
   * `seenTo`, and its `next` goes on there.
   */
  list(query?: Partial<JobQuery>): Promise<Page<Job>>;
  /** Every job that matches, newest first, read page by page. */
  all(filter?: JobFilter): AsyncIterable<Job>;
  /** How many jobs there are in each state; counts no further than `atMost` of each, where it is given. */
  count(atMost?: number): Promise<Record<State, number>>;
  /**
   * Cancels waiting jobs and asks running ones to stop. Counts the `cancelled`, the running ones that were `requested`
   * to stop, those already `finished`, and ids that are `missing`.
   */
  cancel(target: JobTarget, options?: ActionOptions): Promise<Record<CancelAnswer, number>>;
  /**
   * Changes the due time or the priority of waiting jobs. Counts the `changed`, those `refused` because they do not
   * wait, and ids that are `missing`.
   */
  reschedule(target: JobTarget, change: RescheduleOptions): Promise<Record<RescheduleAnswer, number>>;
}

const FILTER = namesOf<JobFilter>()(["state", "type", "queue", "service", "tenant", "key", "due", "tried", "all"]);
const CHANGES = namesOf<RescheduleOptions>()(["delay", "runAt", "priority", "why"]);

/** The jobs of a store; listeners learn of the jobs cancelled here. */
export function openJobs({
  store,
  events,
  eventLog,
  limits,
}: {
  readonly store: Store;
  readonly events: Events;
  readonly eventLog: EventLog;
  readonly limits: Limits;
}): Jobs {
  const all = async function* (filter: JobFilter = {}, payloads = true): AsyncGenerator<Job> {
    const query = jobQuery(filter);
    yield* everyItem((cursor) => store.list({ ...query, limit: PAGE, cursor, payloads }));
  };
  return {
    all: (filter) => all(filter),
    get: async (id) => (await store.get([checkId(id)]))[0] ?? null,
    async show(id) {
      const [[job], history] = await Promise.all([store.get([checkId(id)]), store.history(id)]);
      if (!job) throw noJob(id);
      return { job, history };
    },
    async explain(id) {
      const [job] = await store.get([checkId(id)]);
      if (!job) throw noJob(id);
      return explainJob(store, job, limits);
    },
    list: async (query = {}) => store.list(pageQuery(query)),
    count: (atMost) => store.count(atMost),
    async cancel(target, options = {}) {
      const { why } = parseOptions(options, ["why"], "cancel");
      const about = aboutTarget(target, checkFilter);
      const sum = { cancelled: 0, requested: 0, finished: 0, missing: 0 };
      await eventLog.act({ kind: "jobs.cancel", ...about, why, outcome: () => sum }, async () => {
        for await (const ids of chunks(target, all, ["queued", "running"]))
          for (const answer of await cancelJobs(ids, store, events)) sum[answer] += 1;
      });
      return sum;
    },
    async reschedule(target, options) {
      const { why, ...change } = await changeOf(options, store);
      const about = aboutTarget(target, checkFilter);
      const sum = { changed: 0, refused: 0, missing: 0 };
      const details = { ...about.details, ...change };
      await eventLog.act({ kind: "jobs.reschedule", ...about, why, details, outcome: () => sum }, async () => {
        for await (const ids of chunks(target, all, ["queued"]))
          for (const answer of await store.reschedule(ids.map((id) => ({ id, ...change })))) sum[answer] += 1;
      });
      return sum;
    },
  };
}

/** The error for an unknown job. */
export function noJob(id: string): RedriveError {
  const message = `There is no job ${JSON.stringify(id.slice(0, 80))}. Check the id; finished jobs are removed after their retention.`;
  return new RedriveError("not_found", message, { details: { id } });
}

/** The query of a page. */
function pageQuery(query: Partial<JobQuery>): JobQuery {
  const { limit = 50, cursor = null, sort, payloads = true, lookAt = LOOK_AT, ...filter } = objectOf(query, "query");
  checkCursor(cursor);
  return { ...jobQuery(filter), ...(sort !== undefined && { sort }), limit, cursor, payloads, lookAt };
}

/** A checked filter without `all`. */
function jobQuery(filter: JobFilter): Omit<JobQuery, "limit" | "cursor" | "sort"> {
  const { all, ...query } = parseOptions(filter, FILTER, "filter");
  if (all !== undefined && all !== true) throw invalid("filter.all", "true", all, "leave it out otherwise");
  if (query.state !== undefined && !STATES.includes(query.state as Job["state"]))
    throw invalid("filter.state", STATES.join(", "), query.state, "use one of these");
  checkKinds(query, { text: ["type", "queue", "service", "tenant", "key"], yesOrNo: ["due", "tried"] });
  return query as Omit<JobQuery, "limit" | "cursor" | "sort">;
}

/** Throws for a filter that names no jobs. */
function checkFilter(filter: JobFilter): void {
  checkNarrow(filter, FILTER);
  jobQuery(filter);
}

/** The ids of a target in chunks; a filter without a state selects only jobs that the change can affect. */
async function* chunks(
  target: JobTarget,
  all: (filter: JobFilter, payloads: boolean) => AsyncIterable<Job>,
  states: readonly Job["state"][],
): AsyncGenerator<string[]> {
  if (typeof target === "string" || Array.isArray(target)) return yield* inChunks([target].flat().map(checkId));
  const filter = target as JobFilter;
  for (const state of filter.state === undefined ? states : [filter.state])
    for await (const jobs of inChunks(all({ ...filter, state }, false))) yield jobs.map(({ id }) => id);
}

/** The change in the form of the store: only durations, counted by its clock. */
async function changeOf(
  options: RescheduleOptions,
  store: Store,
): Promise<{ readonly delayMs?: number; readonly priority?: number; readonly why?: unknown }> {
  const { delay, runAt, priority, why } = parseOptions(options, CHANGES, "reschedule");
  if (delay === undefined && runAt === undefined && priority === undefined)
    throw invalid("reschedule", "delay, runAt or priority", "nothing", "pass at least one");
  if (delay !== undefined && runAt !== undefined)
    throw invalid("reschedule", "delay or runAt", "both", "give one of them");
  const change: { delayMs?: number; priority?: number; why?: unknown } = { why };
  if (priority !== undefined) {
    checkPriority(priority);
    change.priority = priority as number;
  }
  if (delay !== undefined) change.delayMs = parseDuration(delay, "delay", { maxMs: JOB_BOUNDS.delayMs });
  if (runAt !== undefined) {
    const { now } = await store.control();
    change.delayMs = Math.max(0, instantOf(runAt, "runAt") - now);
    if (change.delayMs > JOB_BOUNDS.delayMs)
      throw invalid("runAt", "a time within 10 years", runAt, "use a sooner one");
  }
  return change;
}
