// The queues of a fleet as shown to people. A queue is a label: it is known from the job types that workers serve, from
// due work in it, and from a pause.
import { pausesInForce } from "../core/holding.ts";
import { loadFrom } from "../core/load.ts";
import type { Pause, Store } from "../store/store.ts";
import type { JobDefinition } from "../jobs/define-job.ts";

/** One queue. */
export interface QueueView {
  /** Its name. */
  readonly name: string;
  /** Its pause, with when it ends (`until`; null if only by hand); null if it is not paused. */
  readonly paused: { readonly until: number | null; readonly reason: string } | null;
  /** The job types seen in it. */
  readonly types: readonly string[];
}

/** Every pause in force, by kind and name. */
export async function readPauses(store: Pick<Store, "control">): Promise<Pause[]> {
  const order = (a: Pause, b: Pause): boolean => (a.kind === b.kind ? a.name < b.name : a.kind < b.kind);
  return pausesInForce(await store.control()).toSorted((a, b) => (order(a, b) ? -1 : 1));
}

/** Lanes read with one call, and calls for one look. */
const LANES = 1_000;
const PAGES = 20;

/** Every known queue, by name. */
export async function readQueues(store: Store, jobs: readonly JobDefinition[]): Promise<QueueView[]> {
  const [control, { cells }] = await Promise.all([store.control(), store.cells([{ kind: "load" }])]);
  const types = new Map<string, Set<string>>();
  const add = (queue: string, type: string | null): void => {
    const own = types.get(queue) ?? new Set();
    types.set(queue, type === null ? own : own.add(type));
  };
  for (const { queue, type } of jobs) add(queue, type);
  for (const { value } of cells) for (const { queue, type } of loadFrom(value)?.types ?? []) add(queue, type);
  for (let after: number | null = null, page = 0; page < PAGES; page++) {
    const { lanes, next } = await store.lanes(after, LANES);
    for (const { queue, type } of lanes) add(queue, type);
    if (next === null) break;
    after = next;
  }
  const pauses = pausesInForce(control).filter(({ kind }) => kind === "queue");
  for (const { name } of pauses) add(name, null);
  return [...types]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, own]) => {
      const pause = pauses.find((each) => each.name === name);
      const paused = pause ? { until: pause.until, reason: pause.reason } : null;
      return { name, paused, types: [...own].toSorted() };
    });
}
