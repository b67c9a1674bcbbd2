// Redrive runs on a clock that the test turns: what a canary lets through, and what makes a run wait.
import { describe, expect, it } from "vitest";
import { fixed } from "../../src/index.ts";
import { deadScene, declined, mend, refused, unplugged } from "./scenes.ts";

describe("a run over letters whose bug is still there", () => {
  it("sends the first step, stops, and takes back what no worker took", async () => {
    const { redrive, bug } = await deadScene(100);
    const plan = await redrive.redrives.plan({ type: "charge" });
    // Due 200 ms apart, and looked at after 500 ms.
    const { id } = await redrive.redrives.start(plan.id, { rate: 5 });
    const run = await redrive.redrives.follow(id);
    expect(run).toMatchObject({ state: "stopped", recall: false, reason: "3 of 3 that ran failed the same way" });
    expect(run.counts).toMatchObject({ sent: 5, completed: 0, failed: 3, recalled: 2, pending: 0, left: 95 });
    expect(bug.ran).toHaveLength(3);
    await redrive.drain({ until: "idle" });
    expect((await redrive.deadLetters.stats()).total).toBe(100);
  });

  it("does not wait for a backoff of four hours", async () => {
    const { redrive } = await deadScene(20, { type: { maxAttempts: 2 } });
    const began = redrive.clock.now();
    const plan = await redrive.redrives.plan({ type: "charge" });
    const run = await redrive.redrives.follow((await redrive.redrives.start(plan.id)).id);
    expect(run.state).toBe("stopped");
    expect(redrive.clock.now() - began).toBeLessThan(60_000);
  });
});

describe("a run over letters whose bug is mended", () => {
  it("completes all, no second with more sends than the rate", async () => {
    const { redrive, bug } = await deadScene(100);
    mend(bug);
    const plan = await redrive.redrives.plan({ type: "charge" });
    expect(plan).toMatchObject({ count: 100, toSend: 100 });
    const { id } = await redrive.redrives.start(plan.id, { rate: 7, why: "deployed 1.5.3" });
    const run = await redrive.redrives.follow(id);
    expect(run).toMatchObject({ state: "completed", reason: null, step: 2, why: "deployed 1.5.3" });
    expect(run.counts).toEqual({
      sent: 100,
      completed: 100,
      failed: 0,
      recalled: 0,
      cancelled: 0,
      gone: 0,
      pending: 0,
      left: 0,
      byOthers: 0,
    });
    const { items } = await redrive.store.deadLetters({ redrive: id, limit: 200 });
    const sends = items.map(({ redrivenAt }) => redrivenAt as number).toSorted((a, b) => a - b);
    for (const [at, first] of sends.entries())
      expect((sends[at + 7] ?? Infinity) - first).toBeGreaterThanOrEqual(1_000);
  });

  it("keeps the order inside groups", async () => {
    const { redrive, bug } = await deadScene(60, { of: (n) => ({ group: `g${n % 3}` }) });
    mend(bug);
    const plan = await redrive.redrives.plan({ type: "charge" });
    const run = await redrive.redrives.follow((await redrive.redrives.start(plan.id, { rate: 50 })).id);
    expect(run.state).toBe("completed");
    for (const group of [0, 1, 2]) {
      const own = bug.ran.filter((n) => n % 3 === group);
      expect(own).toEqual(own.toSorted((a, b) => a - b));
      expect(own).toHaveLength(20);
    }
  });

  it("tells the event log what happened, and who did it", async () => {
    const { redrive, bug } = await deadScene(10, { actor: "ada" });
    mend(bug);
    const plan = await redrive.redrives.plan({ type: "charge" });
    const { id } = await redrive.redrives.start(plan.id);
    await redrive.redrives.follow(id);
    const { items } = await redrive.events({ subject: `redrive:${id}`, oldest: true });
    expect(items.map(({ kind, actor }) => [kind, actor])).toEqual([
      ["redrive.started", "ada"],
      ["redrive.started", "ada"],
      ["redrive.step", null],
      ["redrive.step", null],
      ["redrive.completed", null],
    ]);
  });
});

describe("a run waits, says why, and never goes on without evidence", () => {
  it("while the queue is paused", async () => {
    const { redrive, bug } = await deadScene(20);
    mend(bug);
    await redrive.pause({ kind: "queue", name: "default" });
    const plan = await redrive.redrives.plan({ type: "charge" });
    expect(plan.warnings.map(({ kind }) => kind)).toContain("paused");
    const { id } = await redrive.redrives.start(plan.id, { judgeWithin: "1m" });
    await redrive.clock.advance("5m");
    const waiting = await redrive.redrives.get(id);
    expect(waiting).toMatchObject({ state: "running", step: 0, waits: "the queue default is paused" });
    expect(waiting.counts.sent).toBe(0);
    await redrive.resume({ kind: "queue", name: "default" });
    expect(await redrive.redrives.follow(id)).toMatchObject({ state: "completed", waits: null });
  });

  it("while the queue is paused after it has sent", async () => {
    const { redrive, bug } = await deadScene(20);
    mend(bug);
    const plan = await redrive.redrives.plan({ type: "charge" });
    const { id } = await redrive.redrives.start(plan.id, { judgeWithin: "1m" });
    await redrive.redrives.drive();
    await redrive.pause({ kind: "queue", name: "default" });
    await redrive.clock.advance("5m");
    const waiting = await redrive.redrives.get(id);
    expect(waiting).toMatchObject({ state: "running", step: 0, counts: { sent: 5, pending: 5 } });
    expect(waiting.waits).toContain("the queue default is paused");
    await redrive.resume({ kind: "queue", name: "default" });
    expect((await redrive.redrives.follow(id)).state).toBe("completed");
  });

  it("while the breaker of its service is open", async () => {
    const { redrive, bug } = await deadScene(20, { type: { service: "stripe" }, dies: refused });
    mend(bug);
    await redrive.breakers.open("stripe", { reason: "they asked us to stop" });
    const plan = await redrive.redrives.plan({ type: "charge" });
    expect(plan.warnings).toContainEqual(expect.objectContaining({ kind: "breaker", count: 20 }));
    const { id } = await redrive.redrives.start(plan.id, { judgeWithin: "1m" });
    await redrive.clock.advance("5m");
    const waiting = await redrive.redrives.get(id);
    expect(waiting).toMatchObject({ state: "running", waits: "the breaker of stripe is open by hand" });
    expect(waiting.counts.sent).toBe(0);
    await redrive.breakers.close("stripe");
    expect((await redrive.redrives.follow(id)).state).toBe("completed");
  });

  it("sends one letter as the probe of a breaker when nothing else could be it", async () => {
    const { redrive, bug } = await deadScene(20, { type: { service: "stripe" }, dies: refused });
    mend(bug);
    await redrive.breakers.open("stripe", { reason: "down", for: "10m" });
    const plan = await redrive.redrives.plan({ type: "charge" });
    const { id } = await redrive.redrives.start(plan.id, { judgeWithin: "1m" });
    await redrive.clock.advance("9m");
    expect((await redrive.redrives.get(id)).counts.sent).toBe(0);
    const run = await redrive.redrives.follow(id);
    expect(run).toMatchObject({ state: "completed", counts: { completed: 20 } });
  });

  it("while no worker serves its type", async () => {
    const { redrive, bug, job } = await deadScene(20);
    mend(bug);
    const plan = await redrive.redrives.plan({ type: "charge" });
    const { id } = await redrive.redrives.start(plan.id, { judgeWithin: "1m" });
    for (let looks = 0; looks < 100; looks++) {
      await redrive.redrives.drive();
      redrive.clock.set(redrive.clock.now() + 2_000);
    }
    const waiting = await redrive.redrives.get(id);
    expect(waiting).toMatchObject({ state: "running", step: 0, counts: { sent: 5, pending: 5 } });
    expect(waiting.waits).toBe("no worker is alive");
    expect(job.type).toBe("charge");
    expect((await redrive.redrives.follow(id)).state).toBe("completed");
  });

  it("while another job of its group waits for its retry", async () => {
    const { redrive, bug, job } = await deadScene(3, {
      of: () => ({ group: "g" }),
      type: { maxAttempts: 2, backoff: fixed("10m") },
    });
    bug.hits = ({ n }) => (n === 99 && bug.ran.filter((each) => each === 99).length === 1 ? declined() : undefined);
    const { id: before } = await redrive.enqueue(job, { n: 99 }, { group: "g" });
    await redrive.drain();
    const plan = await redrive.redrives.plan({ type: "charge" });
    const { id } = await redrive.redrives.start(plan.id, { judgeWithin: "1m" });
    await redrive.clock.advance("5m");
    const waiting = await redrive.redrives.get(id);
    expect(waiting).toMatchObject({ state: "running", step: 0, waits: `job ${before} of its group g is before it` });
    expect(bug.ran).toEqual([99]);
    expect((await redrive.redrives.follow(id)).state).toBe("completed");
    expect(bug.ran).toEqual([99, 99, 0, 1, 2]);
  });

  it("and is paused where its jobs run and do not end", async () => {
    const { redrive, bug } = await deadScene(20);
    mend(bug);
    const plan = await redrive.redrives.plan({ type: "charge" });
    redrive.slowNext("charge", "30m");
    const { id } = await redrive.redrives.start(plan.id, { judgeWithin: "1m" });
    const run = await redrive.redrives.follow(id);
    expect(run.state).toBe("paused");
    expect(run.reason).toBe("undecided: 5 of 5 sent had no first run within 1m");
    await redrive.clock.advance("1h");
    await redrive.redrives.resume(id);
    expect((await redrive.redrives.follow(id)).state).toBe("completed");
  });
});

describe("a step", () => {
  it("goes on where one of five fails in another way, and the run is completed", async () => {
    const { redrive, bug } = await deadScene(20);
    bug.hits = ({ n }) => (n === 0 ? unplugged() : undefined);
    const plan = await redrive.redrives.plan({ type: "charge" });
    const run = await redrive.redrives.follow((await redrive.redrives.start(plan.id)).id);
    expect(run).toMatchObject({ state: "completed", counts: { completed: 19, failed: 1 } });
  });

  it("stops where two of five fail in another way", async () => {
    const { redrive, bug } = await deadScene(20);
    bug.hits = unplugged;
    const plan = await redrive.redrives.plan({ type: "charge" });
    const run = await redrive.redrives.follow((await redrive.redrives.start(plan.id)).id);
    expect(run).toMatchObject({ state: "stopped", reason: "5 of 5 that ran failed in another way" });
  });

  it("is not judged by failures that are tolerated", async () => {
    const { redrive, bug } = await deadScene(40);
    bug.hits = ({ n }) => (n === 0 ? declined() : undefined);
    const plan = await redrive.redrives.plan({ type: "charge" });
    const run = await redrive.redrives.follow(
      (await redrive.redrives.start(plan.id, { canary: [20], tolerate: 0.1 })).id,
    );
    expect(run).toMatchObject({ state: "completed", counts: { completed: 39, failed: 1 } });
  });
});
