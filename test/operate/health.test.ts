// How a queue is doing, judged from facts, and the facts as a store tells them.
import { describe, expect, it } from "vitest";
import { queueFindings } from "../../src/cli/doctor-queue.ts";
import { gatherHealth, type HealthFacts, judgeHealth } from "../../src/operate/health.ts";
import { openEventLog } from "../../src/report/event-log.ts";
import { openEvents } from "../../src/report/events.ts";
import { openSchedules } from "../../src/schedules/schedules.ts";
import { realSystem } from "../../src/system/real.ts";
import { defineJob, fixed, permanent } from "../../src/index.ts";
import { collectLog } from "../../src/testing/collect-log.ts";
import { createTestRedrive } from "../../src/testing/index.ts";
import { pacedLanes } from "../../src/operate/due-work.ts";
import { openRecords } from "../../src/upkeep/upkeep-records.ts";
import { applyRetention, retentionService } from "../../src/upkeep/retention.ts";
import { inlineStore } from "../support/database-file.ts";
import { newJob } from "../support/new-job.ts";
import { finish } from "../support/runs.ts";
import { dead } from "../support/verdicts.ts";

const IDLE: HealthFacts["upkeep"] = { toldMs: 1_000, unattended: [], failing: [], late: [] };
const WELL: HealthFacts = {
  jobs: { queued: 0, running: 0, completed: 100, dead: 0, cancelled: 0 },
  workers: 2,
  orphans: 0,
  oldestDueMs: null,
  waitingTypes: [],
  paused: [],
  breakers: [],
  deadLetters: 0,
  unarchived: [],
  upkeep: IDLE,
};

describe("the success rate", () => {
  it("is unknown where the good jobs are removed before the dead ones, and costs nothing", async () => {
    const keep = { finished: 0, dead: "7d" } as const;
    const mail = defineJob("mail", { keep, run: (n: number) => (n < 2 ? permanent("no such address") : n) });
    await using test = await createTestRedrive({ jobs: [mail] });
    await test.enqueueMany(mail, Array.from({ length: 102 }).keys());
    expect(await test.drain()).toMatchObject({ completed: 100, dead: 2 });
    const facts = await gatherHealth(test.store);
    expect(facts.jobs).toMatchObject({ completed: 0, dead: 2 });
    expect(judgeHealth(facts)).toEqual({ status: "healthy", score: 1, successRate: null, reasons: [] });
  });
});

describe("the judgement", () => {
  const ended = (completed: number, dead: number) => ({ jobs: { ...WELL.jobs, completed, dead } });

  it.each<[string, Partial<HealthFacts>, string, number]>([
    ["nothing wrong", {}, "healthy", 1],
    ["no worker and no work", { workers: 0 }, "healthy", 1],
    ["no worker, work due just now", { workers: 0, oldestDueMs: 500 }, "degraded", 0.7],
    ["no worker, work due for a minute", { workers: 0, oldestDueMs: 60_000 }, "unhealthy", 0.4],
    ["work due for a minute", { oldestDueMs: 60_000 }, "degraded", 0.75],
    ["work due for five minutes", { oldestDueMs: 300_000 }, "degraded", 0.5],
    ["orphaned runs", { orphans: 3 }, "degraded", 0.75],
    ["a service that is down", { breakers: ["pricing"] }, "degraded", 0.75],
    ["dead jobs kept longer than good ones", ended(0, 2), "healthy", 1],
    ["100 dead letters", { deadLetters: 100 }, "healthy", 1],
    ["101 dead letters", { deadLetters: 101 }, "degraded", 0.75],
    ["letters whose archive nobody opens", { unarchived: [{ type: "mail", count: 2 }] }, "healthy", 0.9],
    ["upkeep that nobody runs", { upkeep: { ...IDLE, unattended: ["a schedule"] } }, "degraded", 0.7],
    ["a schedule ten seconds late", { upkeep: { ...IDLE, late: [{ name: "s", lateMs: 10_000 }] } }, "healthy", 0.9],
    ["a schedule a minute late", { upkeep: { ...IDLE, late: [{ name: "s", lateMs: 60_000 }] } }, "degraded", 0.75],
    ["a schedule five minutes late", { upkeep: { ...IDLE, late: [{ name: "s", lateMs: 300_000 }] } }, "degraded", 0.5],
    ["upkeep that fails", { upkeep: { ...IDLE, failing: ["retention: no room"] } }, "healthy", 0.9],
    [
      "everything at once",
      { ...ended(1, 200), workers: 0, oldestDueMs: 1e6, orphans: 1, deadLetters: 200 },
      "unhealthy",
      0,
    ],
  ])("of %s", (_name, facts, status, score) => {
    const health = judgeHealth({ ...WELL, ...facts });
    expect(health).toMatchObject({ status, score });
    expect(health.reasons.length > 0).toBe(score < 1);
  });

  it("names the worst first", () => {
    const { reasons } = judgeHealth({ ...WELL, oldestDueMs: 400_000, orphans: 1 });
    expect(reasons).toEqual(["a job has been due for 6.7m", "1 runs belong to workers that do not respond"]);
  });
});

describe("the facts", () => {
  it("leave out what is paused, and count workers by their lease", async () => {
    const { store, clock } = await inlineStore();
    await store.enqueue([newJob({ type: "a" }), newJob({ type: "b" }), newJob({ type: "c", delayMs: 1_000_000 })]);
    await store.register({ id: "w", leaseMs: 30_000, pid: 1, host: "h", release: null });
    await store.pause({ kind: "type", name: "a" }, { forMs: null, reason: "" });
    clock.now += 10_000;
    expect(await gatherHealth(store)).toMatchObject({ workers: 1, oldestDueMs: 10_000, waitingTypes: [] });
    clock.now += 60_000;
    expect(await gatherHealth(store)).toMatchObject({
      jobs: { queued: 3 },
      workers: 0,
      oldestDueMs: 70_000,
      waitingTypes: ["b"],
      paused: ["type a"],
    });
  });
});

describe("dead letters with an archive", () => {
  it("are named once they are over and nobody who has it comes", async () => {
    const { store, clock } = await inlineStore();
    const mail = defineJob("mail", { keep: { dead: "1d" }, run: () => null });
    const common = { store, system: realSystem, policy: mail.policy, onPruned: () => undefined };
    const archivist = { ...common, jobs: [mail], archive: async () => undefined };
    await applyRetention(archivist);
    const { id } = await finish(store, dead(), { type: "mail", keepFinishedMs: 0, keepDeadMs: 86_400_000 });
    clock.now += 86_400_000;
    await applyRetention({ ...common, jobs: [], archive: null });
    expect((await gatherHealth(store)).unarchived).toEqual([{ type: "mail", count: 1 }]);
    const isArchive = ({ check }: { check: string }): boolean => check === "archive";
    expect((await queueFindings(store, null)).find(isArchive)).toMatchObject({
      message: expect.stringMatching(/: mail$/),
    });
    const { reasons } = judgeHealth({ ...WELL, unarchived: [{ type: "mail", count: 1 }] });
    expect(reasons).toEqual(["1 dead letter waits for an archive that no worker has opened for an hour: mail"]);
    // Here it is: a moment later the letter is gone, and nobody is worried meanwhile.
    await retentionService(archivist).step(new AbortController().signal);
    expect((await gatherHealth(store)).unarchived).toEqual([]);
    await applyRetention(archivist);
    expect(await store.get([id])).toEqual([null]);
  });
});

describe("work behind a rate limit", () => {
  it("is not late while workers use the limit, and is when none is left", async () => {
    const mail = defineJob("mail", { rateLimit: { limit: 10, per: "1m" }, run: () => null });
    await using test = await createTestRedrive({ jobs: [mail] });
    for (let n = 0; n < 200; n += 1) await test.enqueue(mail, {});
    const worker = test.worker({ poll: "1s" });
    await worker.start();
    await test.clock.advance("5m");
    for (let look = 0; look < 20; look += 1) {
      await test.clock.advance(1_700);
      expect(await gatherHealth(test.store)).toMatchObject({ oldestDueMs: null, waitingTypes: [] });
    }
    await worker.stop();
    expect(await gatherHealth(test.store)).toMatchObject({ workers: 0, waitingTypes: ["mail"] });
  });
});

describe("work behind a retry budget", () => {
  const services = { pricing: { breaker: false, budget: { share: 0.1, floorPerSecond: 0.1, capacity: 1 } } } as const;
  const quote = defineJob("quote", {
    service: "pricing",
    maxAttempts: 50,
    backoff: fixed("1s"),
    run: () => Promise.reject(new Error("HTTP 503")),
  });

  it("is not late while workers use the budget, and is when none is left", async () => {
    await using test = await createTestRedrive({ jobs: [quote], services });
    for (let n = 0; n < 50; n += 1) await test.enqueue(quote, {});
    const worker = test.worker({ poll: "1s" });
    await worker.start();
    await test.clock.advance("5m");
    for (let look = 0; look < 20; look += 1) {
      await test.clock.advance(1_700);
      const facts = await gatherHealth(test.store);
      expect(facts).toMatchObject({ jobs: { queued: 50 }, waitingTypes: [] });
      expect(facts.oldestDueMs ?? 0).toBeLessThan(60_000);
    }
    await worker.stop();
    await test.clock.advance("1m");
    expect(await gatherHealth(test.store)).toMatchObject({ workers: 0, waitingTypes: ["quote"] });
  });

  it("is put off only as a retry, and only while somebody asks for tokens", async () => {
    const { store, clock } = await inlineStore();
    const lane = { type: "quote", queue: "default", service: "pricing", tenant: null, dueMs: 90_000 };
    const isPaced = async (kind: "first" | "retry"): Promise<boolean> => (await pacedLanes(store))({ ...lane, kind });
    const leave = (tokens: number) => {
      const value = JSON.stringify({ tokens, countedAt: clock.now });
      return store.setCells([{ kind: "budget", name: "pricing", holder: "", version: null, value }]);
    };
    await leave(0.5);
    expect([await isPaced("retry"), await isPaced("first")]).toEqual([true, false]);
    clock.now += 10_000;
    expect(await isPaced("retry")).toBe(false);
    await leave(1);
    expect(await isPaced("retry")).toBe(false);
  });
});

describe("upkeep", () => {
  /** A store with a schedule every minute and a living worker that told of its upkeep. */
  async function attended() {
    const { store, clock } = await inlineStore();
    const log = collectLog();
    const eventLog = openEventLog({ store, log, actor: "test" });
    const parts = { store, system: realSystem, events: openEvents(log), eventLog, jobs: [], defaults: {} };
    const schedules = openSchedules(parts);
    await schedules.set("a", { every: "1m", job: "t" });
    await schedules.set("b", { every: "1h", job: "t" });
    await store.register({ id: "w", leaseMs: 300_000, pid: 1, host: "h", release: null });
    const records = openRecords({ store, system: { monotonic: () => clock.now }, worker: () => "w" });
    return { store, clock, records, schedules, told: async () => (await gatherHealth(store)).upkeep };
  }
  const well = { ms: 5, error: null, waitMs: 1_000 };

  it("is attended while a living worker tells of it, and not a while after", async () => {
    const { clock, records, told } = await attended();
    expect(await told()).toEqual({ toldMs: null, unattended: ["2 schedules"], failing: [], late: [] });
    records.note("schedules", well);
    clock.now += 59_000;
    expect(await told()).toEqual({ toldMs: 59_000, unattended: [], failing: [], late: [] });
    clock.now += 32_000;
    expect(await told()).toMatchObject({ toldMs: null, unattended: ["2 schedules"] });
  });

  it("is not attended by a worker whose lease has ended", async () => {
    const { store, clock, records, told } = await attended();
    clock.now += 280_000;
    records.note("schedules", { ...well, waitMs: 600_000 });
    expect(await told()).toMatchObject({ unattended: [] });
    clock.now += 30_000;
    expect(await told()).toMatchObject({ toldMs: null, unattended: ["2 schedules"] });
    expect(judgeHealth(await gatherHealth(store)).reasons).toContain("the schedule a is 4.2m late");
  });

  it("says which schedules are late, and by how long", async () => {
    const { clock, told, schedules, records } = await attended();
    clock.now += 70_000;
    records.note("schedules", well);
    expect(await told()).toMatchObject({ unattended: [], late: [{ name: "a", lateMs: 10_000 }] });
    await schedules.pause("a");
    expect(await told()).toMatchObject({ late: [] });
  });

  it("says what fails, and that it goes well again", async () => {
    const { records, told } = await attended();
    records.note("retention", { ...well, error: "no room" });
    expect((await told()).failing).toEqual(["retention: no room"]);
    records.note("retention", well);
    expect((await told()).failing).toEqual([]);
  });

  it("is missed for old jobs once nobody has told of it for a day", async () => {
    const { store, clock, records, told, schedules } = await attended();
    for (const name of ["a", "b"]) await schedules.remove(name);
    const job = newJob();
    await store.enqueue([job]);
    await store.cancel([job.id]);
    records.note("retention", { ...well, waitMs: 600_000 });
    clock.now += 86_000_000;
    expect(await told()).toMatchObject({ toldMs: null, unattended: [] });
    clock.now += 1_000_000;
    expect(await told()).toMatchObject({ unattended: ["finished jobs past their retention"] });
  });

  it("is written about every thirty seconds at most, all services at once, and at once when one fails", async () => {
    const { store } = await inlineStore();
    const clock = { now: 0 };
    const writes: string[][] = [];
    const setCells: typeof store.setCells = async (changes) => {
      writes.push(changes.map(({ name }) => name));
      return store.setCells(changes);
    };
    const records = openRecords({ store: { setCells }, system: { monotonic: () => clock.now }, worker: () => "w" });
    for (; clock.now < 41_000; clock.now += 1_000) {
      records.note("a", well);
      records.note("b", { ...well, error: clock.now === 5_000 ? "bad" : null });
    }
    const both = ["a", "b"];
    expect(writes).toEqual([["a"], ["b"], both, both, both]);
  });
});
