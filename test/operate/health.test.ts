// How a queue is doing, judged from facts, and the facts as a store tells them.
import { describe, expect, it } from "vitest";
import { queueFindings } from "../../src/cli/doctor-queue.ts";
import { resolveHealth } from "../../src/core/health.ts";
import { gatherHealth, readHealth } from "../../src/operate/health.ts";
import { openEventLog } from "../../src/report/event-log.ts";
import { openEvents } from "../../src/report/events.ts";
import { openSchedules } from "../../src/schedules/schedules.ts";
import { realSystem } from "../../src/system/real.ts";
import { defineJob, fixed, permanent } from "../../src/index.ts";
import { collectLog } from "../../src/testing/collect-log.ts";
import { createTestRedrive } from "../../src/testing/index.ts";
import { pacedLanes } from "../../src/operate/due-work.ts";
import { noteDrain } from "../../src/upkeep/drains.ts";
import { openRecords } from "../../src/upkeep/upkeep-records.ts";
import { applyRetention, retentionService } from "../../src/upkeep/retention.ts";
import { inlineStore } from "../support/database-file.ts";
import { newJob } from "../support/new-job.ts";
import { finish } from "../support/runs.ts";
import { dead } from "../support/verdicts.ts";

describe("the success rate", () => {
  it("is that of the runs, however few of them are kept", async () => {
    const keep = { finished: 0, dead: "7d" } as const;
    const mail = defineJob("mail", { keep, run: (n: number) => (n < 2 ? permanent("no such address") : n) });
    await using test = await createTestRedrive({ jobs: [mail] });
    await test.enqueueMany(mail, Array.from({ length: 1_002 }).keys());
    expect(await test.drain()).toMatchObject({ completed: 1_000, dead: 2 });
    expect((await gatherHealth(test.store)).jobs).toMatchObject({ completed: 0, dead: 2 });
    const health = await readHealth(test.store);
    expect(health).toEqual({ status: "healthy", score: 1, successRate: 1_000 / 1_002, reasons: [] });
  });

  it("is that of one type where one is asked for", async () => {
    const mail = defineJob("mail", { run: () => permanent("no such address") });
    const media = defineJob("media", { run: () => null });
    await using test = await createTestRedrive({ jobs: [mail, media] });
    await test.enqueueMany(mail, Array.from({ length: 30 }).keys());
    await test.enqueueMany(media, Array.from({ length: 270 }).keys());
    await test.drain();
    expect(await readHealth(test.store, { type: "media" })).toMatchObject({ score: 1, successRate: 1, reasons: [] });
    expect(await readHealth(test.store, { type: "mail" })).toMatchObject({
      status: "unhealthy",
      successRate: 0,
      reasons: [{ subject: "type:mail", help: "redrive dlq causes", since: expect.any(Number) }],
    });
    expect(await readHealth(test.store)).toMatchObject({ score: 1, successRate: 0.9 });
    await expect(readHealth(test.store, { type: "a b" })).rejects.toMatchObject({ code: "invalid_argument" });
  });
});

describe("dead letters over the limit", () => {
  it("say since when, and how many there are of a type", async () => {
    const { store, clock } = await inlineStore();
    await finish(store, dead(), { type: "mail" });
    clock.now += 60_000;
    const at = clock.now;
    await finish(store, dead(), { type: "mail" });
    clock.now += 60_000;
    await finish(store, dead(), { type: "media" });
    const limits = resolveHealth({ deadLetters: 1 });
    const help = "redrive dlq causes";
    expect((await readHealth(store, { limits })).reasons).toEqual([
      { text: "3 dead letters", since: at, subject: null, help },
    ]);
    expect((await readHealth(store, { limits, type: "mail" })).reasons).toEqual([
      { text: "2 dead letters", since: at, subject: "type:mail", help },
    ]);
    expect((await readHealth(store, { limits, type: "media" })).reasons).toEqual([]);
  });
});

describe("work that drains take at intervals", () => {
  const mail = defineJob("mail", { run: () => null });

  /** A store that was drained every five minutes, and a job that came a minute after the last drain. */
  async function drained(times: number) {
    const { store, clock } = await inlineStore();
    for (let n = 0; n < times; n += 1) {
      clock.now += 300_000;
      const noteEnd = await noteDrain({ store, log: collectLog(), jobs: [mail] });
      clock.now += 10_000;
      await noteEnd();
      clock.now -= 10_000;
    }
    clock.now += 60_000;
    await store.enqueue([newJob({ type: "mail" })]);
    return { store, clock };
  }

  it("is not late before the next one is", async () => {
    const { store, clock } = await drained(4);
    clock.now += 200_000;
    expect(await readHealth(store)).toMatchObject({ status: "healthy", reasons: [] });
    clock.now += 180_000;
    expect(await readHealth(store)).toMatchObject({ status: "unhealthy", reasons: [{ subject: "type:mail" }] });
  });

  it("is late after one drain, which has no interval yet, unless the config says how often", async () => {
    const { store, clock } = await drained(1);
    clock.now += 200_000;
    expect(await readHealth(store)).toMatchObject({ status: "unhealthy" });
    const every = (span: string) => ({ limits: resolveHealth({ drains: { every: span } }) });
    expect(await readHealth(store, every("10m"))).toMatchObject({ status: "healthy", reasons: [] });
    expect(await readHealth(store, every("1m"))).toMatchObject({ status: "unhealthy" });
  });

  it("of another type is late as ever", async () => {
    const { store, clock } = await drained(4);
    await store.enqueue([newJob({ type: "other" })]);
    clock.now += 200_000;
    expect((await readHealth(store)).reasons).toMatchObject([{ subject: "type:other" }]);
  });

  it("needs no upkeep between them: ticks wait for the next one", async () => {
    const { store, clock } = await drained(4);
    const log = collectLog();
    const parts = { store, system: realSystem, events: openEvents(log), jobs: [], defaults: {} };
    await openSchedules({ ...parts, eventLog: openEventLog({ store, log, actor: "test" }) }).set("often", {
      every: "1m",
      job: "mail",
    });
    clock.now += 200_000;
    expect(await readHealth(store)).toMatchObject({ score: 1, reasons: [] });
    clock.now += 180_000;
    const { reasons } = await readHealth(store);
    expect(reasons.map(({ subject }) => subject)).toContain("schedule:often");
  });

  it("is noted by each drain: start and end, of the last five intervals only", async () => {
    await using test = await createTestRedrive({ jobs: [mail] });
    for (let n = 0; n < 8; n += 1) {
      await test.clock.advance("5m");
      await test.worker().drain();
    }
    const { cells } = await test.store.cells([{ kind: "drain" }]);
    expect(cells.map(({ name, holder }) => [name, holder])).toEqual([["mail", ""]]);
    const note = JSON.parse(cells[0]?.value ?? "") as { starts: number[]; endedAt: number };
    expect(note.starts).toHaveLength(6);
    expect(note.endedAt).toBeGreaterThanOrEqual(note.starts.at(-1) as number);
  });

  it("is drained although the store cannot note it", async () => {
    const log = collectLog();
    const refuse = () => Promise.reject(new Error("no room"));
    const noteEnd = await noteDrain({ store: { cells: refuse, setCells: refuse }, log, jobs: [mail] });
    await expect(noteEnd()).resolves.toBeUndefined();
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
    expect((await readHealth(store)).reasons).toMatchObject([
      {
        text: "1 dead letter waits for an archive that no worker has opened for an hour: mail",
        subject: "type:mail",
        help: "redrive worker --archive FILE",
      },
    ]);
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
    const { reasons } = await readHealth(store);
    const late = { text: "the schedule a is 4.2m late", subject: "schedule:a", help: "redrive schedules list" };
    expect(reasons).toContainEqual({ ...late, since: clock.now - 250_000 });
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
