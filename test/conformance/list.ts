// Pages of jobs: order, filters, cursors, and what happens while somebody else writes.
import { expect } from "vitest";
import { STATES } from "../../src/core/job.ts";
import type { JobQuery, Store } from "../../src/store/store.ts";
import { newJob } from "../support/new-job.ts";
import { add, end, finish, inState, leaseOf, start, take } from "../support/runs.ts";
import { complete, dead, retry } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

/** The ids of all pages. */
async function walk(store: Store, query: JobQuery): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | null = null;
  do {
    const page = await store.list({ ...query, cursor });
    expect(page.items.length).toBeLessThanOrEqual(query.limit);
    ids.push(...page.items.map((job) => job.id));
    cursor = page.next;
  } while (cursor !== null);
  return ids;
}

async function addMany(store: Store, count: number): Promise<string[]> {
  const jobs = Array.from({ length: count }, () => newJob());
  await store.enqueue(jobs);
  return jobs.map((job) => job.id);
}

/** Tests of list. */
export function listFacts({ fact, timed }: Suite): void {
  fact("lists nothing where there is nothing", async ({ store }) => {
    expect(await store.list({ limit: 10 })).toEqual({ items: [], next: null });
  });

  fact("lists the newest first, whatever their due time", async ({ store }) => {
    const a = await add(store, { delayMs: 5_000 });
    const b = await add(store);
    const c = await add(store, { delayMs: 1_000, priority: 9 });
    expect(await walk(store, { limit: 10 })).toEqual([c, b, a]);
  });

  fact("lists the same jobs that get answers", async ({ store }) => {
    const { id } = await finish(store, retry({ delayMs: 1_000 }));
    const { items } = await store.list({ limit: 1 });
    expect(items).toStrictEqual(await store.get([id]));
  });

  fact(
    "leaves out payloads, progress and results where they are not asked for, and nothing else",
    async ({ store }) => {
      await finish(store, complete('{"a":1}'));
      await finish(store, dead());
      await add(store, { payload: '{"b":2}' });
      const lean = { payload: "null", progress: null, result: null };
      for (const query of [{ limit: 10 }, { limit: 10, sort: "due" }, { limit: 10, state: "dead" }] as const) {
        const { items, next } = await store.list({ ...query, payloads: true });
        expect(items.length).toBeGreaterThan(0);
        expect({ items, next }).toStrictEqual(await store.list(query));
        const shown = items.map((job) => ({ ...job, ...lean }));
        expect(await store.list({ ...query, payloads: false })).toStrictEqual({ items: shown, next });
      }
      const { items } = await store.deadLetters({ limit: 10 });
      const [letter] = (await store.deadLetters({ limit: 10, payloads: false })).items;
      expect(letter).toStrictEqual({ ...items[0], job: { ...items[0]?.job, ...lean } });
    },
  );

  timed("looks at no more jobs than it may, says how far it looked, and goes on there", async ({ store, clock }) => {
    const began = clock.now;
    const rare = [await add(store, { tenant: "rare" })];
    for (let more = 1; more <= 6; more++) {
      clock.now = began + more;
      await add(store, { tenant: "other" });
    }
    rare.unshift(await add(store, { tenant: "rare" }));
    for (const of of [{}, { state: "queued" }, { due: true }] as const) {
      const query = { ...of, limit: 10, tenant: "rare", lookAt: 3 };
      const first = await store.list(query);
      expect(first).toMatchObject({ items: [{ id: rare[0] }], next: expect.any(String), seenTo: began + 5 });
      const second = await store.list({ ...query, cursor: first.next });
      expect(second).toMatchObject({ items: [], next: expect.any(String), seenTo: began + 2 });
      const third = await store.list({ ...query, cursor: second.next });
      expect([third.items.map(({ id }) => id), third.next, "seenTo" in third]).toEqual([[rare[1]], null, false]);
    }
    // A full page says where it ended, and nothing about its look.
    const full = await store.list({ limit: 1, tenant: "rare", lookAt: 8 });
    expect([full.items.length, full.next === null, "seenTo" in full]).toEqual([1, false, false]);
  });

  timed("says of dead jobs, too, when the last one it looked at was enqueued", async ({ store, clock }) => {
    const began = clock.now;
    const ids: string[] = [];
    for (let more = 0; more < 4; more++) {
      clock.now = began + more;
      ids.push(await add(store, { tenant: `t${more}` }));
    }
    // The first to be enqueued dies last.
    const jobs = [...(await take(store))].sort((a, b) => b.createdAt - a.createdAt);
    for (const job of jobs) {
      clock.now += 100;
      await store.settle({ settlements: [{ ...leaseOf(job), verdict: dead() }] });
    }
    const page = await store.list({ limit: 10, state: "dead", tenant: "t3", lookAt: 4 });
    expect([page.items.map(({ id }) => id), page.next !== null, page.seenTo]).toEqual([[ids[3]], true, began]);
  });

  fact("finds the same jobs however little it may look at", async ({ store }) => {
    const all = [
      ...(await addMany(store, 4)),
      (await finish(store, complete())).id,
      (await finish(store, dead())).id,
      (await inState(store, "running")).id,
      (await inState(store, "cancelled")).id,
      (await finish(store, dead())).id,
    ];
    for (const lookAt of [1, 2, 3, all.length, all.length + 1]) {
      expect(await walk(store, { limit: 3, lookAt })).toEqual(all.toReversed());
      for (const state of STATES)
        expect(await walk(store, { limit: 3, lookAt, state }), state).toEqual(await walk(store, { limit: 3, state }));
    }
  });

  fact("counts no further than it may", async ({ store }) => {
    await addMany(store, 3);
    for (const verdict of [complete(), complete(), dead(), dead()]) await finish(store, verdict);
    await inState(store, "running");
    await inState(store, "cancelled");
    const all = { queued: 3, running: 1, completed: 2, dead: 2, cancelled: 1 };
    expect(await store.count()).toEqual(all);
    expect(await store.count(3)).toEqual(all);
    expect(await store.count(2)).toEqual({ ...all, queued: 2 });
    expect(await store.count(1)).toEqual({ queued: 1, running: 1, completed: 1, dead: 1, cancelled: 1 });
  });

  fact("refuses to look at nothing, or without a limit", async ({ store }) => {
    for (const lookAt of [0, -1, 1.5, 1_000_001, Number.NaN]) {
      const refused = { code: "invalid_argument" };
      await expect(store.list({ limit: 1, lookAt })).rejects.toMatchObject(refused);
      await expect(store.deadLetters({ limit: 1, lookAt })).rejects.toMatchObject(refused);
      await expect(store.tally({ lookAt })).rejects.toMatchObject(refused);
      await expect(store.count(lookAt)).rejects.toMatchObject(refused);
    }
  });

  fact("walks every page size to the same list", async ({ store }) => {
    const ids = (await addMany(store, 23)).toReversed();
    for (const limit of [1, 2, 7, 22, 23, 24, 200]) expect(await walk(store, { limit })).toEqual(ids);
  });

  fact("skips and repeats nothing when jobs arrive between two pages", async ({ store }) => {
    const ids = (await addMany(store, 5)).toReversed();
    const first = await store.list({ limit: 2 });
    await addMany(store, 3);
    const rest = await store.list({ limit: 10, cursor: first.next });
    expect([...first.items, ...rest.items].map((job) => job.id)).toEqual(ids);
    expect(rest.next).toBeNull();
  });

  fact("goes on where it was when the job at the cursor is removed", async ({ store }) => {
    const ids = (await addMany(store, 4)).toReversed();
    await store.cancel(ids);
    const first = await store.list({ limit: 2 });
    await store.remove(first.items.map((job) => job.id));
    expect((await store.list({ limit: 10, cursor: first.next })).items.map((job) => job.id)).toEqual(ids.slice(2));
  });

  fact("keeps the place of a job that was run, retried and rescheduled", async ({ store }) => {
    const run = await start(store);
    const later = await add(store);
    await end(store, run, retry({ delayMs: 60_000 }));
    await store.reschedule([{ id: run.id, delayMs: 0, priority: 9 }]);
    expect(await walk(store, { limit: 1 })).toEqual([later, run.id]);
  });

  for (const state of ["queued", "running", "completed", "dead", "cancelled"] as const) {
    fact(`lists only ${state} jobs when asked`, async ({ store }) => {
      const ids = new Map<string, string>();
      for (const each of ["queued", "running", "completed", "dead", "cancelled"] as const) {
        ids.set(each, (await inState(store, each)).id);
      }
      expect(await walk(store, { limit: 2, state })).toEqual([ids.get(state)]);
    });
  }

  fact("narrows by type, queue, service, tenant and key", async ({ store }) => {
    const all = { type: "a", queue: "q", service: "s", tenant: "t", key: "k" };
    const wanted = await add(store, all);
    for (const field of ["type", "queue", "service", "tenant", "key"] as const) {
      const stranger = await add(store, { ...all, type: "c", key: `other-${field}`, [field]: "b" });
      expect(await walk(store, { limit: 3, [field]: "b" })).toEqual([stranger]);
      await store.cancel([stranger]);
      await store.remove([stranger]);
    }
    await add(store, { ...all, type: "d" });
    expect(await walk(store, { limit: 3, ...all })).toEqual([wanted]);
    expect(await walk(store, { limit: 3, ...all, state: "dead" })).toEqual([]);
  });

  fact("finds nothing for a filter that no job can match", async ({ store }) => {
    await add(store);
    expect(await walk(store, { limit: 3, type: "' or '1'='1" })).toEqual([]);
    expect(await walk(store, { limit: 3, tenant: "" })).toEqual([]);
  });

  timed("tells due jobs from those not yet due", async ({ store, clock }) => {
    await finish(store, complete());
    await start(store);
    const later = await add(store, { delayMs: 1_000 });
    const now = await add(store);
    expect(await walk(store, { limit: 1, due: true })).toEqual([now]);
    expect(await walk(store, { limit: 1, due: false })).toEqual([later]);
    clock.now += 1_000;
    expect(await walk(store, { limit: 1, due: true })).toEqual([now, later]);
    expect(await walk(store, { limit: 1, due: false })).toEqual([]);
  });

  timed("tells a scheduled job from a retrying one", async ({ store }) => {
    const retrying = await finish(store, retry({ delayMs: 1_000 }));
    const scheduled = await add(store, { delayMs: 1_000 });
    await add(store);
    expect(await walk(store, { limit: 5, due: false, tried: true })).toEqual([retrying.id]);
    expect(await walk(store, { limit: 5, due: false, tried: false })).toEqual([scheduled]);
  });

  fact("tells tried jobs from untried ones in any state", async ({ store }) => {
    const fresh = await finish(store, complete());
    const died = await finish(store, dead());
    expect(await walk(store, { limit: 5, tried: true })).toEqual([died.id]);
    expect(await walk(store, { limit: 5, tried: false })).toEqual([fresh.id]);
  });

  fact("pages through a filter", async ({ store }) => {
    const jobs = Array.from({ length: 30 }, (_, i) => newJob({ tenant: i % 3 ? "a" : "b" }));
    await store.enqueue(jobs);
    const wanted = jobs.filter((job) => job.tenant === "b").map((job) => job.id);
    expect(await walk(store, { limit: 4, tenant: "b" })).toEqual(wanted.toReversed());
  });

  fact("refuses a cursor that it never gave", async ({ store }) => {
    await addMany(store, 3);
    for (const cursor of ["nonsense", "ÿ", "😀", "1; drop table job", "-", "1.5.2", "0x10", "9".repeat(400)]) {
      await expect(store.list({ limit: 2, cursor }), cursor).rejects.toMatchObject({ code: "invalid_argument" });
      await expect(store.deadLetters({ limit: 2, cursor }), cursor).rejects.toMatchObject({ code: "invalid_argument" });
    }
  });

  for (const limit of [0, -1, 201, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    fact(`refuses a page of ${limit}`, async ({ store }) => {
      await expect(store.list({ limit })).rejects.toMatchObject({ code: "invalid_argument" });
      await expect(store.deadLetters({ limit })).rejects.toMatchObject({ code: "invalid_argument" });
    });
  }
}
