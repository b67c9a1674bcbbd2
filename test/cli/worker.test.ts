// `worker` and `drain` in this process: what they do, what they say, and how they end.
import { describe, expect, inject, it } from "vitest";
import { createBench, JOBS_TS } from "../support/cli.ts";
import { testSchema } from "../support/postgres-queue.ts";

describe("drain", () => {
  it("works until nothing is left, counts, and ends with 1 if something died", async () => {
    const bench = createBench();
    bench.write("jobs.ts", JOBS_TS);
    await bench.run(["enqueue", "hello", "-"], { stdin: "{}\n{}\n" });
    await bench.run(["enqueue", "flaky", "{}"]);
    const good = await bench.json(["drain", "--jobs", "jobs.ts"]);
    expect(good).toMatchObject({ code: 0, document: { claimed: 5, completed: 3, retried: 2, dead: 0, released: 0 } });
    expect(good.document.ms).toBeGreaterThan(0);
    await bench.run(["enqueue", "broken", "{}"]);
    const bad = await bench.run(["drain", "--jobs", "jobs.ts"]);
    expect(bad).toMatchObject({ code: 1, out: expect.stringMatching(/^1 run: 0 completed, 0 retried, 1 dead in \d/) });
    expect((await bench.run(["drain", "--jobs", "jobs.ts", "--quiet"])).out).toBe("");
  });

  it("names due jobs that no file defines, in every queue it serves", async () => {
    const bench = createBench();
    bench.write("jobs.ts", JOBS_TS);
    await bench.run(["enqueue", "ghost", "-"], { stdin: "1\n2\n3\n" });
    await bench.run(["enqueue", "spectre", "{}", "--queue", "slow"]);
    await bench.run(["enqueue", "ghost", "{}", "--delay", "1h"]);
    await bench.run(["enqueue", "hello", "{}"]);
    const { code, err, out } = await bench.run(["drain", "--jobs", "jobs.ts"]);
    expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/^1 run: 1 completed/) });
    expect(err).toContain("3 due jobs of type ghost have no definition in jobs.ts: they stay queued.\n");
    expect(err).toContain("1 due job of type spectre has no definition in jobs.ts: it stays queued.\n");
    const all = await bench.json(["drain", "--jobs", "jobs.ts"]);
    expect(all.document).toMatchObject({ claimed: 0, unserved: { ghost: 3, spectre: 1 } });
    const some = await bench.json(["drain", "--jobs", "jobs.ts", "--queues", "default"]);
    expect(some.document.unserved).toEqual({ ghost: 3 });
    await bench.run(["jobs", "cancel", "--all", "--yes"]);
    expect((await bench.json(["drain", "--jobs", "jobs.ts"])).document.unserved).toEqual({});
  });

  it("logs what the old worker logged, without passwords", async () => {
    const bench = createBench();
    bench.write("jobs.ts", JOBS_TS);
    await bench.run(["enqueue", "flaky", "{}", "--max-attempts", "2"]);
    await bench.run(["enqueue", "broken", "{}"]);
    const { err } = await bench.run(["drain", "--jobs", "jobs.ts"]);
    expect(err).toMatch(/^\d{4}-\S+Z info {2}processing \(attempt 1\/2\) job=\S+ type=flaky$/m);
    expect(err).toContain("Error: not yet (attempt 1/2), requeueing for attempt 2 in 1ms");
    expect(err).toContain("Error: not yet (attempt 2/2), moved to the dead letter queue");
    expect(err).toContain("postgres://user:***@db/x");
    expect(err).not.toContain("hunter2");
    await bench.run(["enqueue", "hello", "{}"]);
    expect((await bench.run(["drain", "--jobs", "jobs.ts"], { env: { REDRIVE_LOG: "warn" } })).err).toBe("");
  });

  it("shows its progress on a terminal only", async () => {
    const bench = createBench();
    bench.write("jobs.ts", JOBS_TS);
    await bench.run(["enqueue", "hello", "{}"]);
    const { err } = await bench.run(["drain", "--jobs", "jobs.ts"], { columns: 80, env: { NO_COLOR: "1" } });
    expect(err).toContain("\r\u001b[2Kdrain: ");
    expect(err.endsWith("\r\u001b[2K")).toBe(true);
  });

  it("takes retries from MAX_RETRIES, for types that set none, and ignores the variables of others", async () => {
    const bench = createBench();
    bench.write("jobs.ts", JOBS_TS);
    bench.write("redrive.config.yaml", "defaults: { backoff: { kind: fixed, delay: 20ms } }");
    await bench.run(["enqueue", "stubborn", "{}"]);
    await bench.run(["enqueue", "stubborn", "{}", "--max-attempts", "1"]);
    const env = { MAX_RETRIES: "2", MAX_RETRY_ATTEMPTS: "7", RETRY_DELAY_SECONDS: "soon", BATCH_SIZE: "no" };
    const { code, document, err } = await bench.json(["drain", "--jobs", "jobs.ts"], { env });
    expect({ code, ...document }).toMatchObject({ code: 1, claimed: 4, retried: 2, dead: 2 });
    expect(err).toContain("(attempt 1/3), requeueing for attempt 2 in 20ms");
    expect(err).toContain("(attempt 1/1), moved to the dead letter queue");
  });

  it("stores nothing of the environment at enqueue", async () => {
    const bench = createBench();
    const env = { MAX_RETRIES: "4", MAX_RETRY_ATTEMPTS: "0" };
    expect(await bench.run(["enqueue", "thing", "{}"], { env })).toMatchObject({ code: 0 });
    expect(bench.sql("select max_attempts from job").flat()).toEqual([10]);
  });

  it.each([
    ["worker", { MAX_RETRY_ATTEMPTS: "0" }, "MAX_RETRY_ATTEMPTS: expected a whole number from 1 to 10000"],
    ["drain", { MAX_RETRIES: "-1" }, "MAX_RETRIES: expected"],
    ["worker", { RETRY_DELAY_SECONDS: "soon" }, "RETRY_DELAY_SECONDS: expected seconds"],
    ["drain", { REDRIVE_LOG: "loud" }, "REDRIVE_LOG: expected debug, info, warn, error, silent"],
    ["drain", { REDRIVE_STORE: "mysql://me:hunter2@db/x" }, "REDRIVE_STORE: expected sqlite:PATH"],
  ])("has %s refuse the environment %j with exit 78", async (command, env, message) => {
    const bench = createBench();
    bench.write("jobs.ts", JOBS_TS);
    const { code, err } = await bench.run([command, "--jobs", "jobs.ts"], { env });
    expect(code).toBe(78);
    expect(err).toContain(message);
    expect(err).not.toContain("hunter2");
  });

  it.each([
    [["drain"], "--jobs FILE"],
    [["drain", "--jobs", "none.ts"], "none.ts, which does not exist"],
    [["drain", "--jobs", "empty.ts"], "expected exports made by defineJob"],
    [["drain", "--jobs", "bad.ts"], "expected a module that can be loaded"],
    [
      ["drain", "--jobs", "jobs.ts", "--concurrency", "0"],
      "worker.concurrency: expected a whole number from 1 to 10000",
    ],
    [["drain", "--jobs", "jobs.ts", "--lease", "1s", "--heartbeat", "1s"], "at most a third of the lease"],
    [["drain", "--jobs", "jobs.ts", "--queues", ""], "worker.queues"],
    [["drain", "--jobs", "jobs.ts", "--grace", "x"], "grace: expected a duration"],
    [["worker", "--jobs", "jobs.ts", "--within", "x"], "within: expected a duration"],
    [["worker", "--jobs", "jobs.ts", "--health-host", "::1"], "--health-port"],
    [["drain", "--store", "memory:", "--jobs", "jobs.ts"], "gone when the command ends"],
    [["drain", "--store", "mysql://me:hunter2@db/x"], "mysql://me:***@db/x"],
  ])("%j is refused with exit 2 and without a trace", async (args, message) => {
    const bench = createBench();
    bench.write("jobs.ts", JOBS_TS);
    bench.write("empty.ts", "export const nothing = 1;");
    bench.write("bad.ts", "export const {");
    const { code, out, err } = await bench.run(args);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain(message);
    expect(err).not.toMatch(/\n\s+at |hunter2/);
  });
});

describe("worker", () => {
  it("takes attempts and the wait before every retry from the environment, for types that set none", async () => {
    const bench = createBench();
    bench.write("jobs.ts", JOBS_TS);
    bench.write("redrive.config.yaml", "defaults: { preset: records }");
    await bench.run(["enqueue", "stubborn", "{}"]);
    const env = { MAX_RETRY_ATTEMPTS: "3", RETRY_DELAY_SECONDS: "0.01", MAX_RETRIES: "none of its own" };
    let stop: (signal: "SIGTERM") => void = () => undefined;
    const onWords = (text: string): void => void (text.includes("moved to the dead letter queue") && stop("SIGTERM"));
    const { err } = await bench.run(["worker", "--jobs", "jobs.ts"], {
      env,
      onReady: (send) => (stop = send),
      onWords,
    });
    expect(err).toContain("(attempt 1/3), requeueing for attempt 2 in 10ms");
    expect(err).toContain("(attempt 2/3), requeueing for attempt 3 in 10ms");
    expect(err).toContain("(attempt 3/3), moved to the dead letter queue");
  });

  it("stops at a signal and ends with its code", async () => {
    const bench = createBench();
    bench.write("jobs.ts", JOBS_TS);
    await bench.run(["enqueue", "hello", "{}"]);
    for (const [signal, expected] of [
      ["SIGINT", 130],
      ["SIGTERM", 143],
    ] as const) {
      const onReady = (send: (signal: "SIGINT" | "SIGTERM") => void): void => void setTimeout(() => send(signal), 300);
      const { code, err } = await bench.run(["worker", "--jobs", "jobs.ts"], { onReady });
      expect(code).toBe(expected);
      expect(err).toContain("worker started");
      expect(err).toContain(`signal=${signal}`);
      const claimed = signal === "SIGINT" ? 1 : 0;
      const said = `${claimed} claimed, ${claimed} completed, 0 retried, 0 dead, 0 released.`;
      expect(err).toMatch(/\nWorker stopped after \S+s: .*\n$/);
      expect(err).toContain(said);
    }
    expect((await bench.json(["stats"])).document).toMatchObject({ jobs: { completed: 1 }, workers: 0 });
  });

  it("that may not write to its store stops when it is told to, and never says that it started", async () => {
    const { url } = testSchema(inject("postgres18"));
    const bench = createBench();
    bench.write("jobs.ts", JOBS_TS);
    await bench.run(["migrate", "--store", url]);
    const store = `${url}&options=${encodeURIComponent("-c default_transaction_read_only=on")}`;
    const onReady = (send: (signal: "SIGTERM") => void): void => void setTimeout(() => send("SIGTERM"), 1_500);
    const { code, err } = await bench.run(["worker", "--jobs", "jobs.ts", "--store", store], { onReady });
    expect({ code, err }).toMatchObject({ code: 143, err: expect.stringContaining("did not answer (register)") });
    expect(err).not.toContain("worker started");
  });

  it("takes the same signal twice in a moment for one, and a later one for a second", async () => {
    const bench = createBench();
    bench.write(
      "jobs.mjs",
      `import { defineJob } from "redrive";
       export const nap = defineJob("nap", {
         run: ({ ms }, { signal }) => new Promise((resolve, reject) => {
           setTimeout(resolve, ms);
           signal.onabort = () => reject(signal.reason);
         }),
       });`,
    );
    const signals =
      (...at: number[]) =>
      (send: (signal: "SIGTERM") => void): void =>
        at.forEach((ms) => void setTimeout(() => send("SIGTERM"), ms));
    await bench.run(["enqueue", "nap", '{"ms":900}']);
    const once = await bench.run(["worker", "--jobs", "jobs.mjs"], { onReady: signals(300, 301, 400) });
    expect(once.code).toBe(143);
    expect(once.err).not.toContain("second signal");
    expect(once.err).toContain("1 claimed, 1 completed, 0 retried, 0 dead, 0 released.");
    await bench.run(["enqueue", "nap", '{"ms":20000}']);
    const twice = await bench.run(["worker", "--jobs", "jobs.mjs"], { onReady: signals(300, 700) });
    expect(twice.err).toContain("second signal: stopping at once");
    expect(twice.err).toContain("1 claimed, 0 completed, 0 retried, 0 dead, 1 released.");
  });
});
