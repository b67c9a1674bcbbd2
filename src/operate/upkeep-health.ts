// Whether upkeep runs: schedules, runs of dead workers, old jobs. Judged from the records that workers publish about
// their upkeep, and from what is overdue whatever they publish.
import type { UpkeepFacts } from "../core/health.ts";
import { scheduleFrom } from "../core/schedule.ts";
import { SCHEDULE_CELLS } from "../schedules/schedule-jobs.ts";
import type { Cell, Store } from "../store/store.ts";
import { isFresh, RECORD_CELLS, recordsFrom, type StepRecord } from "../upkeep/upkeep-records.ts";

/** What the facts are made from. */
export interface UpkeepDependencies {
  /** Workers with a lease in force. */
  readonly alive: ReadonlySet<string>;
  /** Runs of workers whose lease has ended. */
  readonly orphans: number;
  /** A run exceeds its stuck limit by more than its worker and the check would allow. */
  readonly stuck: boolean;
  /** Jobs that have ended. */
  readonly finished: number;
  /** The interval of the drains that come on time, each of which makes the jobs of ticks; null without one. */
  readonly drainMs?: number | null;
}

/** How late a schedule may be: schedulers look every second, and take over from one another after two. */
const GRACE_MS = 5_000;
const LATE_MS = 60_000;
/** Finished jobs are kept this long by default. */
const KEPT_MS = 86_400_000;

/** Reads the facts from a store; `drains` has the intervals of those that come on time. */
export async function gatherUpkeep(
  store: Pick<Store, "cells" | "overdue">,
  sources: Omit<UpkeepDependencies, "stuck" | "drainMs">,
  drains: ReadonlyMap<string, number> = new Map(),
): Promise<UpkeepFacts> {
  const { cells, now } = await store.cells([{ kind: SCHEDULE_CELLS }, { kind: RECORD_CELLS }]);
  // This reads all runs. Those of workers that are gone are orphans; of the others a living worker checks them.
  const mayBeStuck = sources.alive.size > 0 && !isDoneBy(livingRecords(cells, sources.alive, now), STUCK_CHECK);
  const overdue = mayBeStuck ? await store.overdue({ byMs: LATE_MS, limit: 1, after: 0 }) : [];
  const drainMs = drains.size === 0 ? null : Math.max(...drains.values());
  return upkeepFacts(cells, { ...sources, stuck: overdue.length > 0, drainMs }, now);
}

const STUCK_CHECK = "stuck check";

function livingRecords(cells: readonly Cell[], alive: ReadonlySet<string>, now: number): StepRecord[] {
  return recordsFrom(cells).filter((record) => alive.has(record.worker) && isFresh(record, now));
}

function isDoneBy(living: readonly StepRecord[], name: string): boolean {
  return living.some(({ service }) => service === name);
}

/** The facts in the cells of a store. */
export function upkeepFacts(cells: readonly Cell[], sources: UpkeepDependencies, now: number): UpkeepFacts {
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
    .filter(({ lateMs }) => lateMs > GRACE_MS + (sources.drainMs ?? 0))
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
  { orphans, stuck, finished, schedules, drainMs = null }: UpkeepDependencies & { readonly schedules: number },
  now: number,
): string[] {
  const isDone = (name: string): boolean => isDoneBy(living, name);
  const last = Math.max(0, ...records.map(({ at }) => at));
  const needs: [boolean, string][] = [
    [
      schedules > 0 && drainMs === null && !isDone("schedules"),
      schedules === 1 ? "a schedule" : `${schedules} schedules`,
    ],
    [orphans > 0 && !isDone("expired runs"), "runs of workers that are gone"],
    [stuck && !isDone(STUCK_CHECK), "runs that are stuck"],
    [finished > 0 && !isDone("retention") && last > 0 && now - last > KEPT_MS, "finished jobs past their retention"],
  ];
  return needs.flatMap(([isNeeded, what]) => (isNeeded ? [what] : []));
}
