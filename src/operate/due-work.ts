// Work that is due now: the work that nothing holds back, which health, doctor and drain report when no worker takes
// it, and the work that is held back.
import { budgetFrom } from "../core/budget.ts";
import { type Holding, holdUntilOf, isHeld, parkedBy, pausesOf } from "../core/holding.ts";
import type { Job } from "../core/job.ts";
import type { ActiveLane } from "../core/lane.ts";
import { bucketFrom } from "../core/rate.ts";
import { readHolding } from "../services/holding.ts";
import type { JobQuery, Page, Store } from "../store/store.ts";

const LANES_PAGE = 1_000;
const PAGES_MOST = 100;

/** One lane with due work. */
export interface DueLane {
  readonly type: string;
  readonly queue: string;
  readonly service: string | null;
  readonly tenant: string | null;
  readonly kind: ActiveLane["kind"];
  /** How long its oldest job has been due. */
  readonly dueMs: number;
}

/** Every lane with due work that is neither paused nor parked. */
export async function* dueLanes(store: Store, holding: Holding): AsyncGenerator<DueLane> {
  for await (const { lane, now } of activeLanes(store)) {
    if (isHeld(lane, holding)) continue;
    const { type, queue, service, tenant, kind, headRunAt } = lane;
    yield { type, queue, service, tenant, kind, dueMs: Math.max(0, now - headRunAt) };
  }
}

/** Workers with retries ask for tokens more often than this. */
const ASKED_MS = 10_000;

/**
 * Tells the lanes whose next start a rate limit, a ramp or a retry budget delays: workers take their work as fast as
 * the limits allow.
 */
export async function pacedLanes(store: Pick<Store, "cells">): Promise<(lane: DueLane) => boolean> {
  const { cells, now } = await store.cells([{ kind: "budget" }, { kind: "rate" }]);
  const used = new Set<string>();
  for (const { kind, name, value, at } of cells) {
    const isUsed =
      kind === "rate"
        ? (bucketFrom(value)?.nextAt ?? 0) > now
        : at > now - ASKED_MS && (budgetFrom(value)?.tokens ?? 1) < 1;
    if (isUsed) used.add(`${kind} ${name}`);
  }
  const isRated = (name: string): boolean => used.has(`rate ${name}`);
  return ({ type, service, tenant, kind }) =>
    isRated(`type:${type}`) ||
    isRated(`service:${service}`) ||
    isRated(`tenant:${tenant}`) ||
    (kind !== "first" && used.has(`budget ${service}`));
}

async function* activeLanes(store: Store): AsyncGenerator<{ readonly lane: ActiveLane; readonly now: number }> {
  let after: number | null = null;
  for (let page = 0; page < PAGES_MOST; page++) {
    const { lanes, next, now } = await store.lanes(after, LANES_PAGE);
    for (const lane of lanes) yield { lane, now };
    if (next === null) return;
    after = next;
  }
}

const JOBS_PAGE = 200;
/** Most jobs of one type that are counted: the count must not cost more than the work did. */
export const COUNTED_MOST = 1_000;

/** The number of due jobs of each type that is not served; counted up to 1,000 of a type. */
export async function unservedJobs(
  store: Store,
  { types, queues }: { readonly types: ReadonlySet<string>; readonly queues?: readonly string[] | undefined },
): Promise<Record<string, number>> {
  const found = new Map<string, Set<string>>();
  for await (const { type, queue } of dueLanes(store, await readHolding(store))) {
    if (types.has(type) || queues?.includes(queue) === false) continue;
    found.set(type, (found.get(type) ?? new Set()).add(queue));
  }
  const counts = new Map<string, number>();
  for (const [type, itsQueues] of found)
    for (const queue of itsQueues) counts.set(type, await countDue(store, { type, queue }, counts.get(type) ?? 0));
  return Object.fromEntries(counts);
}

/** Something that holds due work back, and how many jobs, counted up to 1,000. */
export interface HeldBack {
  readonly by: "pause" | "breaker" | "hold";
  readonly kind: "queue" | "type" | "service" | "tenant";
  readonly name: string;
  readonly jobs: number;
}

/** Everything that holds due work back. */
export async function heldJobs(store: Store): Promise<HeldBack[]> {
  const holding = await readHolding(store);
  const found = new Map<string, Omit<HeldBack, "jobs">>();
  for await (const { lane } of activeLanes(store))
    for (const held of holdersOf(lane, holding)) found.set(JSON.stringify(Object.values(held)), held);
  const counted: HeldBack[] = [];
  for (const held of found.values())
    counted.push({ ...held, jobs: await countDue(store, { [held.kind]: held.name }, 0) });
  return counted;
}

function holdersOf(lane: ActiveLane, holding: Holding): Omit<HeldBack, "jobs">[] {
  const { service } = lane;
  const paused = pausesOf(lane, holding).map(({ kind, name }) => ({ by: "pause", kind, name }) as const);
  if (service === null) return paused;
  const of = { kind: "service", name: service } as const;
  const isParked = parkedBy(lane, holding) !== null;
  return [
    ...paused,
    ...(isParked ? [{ by: "breaker", ...of } as const] : []),
    ...(!isParked && holdUntilOf(lane, holding) !== null ? [{ by: "hold", ...of } as const] : []),
  ];
}

async function countDue(store: Store, of: Omit<JobQuery, "limit">, before: number): Promise<number> {
  let count = before;
  let cursor: string | null = null;
  while (count < COUNTED_MOST) {
    const page: Page<Job> = await store.list({ ...of, due: true, limit: JOBS_PAGE, cursor });
    count += page.items.length;
    cursor = page.next;
    if (cursor === null) return count;
  }
  return COUNTED_MOST;
}
