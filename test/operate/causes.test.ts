// Causes and flow as people ask for them: from counts that a worker and a producer have left.
import { describe, expect, it } from "vitest";
import { defineJob, PermanentError, immediate } from "../../src/index.ts";
import { causeForm } from "../../src/operate/causes.ts";
import { causeTrend, flowTrend } from "../../src/operate/cause-trend.ts";
import { beside, drain, KINDS, openRedrive } from "../redrive/kinds.ts";

const mail = defineJob("mail", {
  run({ to }: { to: string }): void {
    if (to === "nowhere") throw new PermanentError("no such mailbox");
  },
});
const pay = defineJob("pay", {
  maxAttempts: 2,
  backoff: immediate(),
  run(): void {
    throw new Error("card declined");
  },
});

const MINUTE = 60_000;

describe.each(KINDS)("on %s", (kind) => {
  it("causes and flow tell what was enqueued, ran and died", async () => {
    const redrive = await openRedrive(kind, { jobs: [mail, pay] });
    await redrive.enqueueMany(mail, [{ to: "here" }, { to: "nowhere" }, { to: "nowhere" }]);
    await redrive.enqueue(pay, {});
    await drain(redrive, { release: "1.4.0" });
    const { items, next } = await redrive.causes.list();
    expect(next).toBeNull();
    expect(items.map(({ types, dead, failures }) => [types, dead, failures])).toEqual([
      [["mail"], 2, 2],
      [["pay"], 1, 2],
    ]);
    expect(causeForm(items[0] as (typeof items)[0])).toMatchObject({
      fingerprint: items[0]?.fingerprint,
      state: "open",
      dead: 2,
      firstSeen: expect.stringMatching(/:00\.000Z$/),
      lastSeen: expect.stringMatching(/:00\.000Z$/),
      types: ["mail"],
      releases: [{ release: "1.4.0", failures: 2 }],
      sample: { name: "PermanentError", message: "no such mailbox" },
    });
  });

  it("counts appear without an end of the process, each step of the span once", async () => {
    const redrive = await openRedrive(kind, { jobs: [mail, pay] });
    const { store } = redrive;
    const from = (await store.control()).now;
    await redrive.enqueueMany(mail, [{ to: "here" }, { to: "nowhere" }]);
    await redrive.enqueue(pay, {});
    await drain(redrive);
    const { now } = await store.control();
    const span = { from: from - 10 * MINUTE, until: now + MINUTE, stepMs: MINUTE };
    const flow = await flowTrend(store, span);
    expect(flow.map(({ at }) => at)).toEqual(flow.map((_, n) => (flow[0]?.at as number) + n * MINUTE));
    const sum = (count: "enqueued" | "completed" | "retried" | "dead"): number =>
      flow.reduce((total, step) => total + step[count], 0);
    expect([sum("enqueued"), sum("completed"), sum("retried"), sum("dead")]).toEqual([3, 1, 1, 2]);
    const ofMail = await flowTrend(store, { ...span, type: "mail" });
    expect(ofMail.reduce((total, { dead }) => total + dead, 0)).toBe(1);
    const [cause] = (await redrive.causes.list()).items;
    const deaths = await causeTrend(store, { ...span, fingerprint: cause?.fingerprint as string });
    expect(deaths.reduce((total, step) => total + step.deaths, 0)).toBe(1);
    expect(deaths).toHaveLength(flow.length);
  });

  it("people mute, fix and reopen a cause, and note what they know; the event log has who and why", async () => {
    const redrive = await openRedrive(kind, { jobs: [mail], actor: "ada" });
    await redrive.enqueue(mail, { to: "nowhere" }, { tenant: "acme" });
    await drain(redrive);
    const { causes } = redrive;
    const [{ fingerprint: f } = { fingerprint: "" }] = (await causes.list()).items;
    expect(await causes.get(f)).toMatchObject({
      state: "open",
      says: "it is open",
      since: null,
      letters: { looked: 1, tenants: [{ name: "acme", count: 1 }], classes: [{ name: "permanent", count: 1 }] },
    });
    const { trend } = await causes.get(f);
    expect([trend.length, trend.reduce((sum, n) => sum + n, 0)]).toEqual([6, 1]);
    expect(await causes.mute(f, { for: "1h", more: 5, why: "known" })).toMatchObject({
      state: "muted",
      by: "ada",
      more: 5,
    });
    expect(await causes.unmute(f)).toMatchObject({ state: "open", until: null, more: null });
    expect(await causes.note(f, "see INC-7")).toMatchObject({ note: "see INC-7", state: "open" });
    expect(await causes.own(f, "payments")).toMatchObject({ owner: "payments", note: "see INC-7" });
    const fixed = await causes.fix(f, { in: "2.0.0", why: "deployed" });
    expect(fixed).toMatchObject({ state: "fixed", fixedIn: "2.0.0", owner: "payments", note: "see INC-7" });
    expect(await causes.reopen(f)).toMatchObject({ state: "open", fixedIn: null, owner: "payments" });
    expect(await causes.note(f, null)).toMatchObject({ note: null, owner: "payments" });
    expect((await causes.list()).items).toMatchObject([{ fingerprint: f, owner: "payments", note: null }]);
    const { items } = await redrive.events({ subject: `cause:${f}`, actor: "ada", oldest: true });
    expect(items.map(({ kind: said, why }) => [said, why])).toEqual(
      [
        ["cause.muted", "known"],
        ["cause.unmuted", null],
        ["cause.noted", null],
        ["cause.noted", null],
        ["cause.fixed", "deployed"],
        ["cause.reopened", null],
        ["cause.noted", null],
      ].flatMap((each) => [each, each]),
    );
    expect(JSON.parse(items[0]?.value ?? "")).toEqual({ step: "intent", forMs: 3_600_000, more: 5 });
  });

  it("refuses what the state does not allow, with who and when, and bad input, and writes nothing", async () => {
    const redrive = await openRedrive(kind, { jobs: [mail], actor: "ada" });
    await redrive.enqueue(mail, { to: "nowhere" });
    await drain(redrive);
    const { causes } = redrive;
    const [{ fingerprint: f } = { fingerprint: "" }] = (await causes.list()).items;
    await causes.fix(f, { in: "2.0.0" });
    const written = async (): Promise<number> => (await redrive.events({ limit: 200 })).items.length;
    const before = await written();
    await expect(causes.mute(f, { for: "1h" })).rejects.toMatchObject({
      code: "illegal_transition",
      message: expect.stringMatching(
        /ada marked it fixed in 2\.0\.0 .*(just now|ago); reopen it before you mute it/,
      ) as string,
      details: { state: "fixed", by: "ada", at: expect.any(Number) as number },
    });
    await expect(causes.fix(f)).rejects.toMatchObject({ code: "illegal_transition" });
    await expect(causes.unmute(f)).rejects.toMatchObject({ code: "illegal_transition" });
    for (const call of [
      () => causes.get("none"),
      () => causes.mute("none", { for: "1h" }),
      () => causes.fix("none"),
      () => causes.note("none", "text"),
    ])
      await expect(call()).rejects.toMatchObject({
        code: "not_found",
        message: expect.stringContaining("no cause") as string,
      });
    for (const call of [
      () => causes.mute(f, {}),
      () => causes.mute(f, { for: "0s" }),
      () => causes.mute(f, { for: "soon" }),
      () => causes.mute(f, { more: 0 }),
      () => causes.mute(f, { more: 1.5 }),
      () => causes.mute(f, { until: 1 } as never),
      () => causes.fix(f, { in: "" }),
      () => causes.note(f, ""),
      () => causes.note(f, "x".repeat(1_001)),
      () => causes.own(f, "a\0b"),
      () => causes.get(""),
      () => causes.list({ limit: 0 }),
      () => causes.list({ cursor: "x" }),
      () => causes.list({ state: "open" } as never),
    ])
      await expect(call()).rejects.toMatchObject({ code: "invalid_argument" });
    expect(await written()).toBe(before);
    expect(await causes.get(f)).toMatchObject({ state: "fixed", note: null, owner: null });
  });

  it("of two operators at once one is told who was faster; notes of both stay", async () => {
    const first = await openRedrive(kind, { jobs: [mail], actor: "ada" });
    await first.enqueue(mail, { to: "nowhere" });
    await drain(first);
    const second = await beside(first, kind, { actor: "bob" });
    const [{ fingerprint: f } = { fingerprint: "" }] = (await first.causes.list()).items;
    // Both have read the cause before either writes: the intent of the second waits until the first is done.
    const { record } = second.store;
    let isFirst = true;
    (second.store as { record: typeof record }).record = async (events) => {
      if (isFirst && events[0]?.actor === "bob") {
        isFirst = false;
        await first.causes.fix(f, { in: "2.0.0" });
      }
      return record(events);
    };
    await expect(second.causes.mute(f, { for: "1h" })).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringMatching(/changed meanwhile: ada marked it fixed in 2\.0\.0 .*Look at it again/) as string,
    });
    isFirst = true;
    (second.store as { record: typeof record }).record = async (events) => {
      if (isFirst && events[0]?.actor === "bob") {
        isFirst = false;
        await first.causes.own(f, "payments");
      }
      return record(events);
    };
    expect(await second.causes.note(f, "see INC-7")).toMatchObject({ owner: "payments", note: "see INC-7" });
    const { items } = await first.events({ kind: "cause.muted" });
    expect(items.map(({ value }) => JSON.parse(value).step)).toEqual(["failed", "intent"]);
  });
});
