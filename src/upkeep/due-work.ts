// Work that is due now and that nothing holds back: what health, doctor and drain go by when nobody takes it.
import { type Holding, isHeld } from "../core/holding.ts";
import type { Job } from "../core/job.ts";
import { readHolding } from "../queue/holding.ts";
import type { Page, Store } from "../store/store.ts";

const LANES_PAGE = 1_000;
const PAGES_MOST = 100;

/** One lane with due work. */
export interface DueLane {
  readonly type: string;
  readonly queue: string;
  /** How long its oldest job has been due. */
  readonly dueMs: number;
}

/** Every lane with due work that is neither paused nor parked. */
export async function* dueLanes(store: Store, holding: Holding): AsyncGenerator<DueLane> {
  let after: number | null = null;
  for (let page = 0; page < PAGES_MOST; page++) {
    const { lanes, next, now } = await store.lanes(after, LANES_PAGE);
    for (const lane of lanes) {
      if (isHeld(lane, holding)) continue;
      yield { type: lane.type, queue: lane.queue, dueMs: Math.max(0, now - lane.headRunAt) };
    }
    if (next === null) return;
    after = next;
  }
}

const JOBS_PAGE = 200;
/** How many jobs of one type are counted at most: the answer must not cost more than the work did. */
export const COUNTED_MOST = 1_000;

/** How many due jobs there are of each type that is not among those served; counted up to 1,000 of a type. */
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

async function countDue(store: Store, of: { type: string; queue: string }, before: number): Promise<number> {
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
