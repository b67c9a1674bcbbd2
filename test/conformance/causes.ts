// Counts by cause and by type: what is counted, how it folds, how a recount mends it.
import { expect } from "vitest";
import { FLOW_COUNTS, type FlowCounts } from "../../src/core/flow.ts";
import type { Cause, Store } from "../../src/store/store.ts";
import { add, end, finish, leaseOf, start, take } from "../support/runs.ts";
import { complete, dead, failure, release, retry } from "../support/verdicts.ts";
import type { Suite, World } from "./suite.ts";

const MINUTE = 60_000;
const HOUR = 3_600_000;
const DAY = 86_400_000;
const NONE: FlowCounts = { enqueued: 0, completed: 0, retried: 0, dead: 0, released: 0, runMs: 0, waitMs: 0 };

const by = (fingerprint: string) => ({ failure: failure({ fingerprint, name: "E", message: fingerprint }) });

/** A job that died by this cause; answers it as a redrive or a removal names it. */
async function die(store: Store, fingerprint: string, type = "mail"): Promise<{ id: string; generation: number }> {
  const { id, generation } = await finish(store, dead(by(fingerprint)), { type });
  return { id, generation };
}

async function fold(store: Store, limit = 1_000): Promise<void> {
  for (let steps = 0; (await store.fold({ limit })).more; steps++)
    if (steps > 1_000) throw new Error("The fold has no end.");
}

async function causes(store: Store, idle = true): Promise<readonly Cause[]> {
  return (await store.causes({ limit: 50, idle })).items;
}

const live = async (store: Store): Promise<Record<string, number>> =>
  Object.fromEntries((await causes(store)).map((cause) => [cause.fingerprint, cause.live]));

const points = async ({ store, clock }: World, of: { fingerprint?: string; type?: string } = {}, stepMs = DAY) =>
  store.trend({ ...of, from: Math.max(0, clock.now - 900 * stepMs), until: clock.now + MINUTE, stepMs });

/** Tests of the counts of causes. */
export function causeFacts({ fact, timed }: Suite): void {
  fact("lists causes by their live letters, in pages", async ({ store }) => {
    for (const cause of ["b", "a", "c", "c", "d"]) await die(store, cause);
    const seen: string[] = [];
    for (let cursor: string | null = null, pages = 0; pages === 0 || cursor !== null; pages++) {
      const page = await store.causes({ limit: 2, cursor });
      seen.push(...page.items.map(({ fingerprint, live: letters }) => `${fingerprint} ${letters}`));
      cursor = page.next;
      expect(pages).toBeLessThan(3);
    }
    expect(seen).toEqual(["c 2", "a 1", "b 1", "d 1"]);
    expect((await store.causes({ limit: 5, fingerprint: "b" })).items).toMatchObject([{ fingerprint: "b", live: 1 }]);
  });

  timed("says since when, of which types and releases, and how the newest letter reads", async ({ store, clock }) => {
    const minute = clock.now - (clock.now % MINUTE);
    const worker = { leaseMs: DAY, pid: 1, host: "h" };
    for (const [id, release] of [
      ["w4", "1.4.0"],
      ["w5", "1.5.0"],
      ["none", null],
    ] as const)
      await store.register({ ...worker, id, release });
    const jobs = [await start(store, { type: "z" }, "w4"), await start(store, { type: "a" }, "none")];
    const settlements = jobs.map((job) => ({ ...leaseOf(job), verdict: dead(by("x")) }));
    await store.settle({ settlements, worker: "w4" });
    clock.now += 5 * MINUTE;
    const again = await start(store, { type: "a" }, "w5");
    const newest = { failure: failure({ fingerprint: "x", name: "NewName", message: "new message" }) };
    // Settled by a reaper: what counts is the worker that ran.
    await store.settle({ settlements: [{ ...leaseOf(again), verdict: dead(newest) }], worker: "w4" });
    const expected: Cause = {
      fingerprint: "x",
      live: 3,
      deaths: 3,
      failures: 3,
      firstAt: minute,
      lastAt: minute + 5 * MINUTE,
      types: ["a", "z"],
      releases: ["1.5.0", "1.4.0"],
      byRelease: [
        { release: "1.5.0", failures: 1 },
        { release: "", failures: 1 },
        { release: "1.4.0", failures: 1 },
      ],
      sample: { name: "NewName", message: "new message" },
    };
    expect(await causes(store)).toEqual([expected]);
    clock.now += 10 * MINUTE;
    await fold(store, 1);
    expect(await causes(store)).toEqual([expected]);
  });

  fact(
    "has the release of each run that failed, also where it is retried in one settle with others",
    async ({ store }) => {
      const worker = { leaseMs: DAY, pid: 1, host: "h" };
      for (const id of ["a", "b", "c"]) await store.register({ ...worker, id, release: `1.${id}` });
      const runs = [await start(store, {}, "a"), await start(store, {}, "b"), await start(store, {}, "c")];
      const verdicts = [retry(by("x")), retry(by("x")), complete()];
      const settlements = runs.map((run, at) => ({ ...leaseOf(run), verdict: verdicts[at] as (typeof verdicts)[0] }));
      await store.settle({ settlements, worker: "c" });
      const expected = [{ fingerprint: "x", failures: 2, releases: ["1.a", "1.b"] }];
      expect(await causes(store)).toMatchObject(expected);
    },
  );

  fact("keeps the release of a letter whose cause later rules name otherwise", async ({ store }) => {
    await store.register({ id: "w", leaseMs: DAY, pid: 1, host: "h", release: "1.4.0" });
    const run = await start(store, {}, "w");
    await end(store, run, dead(by("x")));
    const { items } = await store.failures({ after: 0, limit: 10 });
    await store.setFingerprints(
      items.map(({ failure: _failure, ...place }) => ({ ...place, was: "x", fingerprint: "y" })),
    );
    expect((await causes(store, false)).map(({ fingerprint, releases }) => [fingerprint, releases])).toEqual([
      ["y", ["1.4.0"]],
    ]);
  });

  timed("counts failures by release, with and without a name, and lists what failed since a minute", async (world) => {
    const { store, clock } = world;
    const worker = { leaseMs: DAY, pid: 1, host: "h" };
    for (const release of ["1.0.0", "0.9.0", null]) await store.register({ ...worker, id: `w-${release}`, release });
    const settle = async (fingerprint: string, release: string | null): Promise<void> => {
      const job = await start(store, {}, `w-${release}`);
      await end(store, job, dead(by(fingerprint)));
    };
    await settle("old", "1.0.0");
    await settle("both", "1.0.0");
    clock.now += 3 * MINUTE;
    await settle("both", null);
    await settle("both", "0.9.0");
    await settle("both", "0.9.0");
    const since = async (at: number): Promise<string[]> =>
      (await store.causes({ limit: 5, since: at })).items.map(({ fingerprint }) => fingerprint);
    for (const isFolded of [false, true]) {
      if (isFolded) clock.now += 10 * MINUTE;
      if (isFolded) await fold(store);
      const [both] = (await store.causes({ limit: 1, fingerprint: "both" })).items;
      expect(both?.releases).toEqual(["0.9.0", "1.0.0"]);
      expect(both?.byRelease).toEqual([
        { release: "", failures: 1 },
        { release: "0.9.0", failures: 2 },
        { release: "1.0.0", failures: 1 },
      ]);
      const last = (both?.lastAt as number) + MINUTE - 1;
      expect(await since(last - 3 * MINUTE)).toEqual(["both", "old"]);
      expect(await since(last)).toEqual(["both"]);
      expect(await since(last + 1)).toEqual([]);
    }
  });

  fact("counts retries and deaths that were applied, and no stale verdict", async ({ store }) => {
    const run = await start(store);
    await end(store, run, retry({ ...by("r"), delayMs: 0 }));
    const { stale } = await store.settle({ settlements: [{ ...leaseOf(run), verdict: dead(by("r")) }] });
    expect(stale).toHaveLength(1);
    await finish(store, complete());
    await finish(store, release());
    expect(await causes(store)).toMatchObject([{ fingerprint: "r", live: 0, failures: 1, deaths: 0, sample: null }]);
    expect(await causes(store, false)).toEqual([]);
  });

  fact("counts several of a cause in one settle", async ({ store }) => {
    for (let n = 0; n < 5; n++) await add(store, { type: "many" });
    const jobs = await take(store);
    const verdicts = [dead(by("m")), retry(by("m")), dead(by("m")), complete(), retry(by("n"))];
    const settlements = jobs.map((job, at) => ({ ...leaseOf(job), verdict: verdicts[at] as (typeof verdicts)[0] }));
    await store.settle({ settlements, worker: "w" });
    expect(await causes(store)).toMatchObject([
      { fingerprint: "m", live: 2, deaths: 2, failures: 3, types: ["many"] },
      { fingerprint: "n", live: 0, deaths: 0, failures: 1 },
    ]);
  });

  fact("counts letters out that are redriven, removed or pruned, each once", async ({ store }) => {
    const [first, second, third, fourth] = [
      await die(store, "x"),
      await die(store, "x"),
      await die(store, "x"),
      await die(store, "y"),
    ];
    await store.redrive([
      { ...first, delayMs: 0 },
      { ...first, delayMs: 0 },
    ]);
    expect(await live(store)).toEqual({ x: 2, y: 1 });
    expect(await store.remove([second, second, { ...third, generation: 7 }])).toBe(1);
    expect(await live(store)).toEqual({ x: 1, y: 1 });
    expect(await store.remove([fourth.id])).toBe(1);
    expect(await live(store)).toEqual({ x: 1, y: 0 });
    const retention = { keep: { finishedMs: 0, deadMs: 0 }, types: [], keyMs: 0, limit: 10, isFirst: true };
    for (let more = true; more; ) ({ more } = await store.prune(retention));
    expect(await live(store)).toEqual({ x: 0, y: 0 });
    expect(await store.recount({ after: "", limit: 10 })).toEqual({ mended: 0, next: null });
  });

  fact("counts a job that dies again once for each of its letters", async ({ store }) => {
    const letter = await die(store, "x", "again");
    await store.redrive([{ ...letter, delayMs: 0 }]);
    const [run] = await take(store);
    await end(store, run as NonNullable<typeof run>, dead(by("y")));
    expect(await live(store)).toEqual({ x: 0, y: 1 });
    expect(await store.remove([letter.id])).toBe(1);
    expect(await live(store)).toEqual({ x: 0, y: 0 });
  });
}

/** Tests of the counts per minute. */
export function flowFacts({ fact, timed }: Suite): void {
  fact("adds up what processes have counted, by type", async (world) => {
    const { store } = world;
    const counts = [
      { ...NONE, type: "a", enqueued: 3, runMs: 40 },
      { ...NONE, type: "b", dead: 1 },
    ];
    await store.addFlow({ holder: "p", counts });
    await store.addFlow({ holder: "p", counts });
    await store.addFlow({ holder: "q", counts: [{ ...NONE, type: "a", enqueued: 1, waitMs: 9 }] });
    const all = { ...NONE, enqueued: 7, dead: 2, runMs: 80, waitMs: 9 };
    expect((await points(world)).map((point) => point.counts)).toEqual([all]);
    expect((await points(world, { type: "b" })).map((point) => point.counts)).toEqual([{ ...NONE, dead: 2 }]);
    expect(await points(world, { type: "c" })).toEqual([]);
  });

  timed("has each minute for six hours, then each hour for 14 days, then each day", async (world) => {
    const { store, clock } = world;
    clock.now += DAY - (clock.now % DAY) + HOUR;
    const from = clock.now;
    const put = async (): Promise<void> => {
      await store.addFlow({ holder: "p", counts: [{ ...NONE, type: "a", enqueued: 1 }] });
      await store.addFlow({ holder: "q", counts: [{ ...NONE, type: "a", enqueued: 1 }] });
      await die(store, "x");
    };
    for (const minutes of [0, 45, 59, 1]) {
      clock.now += minutes * MINUTE;
      await put();
    }
    const at = async (of: { fingerprint?: string }, count: string): Promise<number[][]> => {
      const query = { from, until: from + 3 * HOUR, stepMs: MINUTE, ...of };
      return (await store.trend(query)).map((point) => [(point.at - from) / MINUTE, point.counts[count] as number]);
    };
    const both = async () => [await at({}, "enqueued"), await at({ fingerprint: "x" }, "deaths")];
    const minutes = [
      [
        [0, 2],
        [45, 2],
        [104, 2],
        [105, 2],
      ],
      [
        [0, 1],
        [45, 1],
        [104, 1],
        [105, 1],
      ],
    ];
    expect(await both()).toEqual(minutes);
    clock.now += 2 * MINUTE;
    await fold(store, 2);
    expect(await both()).toEqual(minutes);
    clock.now = from + 8 * HOUR;
    await fold(store, 2);
    expect(await both()).toEqual([
      [
        [0, 4],
        [60, 4],
      ],
      [
        [0, 2],
        [60, 2],
      ],
    ]);
    clock.now = from + 16 * DAY;
    await fold(store, 2);
    expect((await points(world)).map((point) => point.counts)).toEqual([{ ...NONE, enqueued: 8 }]);
    expect((await points(world, { fingerprint: "x" })).map(({ counts }) => counts.deaths)).toEqual([4]);
    expect(await both()).toEqual([[], []]);
    clock.now = from + 402 * DAY;
    await fold(store, 2);
    expect([await points(world), await points(world, { fingerprint: "x" })]).toEqual([[], []]);
    expect(await causes(store)).toMatchObject([{ fingerprint: "x", live: 4, failures: 4, firstAt: from }]);
  });

  timed("leaves a minute alone until it is closed", async ({ store, clock }) => {
    clock.now -= clock.now % MINUTE;
    await die(store, "x");
    const before = await causes(store);
    clock.now += MINUTE;
    await store.fold({ limit: 10 });
    // Written late by a transaction that began in that minute.
    clock.now -= 1;
    await die(store, "x");
    clock.now += 5 * MINUTE;
    await fold(store);
    expect(await causes(store)).toMatchObject([
      {
        ...before[0],
        live: 2,
        deaths: 2,
        failures: 2,
        sample: {},
        types: ["mail"],
        byRelease: [{ release: "1.2.3", failures: 2 }],
      },
    ]);
  });

  fact("refuses trends of too many steps, and steps that are no minutes", async ({ store }) => {
    for (const bad of [{ stepMs: MINUTE }, { stepMs: 90_000 }, { stepMs: 0 }, { stepMs: DAY, until: -1 }])
      await expect(store.trend({ from: 0, until: 1_001 * MINUTE, ...bad })).rejects.toMatchObject({
        code: "invalid_argument",
      });
    for (const count of FLOW_COUNTS) {
      const counts = [{ ...NONE, type: "a", [count]: -1 }];
      await expect(store.addFlow({ holder: "p", counts })).rejects.toMatchObject({ code: "invalid_argument" });
    }
  });
}
