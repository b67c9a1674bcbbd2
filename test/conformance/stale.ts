// Fencing: whoever does not hold the current lease changes nothing, whatever it brings.
import { expect } from "vitest";
import type { Lease } from "../../src/core/job.ts";
import type { Verdict } from "../../src/core/verdict.ts";
import type { Settlement, Store } from "../../src/store/store.ts";
import { add, end, inState, isStale, leaseOf, read, signUp, start, takeOne } from "../support/runs.ts";
import { cancel, complete, crashed, dead, progress, release, retry } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

const VERDICTS: readonly Verdict[] = [complete(), retry(), crashed(), release(), dead(), cancel()];
const WORDS: readonly Settlement["verdict"][] = [...VERDICTS, progress("1")];

/** Everything the store holds about a job. */
async function everything(store: Store, id: string): Promise<unknown> {
  const { items } = await store.deadLetters({ limit: 200, jobId: id, redriven: true });
  return { jobs: await store.get([id]), history: await store.history(id), items, count: await store.count() };
}

async function refusesAll(store: Store, lease: Lease, id: string): Promise<void> {
  const before = await everything(store, id);
  for (const verdict of WORDS) {
    const { stale } = await store.settle({ settlements: [{ ...lease, verdict }] });
    expect(stale, verdict.kind).toEqual([lease]);
  }
  expect(await everything(store, id)).toStrictEqual(before);
}

/** Tests of settle with leases that are not the current one. */
export function staleFacts({ fact, timed }: Suite): void {
  const forgeries: [name: string, forge: (lease: Lease) => Lease][] = [
    ["an older epoch", (lease) => ({ ...lease, epoch: lease.epoch - 1 })],
    ["a later epoch", (lease) => ({ ...lease, epoch: lease.epoch + 1 })],
    ["another nonce", (lease) => ({ ...lease, nonce: "f".repeat(32) })],
    ["an empty nonce", (lease) => ({ ...lease, nonce: "" })],
    ["the start of the nonce", (lease) => ({ ...lease, nonce: lease.nonce.slice(0, 31) })],
    ["an unknown id", (lease) => ({ ...lease, id: "nobody" })],
    ["an empty id", (lease) => ({ ...lease, id: "" })],
    ["an epoch of NaN", (lease) => ({ ...lease, epoch: Number.NaN })],
    ["an infinite epoch", (lease) => ({ ...lease, epoch: Number.POSITIVE_INFINITY })],
    ["a fractional epoch", (lease) => ({ ...lease, epoch: lease.epoch + 0.5 })],
    ["a negative epoch", (lease) => ({ ...lease, epoch: -lease.epoch })],
    ["an epoch beyond 2^53", (lease) => ({ ...lease, epoch: 2 ** 60 })],
    ["an epoch that is text", (lease) => ({ ...lease, epoch: String(lease.epoch) as unknown as number })],
    ["an epoch that is null", (lease) => ({ ...lease, epoch: null as unknown as number })],
    ["a nonce that is null", (lease) => ({ ...lease, nonce: null as unknown as string })],
    ["a nonce that is a list", (lease) => ({ ...lease, nonce: [lease.nonce] as unknown as string })],
    ["an id that is a number", (lease) => ({ ...lease, id: 1 as unknown as string })],
    ["a lone surrogate as nonce", (lease) => ({ ...lease, nonce: "\ud800" })],
    ["U+0000 in the id", (lease) => ({ ...lease, id: `${lease.id}\0` })],
  ];
  for (const [name, forge] of forgeries) {
    fact(`refuses a lease with ${name}`, async ({ store }) => {
      const run = await start(store);
      await refusesAll(store, forge(leaseOf(run)), run.id);
      expect((await end(store, run, complete())).state).toBe("completed");
    });
  }

  for (const state of ["queued", "completed", "dead", "cancelled"] as const) {
    fact(`refuses the spent lease of a ${state} job`, async ({ store }) => {
      const { id, lease } = await inState(store, state);
      await refusesAll(store, lease, id);
    });
  }

  for (const verdict of VERDICTS) {
    fact(
      `spends the lease with the first verdict (${verdict.kind}, ${JSON.stringify("charge" in verdict && verdict.charge)})`,
      async ({ store }) => {
        const run = await start(store);
        await end(store, run, verdict);
        await refusesAll(store, leaseOf(run), run.id);
      },
    );
  }

  fact("refuses the lease of a run after the next claim", async ({ store }) => {
    const first = await start(store);
    await end(store, first, retry());
    const second = await takeOne(store, first.id);
    await refusesAll(store, leaseOf(first), first.id);
    expect((await end(store, second, complete())).state).toBe("completed");
  });

  fact("refuses the epoch of one run with the nonce of another", async ({ store }) => {
    const first = await start(store);
    await end(store, first, retry());
    const second = await takeOne(store, first.id);
    await refusesAll(store, { ...leaseOf(first), nonce: second.nonce }, first.id);
    await refusesAll(store, { ...leaseOf(second), nonce: first.nonce }, first.id);
  });

  fact("refuses the lease of one job for another", async ({ store }) => {
    const [mine, theirs] = [await start(store), await start(store)];
    await refusesAll(store, { ...leaseOf(mine), id: theirs.id }, theirs.id);
  });

  fact("refuses a forged lease of a job that never ran", async ({ store }) => {
    const id = await add(store);
    for (const epoch of [0, 1]) await refusesAll(store, { id, epoch, nonce: "" }, id);
    await refusesAll(store, { id, epoch: 0, nonce: null as unknown as string }, id);
  });

  fact("refuses a lease from before a redrive", async ({ store }) => {
    const { id, lease } = await inState(store, "dead");
    await store.redrive([{ id, generation: (await read(store, id)).generation, delayMs: 0 }]);
    await refusesAll(store, lease, id);
    const run = await takeOne(store, id);
    expect(run.epoch).toBe(lease.epoch + 1);
    await refusesAll(store, lease, id);
  });

  fact("refuses a lease of a removed job", async ({ store }) => {
    const { id, lease } = await inState(store, "completed");
    await store.remove([id]);
    await refusesAll(store, lease, id);
  });

  fact("applies one of two verdicts about one run in a set", async ({ store }) => {
    const run = await start(store);
    const lease = leaseOf(run);
    const settlements = [
      { ...lease, verdict: retry() },
      { ...lease, verdict: dead() },
    ];
    expect((await store.settle({ settlements })).stale).toEqual([lease]);
    expect(await read(store, run.id)).toMatchObject({ state: "queued", attempts: 1 });
    expect((await store.deadLetters({ limit: 10 })).items).toEqual([]);
  });

  fact("applies the current ones of a set and names the stale ones in their order", async ({ store }) => {
    const runs = [await start(store), await start(store), await start(store), await start(store)];
    const [a, b, c, d] = runs.map(leaseOf) as [Lease, Lease, Lease, Lease];
    const wrong = [
      { ...c, epoch: c.epoch + 3 },
      { ...a, nonce: "0" },
    ];
    const settlements = [b, ...wrong, d].map((lease) => ({ ...lease, verdict: complete() }));
    expect((await store.settle({ settlements })).stale).toEqual(wrong);
    const states = (await store.get([a.id, b.id, c.id, d.id])).map((job) => job?.state);
    expect(states).toEqual(["running", "completed", "running", "completed"]);
  });

  fact("lets one of two callers settle a run", async ({ store, peer }) => {
    const second = await peer();
    for (let i = 0; i < 20; i++) {
      const run = await start(store);
      const lost = await Promise.all([
        isStale(store, leaseOf(run), complete()),
        isStale(second, leaseOf(run), dead()),
        isStale(store, leaseOf(run), retry()),
      ]);
      expect(lost.filter(Boolean)).toHaveLength(2);
      const { state } = await read(store, run.id);
      expect(state).toBe(["completed", "dead", "queued"][lost.indexOf(false)]);
      const { items } = await store.deadLetters({ limit: 10, jobId: run.id });
      expect(items).toHaveLength(state === "dead" ? 1 : 0);
      if (state === "queued") await store.cancel([run.id]);
    }
  });

  timed("accepts the lease of a worker whose time is over while nobody took it", async ({ store, clock }) => {
    const run = await start(store, {}, await signUp(store, 1_000));
    clock.now += 3_600_000;
    expect((await end(store, run, complete())).state).toBe("completed");
  });
}
