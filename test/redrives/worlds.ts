// Redrive runs on a store of each kind, on a clock of the test's: dead letters, a program that drives, and a worker that
// takes what is due and settles it as the test says.
import { inject, onTestFinished } from "vitest";
import type { ClaimedJob, Settlement, Store } from "../../src/store/store.ts";
import { openRedrives, type Redrives } from "../../src/operate/redrives.ts";
import { openEventLog } from "../../src/report/event-log.ts";
import { NO_LIMITS } from "../../src/services/holding.ts";
import { VERB_NAMES } from "../../src/store/verb-facts.ts";
import { lineLog } from "../../src/system/log.ts";
import { fakeSystem, seededDice } from "../../src/testing/fake-system.ts";
import { Timeline } from "../../src/testing/timeline.ts";
import type { World } from "../conformance/suite.ts";
import { newJob } from "../support/new-job.ts";
import { leaseOf, signUp, take } from "../support/runs.ts";
import { complete, dead, failure, retry } from "../support/verdicts.ts";
import { postgresWorld } from "../support/postgres-world.ts";
import { memoryWorld, sqliteWorld } from "../support/worlds.ts";
import type { NewJob } from "../../src/core/new-job.ts";

/** The stores. */
export const WORLDS: readonly [name: string, open: () => Promise<World>][] = [
  ["memory", memoryWorld],
  ["sqlite", sqliteWorld],
  ["postgres", () => postgresWorld(inject("postgres18"))],
];

/** Opens a world that closes with the test. */
export async function opened(open: () => Promise<World>): Promise<World> {
  const world = await open();
  onTestFinished(() => world.close());
  return world;
}

/** Makes jobs that die of the cause `f1`, in this order; answers their ids. */
export async function die({ store }: World, jobs: readonly Partial<NewJob>[]): Promise<string[]> {
  const made = jobs.map((job) => newJob({ type: "charge", ...job }));
  await store.enqueue(made);
  const worker = await signUp(store);
  for (;;) {
    const claimed = await take(store, worker);
    if (claimed.length === 0) break;
    await settle(store, claimed, () => dead({ failure: failure() }));
  }
  return made.map(({ id }) => id);
}

/** So many jobs without anything particular. */
export function plain(count: number): Partial<NewJob>[] {
  return Array.from({ length: count }, () => ({}));
}

/** Settles runs as a worker does. */
export async function settle(
  store: Store,
  claimed: readonly ClaimedJob[],
  verdict: (job: ClaimedJob) => Settlement["verdict"],
): Promise<void> {
  const settlements = claimed.map((job) => ({
    ...leaseOf(job),
    verdict: verdict(job),
    grouped: job.group !== null,
    ...(job.generation > 1 && { redriven: true as const }),
  }));
  await store.settle({ settlements });
}

/** The first run failed again, by this cause. */
export function again(fingerprint = "f1"): Settlement["verdict"] {
  return retry({ delayMs: 14_400_000, failure: failure({ fingerprint }) });
}

/** A program that handles runs, and drives them under a name of its own. */
export function program(world: World, name: string, store: Store = world.store): Redrives {
  const log = lineLog("silent");
  const bits = seededDice(1, name);
  const system = {
    ...fakeSystem(new Timeline(world.clock.now), bits),
    now: () => world.clock.now,
    monotonic: () => world.clock.now,
  };
  const eventLog = openEventLog({ store, log, actor: name });
  return openRedrives({ store, system, log, eventLog, actor: name, jobs: [], limits: NO_LIMITS });
}

/** Lets a worker take what is due and settle it. */
export async function work(
  { store }: World,
  worker: string,
  {
    most = 1_000,
    verdict = () => complete(),
  }: { most?: number; verdict?: (job: ClaimedJob) => Settlement["verdict"] } = {},
): Promise<readonly ClaimedJob[]> {
  const claimed = await take(store, worker, { limit: most });
  if (claimed.length > 0) await settle(store, claimed, verdict);
  return claimed;
}

/** The error of a process that was killed. */
export class Killed extends Error {}

/** The store as a process sees it that is killed at this call: before it is carried out, or before its answer arrives. */
export function mortal(store: Store, at: number, isAfter: boolean): Store {
  let calls = 0;
  const verbs = Object.fromEntries(
    VERB_NAMES.map((verb) => [
      verb,
      async (...args: unknown[]) => {
        calls += 1;
        if (calls > at || (calls === at && !isAfter)) throw new Killed();
        const answer = await (store[verb] as (...given: unknown[]) => Promise<unknown>)(...args);
        if (calls === at) throw new Killed();
        return answer;
      },
    ]),
  );
  return { ...store, ...verbs } as Store;
}
