// Decides which lanes a claim takes from and how many of each: strict priority, then fair turns between tenants. The
// answer is a list of quotas; the store works through it in order until it has taken as many as wanted. So the plan
// need not know how many jobs a lane holds, and parked, paused or unserved work costs nothing.
import { groupName } from "./group.ts";
import { type ActiveLane, isSuspect } from "./lane.ts";

/** How many jobs to take from a lane; a lane may appear twice, first with its fair share, then with the remainder. */
export interface Quota {
  readonly lane: number;
  readonly limit: number;
  /** Jobs that one slot takes; 1 where absent. */
  readonly per?: number;
}

/** What a worker may take at this moment. */
export interface Appetite {
  /** Slots to fill in all. */
  readonly want: number;
  /** Jobs of a type that one slot takes, where they are run in batches; default 1. */
  readonly perSlot?: ((type: string) => number) | undefined;
  /** Job types this worker has handlers for. */
  readonly serves: ReadonlySet<string>;
  /** Queues it serves; null for all. */
  readonly queues: ReadonlySet<string> | null;
  /**
   * What may still be taken for a `type:…`, `queue:…`, `service:…` or `tenant:…`, and for the retries of a service
   * (`retry:…`); 0 for parked, paused and used up. A name that is not in the map is not limited.
   */
  readonly grants: ReadonlyMap<string, number>;
  /** Suspects that may be taken: 1 for a claim of its own while none is held, else 0. */
  readonly suspects: number;
  /** Counts the claims of this worker; tenants take turns by it. */
  readonly turn: number;
  /** The share of a tenant beside the others; default 1 for each. */
  readonly weightOf?: ((tenant: string) => number) | undefined;
}

/** The quotas of one claim, in order. Pure: the same lanes and appetite give the same plan. */
export function planClaim(lanes: readonly ActiveLane[], appetite: Appetite): Quota[] {
  const grants = new Map(appetite.grants);
  const quotas: Quota[] = [];
  // Every active lane has at least one job, so lanes beyond the number wanted would not be reached.
  const planned = new Set<number>();
  let suspects = appetite.suspects;
  const give = (lane: ActiveLane, slots: number): number => {
    const suspect = isSuspect(lane.kind);
    const per = suspect ? 1 : (appetite.perSlot?.(lane.type) ?? 1);
    const most = slots * per;
    const limit = Math.min(most, room(lane, grants), suspect ? suspects : most);
    if (limit <= 0) return 0;
    if (suspect) suspects -= limit;
    spend(lane, grants, limit);
    planned.add(lane.lane);
    quotas.push(per === 1 ? { lane: lane.lane, limit } : { lane: lane.lane, limit, per });
    return Math.ceil(limit / per);
  };
  for (const lane of lanes) if (lane.room !== null) grants.set(namesOf(lane).at(-1) as string, lane.room);
  const open = lanes.filter((lane) => isServed(lane, appetite) && isOpen(lane, grants));
  for (const level of levels(open)) {
    const tenants = turns(level, appetite);
    const weights = tenants.reduce((sum, { weight }) => sum + weight, 0);
    const reached: ActiveLane[] = [];
    for (const { lanes: own, weight } of tenants) {
      if (planned.size >= appetite.want) break;
      const share = Math.ceil((appetite.want * weight) / weights);
      const part = Math.max(1, Math.ceil(share / own.length));
      let given = 0;
      // All lanes of a tenant together get its share.
      for (const lane of own) {
        if (given >= share) break;
        given += give(lane, part);
      }
      reached.push(...own);
    }
    if (planned.size >= appetite.want) break;
    // What the fair shares leave over goes to the lanes that have more. With a single tenant, the first share was
    // already everything.
    let left = level.length > 1 ? appetite.want : 0;
    for (const lane of reached) if (left > 0 && give(lane, appetite.want) > 0) left -= 1;
  }
  return quotas;
}

/** How many jobs so many slots take from these quotas, if each lane gives what it is asked for. */
export function jobsIn(quotas: readonly Quota[], slots: number): number {
  let jobs = 0;
  let left = slots;
  for (const { limit, per = 1 } of quotas) {
    if (left <= 0) break;
    const taken = Math.min(limit, left * per);
    jobs += taken;
    left -= Math.ceil(taken / per);
  }
  return jobs;
}

/** How many jobs these quotas ask of each lane. */
export function jobsByLane(quotas: readonly Quota[]): Map<number, number> {
  const jobs = new Map<number, number>();
  for (const { lane, limit } of quotas) jobs.set(lane, limit + (jobs.get(lane) ?? 0));
  return jobs;
}

/** True where no grant closes the lane. */
export function isOpen(lane: ActiveLane, grants: ReadonlyMap<string, number>): boolean {
  return room(lane, grants) > 0;
}

function isServed(lane: ActiveLane, { serves, queues }: Appetite): boolean {
  return serves.has(lane.type) && (queues === null || queues.has(lane.queue));
}

/** Lanes grouped by priority, highest first. */
function levels(lanes: readonly ActiveLane[]): ActiveLane[][] {
  const groups = new Map<number, ActiveLane[]>();
  for (const lane of lanes) {
    const group = groups.get(lane.priority);
    if (group) group.push(lane);
    else groups.set(lane.priority, [lane]);
  }
  return [...groups.entries()].sort(([a], [b]) => b - a).map(([, group]) => group);
}

/** The lanes of one tenant, oldest first. */
interface Turn {
  readonly lanes: ActiveLane[];
  readonly weight: number;
}

/**
 * Lanes grouped by tenant, beginning with the tenant whose turn it is; a tenant with twice the weight has twice the
 * turns.
 */
function turns(level: readonly ActiveLane[], { turn, weightOf }: Appetite): Turn[] {
  const tenants = new Map<string | null, ActiveLane[]>();
  for (const lane of level) {
    const own = tenants.get(lane.tenant);
    if (own) own.push(lane);
    else tenants.set(lane.tenant, [lane]);
  }
  const groups: Turn[] = [];
  for (const [tenant, lanes] of tenants) {
    if (lanes.length > 1) lanes.sort((a, b) => a.headRunAt - b.headRunAt || a.lane - b.lane);
    groups.push({ lanes, weight: tenant === null ? 1 : (weightOf?.(tenant) ?? 1) });
  }
  const start = whoseTurn(groups, turn);
  return [...groups.slice(start), ...groups.slice(0, start)];
}

/** Turns rotate in steps of the smallest weight; each tenant has as many in a row as its weight says. */
function whoseTurn(groups: readonly Turn[], turn: number): number {
  const least = groups.reduce((min, { weight }) => Math.min(min, weight), Number.POSITIVE_INFINITY);
  const steps = groups.map(({ weight }) => Math.round(weight / least));
  let left = turn % steps.reduce((sum, count) => sum + count, 0);
  return steps.findIndex((count) => (left -= count) < 0);
}

const NAMES = new WeakMap<ActiveLane, readonly string[]>();

/** The names under which a lane may be limited; cached, because every claim asks for them. */
function namesOf(lane: ActiveLane): readonly string[] {
  const known = NAMES.get(lane);
  if (known) return known;
  const { type, queue, service, tenant, kind } = lane;
  const names = [`type:${type}`, `queue:${queue}`];
  if (service !== null) names.push(`service:${service}`);
  if (service !== null && kind !== "first") names.push(`retry:${service}`);
  if (tenant !== null) names.push(`tenant:${tenant}`);
  if (lane.group !== null) names.push(`group:${groupName(lane)}`);
  NAMES.set(lane, names);
  return names;
}

function room(lane: ActiveLane, grants: ReadonlyMap<string, number>): number {
  let least = Number.POSITIVE_INFINITY;
  if (grants.size === 0) return least;
  for (const name of namesOf(lane)) least = Math.min(least, grants.get(name) ?? least);
  return least;
}

function spend(lane: ActiveLane, grants: Map<string, number>, count: number): void {
  if (grants.size === 0) return;
  for (const name of namesOf(lane)) {
    const left = grants.get(name);
    if (left !== undefined) grants.set(name, left - count);
  }
}
