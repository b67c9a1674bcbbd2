// Whether somebody looks after what goes by itself: schedules, runs of dead workers, old jobs. Judged from what workers
// told of their upkeep, and from what is overdue whatever they tell.
import { formatDuration } from "../core/duration.ts";
import { scheduleFrom } from "../core/schedule.ts";
import { SCHEDULE_CELLS } from "../schedules/schedule-jobs.ts";
import type { Cell, Store } from "../store/store.ts";
import { isFresh, RECORD_CELLS, recordsFrom, type StepRecord } from "../upkeep/upkeep-records.ts";

/** What is known of upkeep. */
export interface UpkeepFacts {
  /** How long ago a living worker last told of it; null if none does. */
  readonly toldMs: number | null;
  /** What needs it while nobody does it. */
  readonly unattended: readonly string[];
  /** Services of which the last step failed, with why. */
  readonly failing: readonly string[];
  /** Schedules with a tick that nobody has decided, or whose job nobody has written, the latest first. */
  readonly late: readonly { readonly name: string; readonly lateMs: number }[];
}

/** What the facts are made of. */
export interface UpkeepSources {
  /** Workers with a lease in force. */
  readonly alive: ReadonlySet<string>;
  /** Runs in the hands of workers whose lease has ended. */
  readonly orphans: number;
  /** A run has been over its stuck limit for longer than its worker and the check would let it. */
  readonly stuck: boolean;
  /** Jobs that have ended. */
  readonly finished: number;
}

/** A schedule may be this late: schedulers look every second, and take over from one another after two. */
const GRACE_MS = 5_000;
const LATE_MS = 60_000;
const VERY_LATE_MS = 300_000;
/** Finished jobs are kept this long unless somebody says otherwise. */
const KEPT_MS = 86_400_000;

/** Asks a store for the facts. */
export async function gatherUpkeep(
  store: Pick<Store, "cells" | "overdue">,
  sources: Omit<UpkeepSources, "stuck">,
): Promise<UpkeepFacts> {
  const [{ cells, now }, overdue] = await Promise.all([
    store.cells([{ kind: SCHEDULE_CELLS }, { kind: RECORD_CELLS }]),
    store.overdue({ byMs: LATE_MS, limit: 1, after: 0 }),
  ]);
  return upkeepFacts(cells, { ...sources, stuck: overdue.length > 0 }, now);
}

/** The facts in the cells of a store. */
export function upkeepFacts(cells: readonly Cell[], sources: UpkeepSources, now: number): UpkeepFacts {
  const records = recordsFrom(cells);
  const living = records.filter((record) => sources.alive.has(record.worker) && isFresh(record, now));
  const ticking = cells.flatMap(({ kind, name, value, at }) => {
    const schedule = kind === SCHEDULE_CELLS && name !== "" ? scheduleFrom(value) : null;
    return schedule && !schedule.state.paused && schedule.state.next !== null ? [{ name, at, ...schedule.state }] : [];
  });
  const late = ticking
    .map(({ name, at, next, pending }) => {
      return { name, lateMs: Math.max(now - (next as number), pending.length > 0 ? now - at : 0) };
    })
    .filter(({ lateMs }) => lateMs > GRACE_MS)
    .toSorted((a, b) => b.lateMs - a.lateMs);
  return {
    toldMs: living.length === 0 ? null : now - Math.max(...living.map(({ at }) => at)),
    unattended: unattended(records, living, { ...sources, schedules: ticking.length }, now),
    failing: living.flatMap(({ service, error }) => (error === null ? [] : [`${service}: ${error}`])),
    late,
  };
}

function unattended(
  records: readonly StepRecord[],
  living: readonly StepRecord[],
  { orphans, stuck, finished, schedules }: UpkeepSources & { readonly schedules: number },
  now: number,
): string[] {
  const isDone = (name: string): boolean => living.some(({ service }) => service === name);
  const last = Math.max(0, ...records.map(({ at }) => at));
  const needs: [boolean, string][] = [
    [schedules > 0 && !isDone("schedules"), schedules === 1 ? "a schedule" : `${schedules} schedules`],
    [orphans > 0 && !isDone("expired runs"), "runs of workers that are gone"],
    [stuck && !isDone("stuck check"), "runs that are stuck"],
    [finished > 0 && !isDone("retention") && last > 0 && now - last > KEPT_MS, "finished jobs past their retention"],
  ];
  return needs.flatMap(([isNeeded, what]) => (isNeeded ? [what] : []));
}

/** What is wrong with upkeep, each with what it costs in the score. */
export function upkeepTroubles({ unattended: needs, failing, late }: UpkeepFacts): [cost: number, reason: string][] {
  const troubles: [number, string][] = [];
  if (needs.length > 0) troubles.push([0.3, `nobody runs upkeep, which is needed for ${needs.join(", ")}`]);
  const [first] = late;
  if (first) {
    const more = late.length === 1 ? "" : `, and ${late.length - 1} more are late`;
    const cost = first.lateMs >= VERY_LATE_MS ? 0.5 : first.lateMs >= LATE_MS ? 0.25 : 0.1;
    troubles.push([cost, `the schedule ${first.name} is ${formatDuration(first.lateMs)} late${more}`]);
  }
  if (failing.length > 0) troubles.push([0.1, `upkeep fails: ${[...new Set(failing)].slice(0, 3).join("; ")}`]);
  return troubles;
}

/** True if what is due has waited for longer than anybody should. */
export function isUpkeepLate({ late }: UpkeepFacts): boolean {
  return late.some(({ lateMs }) => lateMs >= LATE_MS);
}
