// Jobs enqueued by the name of their type alone are judged by what the type says.
import { describe, expect, it } from "vitest";
import { defineJob, immediate } from "../../src/index.ts";
import { createTestRedrive } from "../../src/testing/index.ts";
import { newJob } from "../support/new-job.ts";

const failing = (): never => {
  throw new Error("no luck");
};

describe("a job enqueued by name", () => {
  it("has the attempts and the deadline of its type once a worker knows it", async () => {
    const twice = defineJob("twice", { maxAttempts: 2, backoff: immediate(), run: failing });
    const test = await createTestRedrive({ jobs: [twice] });
    await test.store.enqueue([newJob({ id: "by-name", type: "twice", maxAttempts: 10 })]);
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
