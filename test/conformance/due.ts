// Waiting jobs in the order in which they are due, page by page.
import { expect } from "vitest";
import type { JobQuery, Store } from "../../src/store/store.ts";
import { newJob } from "../support/new-job.ts";
import { add, end, finish, inState, start } from "../support/runs.ts";
import { retry } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

async function walk(
  store: Store,
  query: Omit<JobQuery, "limit"> & { readonly limit?: number } = {},
): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | null = null;
  for (let turn = 0; turn < 100; turn++) {
    const page = await store.list({ limit: 2, sort: "due", ...query, cursor });
    ids.push(...page.items.map(({ id }) => id));
    cursor = page.next;
    if (cursor === null) return ids;
  }
  throw new Error("The pages do not end.");
}

/** Tests of lists by due time. */
export function dueFacts({ fact, timed }: Suite): void {
  timed("come due by due, of the same time in the order of enqueue", async ({ store, clock }) => {
    const late = await finish(store, retry({ delayMs: 9_000 }));
    const soon = await finish(store, retry({ delayMs: 1_000 }));
    const twins = [
      await finish(store, retry({ delayMs: 5_000 })),
      await finish(store, retry({ delayMs: 5_000 })),
      await finish(store, retry({ delayMs: 5_000 })),
    ];
    const fresh = await add(store, { delayMs: 4_000 });
    const order = [soon.id, ...twins.map(({ id }) => id), late.id];
    expect(await walk(store, { tried: true, state: "queued" })).toEqual(order);
    expect(await walk(store, { tried: true })).toEqual(order);
    expect(await walk(store)).toEqual([soon.id, fresh, ...order.slice(1)]);
    expect(await walk(store, { tried: false })).toEqual([fresh]);
    clock.now += 5_000;
    expect(await walk(store, { tried: true, due: true })).toEqual(order.slice(0, 4));
    expect(await walk(store, { tried: true, due: false })).toEqual([late.id]);
    expect(await walk(store, { due: true })).toEqual([soon.id, fresh, ...order.slice(1, 4)]);
  });

  fact("are those that wait, and no others", async ({ store }) => {
    for (const state of ["running", "completed", "dead", "cancelled"] as const) await inState(store, state);
    const { id } = await inState(store, "queued");
    expect(await walk(store)).toEqual([id]);
  });

  fact("are narrowed as any list is", async ({ store }) => {
    const of = async (tenant: string, type: string, delayMs: number) =>
      (await finish(store, retry({ delayMs }), { tenant, type })).id;
    const first = await of("a", "mail", 60_000);
    await of("b", "mail", 50_000);
    await of("a", "other", 40_000);
    const second = await of("a", "mail", 30_000);
    expect(await walk(store, { tenant: "a", type: "mail", tried: true, limit: 1 })).toEqual([second, first]);
    expect(await walk(store, { key: "none" })).toEqual([]);
  });

  fact("are in one order whatever lanes they wait in, however small the pages", async ({ store }) => {
    const expected: { readonly id: string; readonly delayMs: number; readonly tenant: string }[] = [];
    const places = [{}, { priority: 7 }, { queue: "slow" }, { group: "g", groupConcurrency: 1 }, { type: "other" }];
    for (let n = 0; n < 20; n++) {
      const tenant = n % 3 === 0 ? "a" : "b";
      const delayMs = ((n * 7) % 20) * 60_000 + 60_000;
      const job = { tenant, ...places[n % places.length] };
      const id =
        n % 4 === 1 ? (await finish(store, retry({ delayMs }), job)).id : await add(store, { ...job, delayMs });
      expected.push({ id, delayMs, tenant });
    }
    const ids = (tenant?: string): string[] =>
      expected
        .filter((job) => tenant === undefined || job.tenant === tenant)
        .sort((a, b) => a.delayMs - b.delayMs)
        .map(({ id }) => id);
    for (const limit of [1, 3, 19, 20, 21]) {
      expect(await walk(store, { limit })).toEqual(ids());
      expect(await walk(store, { limit, tenant: "a" })).toEqual(ids("a"));
      expect(await walk(store, { limit, lookAt: 4 })).toEqual(ids());
    }
    const tried = new Set(expected.filter((_, n) => n % 4 === 1).map(({ id }) => id));
    expect(await walk(store, { tried: false })).toEqual(ids().filter((id) => !tried.has(id)));
    for (const lookAt of [1, 2, 5, 6])
      expect(await walk(store, { tried: true, tenant: "b", lookAt })).toEqual(ids("b").filter((id) => tried.has(id)));
  });

  fact("say how far they looked where they may look no further", async ({ store }) => {
    const rare = (await finish(store, retry({ delayMs: 90_000 }), { tenant: "rare" })).id;
    for (let n = 1; n <= 5; n++) await finish(store, retry({ delayMs: n * 10_000 }), { tenant: "other" });
    const all = (await store.list({ limit: 9, sort: "due", tried: true })).items;
    const query = { limit: 2, sort: "due", tried: true, tenant: "rare", lookAt: 3 } as const;
    const first = await store.list(query);
    expect(first).toMatchObject({ items: [], next: expect.any(String), seenTo: all[2]?.runAt });
    const second = await store.list({ ...query, cursor: first.next });
    expect(second).toMatchObject({ items: [{ id: rare }], seenTo: all[5]?.runAt });
    expect(await store.list({ ...query, cursor: second.next })).toEqual({ items: [], next: null });
    const full = await store.list({ limit: 1, sort: "due", tried: true, tenant: "other", lookAt: 3 });
    expect([full.items.length, "seenTo" in full]).toEqual([1, false]);
  });

  fact("go on where they were while others come and go", async ({ store }) => {
    await store.enqueue([newJob({ delayMs: 60_000 })]);
    const ids: string[] = [];
    for (let n = 1; n <= 4; n++) ids.push((await finish(store, retry({ delayMs: n * 60_000 }))).id);
    const page = await store.list({ limit: 2, sort: "due", tried: true });
    await finish(store, retry({ delayMs: 1_000 }));
    await store.cancel([ids[1] as string]);
    const rest = await store.list({ limit: 5, sort: "due", tried: true, cursor: page.next });
    expect(rest.items.map(({ id }) => id)).toEqual(ids.slice(2));
  });

  timed("find a retry that was run again at its new place", async ({ store, clock }) => {
    const run = await start(store);
    await end(store, run, retry({ delayMs: 60_000 }));
    const other = await finish(store, retry({ delayMs: 30_000 }));
    await store.reschedule([{ id: run.id, delayMs: 1_000 }]);
    expect(await walk(store, { tried: true })).toEqual([run.id, other.id]);
    clock.now += 1;
    await store.reschedule([{ id: run.id, delayMs: 90_000 }]);
    expect(await walk(store, { tried: true })).toEqual([other.id, run.id]);
  });

  fact("refuse states that have no due time, other orders, and cursors of other lists", async ({ store }) => {
    await store.enqueue([newJob(), newJob(), newJob()]);
    for (const state of ["running", "completed", "dead", "cancelled"] as const)
      await expect(store.list({ limit: 1, sort: "due", state })).rejects.toMatchObject({
        code: "invalid_argument",
        message: expect.stringContaining("only waiting jobs have a due time"),
      });
    const bad = "newest" as "due";
    await expect(store.list({ limit: 1, sort: bad })).rejects.toMatchObject({ code: "invalid_argument" });
    const { next } = await store.list({ limit: 1 });
    const due = (await store.list({ limit: 1, sort: "due" })).next;
    await expect(store.list({ limit: 1, sort: "due", cursor: next })).rejects.toMatchObject({
      code: "invalid_argument",
    });
    await expect(store.list({ limit: 1, cursor: due })).rejects.toMatchObject({ code: "invalid_argument" });
    for (const cursor of ["", "x", "1.2.3", "-1.1", "1.", ".1", "9".repeat(40)])
      await expect(store.list({ limit: 1, sort: "due", cursor })).rejects.toMatchObject({ code: "invalid_argument" });
  });
}
