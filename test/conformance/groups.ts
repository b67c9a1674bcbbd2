// Groups: one at a time and in order, or so many at the same time, whatever becomes of the jobs.
import { expect } from "vitest";
import type { NewJob } from "../../src/core/new-job.ts";
import type { ClaimedJob, Store } from "../../src/store/store.ts";
import { newJob } from "../support/new-job.ts";
import { add, claimBy, dueLanes, end, nextNonce, read, signUp, take } from "../support/runs.ts";
import { cancel, complete, dead, release, retry } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

const KEY = { type: "thumbnail", group: "g" } as const;

/** Enqueues so many jobs of a group, one after the other. */
async function line(store: Store, count: number, overrides: Partial<NewJob> = {}): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) ids.push(await add(store, { group: "g", ...overrides }));
  return ids;
}

async function taken(store: Store, worker?: string): Promise<string[]> {
  return (await take(store, worker)).map(({ id }) => id);
}

async function next(store: Store, worker?: string): Promise<ClaimedJob> {
  const [job, ...more] = await take(store, worker);
  if (!job || more.length > 0) throw new Error(`Expected one job, got ${more.length + Number(job !== undefined)}.`);
  return job;
}

async function holders(store: Store): Promise<string[]> {
  return (await store.holders(KEY)).map(({ id }) => id);
}

/** Claims from lanes that were seen before, as a worker with an old picture does. */
async function takeFrom(store: Store, lanes: readonly number[], worker: string): Promise<string[]> {
  const quotas = lanes.map((lane) => ({ lane, limit: 10 }));
  const { version: control } = await store.control();
  const request = { worker, quotas, limit: 10, nonce: nextNonce(), control, ticket: 1, startedThrough: 0 };
  return (await store.claim(request)).jobs.map(({ id }) => id);
}

/** Tests of the order in a group, and of how many run at the same time. */
export function groupFacts({ fact, timed }: Suite): void {
  fact("keeps the name of the group with the job", async ({ store }) => {
    const [id = ""] = await line(store, 1, { group: "g 1 ü", groupConcurrency: 3 });
    const belonging = { group: "g 1 ü", groupConcurrency: 3 };
    expect(await read(store, id)).toMatchObject(belonging);
    expect(await dueLanes(store)).toMatchObject([{ ...belonging, room: 3 }]);
    expect(await next(store)).toMatchObject(belonging);
    expect((await store.list({ limit: 5 })).items).toMatchObject([belonging]);
    expect(await read(store, await add(store))).toMatchObject({ group: null, groupConcurrency: null });
  });

  fact("gives one at a time, in the order of enqueue", async ({ store }) => {
    const ids = await line(store, 4);
    const seen: string[] = [];
    for (let n = 0; n < 4; n++) {
      const job = await next(store);
      seen.push(job.id);
      expect(await dueLanes(store)).toEqual([]);
      await end(store, job, complete());
    }
    expect(seen).toEqual(ids);
    expect(await holders(store)).toEqual([]);
  });

  fact("gives as many at a time as the group allows, across workers", async ({ store, peer }) => {
    const ids = await line(store, 5, { groupConcurrency: 3 });
    const worker = await signUp(store);
    const [first] = await take(store, worker, { limit: 1 });
    expect(first?.id).toBe(ids[0]);
    expect(await dueLanes(store)).toMatchObject([{ room: 2 }]);
    expect(await taken(await peer())).toEqual(ids.slice(1, 3));
    expect(await taken(store)).toEqual([]);
    await end(store, first as ClaimedJob, complete());
    expect(await taken(store, worker)).toEqual([ids[3]]);
    expect(await holders(store)).toEqual([ids[1], ids[2], ids[3]]);
  });

  fact("does not trust an old picture of the lanes", async ({ store, peer }) => {
    const ids = await line(store, 3);
    const lanes = (await dueLanes(store)).map(({ lane }) => lane);
    const [one, two] = [await signUp(store), await signUp(store)];
    expect(await takeFrom(store, [...lanes, ...lanes], one)).toEqual([ids[0]]);
    expect(await takeFrom(await peer(), lanes, two)).toEqual([]);
    expect(await takeFrom(store, lanes, one)).toEqual([]);
  });

  fact("gives a place once to many who ask at the same time", async ({ store, peer }) => {
    const other = await peer();
    for (let n = 0; n < 20; n++) await line(store, 3, { group: `g${n}`, groupConcurrency: (n % 2) + 1 });
    const lanes = (await dueLanes(store)).map(({ lane }) => lane);
    const workers = await Promise.all(Array.from({ length: 6 }, () => signUp(store)));
    const all = await Promise.all(workers.map((worker, n) => takeFrom(n % 2 === 0 ? store : other, lanes, worker)));
    const rest = await Promise.all(workers.map((worker) => takeFrom(store, lanes, worker)));
    expect([...all, ...rest].flat().length).toBe(30);
    for (let n = 0; n < 20; n++) expect(await store.holders({ ...KEY, group: `g${n}` })).toHaveLength((n % 2) + 1);
  });

  fact("keeps groups apart, and types, and jobs without one", async ({ store }) => {
    await line(store, 2);
    await line(store, 2, { group: "h" });
    await line(store, 2, { type: "other" });
    await add(store);
    await add(store);
    expect(await taken(store)).toHaveLength(5);
    expect(await dueLanes(store)).toEqual([]);
  });

  fact("counts all lanes of a group together", async ({ store }) => {
    const [low = ""] = await line(store, 1);
    const [high = ""] = await line(store, 1, { priority: 9 });
    const [tenant = ""] = await line(store, 1, { tenant: "t", service: "s", queue: "q" });
    const seen: string[] = [];
    for (let n = 0; n < 3; n++) {
      const job = await next(store);
      seen.push(job.id);
      await end(store, job, complete());
    }
    expect(seen[0]).toBe(high);
    expect(seen.toSorted()).toEqual([low, high, tenant].toSorted());
  });

  fact("lets no retry of a group of one beside a job that may run with another", async ({ store }) => {
    const alone = await add(store, { group: "g", groupConcurrency: 1, priority: 9 });
    await add(store, { group: "g", groupConcurrency: 2 });
    const [first, second] = (await take(store)) as [ClaimedJob, ClaimedJob];
    expect(first.id).toBe(alone);
    await end(store, first, retry());
    expect(await taken(store)).toEqual([]);
    await end(store, second, complete());
    expect(await taken(store)).toEqual([alone]);
  });

  timed("says when the job falls due that holds the place", async ({ store, clock }) => {
    const [first = "", second] = await line(store, 2);
    await end(store, await next(store), retry({ delayMs: 5_000 }));
    expect(await store.lanes(null, 10)).toMatchObject({ lanes: [], nextRunAt: clock.now + 5_000 });
    clock.now += 5_000;
    expect(await dueLanes(store)).toMatchObject([{ kind: "retry", headRunAt: clock.now, room: 1 }]);
    const again = await next(store);
    expect(again.id).toBe(first);
    await end(store, again, complete());
    expect(await taken(store)).toEqual([second]);
  });

  timed("does not wait for a job that is not due", async ({ store, clock }) => {
    const [later = ""] = await line(store, 1, { delayMs: 1_000 });
    const [now = ""] = await line(store, 1);
    const job = await next(store);
    expect(job.id).toBe(now);
    clock.now += 1_000;
    expect(await taken(store)).toEqual([]);
    await end(store, job, complete());
    expect(await taken(store)).toEqual([later]);
  });
}

/** Tests of who holds a place, verb by verb. */
export function placeFacts({ fact, timed }: Suite): void {
  const endings = { complete: complete(), dead: dead(), cancel: cancel() };
  for (const [name, verdict] of Object.entries(endings)) {
    fact(`is free after ${name}`, async ({ store }) => {
      const [, second] = await line(store, 2);
      await end(store, await next(store), verdict);
      expect(await holders(store)).toEqual([]);
      expect(await taken(store)).toEqual([second]);
    });
  }

  for (const [name, verdict] of Object.entries({ retry: retry({ delayMs: 0 }), release: release({ delayMs: 0 }) })) {
    timed(`is kept by ${name} where one goes after the other`, async ({ store, clock }) => {
      const [first = "", second] = await line(store, 2);
      const job = await next(store);
      clock.now += 10;
      await end(store, job, verdict);
      expect(await holders(store)).toEqual([first]);
      const again = await next(store);
      expect(again.id).toBe(first);
      await end(store, again, complete());
      expect(await taken(store)).toEqual([second]);
    });

    timed(`is free after ${name} where several run`, async ({ store, clock }) => {
      const ids = await line(store, 3, { groupConcurrency: 2 });
      const [first] = await take(store);
      clock.now += 10;
      await end(store, first as ClaimedJob, verdict);
      expect(await holders(store)).toEqual([ids[1]]);
      expect(await dueLanes(store)).not.toEqual([]);
      expect(await taken(store)).toHaveLength(1);
      expect(await holders(store)).toHaveLength(2);
    });
  }

  fact("is kept by a run whose worker is gone until somebody has judged it", async ({ store }) => {
    const [first = "", second] = await line(store, 2);
    const worker = await signUp(store);
    const { nonce, epoch } = await next(store, worker);
    await store.expired({ gone: [worker], limit: 5 });
    expect(await taken(store)).toEqual([]);
    const verdict = retry({ delayMs: 0, lane: "suspect", charge: { attempts: 1, crashes: 1 } });
    await end(store, { id: first, epoch, nonce }, verdict);
    expect(await dueLanes(store)).toMatchObject([{ kind: "suspect" }]);
    const again = await next(store);
    expect(again.id).toBe(first);
    await end(store, again, dead());
    expect(await taken(store)).toEqual([second]);
  });

  fact("is free when the job that waits with it is cancelled", async ({ store }) => {
    const [first = "", second] = await line(store, 2);
    await end(store, await next(store), retry({ delayMs: 60_000 }));
    expect(await taken(store)).toEqual([]);
    expect(await store.cancel([first])).toEqual(["cancelled"]);
    expect(await holders(store)).toEqual([]);
    expect(await taken(store)).toEqual([second]);
  });

  fact("is free when a run that was asked to stop comes back", async ({ store }) => {
    const [first = "", second] = await line(store, 2);
    const job = await next(store);
    await store.cancel([first]);
    expect(await holders(store)).toEqual([first]);
    await end(store, job, retry({ delayMs: 0 }));
    expect(await taken(store)).toEqual([second]);
  });

  fact("stays with a job that is moved to another priority or time", async ({ store }) => {
    const [first = "", second] = await line(store, 2);
    await end(store, await next(store), retry({ delayMs: 60_000 }));
    await store.reschedule([{ id: first, priority: 9 }]);
    expect(await taken(store)).toEqual([]);
    await store.reschedule([{ id: second as string, priority: 5 }]);
    expect(await taken(store)).toEqual([]);
    await store.reschedule([{ id: first, delayMs: 0 }]);
    const again = await next(store);
    expect(again).toMatchObject({ id: first, priority: 9 });
    await end(store, again, complete());
    expect(await taken(store)).toEqual([second]);
  });

  timed("is not held by a redriven job, which goes behind the others", async ({ store, clock }) => {
    const [first = "", second] = await line(store, 2);
    const { generation } = await end(store, await next(store), dead());
    clock.now += 10;
    await store.redrive([{ id: first, generation, delayMs: 0 }]);
    expect(await holders(store)).toEqual([]);
    const job = await next(store);
    expect(job.id).toBe(second);
    await end(store, job, complete());
    expect(await taken(store)).toEqual([first]);
  });

  fact("goes when the job is removed", async ({ store }) => {
    const [first = "", second] = await line(store, 2);
    await end(store, await next(store), complete());
    expect(await store.remove([first])).toBe(1);
    expect(await taken(store)).toEqual([second]);
  });

  fact("stays with a job that gets a new body, and goes where that is of another group", async ({ store }) => {
    const id = await add(store, { group: "g", key: "k" });
    const [second] = await line(store, 1);
    await end(store, await next(store), retry({ delayMs: 60_000 }));
    const replace = async (overrides: Partial<NewJob>): Promise<void> => {
      const job = newJob({ key: "k", payload: JSON.stringify(overrides), unique: "replace", ...overrides });
      expect(await store.enqueue([job])).toEqual([{ kind: "replaced", id }]);
    };
    await replace({ group: "g", priority: 3 });
    expect(await holders(store)).toEqual([id]);
    expect(await taken(store)).toEqual([]);
    await replace({ group: "h" });
    expect(await holders(store)).toEqual([]);
    expect(await read(store, id)).toMatchObject({ group: "h" });
    expect(await taken(store)).toEqual([second]);
  });

  fact("is not taken by a claim that was refused", async ({ store }) => {
    await line(store, 1);
    const worker = await signUp(store);
    expect(await claimBy(store, worker, { control: 0 })).toMatchObject({ refused: "control" });
    expect(await holders(store)).toEqual([]);
    expect(await taken(store)).toHaveLength(1);
  });
}
