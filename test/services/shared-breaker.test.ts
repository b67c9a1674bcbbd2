// The fleet's breaker in the hands of `retryable`: calls outside the queue and jobs inside it open it together, are held
// back together, and probe it together.
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { isRedriveError, type Redrive, type RedriveOptions, retryable } from "../../src/index.ts";
import { defineJob } from "../../src/jobs/define-job.ts";
import type { CallBreaker, CircuitBreaker } from "../../src/services/call-breaker.ts";
import { createTestRedrive } from "../../src/testing/index.ts";
import { openQueue } from "../support/postgres-queue.ts";
import { KINDS, openRedrive } from "../redrive/kinds.ts";

const refused = (): Error => Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
const breaker = { failures: 3, openFor: "400ms", probes: 2, closeAfter: 1 } as const;
const services = { pricing: { breaker, ramp: 0 } };

type Open = (options: Omit<RedriveOptions, "store">) => Promise<Redrive>;
const OPEN: readonly (readonly [string, Open])[] = [
  ...KINDS.map((kind) => [kind, (options) => openRedrive(kind, options)] as const satisfies readonly [string, Open]),
  ["postgres", async (options) => (await openQueue(inject("postgres18"), options)).redrive],
];

async function until(condition: () => boolean, what: string): Promise<void> {
  for (let waited = 0; waited < 8_000; waited += 10) {
    if (condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  expect.fail(`waited in vain until ${what}`);
}

const codeOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => "ok",
    (error: unknown) => (isRedriveError(error) ? error.code : "failed"),
  );

describe("a breaker that is switched off", () => {
  it("refuses calls only as long as it is open by hand", async () => {
    await using test = await createTestRedrive({ jobs: [], services: { pricing: { breaker: false } } });
    const shared = test.breaker("pricing");
    const quote = retryable(async () => "price", { maxAttempts: 1, breaker: shared });
    shared.open("maintenance", test.clock.now() + 60_000);
    await test.clock.advance("59s");
    expect(shared.state).toBe("isolated");
    expect(await codeOf(quote())).toBe("breaker_open");
    await test.clock.advance("1s");
    // The first call afterwards closes it.
    void codeOf(quote());
    await test.clock.advance("1s");
    expect(shared.state).toBe("closed");
    expect(await codeOf(quote())).toBe("ok");
  });
});

describe("a breaker whose time is over", () => {
  it("reads as half-open before a probe is taken, as that of one process does", async () => {
    await using test = await createTestRedrive({ jobs: [], services });
    const shared = test.breaker("pricing");
    shared.open("maintenance", test.clock.now() + 60_000);
    await test.clock.advance("59s");
    expect(shared).toMatchObject({ state: "isolated", reason: "maintenance", untilMs: test.clock.now() + 1_000 });
    await test.clock.advance("1s");
    expect(shared).toMatchObject({ state: "half_open", reason: null, untilMs: null });
    expect(await test.breakers.get("pricing")).toMatchObject({ state: "isolated", probes: 0 });
  });
});

describe("a call from before the opening", () => {
  it("says nothing of the service once the breaker has closed again", async () => {
    await using test = await createTestRedrive({ jobs: [], services });
    const shared = test.breaker("pricing") as CircuitBreaker & CallBreaker;
    await test.clock.advance("1s");
    const old = [1, 2, 3].map(() => shared.admit());
    shared.open("maintenance");
    await test.clock.advance("1s");
    shared.close();
    await test.clock.advance("1s");
    for (const admission of old) shared.failed(admission, "network");
    await test.clock.advance("5s");
    expect(shared).toMatchObject({ state: "closed", counts: { failures: 0 } });
    for (let n = 0; n < 3; n++) shared.failed(shared.admit(), "network");
    await test.clock.advance("5s");
    expect(await test.breakers.get("pricing")).toMatchObject({ reason: "3 failures in a row" });
  });
});

describe("a breaker that has closed", () => {
  it("returns jobs on the ramp and lets calls through at once", async () => {
    const job = defineJob("quote", { service: "pricing", run: () => "done" });
    const redrive = await openRedrive("memory", { jobs: [job], services: { pricing: { breaker, ramp: "1h" } } });
    const shared = redrive.breaker("pricing");
    const quote = retryable(async () => "price", { maxAttempts: 1, breaker: shared });
    shared.open("maintenance");
    await until(() => shared.state === "isolated", "it is open");
    for (let n = 0; n < 20; n += 1) await redrive.enqueue(job, null);
    shared.close();
    await until(() => shared.state === "closed", "it is closed");
    await redrive.worker({ poll: 20 }).start();
    const calls = await Promise.all(Array.from({ length: 20 }, () => codeOf(quote())));
    expect(calls.filter((code) => code === "ok")).toHaveLength(20);
    expect((await redrive.jobs.count()).completed).toBeLessThan(5);
  });
});

describe("a probe that was won and not used", () => {
  it("is no use once the breaker has opened anew", async () => {
    await using test = await createTestRedrive({ jobs: [], services });
    const shared = test.breaker("pricing");
    let calls = 0;
    const quote = retryable(async () => void (calls += 1), { maxAttempts: 1, breaker: shared });
    shared.open("maintenance", test.clock.now() + 60_000);
    await test.clock.advance("61s");
    expect(await codeOf(quote())).toBe("breaker_open");
    await test.clock.advance("100ms");
    expect(await test.breakers.get("pricing")).toMatchObject({ state: "half_open" });
    shared.open("again");
    await test.clock.advance("1s");
    expect(shared.state).toBe("isolated");
    expect(await codeOf(quote())).toBe("breaker_open");
    expect(calls).toBe(0);
  });
});

describe.each(OPEN)("the fleet's breaker for calls outside the queue, on %s", (_, open) => {
  it("opens by their failures, holds jobs back, is probed and closes", async () => {
    const state = { down: true, calls: 0 };
    const call = (): void => {
      state.calls += 1;
      if (state.down) throw refused();
    };
    const job = defineJob("quote", { service: "pricing", run: call });
    const redrive = await open({ jobs: [job], services });
    const shared = redrive.breaker("pricing");
    expect(redrive.breaker("pricing")).toBe(shared);
    const quote = retryable(async () => call(), { maxAttempts: 1, breaker: shared });
    for (let n = 0; n < 3; n++) expect(await codeOf(quote())).toBe("failed");
    await until(() => shared.state === "open", "it opens");
    expect(shared.reason).toBe("3 failures in a row");
    expect(shared.counts).toMatchObject({ successes: 0, failures: 0, consecutive: 0 });
    // Whoever asks while it is open is refused; jobs wait and spend nothing.
    const before = state.calls;
    expect(await codeOf(quote())).toBe("breaker_open");
    expect(state.calls).toBe(before);
    const { id } = await redrive.enqueue(job, null);
    const worker = redrive.worker({ poll: 20 });
    onTestFinished(() => worker.stop());
    await worker.start();
    state.down = false;
    await until(() => worker.counts.completed === 1, "a job has probed it");
    expect(await redrive.jobs.get(id)).toMatchObject({ state: "completed", attempts: 0 });
    await until(() => {
      void codeOf(quote());
      return shared.state === "closed";
    }, "it closes");
    expect(await codeOf(quote())).toBe("ok");
  });

  it("is opened and closed by hand for everybody", async () => {
    const job = defineJob("quote", { service: "pricing", run: () => "done" });
    const redrive = await open({ jobs: [job], services });
    const shared = redrive.breaker("pricing");
    const quote = retryable(async () => "price", { maxAttempts: 1, breaker: shared });
    expect(() => shared.open("")).toThrow(/a reason as text/);
    shared.open("maintenance");
    await until(() => shared.state === "isolated", "it is open");
    await expect(quote()).rejects.toThrow(/breaker of pricing is open until it is closed by hand \(maintenance\)/);
    await redrive.enqueue(job, null);
    expect(await redrive.worker({ poll: 20 }).drain({ grace: "100ms" })).toMatchObject({ claimed: 0 });
    shared.close();
    await until(() => shared.state === "closed", "it is closed");
    expect(await redrive.worker({ poll: 20 }).drain({ grace: "100ms" })).toMatchObject({ completed: 1 });
    expect(await codeOf(quote())).toBe("ok");
  });
});
