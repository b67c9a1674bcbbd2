// Whether upkeep runs: schedules, runs of dead workers, old jobs. Judged from the records that workers publish about
// their upkeep, and from what is overdue whatever they publish.
import { formatDuration } from "../core/duration.ts";
import { scheduleFrom } from "../core/schedule.ts";
import { SCHEDULE_CELLS } from "../schedules/schedule-jobs.ts";
import type { Cell, Store } from "../store/store.ts";
import { isFresh, RECORD_CELLS, recordsFrom, type StepRecord } from "../upkeep/upkeep-records.ts";

/** The facts about upkeep. */
export interface UpkeepFacts {
  /** How long ago a living worker last published a record; null if none does. */
  readonly toldMs: number | null;
  /** What needs upkeep while no worker runs it. */
  readonly unattended: readonly string[];
  /** Services whose last step failed, with the reason. */
  readonly failing: readonly string[];
  /** Schedules with a tick that is undecided, or whose job is not written, the latest first. */
  readonly late: readonly { readonly name: string; readonly lateMs: number }[];
}

/** What the facts are made from. */
export interface UpkeepSources {
  /** Workers with a lease in force. */
  readonly alive: ReadonlySet<string>;
  /** Runs of workers whose lease has ended. */
  readonly orphans: number;
  /** A run exceeds its stuck limit by more than its worker and the check would allow. */
  readonly stuck: boolean;
  /** Jobs that have ended. */
  readonly finished: number;
}

/** How late a schedule may be: schedulers look every second, and take over from one another after two. */
const GRACE_MS = 5_000;
const LATE_MS = 60_000;
const VERY_LATE_MS = 300_000;
/** Finished jobs are kept this long by default. */
const KEPT_MS = 86_400_000;

/** Reads the facts from a store. */
export async function gatherUpkeep(
  store: Pick<Store, "cells" | "overdue">,
  sources: Omit<UpkeepSources, "stuck">,
): Promise<UpkeepFacts> {
  const { cells, now } = await store.cells([{ kind: SCHEDULE_CELLS }, { kind: RECORD_CELLS }]);
  // This reads all runs. Those of workers that are gone are orphans; of the others a living worker checks them.
  const mayBeStuck = sources.alive.size > 0 && !isDoneBy(livingRecords(cells, sources.alive, now), STUCK_CHECK);
  const overdue = mayBeStuck ? await store.overdue({ byMs: LATE_MS, limit: 1, after: 0 }) : [];
  return upkeepFacts(cells, { ...sources, stuck: overdue.length > 0 }, now);
}

const STUCK_CHECK = "stuck check";

function livingRecords(cells: readonly Cell[], alive: ReadonlySet<string>, now: number): StepRecord[] {
  return recordsFrom(cells).filter((record) => alive.has(record.worker) && isFresh(record, now));
}

function isDoneBy(living: readonly StepRecord[], name: string): boolean {
  return living.some(({ service }) => service === name);
}

/** The facts in the cells of a store. */
export function upkeepFacts(cells: readonly Cell[], sources: UpkeepSources, now: number): UpkeepFacts {
  const records = recordsFrom(cells);
  const living = livingRecords(cells, sources.alive, now);
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
  const isDone = (name: string): boolean => isDoneBy(living, name);
  const last = Math.max(0, ...records.map(({ at }) => at));
  const needs: [boolean, string][] = [
    [schedules > 0 && !isDone("schedules"), schedules === 1 ? "a schedule" : `${schedules} schedules`],
    [orphans > 0 && !isDone("expired runs"), "runs of workers that are gone"],
    [stuck && !isDone(STUCK_CHECK), "runs that are stuck"],
    [finished > 0 && !isDone("retention") && last > 0 && now - last > KEPT_MS, "finished jobs past their retention"],
  ];
  return needs.flatMap(([isNeeded, what]) => (isNeeded ? [what] : []));
}

/** The problems of upkeep, each with its cost in the score. */
export function upkeepTroubles({ unattended: needs, failing, late }: UpkeepFacts): [cost: number, reason: string][] {
  const troubles: [number, string][] = [];
  if (needs.length > 0) troubles.push([0.3, `no worker runs upkeep, which is needed for ${needs.join(", ")}`]);
  const [first] = late;
  if (first) {
    const more = late.length === 1 ? "" : `, and ${late.length - 1} more are late`;
    const cost = first.lateMs >= VERY_LATE_MS ? 0.5 : first.lateMs >= LATE_MS ? 0.25 : 0.1;
    troubles.push([cost, `the schedule ${first.name} is ${formatDuration(first.lateMs)} late${more}`]);
  }
  if (failing.length > 0) troubles.push([0.1, `upkeep fails: ${[...new Set(failing)].slice(0, 3).join("; ")}`]);
  return troubles;
}

/** True if a schedule is late by more than is acceptable. */
export function isUpkeepLate({ late }: UpkeepFacts): boolean {
  return late.some(({ lateMs }) => lateMs >= LATE_MS);
}
