// Runs that take longer than they may: found by the store's clock, whoever holds them.
import { expect } from "vitest";
import type { OverdueRequest, OverdueRun, Store } from "../../src/store/store.ts";
import { newJob } from "../support/new-job.ts";
import { add, end, leaseOf, read, signUp, start, take, takeOne } from "../support/runs.ts";
import { cancel, complete, release, retry } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

const overdue = (store: Store, request: Partial<OverdueRequest> = {}): Promise<OverdueRun[]> =>
  store.overdue({ limit: 100, ...request });

const idsOf = (runs: readonly OverdueRun[]): string[] => runs.map(({ job }) => job.id);

/** Tests of overdue. */
export function overdueFacts({ fact, timed }: Suite): void {
  timed("finds a run from the moment on at which its limit is reached, with its lease", async ({ store, clock }) => {
    const worker = await signUp(store, 1_000);
    const run = await start(store, { stuckMs: 60_000, stuckRetryMs: 7_000, stuckLimit: 2 }, worker);
    clock.now += 59_999;
    expect(await overdue(store)).toEqual([]);
    clock.now += 1;
    const [found] = await overdue(store);
    expect(found).toMatchObject({ lease: leaseOf(run), started: false, ranMs: 60_000 });
    expect(found?.job).toStrictEqual(await read(store, run.id));
    expect(found?.job).toMatchObject({ state: "running", worker, stuckRetryMs: 7_000, stuckLimit: 2 });
    clock.now += 40_000;
    expect(await overdue(store)).toMatchObject([{ ranMs: 100_000 }]);
    expect((await store.workers())[0]).toMatchObject({ givenUp: false });
  });

  timed("does not find what waits, has ended, or has no limit", async ({ store, clock }) => {
    const stuckMs = 1_000;
    await add(store, { stuckMs });
    await add(store, { stuckMs, delayMs: 1 });
    for (const verdict of [complete(), retry(), release(), cancel()])
      await end(store, await start(store, { stuckMs }), verdict);
    await start(store, { stuckMs: null });
    const found = await start(store, { stuckMs });
    clock.now += 10_000;
    expect(idsOf(await overdue(store))).toEqual([found.id]);
  });

  timed("counts each run from its own claim", async ({ store, clock }) => {
    const id = await add(store, { stuckMs: 1_000 });
    const first = await takeOne(store, id);
    clock.now += 900;
    await end(store, first, retry({ delayMs: 0 }));
    const second = await takeOne(store, id);
    clock.now += 900;
    expect(await overdue(store)).toEqual([]);
    clock.now += 100;
    expect(await overdue(store)).toMatchObject([{ lease: leaseOf(second), ranMs: 1_000 }]);
  });

  timed("leaves runs to their workers for as long as it is asked to", async ({ store, clock }) => {
    await start(store, { stuckMs: 1_000 });
    clock.now += 5_999;
    expect(await overdue(store, { byMs: 5_000 })).toEqual([]);
    clock.now += 1;
    expect(await overdue(store, { byMs: 5_000 })).toHaveLength(1);
  });

  timed("finds everything that takes longer than asked for, with a limit or without", async ({ store, clock }) => {
    const first = await start(store, { stuckMs: 3_600_000 });
    const second = await start(store, { stuckMs: null });
    clock.now += 500;
    const late = await start(store, { stuckMs: 1 });
    clock.now += 500;
    expect(idsOf(await overdue(store, { ranMs: 1_000 }))).toEqual([first.id, second.id]);
    expect(idsOf(await overdue(store, { ranMs: 500 }))).toEqual([first.id, second.id, late.id]);
    expect(idsOf(await overdue(store, { ranMs: 0 }))).toHaveLength(3);
    expect(idsOf(await overdue(store, { ranMs: 500, byMs: 500 }))).toEqual([first.id, second.id]);
  });

  timed("goes by the limit of the type where a job was enqueued by its name alone", async ({ store, clock }) => {
    const named = [
      { type: "short", stuckMs: 1_000 },
      { type: "long", stuckMs: 9_000 },
    ];
    const short = await start(store, { type: "short", limited: false, stuckMs: null });
    await start(store, { type: "long", limited: false, stuckMs: 1 });
    const said = await start(store, { type: "long", limited: true, stuckMs: 2_000 });
    await start(store, { type: "short", limited: true, stuckMs: null });
    const other = await start(store, { type: "other", limited: false, stuckMs: 3_000 });
    clock.now += 3_000;
    expect(idsOf(await overdue(store, { named }))).toEqual([short.id, said.id, other.id]);
    expect(idsOf(await overdue(store, { named, limit: 2 }))).toEqual([short.id, said.id]);
    const [first] = await overdue(store, { named });
    expect(idsOf(await overdue(store, { named, after: first?.position ?? 0, limit: 1 }))).toEqual([said.id]);
  });

  timed("pages in the order of enqueue, so that no run can hide another", async ({ store, clock }) => {
    const jobs = Array.from({ length: 5 }, () => newJob({ stuckMs: 1_000 }));
    await store.enqueue(jobs);
    await take(store);
    clock.now += 1_000;
    const ids: string[] = [];
    for (let after = 0, turn = 0; turn < 10; turn++) {
      const page = await overdue(store, { limit: 2, after });
      if (page.length === 0) break;
      ids.push(...idsOf(page));
      after = page.at(-1)?.position ?? after;
    }
    expect(ids).toEqual(jobs.map(({ id }) => id));
  });

  timed("says whether a run had started", async ({ store, clock }) => {
    const worker = await signUp(store, 600_000);
    await store.enqueue([newJob({ stuckMs: 1 }), newJob({ stuckMs: 1 }), newJob({ stuckMs: 1 })]);
    await take(store, worker, { ticket: 4, startedThrough: 0 });
    await store.beat({ worker, leaseMs: 600_000, startedThrough: 5 });
    clock.now += 1;
    expect((await overdue(store)).map(({ started }) => started)).toEqual([true, true, false]);
  });

  timed("finds runs of workers that are gone as well", async ({ store, clock }) => {
    const worker = await signUp(store, 1_000);
    const run = await start(store, { stuckMs: 1_000 }, worker);
    clock.now += 2_000;
    await store.expired({ gone: [worker], limit: 1 });
    expect(idsOf(await overdue(store))).toEqual([run.id]);
  });

  timed("fences: once the run is settled, its worker is refused", async ({ store, clock }) => {
    const run = await start(store, { stuckMs: 1_000 });
    clock.now += 1_000;
    const [found] = await overdue(store);
    if (!found) throw new Error("nothing was found");
    await end(store, found.lease, retry({ delayMs: 0 }));
    for (const verdict of [complete(), retry(), { kind: "progress", value: "1" } as const]) {
      const { stale } = await store.settle({ settlements: [{ ...leaseOf(run), verdict }] });
      expect(stale).toEqual([leaseOf(run)]);
    }
    expect(await overdue(store)).toEqual([]);
  });

  fact("refuses what makes no sense", async ({ store }) => {
    const bad: Partial<OverdueRequest>[] = [
      { limit: 0 },
      { limit: 10_001 },
      { byMs: -1 },
      { byMs: 0.5 },
      { ranMs: -1 },
      { ranMs: Number.NaN },
      { named: [{ type: "a b", stuckMs: 1 }] },
      { named: [{ type: "a", stuckMs: 0 }] },
    ];
    for (const request of bad)
      await expect(overdue(store, request), JSON.stringify(request)).rejects.toMatchObject({
        code: "invalid_argument",
      });
  });
}
