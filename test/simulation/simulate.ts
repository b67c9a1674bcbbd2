// One simulation from seed to report: makes the world, the store and the faults, plays the workload, dumps the store
// and lets the checker judge. Nothing here decides whether the outcome is right.
import type { Job } from "../../src/core/job.ts";
import { createInlineSqliteStore } from "../../src/store/sqlite/inline.ts";
import { createMemoryStore } from "../../src/store/memory/index.ts";
import type { Page, Store } from "../../src/store/store.ts";
import { check } from "../support/history/check.ts";
import { type FinalDump, type FinalJob, hashText, type Report } from "../support/history/event.ts";
import { keyName, Scribe } from "../support/history/scribe.ts";
import { createWorker } from "../../src/worker/worker.ts";
import { rollFaultPlan, type StoreClock, stepClock } from "./faults.ts";
import { Processes } from "./processes.ts";
import { rollSettings, type Scene, type Settings } from "./scene.ts";
import { type Actor, createWorld, GENESIS } from "./world.ts";
import { playAll } from "./workload.ts";
import { finalRuns } from "./final-runs.ts";

/** The stores that can be simulated. */
export const STORES = ["memory", "sqlite"] as const;
/** One of `STORES`. */
export type StoreName = (typeof STORES)[number];

/** What to simulate. */
export interface Simulation {
  readonly store: StoreName;
  readonly seed: number;
  /** Puts something around the store, to plant a defect. */
  readonly wrap?: (store: Store, clock: StoreClock) => Store;
  /** Puts something between every worker and its line to the store, to plant a defect there. */
  readonly sabotage?: (store: Store, actor: Actor) => Store;
  /** Makes workers of their parts, to plant a defect in a part. */
  readonly hire?: typeof createWorker;
  readonly settings?: Partial<Settings>;
}

/** What came of it. */
export interface Played {
  readonly report: Report;
  readonly crashes: number;
  readonly pauses: number;
  /** Things that happened in the world. */
  readonly steps: number;
  readonly virtualMs: number;
  readonly scribe: Scribe;
  readonly dump: FinalDump;
}

/** Plays a seed. The same seed gives the same history. */
export async function simulate({
  store: name,
  seed,
  wrap = (store) => store,
  sabotage = (store) => store,
  hire = createWorker,
  settings = {},
}: Simulation): Promise<Played> {
  const world = createWorld(seed);
  const all = { ...rollSettings(world.dice("settings"), world.dice("more settings")), ...settings };
  const clock: StoreClock = { ahead: 0, now: () => world.now + clock.ahead };
  const bare =
    name === "memory"
      ? createMemoryStore({ clock: clock.now })
      : createInlineSqliteStore({ path: ":memory:", clock: clock.now });
  const store = wrap(bare, clock);
  const calmAt = GENESIS + all.stormMs;
  const scribe = new Scribe();
  const faults = rollFaultPlan(world.dice("faults"), GENESIS, calmAt, all);
  const scene: Scene = {
    world,
    clock,
    scribe,
    store,
    faults,
    settings: all,
    processes: new Processes(scribe),
    hire,
    sabotage,
    calmAt,
    known: [],
    confirmed: [],
    busy: 0,
  };
  try {
    await store.migrate();
    stepClock(world, faults, clock, scribe);
    const { drained } = await playAll(scene);
    const dump = await dumpOf(store, clock.now(), drained, faults.clockSteps.length === 0);
    const { crashes, pauses, events: steps } = world.stats;
    const report = check(scribe.events, dump);
    return { report, crashes, pauses, steps, virtualMs: world.now - GENESIS, scribe, dump };
  } finally {
    world.end();
    await store.close();
  }
}

/** The command that plays a seed again. */
export function replayOf(store: StoreName, seed: number): string {
  return `npm run prove -- simulate --store ${store} --seed ${seed}`;
}

async function dumpOf(store: Store, storeTime: number, drained: boolean, isSteady: boolean): Promise<FinalDump> {
  const jobs = await everything((cursor) => store.list({ limit: 200, cursor }));
  const letters = await everything((cursor) => store.deadLetters({ limit: 200, cursor, redriven: true }));
  return {
    redrives: await finalRuns(store, letters, isSteady),
    jobs: jobs.map(finalJob),
    letters: letters.map(({ job, generation, redrivenAt }) => ({
      job: job.id,
      generation,
      redriven: redrivenAt !== null,
    })),
    workers: await store.workers(),
    storeTime,
    drained,
  };
}

function finalJob(job: Job): FinalJob {
  const { id, type, state, epoch, generation, attempts, crashes, maxAttempts, runAt } = job;
  const counters = { epoch, generation, attempts, crashes, maxAttempts };
  return { ...counters, id, state, runAt, key: keyName(type, job.key), payloadHash: hashText(job.payload) };
}

async function everything<T>(page: (cursor: string | null) => Promise<Page<T>>): Promise<T[]> {
  const items: T[] = [];
  for (let cursor: string | null = null; ; ) {
    const { items: more, next }: Page<T> = await page(cursor);
    items.push(...more);
    if (next === null) return items;
    cursor = next;
  }
}
