// Jobs enqueued by the name of their type alone are judged by what the type says.
import { describe, expect, it } from "vitest";
import { defineJob, immediate } from "../../src/index.ts";
import { createTestRedrive } from "../../src/testing/index.ts";

const failing = (): never => {
  throw new Error("no luck");
};

describe("a job enqueued by name", () => {
  it("has the attempts and the deadline of its type once a worker knows it", async () => {
    const twice = defineJob("twice", { maxAttempts: 2, backoff: immediate(), run: failing });
    const test = await createTestRedrive({ jobs: [twice] });
    const producer = test.store.enqueue([
      {
        ...{ id: "by-name", type: "twice", queue: "default", service: null, tenant: null, priority: 0, payload: "{}" },
        ...{ version: 1, key: null, unique: "key", digest: null, delayMs: 0, runAt: null },
        ...{ maxAttempts: 10, maxCrashes: 3, deadlineMs: null, stuckMs: null },
      },
    ]);
    await producer;
    await test.drain({ until: "idle" });
    expect(await test.jobs.get("by-name")).toMatchObject({ state: "dead", attempts: 2 });
    await test.close();
  });

  it("keeps limits of its own", async () => {
    const twice = defineJob("twice", { maxAttempts: 2, backoff: immediate(), run: failing });
    const test = await createTestRedrive({ jobs: [twice] });
    const { id } = await test.enqueue(twice, {}, { maxAttempts: 4 });
    await test.drain({ until: "idle" });
    expect(await test.jobs.get(id)).toMatchObject({ state: "dead", attempts: 4 });
    await test.close();
  });
});
