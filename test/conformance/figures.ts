// The figures for monitors: due work by lane, live dead letters by type, causes, the oldest letter.
import { expect } from "vitest";
import type { FigureQuery, Store, StoreFigures } from "../../src/store/store.ts";
import { newJob } from "../support/new-job.ts";
import { add, finish } from "../support/runs.ts";
import { dead, failure } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

const WIDE: FigureQuery = { lanes: 1_000, jobs: 100_000, letters: 1_000, notes: "cause" };

const ask = (store: Store, query: Partial<FigureQuery> = {}): Promise<StoreFigures> =>
  store.figures({ ...WIDE, ...query });

async function die(store: Store, fingerprint: string, type: string): Promise<{ id: string; generation: number }> {
  const { id, generation } = await finish(store, dead({ failure: failure({ fingerprint }) }), { type });
  return { id, generation };
}

const dueByType = ({ due }: StoreFigures): Record<string, number> => {
  const sums: Record<string, number> = {};
  for (const { type, jobs } of due) sums[type] = (sums[type] ?? 0) + jobs;
  return sums;
};

/** Tests of the figures. */
export function figureFacts({ fact, timed }: Suite): void {
  fact("of an empty store are zeros", async ({ store }) => {
    expect(await ask(store)).toEqual({
      due: [],
      letters: [],
      oldestLetterAt: null,
      causes: 0,
      noted: [],
      now: expect.any(Number),
    });
  });

  fact("count due jobs by lane, and no scheduled, running or ended ones", async ({ store }) => {
    await finish(store, { kind: "complete", result: null }, { type: "mail" });
    await finish(store, dead(), { type: "mail" });
    for (let n = 0; n < 3; n += 1) await add(store, { type: "mail", tenant: "acme", service: "smtp" });
    await add(store, { type: "mail", priority: 5 });
    await add(store, { type: "mail", delayMs: 3_600_000 });
    await add(store, { type: "later", delayMs: 3_600_000 });
    const figures = await ask(store);
    expect(dueByType(figures)).toEqual({ mail: 4 });
    expect(figures.due.find(({ tenant }) => tenant === "acme")).toMatchObject({ service: "smtp", jobs: 3 });
  });

  fact("read no more lanes, and count no more jobs, than they may", async ({ store }) => {
    await store.enqueue(["a", "b"].flatMap((type) => Array.from({ length: 101 }, () => newJob({ type }))));
    expect(dueByType(await ask(store))).toEqual({ a: 101, b: 101 });
    expect(dueByType(await ask(store, { jobs: 150 }))).toEqual({ a: 100, b: 100 });
    expect(dueByType(await ask(store, { jobs: 1 }))).toEqual({ a: 1, b: 1 });
    expect((await ask(store, { lanes: 1 })).due).toHaveLength(1);
  });

  timed("tell since when the first job of a lane is due", async ({ store, clock }) => {
    const at = clock.now;
    await add(store, { type: "mail" });
    clock.now += 5_000;
    await add(store, { type: "mail" });
    const { due, now } = await ask(store);
    expect([due.map(({ headRunAt }) => headRunAt), now]).toEqual([[at], at + 5_000]);
  });

  fact("count live letters by type and live causes, exactly", async ({ store }) => {
    const first = await die(store, "a", "mail");
    const second = await die(store, "a", "mail");
    await die(store, "b", "mail");
    const other = await die(store, "b", "media");
    expect(await ask(store)).toMatchObject({
      letters: [
        { type: "mail", count: 3 },
        { type: "media", count: 1 },
      ],
      causes: 2,
    });
    await store.redrive([{ ...first, delayMs: 3_600_000 }]);
    await store.remove([second, other]);
    expect(await ask(store)).toMatchObject({ letters: [{ type: "mail", count: 1 }], causes: 1 });
  });

  fact("name the live causes that have a note", async ({ store }) => {
    for (const cause of ["a", "b", "c"]) await die(store, cause, "mail");
    const note = (name: string, kind = "cause") => ({ kind, name, holder: "", version: null, value: "{}" });
    await store.setCells([note("a"), note("gone"), note("b", "else")]);
    expect(await ask(store)).toMatchObject({ causes: 3, noted: ["a"] });
  });

  timed("tell when the oldest live letter died, among those that they may look at", async ({ store, clock }) => {
    const first = await die(store, "a", "mail");
    clock.now += 1_000;
    const at = clock.now;
    await die(store, "a", "mail");
    clock.now += 1_000;
    expect((await ask(store)).oldestLetterAt).toBe(at - 1_000);
    await store.redrive([{ ...first, delayMs: 3_600_000 }]);
    expect((await ask(store, { letters: 1 })).oldestLetterAt).toBe(at);
  });

  fact("are refused with a bad question", async ({ store }) => {
    for (const bad of [{ lanes: 0 }, { jobs: Number.NaN }, { letters: -1 }, { notes: "a b" }])
      await expect(ask(store, bad)).rejects.toMatchObject({ code: "invalid_argument" });
  });
}
