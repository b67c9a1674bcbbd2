// Every rule fires in a worker and in a drain, and is cleared when its trouble is over: real workers on the fake clock,
// and what really happens on a queue.
import { describe, expect, it, vi } from "vitest";
import { openAlerting } from "../../src/alerts/alerting.ts";
import { type AlertRule, defineJob, permanent } from "../../src/index.ts";
import type { AlertRulesOptions } from "../../src/core/alerting/rules.ts";
import { openSchedules } from "../../src/schedules/schedules.ts";
import { openEventLog } from "../../src/report/event-log.ts";
import { openEvents } from "../../src/report/events.ts";
import { realSystem } from "../../src/system/real.ts";
import { collectLog } from "../../src/testing/collect-log.ts";
import { createTestRedrive, type TestRedrive } from "../../src/testing/index.ts";
import type { FleetAlertOptions } from "../../src/alerts/sink-options.ts";
import { inlineStore } from "../support/database-file.ts";
import { finish } from "../support/runs.ts";
import { dead } from "../support/verdicts.ts";

let isBroken = true;
const mail = defineJob("mail", {
  letters: { objective: "1h" },
  run: () => (isBroken ? permanent("no such address") : null),
});

const many = (test: TestRedrive, count: number) => test.enqueueMany(mail, Array.from({ length: count }).keys());
const retryAll = async (test: TestRedrive): Promise<void> => {
  isBroken = false;
  const { items } = await test.deadLetters.list({ limit: 200 });
  await test.deadLetters.retry(items.map(({ job }) => job.id));
};
const foreign = (test: TestRedrive) => Promise.all(["1", "2", "3"].map((text) => test.enqueueText("other", text)));
const cancelAll = async (test: TestRedrive): Promise<void> => {
  for (const { id } of (await test.jobs.list({ type: "other" })).items) await test.jobs.cancel(id);
};

/** Works until nothing is left, or for a while: a drain, or a worker. */
type Works = (test: TestRedrive) => Promise<unknown>;
const drains: Works = (test) => test.worker().drain();
const works: Works = async (test) => {
  const worker = test.worker();
  await worker.start();
  await test.clock.advance("10s");
  await worker.stop();
};
const later = (test: TestRedrive, minutes: number): void => test.clock.set(test.clock.now() + minutes * 60_000);

interface Scene {
  readonly rules?: AlertRulesOptions;
  readonly before: (test: TestRedrive, work: Works) => Promise<unknown>;
  readonly after: (test: TestRedrive) => Promise<unknown> | void;
}

const SCENES: readonly (readonly [AlertRule, string | null, Scene])[] = [
  [
    "errorRate",
    null,
    {
      before: async (test, work) => (await many(test, 30), await work(test), later(test, 5)),
      after: async (test) => (await retryAll(test), later(test, 61)),
    },
  ],
  [
    "score",
    null,
    {
      before: async (test, work) => (await many(test, 120), await work(test), later(test, 2)),
      after: async (test) => (await retryAll(test), later(test, 61)),
    },
  ],
  ["deadLetters", null, { before: (test) => many(test, 101), after: retryAll }],
  [
    "backlog",
    null,
    {
      rules: { backlog: { limit: 2 } },
      before: async (test) => (await foreign(test), later(test, 2)),
      after: cancelAll,
    },
  ],
  ["newCause", "cause:", { before: (test) => many(test, 1), after: retryAll }],
  [
    "causeBack",
    "cause:",
    {
      async before(test, work) {
        await many(test, 1);
        await work(test);
        const [cause] = (await test.causes.list()).items;
        later(test, 2);
        await test.causes.fix(cause?.fingerprint ?? "");
        later(test, 2);
        await many(test, 1);
        await work(test);
        later(test, 2);
        // A drain looks at the causes at once, a worker within 90 s.
        await drains(test);
        later(test, 2);
      },
      after: async (test) => (await retryAll(test), later(test, 61)),
    },
  ],
  [
    "letterAge",
    "type:mail",
    { before: async (test, work) => (await many(test, 1), await work(test), later(test, 61)), after: retryAll },
  ],
  [
    "breakerOpen",
    "service:pricing",
    {
      before: async (test) => (await test.breakers.open("pricing", { reason: "down" }), later(test, 10)),
      after: (test) => test.breakers.close("pricing"),
    },
  ],
  ["noWorker", null, { before: async (test) => (await foreign(test), later(test, 2)), after: cancelAll }],
];

describe.each([
  ["a worker", works],
  ["a drain", drains],
])("%s", (_name, work) => {
  it.each(SCENES)("tells %s, and when it is over", async (rule, subject, { rules = {}, before, after }) => {
    isBroken = true;
    const told: string[] = [];
    const call = (message: { readonly kind: string; readonly rule: string }) =>
      void (message.rule === rule && told.push(message.kind));
    await using test = await createTestRedrive({ jobs: [mail], alerts: { rules, sinks: { call } } });
    await before(test, work);
    await work(test);
    expect(told).toEqual(["raised"]);
    const [alert] = (await test.alerts.list()).filter((each) => each.rule === rule);
    expect(alert).toMatchObject({ state: "raised", muted: null });
    expect(alert?.subject ?? "").toContain(work === drains || rule !== "noWorker" ? (subject ?? "") : "type:other");
    await after(test);
    await work(test);
    later(test, 1);
    await work(test);
    expect(told).toEqual(["raised", "cleared"]);
    const kinds = (await test.events({ limit: 200 })).items.map(({ kind, subject: about }) => `${kind} ${about}`);
    for (const kind of ["alert.raised", "alert.cleared"])
      expect(kinds.filter((each) => each.startsWith(`${kind} alert:${rule}`))).toHaveLength(1);
  });
});

/** The alerts of a worker on a store with its clock in the test's hands. */
async function alone(options: FleetAlertOptions = {}) {
  const { store, clock } = await inlineStore();
  const log = collectLog();
  const world = { refused: 0 };
  const system = { ...realSystem, random: () => 0.5 };
  const worker = {
    store,
    system,
    log,
    jobs: [],
    process: () => "a",
    staleWrites: () => world.refused,
    isAway: () => false,
  };
  const alerts = openAlerting(options, {}).open(worker);
  const never = new AbortController().signal;
  return { store, clock, log, world, step: () => alerts.service.step(never), briefly: () => alerts.briefly(5_000) };
}

describe("alerts of what a worker would mend at once", () => {
  it.each(["step", "briefly"] as const)("scheduleLate and staleWrites: %s", async (how) => {
    const { store, clock, log, world, ...looks } = await alone();
    const parts = { store, system: realSystem, events: openEvents(log), jobs: [], defaults: {} };
    const schedules = openSchedules({ ...parts, eventLog: openEventLog({ store, log, actor: "test" }) });
    await schedules.set("nightly", { every: "1m", job: "mail", input: {} });
    clock.now += 200_000;
    world.refused = 2;
    await looks[how]();
    const said = () => log.lines.map(({ message }) => message);
    expect(said()).toContain(
      "alert (staleWrites): the store refused 2 verdicts of runs that had lost their lease within a minute",
    );
    expect(said()).toContain("alert (scheduleLate): the schedule nightly is 2.3m late");
    clock.now += 61_000;
    await schedules.remove("nightly");
    await looks[how]();
    expect(said().filter((line) => line.startsWith("alert cleared"))).toHaveLength(2);
  });
});

describe("a drain that ends while its worker tells", () => {
  it("tells nothing a second time", async () => {
    const told: string[] = [];
    const call = async ({ id }: { readonly id: string }): Promise<void> => {
      told.push(id);
      await realSystem.sleep(200);
    };
    const { store, step, briefly } = await alone({ rules: { deadLetters: { limit: 0 } }, sinks: { log: false, call } });
    await finish(store, dead(), { type: "mail" });
    const telling = step();
    await vi.waitUntil(() => told.length > 0);
    await Promise.all([telling, briefly()]);
    expect(told.map((id) => id.split("#")[0])).toEqual(["deadLetters", expect.stringContaining("newCause")]);
  });
});

describe("a store that is away", () => {
  it("is told by the sinks of each worker after a minute, and when it is back", async () => {
    const told: string[] = [];
    const call = ({ kind, rule, text }: { readonly kind: string; readonly rule: string; readonly text: string }) =>
      void told.push(`${kind} ${rule} ${text}`);
    await using test = await createTestRedrive({ jobs: [mail], alerts: { sinks: { call } } });
    const worker = test.worker();
    await worker.start();
    await test.clock.advance("40s");
    test.storeDown();
    await test.clock.advance("50s");
    expect(told).toEqual([]);
    await test.clock.advance("50s");
    expect(told).toEqual([expect.stringMatching(/^raised storeAway the store does not answer: /)]);
    expect(test.log.said("alert (storeAway)")).toMatchObject([{ level: "error", fields: { severity: "critical" } }]);
    test.storeUp();
    await test.clock.advance("40s");
    expect(told).toEqual([expect.anything(), "cleared storeAway the store does not answer; it does again"]);
    await worker.stop();
  });
});

describe("a callback", () => {
  it("that throws or never ends is logged, and the work goes on", async () => {
    isBroken = true;
    const call = () => Promise.reject(new Error("no line"));
    await using test = await createTestRedrive({ jobs: [mail], alerts: { sinks: { call } } });
    await many(test, 1);
    await works(test);
    expect(test.log.said("an alert could not be told to call")).toMatchObject([
      { fields: { error: "Error: no line" } },
    ]);
    expect(test.log.said("alert (newCause)")).toHaveLength(1);
    expect(await test.alerts.sinks()).toMatchObject([{ name: "call", failing: { error: "Error: no line" } }, {}, {}]);
    expect((await test.health()).reasons).toMatchObject([
      { text: "alerts cannot be told to call: Error: no line", help: "redrive alerts test" },
    ]);
  });
});
