// Schedules as people handle them: set, list, pause, resume, run now, remove. Upkeep makes their jobs.
import { RedriveError } from "../core/errors.ts";
import { subjectOf } from "../core/event-log.ts";
import { checkName, isJobId, type NewJob } from "../core/new-job.ts";
import { didYouMean, invalid, objectOf, parseOptions } from "../core/options.ts";
import type { PolicyOptions } from "../core/policy.ts";
import {
  begun,
  pausedSchedule,
  redefined,
  resumedSchedule,
  type Schedule,
  type ScheduleDefinition,
  scheduleFrom,
} from "../core/schedule.ts";
import type { FlowMeter } from "../store/flow-meter.ts";
import type { Cell, EnqueueAnswer, Store } from "../store/store.ts";
import type { System } from "../system/system.ts";
import { ticksOf } from "./cron.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import type { ActionOptions, EventLog, OperatorAction } from "../report/event-log.ts";
import type { Events } from "../report/events.ts";
import type { Traces } from "../report/traces.ts";
import { type KnownTypes, SCHEDULE_CELLS, scheduledJob, typesByName } from "./schedule-jobs.ts";
import { definitionFrom, type ScheduleOptions } from "./schedule-options.ts";
import { type AnyScheduleView, readSchedules, type ScheduleView, viewsOf } from "./schedule-views.ts";

/** Makes, changes and runs schedules, which hold for the whole fleet. */
export interface Schedules {
  /**
   * Makes a schedule, or changes the one of this name. The same definition again changes nothing; if its times differ,
   * it continues with the next tick from now. `because.why` says why, for the event log.
   */
  set<Input>(name: string, options: ScheduleOptions<Input>, because?: ActionOptions): Promise<ScheduleView>;
  /** Every schedule by name, followed by the upkeep services. */
  list(): Promise<AnyScheduleView[]>;
  /** The schedule; null if there is none of this name. */
  get(name: string): Promise<ScheduleView | null>;
  /** Pauses a schedule: it makes no jobs until `resume`, and ticks during the pause make none later either. */
  pause(name: string, options?: ActionOptions): Promise<ScheduleView>;
  /** Ends the pause; the next tick is the next one from now. */
  resume(name: string, options?: ActionOptions): Promise<ScheduleView>;
  /** Makes one extra job now, besides the planned ones; answers its id. A second call of the same `id` makes none. */
  run(name: string, options?: RunScheduleOptions): Promise<{ readonly id: string }>;
  /** Removes the schedule; jobs that it has made stay. False if there was none. */
  remove(name: string, options?: ActionOptions): Promise<boolean>;
}

/** Options of an extra job. */
export interface RunScheduleOptions extends ActionOptions {
  /** Its id, 1 to 64 letters, digits, `_` or `-`; default a new one. */
  readonly id?: string;
}

/** What schedules are handled with. */
export interface ScheduleDependencies {
  readonly store: Store;
  readonly system: System;
  readonly events: Events;
  readonly eventLog: EventLog;
  /** Counts new jobs for the store; absent where they are not counted. */
  readonly flow?: FlowMeter;
  /** Makes spans; absent where no traces are made. */
  readonly traces?: Traces | null;
  readonly jobs: readonly JobDefinition[];
  readonly defaults: PolicyOptions;
}

/** Most attempts against concurrent changes of the schedule. */
const TRIES = 10;

/** The schedules of a store. */
export function openSchedules(parts: ScheduleDependencies): Schedules {
  const { store, eventLog } = parts;
  const known = typesByName(parts.jobs, parts.defaults);
  const get = async (name: string): Promise<ScheduleView | null> => {
    checkName("schedule", name);
    const { cells } = await store.cells([{ kind: SCHEDULE_CELLS, name }]);
    return (await viewsOf(store, cells))[0] ?? null;
  };
  const changed = async (name: string, next: Change): Promise<ScheduleView> => {
    await change(store, name, next);
    return (await get(name)) ?? Promise.reject(await unknown(store, name));
  };
  const act = acting(eventLog);
  return {
    get,
    list: () => readSchedules(store),
    async set(name, options, because) {
      const definition = await checkSchedule(name, options as ScheduleOptions, known);
      const set = (): Promise<ScheduleView> => changed(name, (found, now) => setTo(found, definition, now));
      // A program that sets its schedules at every start changes nothing, and leaves no event.
      const found = (await cellsOf(store, name)).map(({ value }) => scheduleFrom(value))[0];
      if (found && isSame(found.definition, definition)) return set();
      const { job, cron, timezone, everyMs } = definition;
      return act("set", name, because, set, { details: { job, cron, timezone, everyMs } });
    },
    pause: (name, options) =>
      act("pause", name, options, () =>
        changed(name, async (found) => pausedSchedule(found ?? (await missing(store, name)))),
      ),
    resume: (name, options) =>
      act("resume", name, options, () =>
        changed(name, async (found, now) => {
          const { definition, state } = found ?? (await missing(store, name));
          if (!state.paused) return { definition, state };
          return resumedSchedule({ definition, state }, now, await ticksOf(definition, state.anchor));
        }),
      ),
    async run(name, options = {}) {
      const { why, id = parts.system.jobId() } = parseOptions(options, ["why", "id"], "run");
      if (!isJobId(id)) throw invalid("id", "1 to 64 letters, digits, _ or -", id, "leave it out for a new one");
      const because = why === undefined ? {} : { why: why as string };
      const outcome = (made: { readonly id: string } | undefined) => ({ job: made?.id });
      return act("run", name, because, () => runNow(parts, known, { name, id }), { outcome });
    },
    remove: (name, options) =>
      act("remove", name, options, () => removed(store, name), { outcome: (was) => ({ removed: was }) }),
  };
}

type Act = <T>(
  verb: string,
  name: string,
  options: ActionOptions | undefined,
  work: () => Promise<T>,
  rest?: Pick<OperatorAction<T>, "details" | "outcome">,
) => Promise<T>;

/** Carries out actions on schedules, each with its intent and its outcome in the event log. */
function acting(eventLog: EventLog): Act {
  return async (verb, name, options = {}, work, rest = {}) => {
    const { why } = parseOptions(options, ["why"], verb);
    checkName("schedule", name);
    return eventLog.act({ kind: `schedule.${verb}`, subject: subjectOf("schedule", name), why, ...rest }, work);
  };
}

/** Makes one extra job. */
async function runNow(
  { store, system, events, flow, traces }: ScheduleDependencies,
  known: KnownTypes,
  { name, id }: { readonly name: string; readonly id: string },
): Promise<{ readonly id: string }> {
  const [cell] = await cellsOf(store, name);
  const schedule = (cell && scheduleFrom(cell.value)) ?? (await missing(store, name));
  const job = scheduledJob(name, schedule, { id }, { known, random: system.random });
  const write = (jobs: readonly NewJob[]): Promise<EnqueueAnswer[]> => store.enqueue(jobs);
  const [answer] = await (traces ? traces.send([job], write) : write([job]));
  if (answer?.kind === "duplicate") return { id };
  events.emit({ kind: "job.enqueued", id, type: job.type });
  flow?.add(job.type, "enqueued");
  // It becomes the last job, for overlaps and for lists; the planned ticks do not change.
  await change(store, name, async (found, now) => {
    return found && { ...found, state: { ...found.state, lastJob: id, lastAt: now } };
  });
  return { id };
}

/** Removes a schedule; false if there was none. */
async function removed(store: Store, name: string): Promise<boolean> {
  let there = false;
  await change(store, name, async (_found, _now, cell) => {
    there = cell !== undefined;
    return null;
  });
  return there;
}

/** The definition that the options describe; refuses anything wrong in it. */
export async function checkSchedule(
  name: string,
  options: ScheduleOptions,
  known: KnownTypes,
): Promise<ScheduleDefinition> {
  checkName("schedule", name);
  const definition = await definitionFrom(objectOf(options, "schedule"), known);
  await ticksOf(definition, 0);
  return definition;
}

/** The new value of a schedule; null deletes it, and the same value leaves it unchanged. */
type Change = (found: Schedule | null, now: number, cell: Cell | undefined) => Promise<Schedule | null>;

/** Writes the new value of a schedule, and that something has changed. */
async function change(store: Store, name: string, next: Change): Promise<void> {
  checkName("schedule", name);
  for (let tries = 0; tries < TRIES; tries++) {
    const { cells, now } = await store.cells([{ kind: SCHEDULE_CELLS, name }]);
    const [cell] = cells;
    const after = await next(cell ? scheduleFrom(cell.value) : null, now, cell);
    const value = after && JSON.stringify(after);
    if (value === (cell?.value ?? null)) return;
    const key = { kind: SCHEDULE_CELLS, holder: "" };
    const [isDone] = await store.setCells([
      { ...key, name, version: cell?.version ?? 0, value },
      { ...key, name: "", version: null, value: "{}" },
    ]);
    if (isDone) return;
  }
  throw new RedriveError(
    "conflict",
    `The schedule ${name} was changed by other processes during every attempt. Try again.`,
  );
}

async function cellsOf(store: Store, name: string): Promise<readonly Cell[]> {
  checkName("schedule", name);
  return (await store.cells([{ kind: SCHEDULE_CELLS, name }])).cells;
}

function isSame(a: ScheduleDefinition, b: ScheduleDefinition): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

async function setTo(found: Schedule | null, definition: ScheduleDefinition, now: number): Promise<Schedule> {
  if (!found) return begun(definition, now, await ticksOf(definition, now));
  if (isSame(found.definition, definition)) return found;
  const anchor = found.state.lastAt ?? found.state.anchor;
  const next = await ticksOf(definition, anchor);
  return redefined(found, definition, now, () => next);
}

async function missing(store: Store, name: string): Promise<never> {
  throw await unknown(store, name);
}

/** The error for an unknown schedule. */
async function unknown(store: Store, name: string): Promise<RedriveError> {
  const { cells } = await store.cells([{ kind: SCHEDULE_CELLS }]);
  const names = cells.map((cell) => cell.name).filter((each) => each !== "");
  const hint = didYouMean(name, names, "`schedules list` shows the existing ones");
  return new RedriveError("not_found", `There is no schedule ${JSON.stringify(name)}; ${hint}`, { details: { name } });
}
