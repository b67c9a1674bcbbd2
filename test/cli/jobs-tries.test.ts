// Tries of a job and how many it may have: the limit is shown where it is the job's own.
import { describe, expect, it } from "vitest";
import { createBench } from "../support/cli.ts";

const JOBS = `import { defineJob, fixed } from "redrive";
export const twice = defineJob("twice", { maxAttempts: 2, backoff: fixed(1), run() { throw new Error("no luck"); } });`;

describe("tries", () => {
  it.each([
    ["alone for a job enqueued by name, whose type has the limit", [], "2", 2],
    ["with the limit said for the job", ["--max-attempts", "10"], "10/10", 10],
    ["with the limit of the type it was enqueued with", ["--jobs", "jobs.mjs"], "2/2", 2],
  ])("are shown %s", async (_name, flags, tries, attempts) => {
    const bench = createBench();
    bench.write("jobs.mjs", JOBS);
    await bench.run(["enqueue", "twice", "{}", ...flags]);
    const { err } = await bench.run(["drain", "--jobs", "jobs.mjs"]);
    expect(err).toContain(`(attempt ${attempts}/${attempts}), moved to the dead letter queue`);
    const { document } = await bench.json(["jobs", "list"]);
    expect(document.items).toMatchObject([{ attempts, maxAttempts: expect.any(Number) }]);
    const [{ id }] = document.items;
    const shown = tries.replace("/", " of ");
    expect((await bench.run(["jobs", "list"])).out).toMatch(new RegExp(` dead +${tries} +`));
    expect((await bench.run(["jobs", "show", id])).out).toMatch(new RegExp(`attempts +${shown}\\n`));
    expect((await bench.run(["dlq", "show", id])).out).toMatch(new RegExp(`attempts +${shown}\\n`));
  });
});
