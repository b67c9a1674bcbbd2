// A lane is the unit of scheduling: one (queue, type, service, tenant, group, priority) and one kind, interned to an integer.
// The integer is built so that its order is the order of service: the higher the priority, the smaller the number,
// and the kinds of one belonging lie side by side, so that a job changes its kind by arithmetic alone.
import type { Belonging } from "./job.ts";

/**
 * First tries, retries, suspects (jobs that were in the hands of a worker that died) and suspects with their last crash
 * left. The latter two have lanes of their own so that they can be claimed one at a time, and alone, without reading
 * any row.
 */
export const LANE_KINDS = ["first", "retry", "suspect", "last"] as const;
/** One of `LANE_KINDS`. */
export type LaneKind = (typeof LANE_KINDS)[number];

const KINDS = 4;
const PRIORITY_SPAN = 2 ** 49;

/** The lane of first tries for the nth belonging of a priority. */
export function firstLane(n: number, priority: number): number {
  return (9 - priority) * PRIORITY_SPAN + n * KINDS;
}

/** The priority that a lane has by its number. */
export function priorityOfLane(lane: number): number {
  return 9 - Math.floor(lane / PRIORITY_SPAN);
}

/** Less than any lane of this priority, and not less than any of a higher one. */
export function beforePriority(priority: number): number {
  return firstLane(0, priority) - 1;
}

/** A name for what the jobs of a lane belong to, to find its number by; tenant and group alone can hold a space. */
export function laneName({ type, queue, service, tenant, group, groupConcurrency, priority }: Belonging): string {
  const name = `${priority} ${type} ${queue} ${service ?? ""} ${tenant ?? ""}`;
  return group === null ? name : `${name.length} ${name} ${groupConcurrency} ${group}`;
}

/** True for jobs of one lane. */
export function isSameBelonging(a: Belonging, b: Belonging): boolean {
  return (
    a.type === b.type &&
    a.queue === b.queue &&
    a.service === b.service &&
    a.tenant === b.tenant &&
    a.group === b.group &&
    a.groupConcurrency === b.groupConcurrency &&
    a.priority === b.priority
  );
}

/** The sibling of a lane for another kind. */
export function laneOfKind(lane: number, kind: LaneKind): number {
  return lane - (lane % KINDS) + LANE_KINDS.indexOf(kind);
}

/** The kind a lane holds. */
export function kindOfLane(lane: number): LaneKind {
  return LANE_KINDS[lane % KINDS] ?? "first";
}

/** The kind a waiting job belongs to, by what is on its record. */
export function laneKind(attempts: number, crashes: number, maxCrashes: number): LaneKind {
  if (crashes > 0) return crashes >= maxCrashes - 1 ? "last" : "suspect";
  return attempts > 0 ? "retry" : "first";
}

/** True for the kinds that are claimed one at a time. */
export function isSuspect(kind: LaneKind): boolean {
  return kind === "suspect" || kind === "last";
}

/** A lane that has work due now. */
export interface ActiveLane extends Belonging {
  readonly lane: number;
  readonly kind: LaneKind;
  /** When its oldest job fell due. */
  readonly headRunAt: number;
  /** How many more of its group may start; null without a group. */
  readonly room: number | null;
}
