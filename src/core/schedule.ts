// Schedules: at which instants jobs are made, and what happens to missed instants. The instants are called ticks and
// come from a function. A schedule is written back before its ticks are acted on, so that of all workers that find the
// same tick due only one decides it; a decided tick is pending until its job is written.
import { fieldsFrom, hasNumbers } from "./options.ts";

/** What to do with an overlap: the job of a tick is due while the job of the tick before has not ended. */
export const OVERLAPS = ["queue", "skip", "replace"] as const;
/** One of `OVERLAPS`. */
export type Overlap = (typeof OVERLAPS)[number];

/** Which missed ticks still make jobs: none, the latest one, or the latest so many. */
export type CatchUp = "none" | "one" | { readonly all: number };

/** Most missed ticks that still make jobs. */
export const CATCH_UP_MOST = 1_000;

/** The definition of a schedule, as a user wrote it. */
export interface ScheduleDefinition {
  /** A cron expression with five or six fields; null for a schedule with an interval. */
  readonly cron: string | null;
  /** IANA name of the zone of the expression; null for an interval. */
  readonly timezone: string | null;
  readonly everyMs: number | null;
  readonly catchUp: CatchUp;
  readonly overlap: Overlap;
  readonly jitterMs: number;
  /** The job type. */
  readonly job: string;
  /** JSON text. */
  readonly payload: string;
  /** The other options of its jobs, as an enqueue takes them. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** The progress of a schedule, in store time. */
export interface ScheduleState {
  readonly paused: boolean;
  /** Intervals are counted from here. */
  readonly anchor: number;
  /** The last tick that was decided, or the start of the schedule before any was; no tick up to it fires again. */
  readonly last: number;
  /** The next tick; null if there is none. */
  readonly next: number | null;
  /** Decided ticks whose jobs may not be written yet, oldest first. */
  readonly pending: readonly number[];
  /** The job to cancel before the job of the first pending tick is written; null for none. */
  readonly replaces: string | null;
  /** The job made last, and its tick. */
  readonly lastJob: string | null;
  readonly lastAt: number | null;
  readonly fired: number;
  /** Ticks that made no job; of a long outage, only the first hundred are counted. */
  readonly skipped: number;
}

/** A schedule as it is stored. */
export interface Schedule {
  readonly definition: ScheduleDefinition;
  readonly state: ScheduleState;
}

/** The first tick after an instant; null if there is none. The later the instant, the later the tick. */
export type NextTick = (after: number) => number | null;

/** A tick that was undecided for longer than this counts as missed. */
export const ON_TIME_MS = 60_000;
/** Most missed ticks that are counted one by one. */
const COUNTED = 100;

/** A new schedule; its first tick is after now. */
export function begun(definition: ScheduleDefinition, now: number, next: NextTick): Schedule {
  const state = { paused: false, anchor: now, last: now, next: next(now), pending: [], replaces: null };
  return { definition, state: { ...state, lastJob: null, lastAt: null, fired: 0, skipped: 0 } };
}

/** The schedule under another definition. If its times change, it continues from now, and missed ticks are dropped. */
export function redefined(
  { definition: before, state }: Schedule,
  definition: ScheduleDefinition,
  now: number,
  next: (anchor: number) => NextTick,
): Schedule {
  const sameTimes = (["cron", "timezone", "everyMs"] as const).every((field) => before[field] === definition[field]);
  if (sameTimes) return { definition, state };
  const last = Math.max(state.last, now);
  const anchor = state.lastAt ?? state.anchor;
  return { definition, state: { ...state, anchor, last, next: next(anchor)(last) } };
}

/** The schedule without further ticks. */
export function pausedSchedule({ definition, state }: Schedule): Schedule {
  return { definition, state: { ...state, paused: true } };
}

/** The schedule with its ticks from now on; those during the pause make no jobs. */
export function resumedSchedule({ definition, state }: Schedule, now: number, next: NextTick): Schedule {
  const last = Math.max(state.last, now);
  return { definition, state: { ...state, paused: false, last, next: next(last) } };
}

/** True if ticks of the schedule are due and undecided. */
export function isDue({ state }: Schedule, now: number): boolean {
  return !state.paused && state.next !== null && state.next <= now;
}

/** The facts that a decision uses. */
export interface Occasion {
  readonly now: number;
  /** The job of the last tick has not ended; only looked up where overlaps are skipped. */
  readonly isBusy: boolean;
  readonly next: NextTick;
  /** The id of a tick's job. */
  readonly idOf: (tick: number) => string;
}

/** Decides every tick up to now: which of them make jobs, which are skipped, and when the next one is. */
export function decide({ definition, state }: Schedule, { now, isBusy, next, idOf }: Occasion): Schedule {
  if (state.next === null) return { definition, state };
  const { catchUp, overlap } = definition;
  // Of several ticks at once, all but the latest would be skipped or replaced immediately.
  const most = overlap === "queue" && typeof catchUp === "object" ? catchUp.all : 1;
  const { latest, count, upcoming } = missedTicks(state.next, now, most, next);
  const last = latest.at(-1) as number;
  const isLate = catchUp === "none" && now - last > ON_TIME_MS;
  // A job that may not be written yet has not ended either.
  const isTaken = isBusy || state.pending.length > 0;
  const fire = isLate || (overlap === "skip" && isTaken) ? [] : latest;
  const replaces = overlap !== "replace" || fire.length === 0 || state.pending.length > 0;
  return {
    definition,
    state: {
      ...state,
      last,
      next: upcoming,
      pending: [...state.pending, ...fire],
      replaces: replaces ? state.replaces : state.lastJob,
      lastJob: fire.length > 0 ? idOf(last) : state.lastJob,
      lastAt: fire.length > 0 ? last : state.lastAt,
      fired: state.fired + fire.length,
      skipped: state.skipped + count - fire.length,
    },
  };
}

/** The schedule after the jobs of these ticks were written. */
export function written({ definition, state }: Schedule, ticks: readonly number[]): Schedule {
  const pending = state.pending.filter((tick) => !ticks.includes(tick));
  return { definition, state: { ...state, pending, replaces: pending.length === 0 ? null : state.replaces } };
}

/** Ticks of an interval. */
export function everyTick(everyMs: number, anchor: number): NextTick {
  return (after) => anchor + (Math.floor((after - anchor) / everyMs) + 1) * everyMs;
}

interface Missed {
  /** The latest so many, oldest first; at least one. */
  readonly latest: readonly number[];
  readonly count: number;
  readonly upcoming: number | null;
}

/** The ticks from the first one until now. After a long outage there may be many, and each takes time to compute. */
function missedTicks(first: number, now: number, most: number, next: NextTick): Missed {
  const ticks = [first];
  let upcoming = next(first);
  while (upcoming !== null && upcoming <= now && ticks.length < COUNTED) {
    ticks.push(upcoming);
    upcoming = next(upcoming);
  }
  if (upcoming === null || upcoming > now) return { latest: ticks.slice(-most), count: ticks.length, upcoming };
  const latest: number[] = [];
  for (let before = now + 1, gap = 1_000; latest.length < most && before > first; ) {
    const tick = previousTick(before, gap, first, next);
    latest.unshift(tick);
    gap = before - tick;
    before = tick;
  }
  const last = latest.at(-1) as number;
  return { latest, count: Math.max(COUNTED, latest.length), upcoming: next(last) };
}

/** The latest tick before an instant, at or after the first one; fast where the gap to it is the one given. */
function previousTick(before: number, gap: number, first: number, next: NextTick): number {
  const isBefore = (instant: number): boolean => (next(instant) ?? Number.POSITIVE_INFINITY) < before;
  let low = before - 1 - gap;
  for (let step = gap; low >= first && !isBefore(low); step *= 2) low = before - 1 - step * 2;
  low = Math.max(low, first - 1);
  for (let high = before - 1; ; ) {
    const tick = next(low) as number;
    if (!isBefore(tick)) return tick;
    const middle = Math.floor((tick + high) / 2);
    if (isBefore(middle)) low = middle;
    else [low, high] = [tick, middle];
  }
}

const NUMBERS = ["anchor", "last", "fired", "skipped"];

/** Reads a schedule from a stored text; null for an invalid text. */
export function scheduleFrom(text: string): Schedule | null {
  const { definition, state } = fieldsFrom(text) as { definition?: ScheduleDefinition; state?: ScheduleState };
  const isWhole =
    typeof definition === "object" &&
    definition !== null &&
    typeof definition.job === "string" &&
    typeof definition.payload === "string" &&
    (typeof definition.cron === "string" || Number.isFinite(definition.everyMs)) &&
    hasNumbers(state, NUMBERS) &&
    Array.isArray(state?.pending);
  return isWhole ? ({ definition, state } as Schedule) : null;
}
