// Enqueueing, as somebody who only knows the documentation: every option, what is refused, and what a key means.
import { describe, expect, it } from "vitest";
import { defineJob, type EnqueueOptions, fixed, snooze, type StandardSchema } from "../../src/index.ts";
import { codeOf, drain, KINDS, openRedrive } from "../redrive/kinds.ts";

const mail = defineJob("mail", { queue: "letters", service: "smtp", maxAttempts: 4, run: (_input: object) => "sent" });
const even: StandardSchema<{ n: number }> = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value) =>
      (value as { n: number }).n % 2 === 0
        ? { value: value as { n: number } }
        : { issues: [{ message: "must be even", path: ["n"] }] },
  },
};

describe.each(KINDS)("enqueue on %s", (kind) => {
  it("writes the job with everything its definition says", async () => {
    const redrive = await openRedrive(kind, { jobs: [mail] });
    const enqueued = await redrive.enqueue(mail, { to: "a" });
    expect(enqueued).toEqual({ id: enqueued.id, type: "mail", duplicate: false, replaced: false, state: "queued" });
    expect(await redrive.jobs.get(enqueued.id)).toMatchObject({
      type: "mail",
      queue: "letters",
      service: "smtp",
      tenant: null,
      key: null,
      priority: 0,
      state: "queued",
      payload: '{"to":"a"}',
      version: 1,
      attempts: 0,
      maxAttempts: 4,
    });
  });

  it("takes every option", async () => {
    const redrive = await openRedrive(kind, { jobs: [mail] });
    const options = {
      key: "k",
      priority: 9,
      delay: "1h",
      tenant: "acme",
      deadline: "2h",
      maxAttempts: 2,
      service: "s3",
    };
    const { id } = await redrive.enqueue(mail, {}, options);
    const job = await redrive.jobs.get(id);
    const expected = { key: "k", priority: 9, tenant: "acme", deadlineMs: 7_200_000, maxAttempts: 2, service: "s3" };
    expect(job).toMatchObject(expected);
    expect((job?.runAt ?? 0) - (job?.createdAt ?? 0)).toBe(3_600_000);
    const other = await redrive.enqueue(mail, {}, { maxRetries: 2, deadline: null });
    expect(await redrive.jobs.get(other.id)).toMatchObject({ maxAttempts: 3, deadlineMs: null });
  });

  it("takes a time as date, number and text", async () => {
    const redrive = await openRedrive(kind, { jobs: [mail] });
    const at = Date.UTC(2030, 0, 31, 8);
    for (const runAt of [new Date(at), at, "2030-01-31T08:00:00Z", "2030-01-31T09:00:00+01:00"]) {
      const { id } = await redrive.enqueue(mail, {}, { runAt });
      expect((await redrive.jobs.get(id))?.runAt).toBe(at);
    }
  });

  it("takes a type by name, with queue and service of the caller's", async () => {
    const redrive = await openRedrive(kind);
    const { id } = await redrive.enqueue("elsewhere", [1], { queue: "q", service: "s" });
    expect(await redrive.jobs.get(id)).toMatchObject({ type: "elsewhere", queue: "q", service: "s", payload: "[1]" });
  });

  it("knows the definition behind a name", async () => {
    const redrive = await openRedrive(kind, { jobs: [mail, defineJob("even", { input: even, run: () => 1 })] });
    const { id } = await redrive.enqueue("mail", {});
    expect(await redrive.jobs.get(id)).toMatchObject({ queue: "letters", maxAttempts: 4 });
    expect(await codeOf(() => redrive.enqueue("even", { n: 1 }))).toBe("invalid_payload");
  });

  it("gives types the library's defaults where they say nothing", async () => {
    const defaults = { maxAttempts: 7, deadline: "1d" } as const;
    const redrive = await openRedrive(kind, { jobs: [mail], defaults });
    const own = await redrive.enqueue(mail, {});
    const foreign = await redrive.enqueue("elsewhere", {});
    expect(await redrive.jobs.get(own.id)).toMatchObject({ maxAttempts: 4, deadlineMs: 86_400_000 });
    expect(await redrive.jobs.get(foreign.id)).toMatchObject({ maxAttempts: 7, deadlineMs: 86_400_000 });
  });

  const refused: [string, EnqueueOptions & Record<string, unknown>][] = [
    ["a key that is empty", { key: "" }],
    ["a key of 256 bytes", { key: "ä".repeat(128) }],
    ["a key with U+0000", { key: "a\0b" }],
    ["a key with half a character", { key: "\ud800" }],
    ["a unique mode without a key", { unique: "replace" }],
    ["an unknown unique mode", { key: "k", unique: "once" as "key" }],
    ["a priority over 9", { priority: 10 }],
    ["a priority below 0", { priority: -1 }],
    ["half a priority", { priority: 1.5 }],
    ["a delay without a unit", { delay: "5" }],
    ["a negative delay", { delay: -1 }],
    ["a delay of 11 years", { delay: "4026d" }],
    ["a time that is no date", { runAt: new Date(Number.NaN) }],
    ["a time in words", { runAt: "tomorrow" }],
    ["a time before 1970", { runAt: -1 }],
    ["an empty tenant", { tenant: "" }],
    ["a deadline of nothing", { deadline: 0 }],
    ["no attempts", { maxAttempts: 0 }],
    ["attempts and retries that contradict each other", { maxAttempts: 3, maxRetries: 3 }],
    ["a queue that is no name", { queue: "a b" }],
    ["a service that is no name", { service: "" }],
    ["an option that does not exist", { dealy: "5s" }],
  ];
  it("refuses bad options with invalid_argument, and writes nothing", async () => {
    const redrive = await openRedrive(kind, { jobs: [mail] });
    const codes: [string, string][] = [];
    for (const [what, options] of refused) codes.push([what, await codeOf(() => redrive.enqueue(mail, {}, options))]);
    expect(codes).toEqual(refused.map(([what]) => [what, "invalid_argument"]));
    expect((await redrive.jobs.count()).queued).toBe(0);
    await expect(redrive.enqueue(mail, {}, { dealy: 1 } as object)).rejects.toThrow(/did you mean "delay"/);
  });

  it("refuses inputs that JSON cannot carry, and names the place", async () => {
    const redrive = await openRedrive(kind, { jobs: [mail], maxPayloadBytes: 100 });
    const circle: Record<string, unknown> = {};
    circle["self"] = circle;
    const bad: unknown[] = [
      { a: () => 1 },
      { a: 1n },
      { a: Number.NaN },
      { a: undefined },
      new Map(),
      circle,
      undefined,
    ];
    for (const input of bad) expect(await codeOf(() => redrive.enqueue(mail, input as object))).toBe("invalid_payload");
    await expect(redrive.enqueue(mail, { list: [1, { at: new Date() }] })).rejects.toThrow(/payload.*list.*1.*at/);
    expect(await codeOf(() => redrive.enqueue(mail, { text: "x".repeat(100) }))).toBe("payload_too_large");
    expect((await redrive.jobs.count()).queued).toBe(0);
  });

  it("keeps JSON text byte for byte, and refuses other text", async () => {
    const redrive = await openRedrive(kind, { jobs: [mail] });
    const text = ' { "n" : 12345678901234567890 , "z": "\\u0000" } ';
    const { id } = await redrive.enqueueText(mail, text);
    expect((await redrive.jobs.get(id))?.payload).toBe(text);
    expect(await codeOf(() => redrive.enqueueText(mail, "{"))).toBe("invalid_payload");
    const schema = defineJob("even", { input: even, run: () => 1 });
    expect(await codeOf(() => redrive.enqueueText(schema, '{"n":3}'))).toBe("invalid_payload");
  });

  it("gives ids that ascend, and shares writes between callers", async () => {
    const redrive = await openRedrive(kind, { jobs: [mail] });
    const jobs = await Promise.all(Array.from({ length: 50 }, (_, n) => redrive.enqueue(mail, { n })));
    const ids = jobs.map(({ id }) => id);
    expect(ids.toSorted()).toEqual(ids);
    expect(new Set(ids).size).toBe(50);
  });

  it("refuses one bad caller among many without harm to the others", async () => {
    const redrive = await openRedrive(kind, { jobs: [mail] });
    const calls = [{ key: "a" }, { key: "" }, { key: "b" }].map((options) => redrive.enqueue(mail, {}, options));
    const results = await Promise.allSettled(calls);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  });

  it("refuses what is no definition with invalid_argument", async () => {
    const redrive = await openRedrive(kind);
    const bad = [undefined, null, 5, {}, { type: "mail" }, "two words", ""];
    const codes: string[] = [];
    for (const job of bad) codes.push(await codeOf(() => redrive.enqueue(job as unknown as string, {})));
    expect(codes).toEqual(bad.map(() => "invalid_argument"));
  });
});

describe.each(KINDS)("a key that is taken, on %s", (kind) => {
  const slow = defineJob("slow", { backoff: fixed("1h"), run: (_input: object) => snooze("1h") });

  it("is a duplicate with the same body, and a conflict with another", async () => {
    const redrive = await openRedrive(kind, { jobs: [mail] });
    const first = await redrive.enqueue(mail, { to: "a" }, { key: "k" });
    const again = await redrive.enqueue(mail, { to: "a" }, { key: "k", priority: 5 });
    expect(again).toMatchObject({ id: first.id, duplicate: true, replaced: false, state: "queued" });
    await expect(redrive.enqueue(mail, { to: "b" }, { key: "k" })).rejects.toMatchObject({
      code: "conflict",
      details: { id: first.id, type: "mail", key: "k" },
    });
    expect((await redrive.enqueue("other", { to: "b" }, { key: "k" })).duplicate).toBe(false);
    await drain(redrive);
    expect(await redrive.enqueue(mail, { to: "a" }, { key: "k" })).toMatchObject({
      duplicate: true,
      state: "completed",
    });
  });

  it("waits once with queued, whatever the body, and makes a new job once it does not wait", async () => {
    const redrive = await openRedrive(kind, { jobs: [mail] });
    const first = await redrive.enqueue(mail, { n: 1 }, { key: "k", unique: "queued" });
    const second = await redrive.enqueue(mail, { n: 2 }, { key: "k", unique: "queued" });
    expect(second).toMatchObject({ id: first.id, duplicate: true });
    await drain(redrive);
    const third = await redrive.enqueue(mail, { n: 3 }, { key: "k", unique: "queued" });
    expect(third).toMatchObject({ duplicate: false, state: "queued" });
    expect(third.id).not.toBe(first.id);
  });

  it("holds with active while it waits after a try, too", async () => {
    const redrive = await openRedrive(kind, { jobs: [slow] });
    const first = await redrive.enqueue(slow, { n: 1 }, { key: "k", unique: "active" });
    await drain(redrive);
    expect(await redrive.enqueue(slow, { n: 2 }, { key: "k", unique: "active" })).toMatchObject({
      id: first.id,
      duplicate: true,
    });
  });

  it("takes the new body with replace, and the new due time as well with debounce", async () => {
    const redrive = await openRedrive(kind, { jobs: [mail] });
    const first = await redrive.enqueue(mail, { n: 1 }, { key: "k", delay: "1h" });
    const before = await redrive.jobs.get(first.id);
    const replaced = await redrive.enqueue(mail, { n: 2 }, { key: "k", unique: "replace", delay: "5h" });
    expect(replaced).toMatchObject({ id: first.id, replaced: true, duplicate: false, state: "queued" });
    expect(await redrive.jobs.get(first.id)).toMatchObject({ payload: '{"n":2}', runAt: before?.runAt });
    await redrive.enqueue(mail, { n: 3 }, { key: "k", unique: "debounce", delay: "5h" });
    const after = await redrive.jobs.get(first.id);
    expect(after?.payload).toBe('{"n":3}');
    expect((after?.runAt ?? 0) - (before?.runAt ?? 0)).toBeGreaterThanOrEqual(4 * 3_600_000);
    expect((await redrive.jobs.count()).queued).toBe(1);
  });

  it("lets twenty callers at once make one job", async () => {
    const redrive = await openRedrive(kind, { jobs: [mail] });
    const jobs = await Promise.all(Array.from({ length: 20 }, () => redrive.enqueue(mail, {}, { key: "k" })));
    expect(new Set(jobs.map(({ id }) => id)).size).toBe(1);
    expect(jobs.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
  });
});
