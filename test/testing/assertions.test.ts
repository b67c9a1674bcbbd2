// What tests can state about their jobs, and what they read where it is not so.
import { AssertionError } from "node:assert";
import { describe, expect, it, onTestFinished } from "vitest";
import { defineJob } from "../../src/index.ts";
import { createTestRedrive, type TestRedrive } from "../../src/testing/index.ts";
import { matches } from "../../src/testing/assertions.ts";

interface Mail {
  readonly to: string;
  readonly parts?: readonly { readonly kind: string; readonly bytes: number }[];
}
const mail = defineJob("mail", { maxAttempts: 1, run: ({ to }: Mail) => ({ sent: to, at: 1 }) });

async function open(): Promise<TestRedrive> {
  const test = await createTestRedrive({ jobs: [mail] });
  onTestFinished(() => test.close());
  return test;
}

async function messageOf(claim: Promise<unknown>): Promise<string> {
  const error = await claim.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(AssertionError);
  return (error as AssertionError).message;
}

describe("assertEnqueued", () => {
  it("finds a waiting job by any part of it, and answers it", async () => {
    const test = await open();
    await test.enqueue(mail, { to: "b" });
    const parts = [{ kind: "text", bytes: 3 }];
    const { id } = await test.enqueue(mail, { to: "a", parts }, { key: "k", tenant: "acme", priority: 3, delay: "1h" });
    const expectations = [
      { input: { to: "a" } },
      { input: { parts: [{ kind: "text" }] } },
      { key: "k" },
      { tenant: "acme" },
      { priority: 3 },
      { delay: "1h" },
      { runAt: test.clock.now() + 3_600_000 },
      { input: { to: "a" }, key: "k", tenant: "acme", queue: "default", service: null },
    ];
    for (const expected of expectations) expect((await test.assertEnqueued(mail, expected)).id).toBe(id);
    expect((await test.assertEnqueued("mail")).payload).toBe('{"to":"b"}');
  });

  it("says what it found instead", async () => {
    const test = await open();
    expect(await messageOf(test.assertEnqueued(mail, { input: { to: "c" } }))).toBe(
      'Expected a mail to wait with input {"to":"c"}; found none.',
    );
    const { id } = await test.enqueue(mail, { to: "a" }, { key: "k", delay: "90s" });
    expect(await messageOf(test.assertEnqueued(mail, { input: { to: "c" } }))).toBe(
      `Expected a mail to wait with input {"to":"c"}; found 1:\n  ${id} scheduled for 1.5m input {"to":"a"} key "k"`,
    );
    await test.runJob(id);
    expect(await messageOf(test.assertEnqueued(mail))).toContain('completed input {"to":"a"}');
  });

  it("refuses an expectation that it does not know", async () => {
    const test = await open();
    const wrong = { payload: {} } as object;
    await expect(test.assertEnqueued(mail, wrong)).rejects.toMatchObject({ code: "invalid_argument" });
  });
});

describe("refuteEnqueued", () => {
  it("holds while nothing fits", async () => {
    const test = await open();
    await test.refuteEnqueued(mail);
    await test.enqueue(mail, { to: "a" });
    await test.refuteEnqueued(mail, { input: { to: "b" } });
    expect(await messageOf(test.refuteEnqueued(mail, { input: { to: "a" } }))).toMatch(/^Expected no mail to wait/);
  });
});

describe("assertCompleted, assertDead and assertAttempts", () => {
  it("go by id, by what enqueue answered, and by type", async () => {
    const test = await open();
    const good = await test.enqueue(mail, { to: "a" });
    await test.runNext();
    const bad = await test.enqueue(mail, { to: "b" });
    test.failNext(mail, new Error("mailbox full"));
    await test.runNext();
    for (const target of [good.id, good, mail]) {
      expect((await test.assertCompleted(target, { result: { sent: "a" } })).id).toBe(good.id);
    }
    for (const target of [bad.id, bad, mail]) {
      const expected = { class: "transient", reason: "exhausted", message: /full/ } as const;
      expect((await test.assertDead(target, expected)).id).toBe(bad.id);
    }
    await test.assertAttempts(good, 0);
    await test.assertAttempts(bad.id, 1);
  });

  it("say what is so instead", async () => {
    const test = await open();
    const { id } = await test.enqueue(mail, { to: "a" });
    expect(await messageOf(test.assertCompleted(id))).toMatch(/to be completed; found 1:\n.*queued/);
    expect(await messageOf(test.assertAttempts(id, 2))).toMatch(/to have 2 attempts; found 0/);
    expect(await messageOf(test.assertAttempts("nobody", 2))).toMatch(/found no job/);
    test.failNext(mail, new Error("mailbox full"));
    await test.runNext();
    expect(await messageOf(test.assertDead(id, { reason: "deadline" }))).toMatch(/mailbox full[\s\S]*died: exhausted/);
    expect(await messageOf(test.assertCompleted(mail, { result: { sent: "b" } }))).toMatch(/with result {"sent":"b"}/);
  });
});

describe("matching", () => {
  it("asks only for what is named", () => {
    const same: [unknown, unknown][] = [
      [{ a: 1, b: 2 }, { a: 1 }],
      [{ a: { b: [1, { c: 2, d: 3 }] } }, { a: { b: [1, { c: 2 }] } }],
      [{ a: 1 }, {}],
      [{ a: 1 }, { b: undefined }],
      [[], []],
      [null, null],
      ["a", "a"],
    ];
    const other: [unknown, unknown][] = [
      [{ a: 1 }, { a: 2 }],
      [[1, 2], [1]],
      [{ a: null }, { a: {} }],
      [[], {}],
      [1, "1"],
      [{}, { toString: {}.toString }],
    ];
    for (const [actual, expected] of same) expect(matches(actual, expected)).toBe(true);
    for (const [actual, expected] of other) expect(matches(actual, expected)).toBe(false);
  });
});
