// The upkeep of causes: what it tells the event log, when it ends a mute, when it finds a fixed cause back, what it
// forgets, and that several processes do it once.
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { releaseSeen } from "../../src/core/event-log.ts";
import { DAY, HOUR, MINUTE } from "../../src/core/flow.ts";
import { openCauses } from "../../src/operate/causes.ts";
import { openEventLog } from "../../src/report/event-log.ts";
import type { LoggedEvent, Store } from "../../src/store/store.ts";
import { collectLog } from "../../src/testing/collect-log.ts";
import { CAUSE_MS, causesService } from "../../src/upkeep/causes.ts";
import type { World } from "../conformance/suite.ts";
import { postgresWorld } from "../support/postgres-world.ts";
import { leaseOf, start } from "../support/runs.ts";
import { dead, failure, retry } from "../support/verdicts.ts";
import { memoryWorld, sqliteWorld } from "../support/worlds.ts";

const WORLDS: readonly (readonly [string, () => Promise<World>])[] = [
  ["memory", memoryWorld],
  ["sqlite", sqliteWorld],
  ["postgres", () => postgresWorld(inject("postgres18"))],
];

const F = "7f3a9c1e02b4d611";
const never = new AbortController().signal;

/** A world with an operator and two processes that look at causes. */
async function scene(open: () => Promise<World>) {
  const world = await open();
  onTestFinished(() => world.close());
  const { store, clock } = world;
  const causes = openCauses({ store, eventLog: openEventLog({ store, actor: "ada", log: collectLog() }) });
  const process = (seen: Store) => causesService({ store: seen, system: { random: () => 0.5 } });
  const processes = [process(store), process(await world.peer())];
  const staff = new Set<string>();
  /** A run by a worker of this release. */
  const begin = async (release: string | null = null) => {
    const id = `w-${release}`;
    if (!staff.has(id)) await store.register({ id, leaseMs: DAY, pid: 1, host: "h", release });
    staff.add(id);
    return start(store, { type: "mail" }, id);
  };
  const fail = async ({ release, run }: { release?: string; run?: Awaited<ReturnType<typeof start>> } = {}) => {
    const job = run ?? (await begin(release));
    const verdict = dead({ failure: failure({ fingerprint: F, name: "E", message: "token=hunter2" }) });
    await store.settle({ settlements: [{ ...leaseOf(job), verdict }], worker: job.worker as string });
  };
  return {
    ...world,
    causes,
    begin,
    fail,
    see: (release: string) => store.record([releaseSeen(release, "w")]),
    /** A minute later every process looks. */
    async look() {
      clock.now += MINUTE;
      for (const each of processes) await each.step(never);
    },
    state: async () => (await causes.get(F)).state,
    /** What workers have told of the cause. */
    async told(): Promise<string[]> {
      const { items } = await store.events({ limit: 200, oldest: true, subject: `cause:${F}` });
      return items.filter(({ actor }: LoggedEvent) => actor === null).map(({ kind }) => kind);
    },
    /** What the stored record says, without the news. */
    async stored(): Promise<unknown> {
      const [cell] = (await store.cells([{ kind: "cause", name: F }])).cells;
      return cell && JSON.parse(cell.value);
    },
  };
}

describe.each(WORLDS)("the upkeep of causes on %s", (_name, open) => {
  it("tells of a cause with its first letter, once, without secrets", async () => {
    const { store, fail, look, told, clock } = await scene(open);
    const waiting = await start(store, { type: "mail" });
    const verdict = retry({ failure: failure({ fingerprint: F }) });
    await store.settle({ settlements: [{ ...leaseOf(waiting), verdict }], worker: "w" });
    await look();
    expect(await told()).toEqual([]);
    await fail();
    await look();
    await fail();
    await look();
    expect(await told()).toEqual(["cause.opened"]);
    const [event] = (await store.events({ limit: 1, kind: "cause.opened" })).items;
    expect(JSON.parse(event?.value ?? "")).toMatchObject({ types: ["mail"], name: "E" });
    expect(event?.value).not.toContain("hunter2");
    // The log has forgotten the event by now, but the cause is not new.
    clock.now += 100 * DAY;
    await store.prune({ keep: { finishedMs: DAY, deadMs: DAY }, types: [], keyMs: DAY, limit: 1_000, isFirst: true });
    const fresh = causesService({ store, system: { random: () => 0.5 } });
    await fail();
    await fresh.step(never);
    expect(await told()).toEqual([]);
  });

  it("ends a mute when its time is over, and tells it once", async () => {
    const { causes, fail, look, told, stored, clock } = await scene(open);
    await fail();
    await causes.mute(F, { for: "10m" });
    await look();
    await fail();
    await look();
    expect(await stored()).toMatchObject({ state: "muted", by: "ada" });
    clock.now += 10 * MINUTE;
    await look();
    await look();
    expect(await stored()).toMatchObject({ state: "open" });
    expect(await told()).toEqual(["cause.opened", "cause.unmuted"]);
  });

  it("ends a mute when as many more died, however many were sent back", async () => {
    const { store, causes, fail, look, told, stored } = await scene(open);
    await fail();
    await fail();
    await causes.mute(F, { more: 3 });
    await fail();
    await fail();
    const { items } = await store.deadLetters({ limit: 10 });
    await store.redrive(items.map(({ job, generation }) => ({ id: job.id, generation, delayMs: HOUR })));
    await look();
    expect(await stored()).toMatchObject({ state: "muted" });
    await fail();
    await look();
    await look();
    expect(await stored()).toMatchObject({ state: "open" });
    expect(await told()).toEqual(["cause.opened", "cause.unmuted"]);
  });

  it("finds a fixed cause back by the order of first sight, not by numbers, and tells it once", async () => {
    const { store, causes, fail, look, see, told, stored } = await scene(open);
    await see("1.4.1");
    await fail({ release: "1.4.1" });
    await causes.fix(F, { in: "2.0.0" });
    await see("1.9.0");
    await see("2.0.0");
    await fail({ release: "1.4.1" });
    await fail({ release: "1.9.0" });
    await look();
    expect(await stored()).toMatchObject({ state: "fixed" });
    expect((await causes.get(F)).still).toEqual([
      { release: "1.4.1", failures: 1 },
      { release: "1.9.0", failures: 1 },
    ]);
    await see("1.4.2");
    await fail({ release: "1.4.2" });
    expect(await causes.get(F)).toMatchObject({ state: "regressed", fixedIn: "2.0.0", backIn: "1.4.2" });
    await look();
    await look();
    expect(await stored()).toMatchObject({ state: "regressed", release: "2.0.0", back: "1.4.2" });
    expect(await told()).toEqual(["cause.opened", "cause.regressed"]);
    const [event] = (await store.events({ limit: 1, kind: "cause.regressed" })).items;
    expect(JSON.parse(event?.value ?? "")).toEqual({ fixedIn: "2.0.0", back: "1.4.2" });
    // Fixed once more, and back once more.
    await causes.fix(F, { in: "1.4.2" });
    await look();
    expect(await stored()).toMatchObject({ state: "fixed" });
    await fail({ release: "1.4.2" });
    await look();
    expect(await told()).toEqual(["cause.opened", "cause.regressed", "cause.regressed"]);
  });

  it("without a release finds it back by runs that started after the fix", async () => {
    const { causes, begin, fail, look, stored, clock } = await scene(open);
    await fail();
    const before = await begin();
    clock.now += 1_000;
    await causes.fix(F);
    clock.now += 1_000;
    await fail({ run: before });
    await look();
    expect(await stored()).toMatchObject({ state: "fixed" });
    expect((await causes.get(F)).still).toEqual([{ release: "", failures: 1 }]);
    await fail();
    await look();
    expect(await stored()).toMatchObject({ state: "regressed" });
  });

  it("finds it back by a run that failed and waits for its retry", async () => {
    const { store, causes, fail, look, stored, clock } = await scene(open);
    await fail();
    await causes.fix(F);
    clock.now += 1_000;
    const run = await start(store, { type: "mail" });
    const verdict = retry({ delayMs: HOUR, failure: failure({ fingerprint: F }) });
    await store.settle({ settlements: [{ ...leaseOf(run), verdict }], worker: "w" });
    await look();
    expect(await stored()).toMatchObject({ state: "regressed" });
  });

  it("finds it back by a run that another worker has ended, by the release of its letter", async () => {
    const { store, causes, fail, look, see, stored } = await scene(open);
    await see("1.4.1");
    await see("1.2.3");
    await fail({ release: "1.4.1" });
    await causes.fix(F, { in: "1.2.3" });
    // Workers of the bench have the release 1.2.3; a reaper settles without one.
    const run = await start(store, { type: "mail" });
    const verdict = dead({ reason: "crashed", failure: failure({ fingerprint: F, class: "crashed" }) });
    await store.settle({ settlements: [{ ...leaseOf(run), verdict }] });
    await look();
    expect(await stored()).toMatchObject({ state: "regressed", back: "1.2.3" });
  });

  it("forgets what was said of a cause 90 days after it was last seen", async () => {
    const { causes, fail, look, stored, clock } = await scene(open);
    await fail();
    await causes.own(F, "payments");
    clock.now += CAUSE_MS - DAY;
    await fail();
    clock.now += 2 * DAY;
    await look();
    expect(await stored()).toMatchObject({ owner: "payments" });
    clock.now += CAUSE_MS - 3 * DAY;
    await look();
    expect(await stored()).toMatchObject({ owner: "payments" });
    clock.now += 3 * DAY;
    await look();
    expect(await stored()).toBeUndefined();
  });
});

describe("the upkeep of causes", () => {
  it("writes an event that a killed process owes, and none twice", async () => {
    const { store, causes, fail, look, told, stored, clock } = await scene(memoryWorld);
    await fail();
    await look();
    await causes.mute(F, { for: "1m" });
    // By now the last failure lies before the look, so that only the mute is left to tell.
    clock.now += 5 * MINUTE;
    await store.setCells([{ kind: "look", name: "causes", holder: "", version: null, value: `{"upTo":${clock.now}}` }]);
    clock.now += MINUTE;
    const killed = (verb: "record" | "setCells", nth: number): Store => {
      let calls = 0;
      const call = store[verb] as (...args: unknown[]) => Promise<unknown>;
      const ends = async (...args: unknown[]): Promise<unknown> => {
        calls += 1;
        if (calls === nth) throw new Error("killed");
        return call(...args);
      };
      return { ...store, [verb]: ends };
    };
    const system = { random: () => 0.5 };
    await expect(causesService({ store: killed("record", 1), system }).step(never)).rejects.toThrow("killed");
    expect(await stored()).toMatchObject({ state: "open", untold: "unmuted" });
    expect(await told()).toEqual(["cause.opened"]);
    clock.now += MINUTE;
    // The event is written; the record still names it.
    await expect(causesService({ store: killed("setCells", 2), system }).step(never)).rejects.toThrow("killed");
    expect(await told()).toEqual(["cause.opened", "cause.unmuted"]);
    await look();
    expect(await stored()).not.toHaveProperty("untold");
    expect(await told()).toEqual(["cause.opened", "cause.unmuted"]);
  });

  it("asks one question where another process has looked just before, and one about causes where nothing failed since", async () => {
    const { store, causes, fail, look, clock } = await scene(memoryWorld);
    await fail();
    await causes.mute(F, { more: 5 });
    clock.now += 5 * MINUTE;
    await look();
    clock.now += 10 * MINUTE;
    const asked: string[] = [];
    const noted = new Proxy(store, {
      get: (target, verb: keyof Store) => {
        const value = target[verb];
        if (typeof value !== "function") return value;
        return (...args: never[]) => (asked.push(verb), (value as (...all: never[]) => unknown)(...args));
      },
    });
    const [one, other] = [1, 2].map(() => causesService({ store: noted, system: { random: () => 0.5 } }));
    await one?.step(never);
    expect(asked).toEqual(["cells", "setCells", "causes", "setCells"]);
    asked.length = 0;
    await other?.step(never);
    expect(asked).toEqual(["cells"]);
  });

  it("looks at those with a record even where more causes failed than one look reads", async () => {
    const { store, causes, fail, told, clock } = await scene(memoryWorld);
    await fail();
    await causes.fix(F, { in: "2.0.0" });
    await store.record([releaseSeen("2.0.0", "w")]);
    await fail({ release: "2.0.0" });
    const pages: unknown[] = [];
    const endless: Store["causes"] = async (query) => {
      if (query.fingerprint !== undefined) return store.causes(query);
      pages.push(query.cursor);
      return { items: [], next: "1.more" };
    };
    clock.now += MINUTE;
    await causesService({ store: { ...store, causes: endless }, system: { random: () => 0.5 } }).step(never);
    expect(pages).toHaveLength(5);
    expect(await told()).toEqual(["cause.regressed"]);
  });
});
