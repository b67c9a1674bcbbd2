// Schedules as shown to people, and the upkeep services in the same form: when each ran last, how long, how it ended,
// and when it runs next.
import { type CatchUp, type Overlap, type Schedule, scheduleFrom } from "../core/schedule.ts";
import type { Job } from "../core/job.ts";
import type { Cell, Store } from "../store/store.ts";
import { isFresh, RECORD_CELLS, recordsFrom, type StepRecord } from "../upkeep/upkeep-records.ts";
import { SCHEDULE_CELLS } from "./schedule-jobs.ts";
import { livingAmong } from "../services/holding.ts";

/** The common fields of every row. */
interface Row {
  /** Its name. */
  readonly name: string;
  /** When it ran last, or the tick of its last job; null for never. */
  readonly lastAt: number | null;
  /** How long that took; null where it has not ended. */
  readonly lastMs: number | null;
  /** When it runs next; null for never, or if no worker does it. */
  readonly nextAt: number | null;
  /** The interval; null for a cron schedule. */
  readonly everyMs: number | null;
}

/** A schedule. */
export interface ScheduleView extends Row {
  /** Distinguishes it from upkeep. */
  readonly kind: "schedule";
  /** The cron expression; null for an interval. */
  readonly cron: string | null;
  /** The zone of the cron expression; null for an interval. */
  readonly timezone: string | null;
  /** True while it is paused. */
  readonly paused: boolean;
  /** The job type. */
  readonly job: string;
  /** JSON text of the input of its jobs. */
  readonly input: string;
  /** What happens to missed ticks. */
  readonly catchUp: CatchUp;
  /** What happens to a tick whose last job has not ended. */
  readonly overlap: Overlap;
  /** Jobs are due up to this long after their tick. */
  readonly jitterMs: number;
  /** Options of its jobs. */
  readonly options: Readonly<Record<string, unknown>>;
  /** The id of its last job; null before the first. */
  readonly lastJob: string | null;
  /** The state of that job; null if the job no longer exists. */
  readonly result: Job["state"] | null;
  /** Jobs that its ticks have made. */
  readonly fired: number;
  /** Ticks that made no job. */
  readonly skipped: number;
}

/** An upkeep service of the workers. */
export interface UpkeepView extends Row {
  /** Distinguishes it from a schedule. */
  readonly kind: "upkeep";
  /** The worker that did it last. */
  readonly worker: string;
  /** How it ended; null if it has not ended. */
  readonly result: "ok" | "failed" | null;
  /** What went wrong; null if nothing did. */
  readonly error: string | null;
}

/** A row of the list. */
export type AnyScheduleView = ScheduleView | UpkeepView;

/** Every schedule by name, followed by the upkeep services. */
export async function readSchedules(store: Pick<Store, "cells" | "get" | "workers">): Promise<AnyScheduleView[]> {
  const [{ cells, now }, workers] = await Promise.all([
    store.cells([{ kind: SCHEDULE_CELLS }, { kind: RECORD_CELLS }]),
    store.workers(),
  ]);
  const alive = new Set(livingAmong(workers, now).map(({ id }) => id));
  return [...(await viewsOf(store, cells)), ...upkeepViews(recordsFrom(cells), alive, now)];
}

/** The schedules in cells, each with the state of its last job. */
export async function viewsOf(store: Pick<Store, "get">, cells: readonly Cell[]): Promise<ScheduleView[]> {
  const found = cells.flatMap(({ kind, name, value }) => {
    const schedule = kind === SCHEDULE_CELLS && name !== "" ? scheduleFrom(value) : null;
    return schedule ? [{ name, schedule }] : [];
  });
  const ids = found.flatMap(({ schedule }) => schedule.state.lastJob ?? []);
  const jobs = new Map((ids.length === 0 ? [] : await store.get(ids)).flatMap((job) => (job ? [[job.id, job]] : [])));
  return found.map(({ name, schedule }) => viewOf(name, schedule, jobs.get(schedule.state.lastJob ?? "")));
}

function viewOf(name: string, { definition, state }: Schedule, job: Job | undefined): ScheduleView {
  const { payload, ...said } = definition;
  const { paused, lastJob, lastAt, fired, skipped } = state;
  const isOver = job !== undefined && job.finishedAt !== null && job.startedAt !== null;
  return {
    kind: "schedule",
    name,
    ...said,
    input: payload,
    paused,
    nextAt: paused ? null : state.next,
    lastAt,
    lastMs: isOver ? Math.max(0, (job.finishedAt as number) - (job.startedAt as number)) : null,
    lastJob,
    result: job?.state ?? null,
    fired,
    skipped,
  };
}

function upkeepViews(records: readonly StepRecord[], alive: ReadonlySet<string>, now: number): UpkeepView[] {
  const names = [...new Set(records.map(({ service }) => service))].toSorted();
  return names.map((name) => {
    const own = records.filter(({ service }) => service === name);
    const ran = own.filter(({ ms }) => ms !== null);
    const last = (ran.length > 0 ? ran : own).reduce((a, b) => (b.at > a.at ? b : a));
    const nexts = own.filter((record) => alive.has(record.worker) && isFresh(record, now)).map(nextOf(now));
    return {
      kind: "upkeep",
      name,
      worker: last.worker,
      everyMs: last.waitMs,
      lastAt: last.ms === null ? null : last.at - last.ms,
      lastMs: last.ms,
      nextAt: nexts.length === 0 ? null : Math.min(...nexts),
      result: last.ms === null ? null : last.error === null ? "ok" : "failed",
      error: last.error,
    };
  });
}

/** Frequent steps are recorded less often: the step has run since, and runs again after the same time. */
const nextOf =
  (now: number) =>
  ({ at, waitMs }: StepRecord): number => {
    const missed = Math.max(0, Math.ceil((now - at - waitMs) / Math.max(1, waitMs)));
    return at + waitMs * (1 + missed);
  };
