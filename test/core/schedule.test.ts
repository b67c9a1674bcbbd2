// Schedules as pure decisions: which ticks make jobs, and what becomes of those that were missed.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  begun,
  type CatchUp,
  decide,
  everyTick,
  isDue,
  type NextTick,
  type Overlap,
  pausedSchedule,
  redefined,
  resumedSchedule,
  type Schedule,
  type ScheduleDefinition,
  scheduleFrom,
  written,
} from "../../src/core/schedule.ts";

const DEFINITION: ScheduleDefinition = {
  cron: null,
  timezone: null,
  everyMs: 1_000,
  catchUp: "one",
  overlap: "queue",
  jitterMs: 0,
  job: "report",
  payload: "{}",
  options: {},
};
const idOf = (tick: number): string => `job-${tick}`;

function at(schedule: Schedule, now: number, next: NextTick, isBusy = false): Schedule {
  return decide(schedule, { now, isBusy, next, idOf });
}

function every(everyMs: number, rules: Partial<ScheduleDefinition> = {}): { schedule: Schedule; next: NextTick } {
  const next = everyTick(everyMs, 0);
  return { schedule: begun({ ...DEFINITION, everyMs, ...rules }, 0, next), next };
}

describe("a decision", () => {
  it("fires the tick that is due, and knows the next", () => {
    const { schedule, next } = every(1_000);
    expect([isDue(schedule, 999), isDue(schedule, 1_000)]).toEqual([false, true]);
    const { state } = at(schedule, 1_200, next);
    expect(state).toMatchObject({ pending: [1_000], last: 1_000, next: 2_000, lastJob: "job-1000", lastAt: 1_000 });
    expect(state).toMatchObject({ fired: 1, skipped: 0 });
  });

  it.each<[CatchUp, Overlap, number[], number]>([
    ["one", "queue", [5_000], 4],
    ["none", "queue", [5_000], 4],
    [{ all: 3 }, "queue", [3_000, 4_000, 5_000], 2],
    [{ all: 9 }, "queue", [1_000, 2_000, 3_000, 4_000, 5_000], 0],
    [{ all: 3 }, "skip", [5_000], 4],
    [{ all: 3 }, "replace", [5_000], 4],
  ])("with catch-up %j and overlap %s makes up for %j of five", (catchUp, overlap, fired, skipped) => {
    const { schedule, next } = every(1_000, { catchUp, overlap });
    expect(at(schedule, 5_500, next).state).toMatchObject({ pending: fired, skipped, last: 5_000, next: 6_000 });
  });

  it("drops what is more than a minute late where nothing is made up for", () => {
    const { schedule, next } = every(3_600_000, { catchUp: "none" });
    expect(at(schedule, 3_660_000, next).state).toMatchObject({ pending: [3_600_000], skipped: 0 });
    expect(at(schedule, 3_660_001, next).state).toMatchObject({ pending: [], skipped: 1, next: 7_200_000 });
    expect(at({ ...schedule, definition: { ...DEFINITION } }, 3_660_001, next).state.pending).toEqual([3_600_000]);
  });

  it("skips while the job before has not ended, if told to", () => {
    const { schedule, next } = every(1_000, { overlap: "skip" });
    const first = at(schedule, 1_000, next);
    // Nobody has seen its job yet.
    expect(at(first, 2_000, next, false).state).toMatchObject({ pending: [1_000], skipped: 1 });
    const { state } = at(written(first, [1_000]), 2_000, next, true);
    expect(state).toMatchObject({ pending: [], skipped: 1, lastJob: "job-1000", last: 2_000, next: 3_000 });
  });

  it("names the job to replace, also where the job before may not be written yet", () => {
    const { schedule, next } = every(1_000, { overlap: "replace" });
    const first = at(schedule, 1_000, next);
    expect(first.state).toMatchObject({ pending: [1_000], replaces: null });
    const second = at(written(first, [1_000]), 2_000, next);
    expect(second.state).toMatchObject({ pending: [2_000], replaces: "job-1000", lastJob: "job-2000" });
    const third = at(second, 3_000, next);
    expect(third.state).toMatchObject({ pending: [2_000, 3_000], replaces: "job-1000" });
    expect(written(third, [2_000, 3_000]).state).toMatchObject({ pending: [], replaces: null });
  });

  it("asks for few ticks after a very long time", () => {
    const base = everyTick(1_000, 0);
    let asked = 0;
    const next: NextTick = (after) => {
      asked += 1;
      return base(after);
    };
    const { schedule } = every(1_000, { catchUp: { all: 50 } });
    const { state } = at(schedule, 365 * 86_400_000 + 1, next);
    expect(state.pending).toHaveLength(50);
    expect(state).toMatchObject({ last: 365 * 86_400_000, skipped: 50 });
    expect(asked).toBeLessThan(400);
  });

  it("ends with its last tick", () => {
    const next: NextTick = (after) => (after < 5 ? 5 : null);
    const ended = at(begun(DEFINITION, 0, next), 9, next);
    expect(ended.state).toMatchObject({ pending: [5], next: null });
    expect(isDue(ended, 1e9)).toBe(false);
  });
});

describe("whatever the clock does", () => {
  /** Ticks at odd places, so that neighbours are near and far. */
  const places = fc.uniqueArray(fc.integer({ min: 1, max: 2_000_000 }), { minLength: 1, maxLength: 400 });

  it("no tick fires twice or out of order, and each is fired or skipped", () => {
    const looks = fc.array(fc.integer({ min: 0, max: 2_100_000 }), { minLength: 1, maxLength: 40 });
    const rule = fc.oneof(
      fc.constantFrom<CatchUp>("none", "one"),
      fc.integer({ min: 1, max: 200 }).map((all) => ({ all })),
    );
    fc.assert(
      fc.property(places, looks, rule, (ticks, times, catchUp) => {
        const sorted = ticks.toSorted((a, b) => a - b);
        const next: NextTick = (after) => sorted.find((tick) => tick > after) ?? null;
        let schedule = begun({ ...DEFINITION, catchUp }, 0, next);
        const fired: number[] = [];
        let latest = 0;
        for (const now of times) {
          if (isDue(schedule, now)) schedule = at(schedule, now, next);
          latest = Math.max(latest, now);
          fired.push(...schedule.state.pending);
          schedule = written(schedule, schedule.state.pending);
        }
        expect(fired).toEqual([...new Set(fired)].toSorted((a, b) => a - b));
        expect(fired.every((tick) => sorted.includes(tick) && tick <= latest)).toBe(true);
        expect(schedule.state.last).toBe(sorted.findLast((tick) => tick <= latest) ?? 0);
        expect(schedule.state.next).toBe(next(latest));
        expect(schedule.state.fired).toBe(fired.length);
      }),
    );
  });

  it("the latest ticks are found behind any number of others", () => {
    fc.assert(
      fc.property(
        places,
        fc.integer({ min: 1, max: 150 }),
        fc.integer({ min: 0, max: 2_100_000 }),
        (ticks, all, now) => {
          const sorted = ticks.toSorted((a, b) => a - b);
          const next: NextTick = (after) => sorted.find((tick) => tick > after) ?? null;
          const schedule = begun({ ...DEFINITION, catchUp: { all } }, 0, next);
          if (!isDue(schedule, now)) return;
          expect(at(schedule, now, next).state.pending).toEqual(sorted.filter((tick) => tick <= now).slice(-all));
        },
      ),
    );
  });
});

describe("changes", () => {
  it("of the times go on from now; others change nothing about them", () => {
    const { schedule, next } = every(10_000);
    const fired = written(at(schedule, 10_000, next), [10_000]);
    const slower = { ...DEFINITION, everyMs: 25_000 };
    const after = redefined(fired, slower, 12_000, (anchor) => everyTick(25_000, anchor));
    expect(after.state).toMatchObject({ anchor: 10_000, last: 12_000, next: 35_000, fired: 1 });
    const same = redefined(fired, { ...fired.definition, payload: "1" }, 999_000, () => next);
    expect(same.state).toEqual(fired.state);
  });

  it("never bring a decided tick back, even if the clock was stepped back", () => {
    const { schedule, next } = every(10_000);
    const fired = written(at(schedule, 50_000, next), [50_000]);
    const faster = redefined(fired, { ...DEFINITION, everyMs: 5_000 }, 1_000, (anchor) => everyTick(5_000, anchor));
    expect(faster.state.next).toBe(55_000);
  });

  it("a pause has no ticks, and none of it is made up for", () => {
    const { schedule, next } = every(1_000, { catchUp: { all: 100 } });
    const paused = pausedSchedule(schedule);
    expect(isDue(paused, 1e6)).toBe(false);
    const { state } = resumedSchedule(paused, 60_500, next);
    expect(state).toMatchObject({ paused: false, next: 61_000, last: 60_500 });
  });
});

describe("what is stored", () => {
  it("comes back as it was", () => {
    const { schedule } = every(1_000);
    expect(scheduleFrom(JSON.stringify(schedule))).toEqual(schedule);
  });

  it.each(["", "null", "[]", '{"definition":{}}', '{"definition":{"job":"a","payload":"1","everyMs":5},"state":{}}'])(
    "is no schedule if it is %s",
    (text) => expect(scheduleFrom(text)).toBeNull(),
  );

  it.each<[part: "definition" | "state", change: Record<string, unknown>]>([
    ["definition", { job: 5 }],
    ["definition", { payload: null }],
    ["definition", { everyMs: null }],
    ["state", { anchor: "0" }],
    ["state", { fired: undefined }],
    ["state", { pending: null }],
  ])("is no schedule where the %s has %j", (part, change) => {
    const { schedule } = every(1_000);
    expect(scheduleFrom(JSON.stringify({ ...schedule, [part]: { ...schedule[part], ...change } }))).toBeNull();
    expect(scheduleFrom(JSON.stringify({ ...schedule, [part]: "text" }))).toBeNull();
  });
});
