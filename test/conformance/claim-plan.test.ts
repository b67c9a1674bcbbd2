// Lanes, plan and claim together, as a worker uses them: what core plans is what the stores take.
import { describe, expect } from "vitest";
import { type Appetite, planClaim } from "../../src/core/claim-plan.ts";
import type { ClaimedJob, Store } from "../../src/store/store.ts";
import { newJob } from "../support/new-job.ts";
import { add, dueLanes, end, finish, leaseOf, nextNonce, signUp } from "../support/runs.ts";
import { complete, crashed, retry } from "../support/verdicts.ts";
import { memoryWorld, sqliteWorld } from "../support/worlds.ts";
import { type Suite, suiteOf } from "./suite.ts";

/** One claim as a worker makes it. */
async function claim(store: Store, worker: string, hunger: Partial<Appetite> = {}): Promise<readonly ClaimedJob[]> {
  const free = { serves: new Set(["a", "b"]), queues: null, grants: new Map(), suspects: 1, turn: 0 };
  const appetite: Appetite = { want: 10, ...free, ...hunger };
  const control = (await store.control()).version;
  const quotas = planClaim(await dueLanes(store), appetite);
  const request = { worker, quotas, limit: appetite.want, nonce: nextNonce(), control, ticket: 1, startedThrough: 0 };
  return (await store.claim(request)).jobs;
}

const addMany = (store: Store, count: number, overrides: Parameters<typeof newJob>[0]) =>
  store.enqueue(Array.from({ length: count }, () => newJob({ type: "a", ...overrides })));

const byTenant = (jobs: readonly ClaimedJob[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const { tenant } of jobs) counts[tenant ?? ""] = (counts[tenant ?? ""] ?? 0) + 1;
  return counts;
};

function planFacts({ fact, timed }: Suite): void {
  fact("takes the higher priority first, then the next, to the last job", async ({ store }) => {
    const worker = await signUp(store);
    for (const priority of [0, 9, 4]) await addMany(store, 6, { priority });
    const seen: number[] = [];
    for (let jobs = await claim(store, worker); jobs.length > 0; jobs = await claim(store, worker)) {
      seen.push(...jobs.map(({ priority }) => priority));
    }
    expect(seen).toEqual([9, 9, 9, 9, 9, 9, 4, 4, 4, 4, 4, 4, 0, 0, 0, 0, 0, 0]);
  });

  fact("gives a small tenant its share beside a large one", async ({ store }) => {
    await addMany(store, 500, { tenant: "large" });
    await addMany(store, 5, { tenant: "small" });
    expect(byTenant(await claim(store, await signUp(store)))).toEqual({ large: 5, small: 5 });
  });

  fact("serves every tenant the same over a round of turns", async ({ store }) => {
    const worker = await signUp(store);
    for (let i = 0; i < 5; i++) await addMany(store, 20, { tenant: `t${i}` });
    const all: ClaimedJob[] = [];
    for (let turn = 0; turn < 5; turn++) all.push(...(await claim(store, worker, { want: 3, turn })));
    expect(byTenant(all)).toEqual({ t0: 3, t1: 3, t2: 3, t3: 3, t4: 3 });
  });

  fact("leaves parked, paused and foreign work where it is", async ({ store }) => {
    await addMany(store, 20, { service: "down", priority: 9 });
    await addMany(store, 20, { queue: "paused", priority: 8 });
    await addMany(store, 20, { type: "foreign", priority: 7 });
    const wanted = await add(store, { type: "b" });
    const grants = new Map([
      ["service:down", 0],
      ["queue:paused", 0],
    ]);
    expect((await claim(store, await signUp(store), { grants })).map(({ id }) => id)).toEqual([wanted]);
    expect((await store.count()).queued).toBe(60);
  });

  fact("spends no more than a grant", async ({ store }) => {
    await addMany(store, 20, { service: "s", tenant: "x" });
    await addMany(store, 20, { service: "s", tenant: "y", priority: 5 });
    const jobs = await claim(store, await signUp(store), { want: 30, grants: new Map([["service:s", 4]]) });
    expect(jobs).toHaveLength(4);
  });

  fact("takes suspects one at a time", async ({ store }) => {
    const worker = await signUp(store);
    for (let i = 0; i < 3; i++) await finish(store, crashed(), { type: "a", tenant: `t${i}` });
    await addMany(store, 3, {});
    const first = await claim(store, worker);
    expect(first.filter(({ crashes }) => crashes > 0)).toHaveLength(1);
    expect(first).toHaveLength(4);
    expect(await claim(store, worker, { suspects: 0 })).toEqual([]);
    for (const job of first) await end(store, job, complete());
    expect(await claim(store, worker)).toHaveLength(1);
  });

  timed("drains everything in the end, retries and suspects included", async ({ store, clock }) => {
    const worker = await signUp(store, 3_600_000);
    for (let i = 0; i < 60; i++) {
      await addMany(store, 1, {
        tenant: `t${i % 4}`,
        priority: i % 3,
        type: i % 2 ? "a" : "b",
        delayMs: (i % 5) * 100,
      });
    }
    for (let turn = 0; turn < 200 && (await store.count()).completed < 60; turn++) {
      const jobs = await claim(store, worker, { want: 7, turn });
      const settlements = jobs.map((job, i) => {
        const bad = job.epoch === 1 && (turn + i) % 3;
        const verdict = bad === 1 ? retry({ delayMs: 50 }) : bad === 2 ? crashed() : complete();
        return { ...leaseOf(job), verdict };
      });
      await store.settle({ settlements });
      clock.now += 20;
    }
    expect(await store.count()).toEqual({ queued: 0, running: 0, completed: 60, dead: 0, cancelled: 0 });
  });
}

describe("plan over memory", () => planFacts(suiteOf(memoryWorld, [])));
describe("plan over sqlite", () => planFacts(suiteOf(sqliteWorld, [])));
