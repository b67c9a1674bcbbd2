// Schedules on every store: one job per tick in the books, whoever dies, whatever the clock does.
import { describe, expect, inject, it, onTestFinished } from "vitest";
import type { CatchUp } from "../../src/core/schedule.ts";
import type { Store } from "../../src/store/store.ts";
import type { World } from "../conformance/suite.ts";
import { postgresWorld } from "../support/postgres-world.ts";
import { memoryWorld, sqliteWorld } from "../support/worlds.ts";
import { booked, Fleet, firings } from "./schedule-fleet.ts";

const WORLDS: Record<string, () => Promise<World>> = {
  memory: memoryWorld,
  sqlite: sqliteWorld,
  postgres: () => postgresWorld(inject("postgres18")),
};
const MINUTE = 60_000;
const HOUR = 3_600_000;

async function open(kind: string): Promise<World> {
  const world = await (WORLDS[kind] as () => Promise<World>)();
  onTestFinished(() => world.close());
  return world;
}

async function fleetOn(world: World, members = 1, seed = 1): Promise<Fleet> {
  const fleet = new Fleet(world, seed);
  for (let n = 0; n < members; n++) await fleet.join();
  return fleet;
}

/** The whole seconds from one instant to another, as keys name them. */
function seconds(from: number, to: number): string[] {
  const first = Math.ceil(from / 1000) * 1000;
  const count = Math.floor((to - first) / 1000) + 1;
  return Array.from({ length: count }, (_, n) => new Date(first + n * 1000).toISOString());
}

describe.each(Object.keys(WORLDS))("schedules on %s", (kind) => {
  // What is made up is decided before a store is asked, so that a server plays one of the two, and half of the time.
  const onServer = kind === "postgres";
  const [begun, behind] = [onServer ? 1 : 4, onServer ? 1 : 2];
  it.each<[CatchUp, number]>([...(onServer ? [] : [["one", 1] satisfies [CatchUp, number]]), [{ all: 100 }, 100]])(
    "fire every second for minutes with catch-up %j, once each, while schedulers die and the clock is stepped",
    async (catchUp, madeUp) => {
      const world = await open(kind);
      const fleet = await fleetOn(world, 3, madeUp);
      const begin = world.clock.now;
      await fleet.schedules.set("s", { cron: "* * * * * *", timezone: "Europe/Berlin", job: "t", catchUp });
      const pass = async (minutes: number): Promise<void> => {
        for (let n = 0; n < minutes * 3; n++) {
          // Two of three die somewhere in these seconds, and others take their place.
          if (n % 3 === 1) for (let deaths = 0; deaths < 2; deaths++) fleet.doom();
          await fleet.pass(MINUTE / 3);
          while (fleet.size < 3) await fleet.join();
        }
      };
      await pass(begun);
      const stepped = world.clock.now;
      fleet.step(HOUR);
      await pass(behind);
      const ahead = world.clock.now;
      fleet.step(-HOUR);
      await pass(2);
      expect((await firings(world.store)).at(-1)).toBe(seconds(ahead - 1000, ahead).at(-1));
      fleet.step(HOUR);
      await pass(behind);
      // Stepped ahead by an hour: of what was missed, the latest; stepped back and ahead again: the two minutes between.
      const [first, again] = [stepped + HOUR, ahead + 2 * MINUTE];
      const expected = [
        ...seconds(begin + 1, stepped),
        ...seconds(first - (madeUp - 1) * 1000, ahead),
        ...seconds(again - (madeUp - 1) * 1000, world.clock.now),
      ];
      expect(await firings(world.store)).toEqual(expected);
      expect((await fleet.schedules.get("s"))?.fired).toBe(expected.length);
    },
    120_000,
  );

  it.each(["before", "after"] as const)(
    "write the job of a tick once if its scheduler dies %s it has written it",
    async (when) => {
      const world = await open(kind);
      const fleet = await fleetOn(world, 0);
      const begin = world.clock.now;
      await fleet.schedules.set("s", { every: "1m", job: "t" });
      await fleet.join({ at: "enqueue", after: when === "after" });
      await fleet.pass(MINUTE);
      expect(fleet.size).toBe(0);
      expect(await firings(world.store)).toHaveLength(when === "after" ? 1 : 0);
      await fleet.join();
      await fleet.pass(10_000);
      expect(await firings(world.store)).toEqual([new Date(begin + MINUTE).toISOString()]);
      expect(JSON.parse((await stored(world.store)).value)).toMatchObject({ state: { pending: [], fired: 1 } });
    },
  );

  it("are decided by one of many who look at the same moment", async () => {
    const world = await open(kind);
    const fleet = await fleetOn(world, 6);
    for (let n = 0; n < 60; n++) await fleet.schedules.set(`s${n}`, { every: "5s", job: "t" });
    await fleet.pass(20_500, 500);
    const keys = (await booked(world.store)).map(({ key }) => key);
    expect(keys).toHaveLength(4 * 60);
    expect(new Set(keys).size).toBe(4 * 60);
  });

  it("can be changed, paused, resumed, run and removed at run time", async () => {
    const world = await open(kind);
    const fleet = await fleetOn(world, 2);
    const { schedules } = fleet;
    const count = async (): Promise<number> => (await booked(world.store)).length;
    await schedules.set("s", { every: "10s", job: "t", input: { a: 1 } });
    const before = await stored(world.store);
    await schedules.set("s", { every: "10s", job: "t", input: { a: 1 } });
    expect(await stored(world.store)).toEqual(before);
    await fleet.pass(21_000);
    expect(await count()).toBe(2);
    expect(await schedules.pause("s")).toMatchObject({ paused: true, nextAt: null });
    await fleet.pass(60_000);
    expect(await count()).toBe(2);
    expect(await schedules.resume("s")).toMatchObject({ paused: false, nextAt: expect.any(Number) });
    await fleet.pass(10_000);
    expect(await count()).toBe(3);
    const { id } = await schedules.run("s");
    expect((await world.store.get([id]))[0]).toMatchObject({
      type: "t",
      payload: '{"a":1}',
      state: "queued",
      key: null,
    });
    expect(await schedules.get("s")).toMatchObject({ lastJob: id, result: "queued", fired: 3, skipped: 0 });
    await schedules.set("s", { every: "2s", job: "other" });
    await fleet.pass(4_500);
    expect((await booked(world.store)).filter(({ type }) => type === "other")).toHaveLength(2);
    expect([await schedules.remove("s"), await schedules.remove("s")]).toEqual([true, false]);
    const left = await count();
    await fleet.pass(20_000);
    expect(await count()).toBe(left);
    await expect(schedules.pause("s")).rejects.toMatchObject({ code: "not_found" });
  });

  it("queue, skip or replace what overlaps", async () => {
    const world = await open(kind);
    const fleet = await fleetOn(world, 2);
    for (const overlap of ["queue", "skip", "replace"] as const)
      await fleet.schedules.set(overlap, { every: "10s", job: overlap, overlap });
    await fleet.pass(35_000);
    const of = async (type: string) => (await booked(world.store)).filter((job) => job.type === type);
    expect((await of("queue")).map(({ group, groupConcurrency }) => [group, groupConcurrency])).toEqual(
      Array.from({ length: 3 }, () => ["schedule:queue", 1]),
    );
    const replaced = await of("replace");
    expect(replaced.map(({ state }) => state)).toEqual(["cancelled", "cancelled", "queued"]);
    expect(fleet.cancelled).toEqual(replaced.slice(0, 2).map(({ id }) => id));
    const [only, ...more] = await of("skip");
    expect(more).toEqual([]);
    expect(await fleet.schedules.get("skip")).toMatchObject({ fired: 1, skipped: 2, lastJob: only?.id });
    await world.store.cancel([only?.id as string]);
    await fleet.pass(10_000);
    expect(await of("skip")).toHaveLength(2);
  });

  it("spread their jobs by chance after the tick", async () => {
    const world = await open(kind);
    const fleet = await fleetOn(world, 1);
    const begin = world.clock.now;
    await fleet.schedules.set("s", { every: "1m", job: "t", jitter: "30s" });
    await fleet.pass(10 * MINUTE);
    const late = (await booked(world.store)).map(({ runAt }) => (runAt - begin) % MINUTE);
    expect(late).toHaveLength(10);
    expect(late.every((ms) => ms <= 30_000)).toBe(true);
    expect(new Set(late).size).toBeGreaterThan(5);
  });

  it("leave the others alone when one of them is damaged", async () => {
    const world = await open(kind);
    const fleet = await fleetOn(world, 1);
    await fleet.schedules.set("s", { every: "10s", job: "t" });
    const cell = { kind: "schedule", holder: "", version: 0 };
    await world.store.setCells([{ ...cell, name: "bad", value: '{"definition":3}' }]);
    const whole = JSON.parse((await stored(world.store)).value) as { definition: object; state: object };
    const worse = {
      definition: { ...whole.definition, cron: "nonsense", everyMs: null },
      state: { ...whole.state, next: 1 },
    };
    await world.store.setCells([{ ...cell, name: "worse", value: JSON.stringify(worse) }]);
    await fleet.pass(65_000);
    expect(await firings(world.store)).toHaveLength(6);
    expect(
      fleet.log
        .said("a schedule cannot run")
        .map(({ fields }) => String(fields.schedule))
        .toSorted((a, b) => (a < b ? -1 : 1)),
    ).toEqual(["bad", "worse"]);
    expect((await fleet.schedules.list()).map(({ name }) => name)).toEqual(["s", "worse"]);
    expect(await fleet.schedules.remove("bad")).toBe(true);
  });

  it("skip a tick whose job may not be stored, and no tick of another at the same time", async () => {
    const world = await open(kind);
    const fleet = await fleetOn(world, 1);
    await fleet.schedules.set("s", { every: "10s", job: "t" });
    const whole = JSON.parse((await stored(world.store)).value) as { definition: object };
    const value = JSON.stringify({ ...whole, definition: { ...whole.definition, options: { priority: 77 } } });
    await world.store.setCells([{ kind: "schedule", holder: "", version: 0, name: "bad", value }]);
    await fleet.pass(35_000);
    expect(await firings(world.store)).toHaveLength(3);
    const skipped = fleet.log.said("the job of a schedule cannot be made; its tick is skipped");
    expect(skipped.map(({ fields }) => fields.schedule)).toEqual(["bad", "bad", "bad"]);
  });
});

async function stored(store: Store, name = "s") {
  const { cells } = await store.cells([{ kind: "schedule", name }]);
  return cells[0] as (typeof cells)[number];
}

describe("daylight saving", () => {
  /** Zone, expression, the noon before (UTC), and the instants in the next 24 hours. */
  const DAYS: [string, string, string, string[]][] = [
    // 02:00 becomes 03:00: a fixed time that does not exist fires when the gap ends.
    ["Europe/Berlin", "30 2 * * *", "2027-03-27T12:00:00Z", ["2027-03-28T01:00:00"]],
    // 03:00 becomes 02:00: a fixed time that comes twice fires the first time.
    ["Europe/Berlin", "30 2 * * *", "2027-10-30T12:00:00Z", ["2027-10-31T00:30:00"]],
    ["America/New_York", "30 2 * * *", "2027-03-13T17:00:00Z", ["2027-03-14T07:00:00"]],
    ["America/New_York", "30 1 * * *", "2027-11-06T17:00:00Z", ["2027-11-07T05:30:00"]],
    // Half an hour: 02:00 becomes 02:30, and back.
    ["Australia/Lord_Howe", "15 2 * * *", "2027-10-02T02:00:00Z", ["2027-10-02T15:30:00"]],
    ["Australia/Lord_Howe", "45 1 * * *", "2027-04-03T02:00:00Z", ["2027-04-03T14:45:00"]],
    // Several times of a day that do not exist are left out, and those that come twice fire twice.
    ["Europe/Berlin", "30 1-3 * * *", "2027-03-27T12:00:00Z", ["2027-03-28T00:30:00", "2027-03-28T01:30:00"]],
    [
      "Europe/Berlin",
      "30 1-3 * * *",
      "2027-10-30T12:00:00Z",
      ["2027-10-30T23:30:00", "2027-10-31T00:30:00", "2027-10-31T01:30:00", "2027-10-31T02:30:00"],
    ],
  ];

  it.each(DAYS)("in %s: %s from %s fires at %j", async (timezone, cron, from, expected) => {
    for (const kind of Object.keys(WORLDS)) {
      const world = await open(kind);
      world.clock.now = Date.parse(from);
      const fleet = await fleetOn(world, 3);
      await fleet.schedules.set("s", { cron, timezone, job: "t" });
      await fleet.pass(24 * HOUR, 15 * MINUTE);
      expect([kind, ...(await firings(world.store))]).toEqual([kind, ...expected.map((each) => `${each}.000Z`)]);
    }
  });

  it.each(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])(
    "every quarter of an hour is every quarter of an hour in %s, whatever its clocks show",
    async (timezone) => {
      for (const day of ["2027-03-14", "2027-03-28", "2027-04-04", "2027-10-03", "2027-10-31", "2027-11-07"]) {
        const world = await open("memory");
        world.clock.now = Date.parse(`${day}T00:00:00Z`) - 12 * HOUR;
        const begin = world.clock.now;
        const fleet = await fleetOn(world, 1);
        await fleet.schedules.set("s", { cron: "*/15 * * * *", timezone, job: "t" });
        await fleet.pass(24 * HOUR, 5 * MINUTE);
        const expected = Array.from({ length: 96 }, (_, n) => new Date(begin + (n + 1) * 15 * MINUTE).toISOString());
        expect(await firings(world.store)).toEqual(expected);
      }
    },
  );
});
