// A lane is the unit of scheduling: one (queue, type, service, tenant, group, priority) and one kind, interned to an
// integer. The order of these integers is the order of service: a higher priority has smaller numbers, and the kinds of
// one belonging are adjacent, so that a job changes its kind by arithmetic.
import type { Belonging } from "./job.ts";

/**
 * First attempts, retries, suspects (jobs whose worker died) and suspects with one crash left. The last two have
 * separate lanes so that a worker can claim them one at a time, and alone, without reading any row.
 */
export const LANE_KINDS = ["first", "retry", "suspect", "last"] as const;
/** One of `LANE_KINDS`. */
export type LaneKind = (typeof LANE_KINDS)[number];

const KINDS = 4;
const PRIORITY_SPAN = 2 ** 49;

/** The lane of first attempts for the nth belonging of a priority. */
export function firstLane(n: number, priority: number): number {
  return (9 - priority) * PRIORITY_SPAN + n * KINDS;
}

/** The priority of a lane, from its number. */
export function priorityOfLane(lane: number): number {
  return 9 - Math.floor(lane / PRIORITY_SPAN);
}

/** A number before every lane of this priority, and not before any lane of a higher one. */
export function beforePriority(priority: number): number {
  return firstLane(0, priority) - 1;
}

/** A text that identifies a lane's belonging, to look up its number; only tenant and group can contain a space. */
export function laneName({ type, queue, service, tenant, group, groupConcurrency, priority }: Belonging): string {
  const name = `${priority} ${type} ${queue} ${service ?? ""} ${tenant ?? ""}`;
  return group === null ? name : `${name.length} ${name} ${groupConcurrency} ${group}`;
}

/** True for jobs of one belonging. */
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

/** The lane of the same belonging for another kind. */
export function laneOfKind(lane: number, kind: LaneKind): number {
  return lane - (lane % KINDS) + LANE_KINDS.indexOf(kind);
}

/** The kind a lane holds. */
export function kindOfLane(lane: number): LaneKind {
  return LANE_KINDS[lane % KINDS] ?? "first";
}

/** The kind of lane for a waiting job, by its attempts and crashes. */
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
  /** When its oldest job became due. */
  readonly headRunAt: number;
  /** How many more of its group may start; null without a group. */
  readonly room: number | null;
}
