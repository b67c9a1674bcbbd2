// The command line as a real process: signals, readers that leave, workers that die, TypeScript on this Node.
import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { type Bench, createBench } from "../support/cli.ts";
import { startCli as start, until } from "../support/cli-processes.ts";
import { connect } from "../support/database-file.ts";

/** Long enough for the same signal to count as a second one. */
const aMoment = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 250));

/** Job types that note what happens to them in a file beside them. */
const JOBS = `
import { appendFileSync } from "node:fs";
import { defineJob, fixed, type JobContext } from "redrive";
const note = (text: string): void => appendFileSync(new URL("notes", import.meta.url), text + "\\n");
const sleep = (ms: number, signal?: AbortSignal) => new Promise<void>((resolve) => {
  const timer = setTimeout(resolve, ms);
  signal?.addEventListener("abort", () => { clearTimeout(timer); resolve(); });
});
export const nap = defineJob("nap", {
  async run({ ms }: { ms: number }, { signal }: JobContext) {
    note("asleep");
    await sleep(ms, signal);
    note(signal.aborted ? "woken" : "rested");
    signal.throwIfAborted();
  },
});
export const deaf = defineJob("deaf", { timeout: "50ms", async run() { note("deaf"); await sleep(60_000); } });
export const killer = defineJob("killer", {
  run(_input: unknown, { job }: JobContext) {
    if (job.crashes < 2) process.kill(process.pid, "SIGKILL");
    note("alone with " + job.maxAttempts);
    throw new Error("still no good");
  },
});
export const big = defineJob("big", { run() { throw Object.assign(new Error("x"), { name: "PermanentError" }); } });
`;

async function site(): Promise<Bench & { readonly notes: () => string }> {
  const bench = createBench();
  bench.write("jobs.ts", JOBS);
  const file = join(bench.folder, "notes");
  return { ...bench, notes: () => (existsSync(file) ? readFileSync(file, "utf8") : "") };
}

/** A worker with a job in the middle of its nap, which waits for it longer than any test. */
async function napping(bench: Awaited<ReturnType<typeof site>>): Promise<ReturnType<typeof start>> {
  const worker = start(bench, ["worker", "--jobs", "jobs.ts", "--within", "10m"]);
  await until(
    () => bench.notes().includes("asleep"),
    () => worker.text.err,
  );
  return worker;
}

describe("a worker process", () => {
  it("lets running jobs finish at the first SIGTERM, and ends with 143", async () => {
    const bench = await site();
    await bench.run(["enqueue", "nap", '{"ms":700}']);
    const worker = await napping(bench);
    worker.child.kill("SIGTERM");
    expect(await worker.ended).toMatchObject({ code: 143, signal: null });
    expect(bench.notes()).toBe("asleep\nrested\n");
    expect((await bench.json(["stats"])).document).toMatchObject({ jobs: { completed: 1 }, workers: 0 });
  });

  it("aborts and releases uncharged at the second SIGINT, and ends with 130 at once", async () => {
    const bench = await site();
    await bench.run(["enqueue", "nap", '{"ms":600000}']);
    const worker = await napping(bench);
    worker.child.kill("SIGINT");
    await worker.says("stopping");
    await aMoment();
    worker.child.kill("SIGINT");
    expect(await worker.ended).toMatchObject({ code: 130 });
    expect(bench.notes()).toBe("asleep\nwoken\n");
    expect((await bench.json(["jobs", "list"])).document.items).toMatchObject([{ state: "queued", attempts: 0 }]);
  });

  it("goes at the second signal even if the store does not answer", async () => {
    const bench = await site();
    await bench.run(["enqueue", "nap", '{"ms":600000}']);
    const worker = await napping(bench);
    connect(join(bench.folder, "redrive.db")).exec("begin immediate");
    worker.child.kill("SIGTERM");
    await worker.says("stopping");
    await aMoment();
    worker.child.kill("SIGTERM");
    expect(await worker.ended).toMatchObject({ code: 143 });
  });

  it("whose handlers ignore their abort says so and ends with 75", async () => {
    const bench = await site();
    bench.write("redrive.config.yaml", "worker: { abortGrace: 50ms, concurrency: 2 }");
    await bench.run(["enqueue", "deaf", "{}"]);
    const worker = start(bench, ["worker", "--jobs", "jobs.ts", "--within", "1s"]);
    expect(await worker.ended).toMatchObject({ code: 75 });
    expect(worker.text.err).toContain("replace this process");
  });

  it("that is killed leaves its job to a drain, uncharged for nothing and lost to nobody", async () => {
    const bench = await site();
    await bench.run(["enqueue", "nap", '{"ms":1500}']);
    const worker = await napping(bench);
    worker.child.kill("SIGKILL");
    await worker.ended;
    const { code, document } = await bench.json(["drain", "--jobs", "jobs.ts"], {});
    expect({ code, document }).toMatchObject({ code: 0, document: { completed: 1, dead: 0 } });
    expect(bench.sql("select attempts, crashes from job")).toEqual([[1, 1]]);
  });

  it("runs a job's last chance in a child with the same TypeScript and the same defaults", async () => {
    const bench = await site();
    await bench.run(["enqueue", "killer", "{}"]);
    bench.write("redrive.config.yaml", "defaults: { maxAttempts: 3, backoff: { kind: fixed, delay: 1ms } }");
    for (let death = 0; death < 2; death++) {
      const { signal } = await start(bench, ["drain", "--jobs", "jobs.ts"]).ended;
      expect(signal).toBe("SIGKILL");
    }
    const last = start(bench, ["drain", "--jobs", "jobs.ts"]);
    expect({ ...(await last.ended), err: last.text.err }).toMatchObject({ code: 1 });
    expect(bench.notes()).toBe("alone with 3\n");
    expect((await bench.json(["dlq", "list"])).document.items).toMatchObject([{ reason: "exhausted", attempts: 3 }]);
  });

  it("answers its probes", async () => {
    const bench = await site();
    const worker = start(bench, ["worker", "--jobs", "jobs.ts", "--health-port", "0"]);
    await worker.says("worker started");
    const port = /health=(\d+)/.exec(worker.text.err)?.[1];
    expect((await fetch(`http://127.0.0.1:${port}/live`)).status).toBe(200);
    worker.child.kill("SIGTERM");
    expect(await worker.ended).toMatchObject({ code: 143 });
  });
});

describe("a reader that leaves", () => {
  it("ends an export quietly with 0", async () => {
    const bench = await site();
    const payload = JSON.stringify("x".repeat(20_000));
    await bench.run(["enqueue", "big", "-"], { stdin: `${payload}\n`.repeat(300) });
    await bench.run(["drain", "--jobs", "jobs.ts", "--quiet"]);
    const running = start(bench, ["dlq", "export"]);
    running.child.stdout?.once("data", () => running.child.stdout?.destroy());
    expect(await running.ended).toMatchObject({ code: 0 });
    expect(running.text.err).toBe("");
  });
});

describe("a stream from stdin", () => {
  it("of many lines goes in with flat memory", async () => {
    const bench = await site();
    writeFileSync(join(bench.folder, "records"), `${JSON.stringify({ text: "x".repeat(100) })}\n`.repeat(20_000));
    const running = start(bench, ["enqueue", "nap", "-", "--json"], { NODE_OPTIONS: "--max-old-space-size=40" });
    running.child.stdin?.end(readFileSync(join(bench.folder, "records")));
    expect(await running.ended).toMatchObject({ code: 0 });
    const document = JSON.parse(running.text.out) as { ids: string[]; enqueued: number };
    expect([document.enqueued, document.ids.length]).toEqual([20_000, 20_000]);
  });
});

describe("the entry of the command line", () => {
  it("starts what is built, or says how to build it", async () => {
    const bench = createBench();
    const entry = fileURLToPath(new URL("../../bin/redrive.js", import.meta.url));
    const text = readFileSync(entry, "utf8");
    const copy = bench.write("redrive.mjs", text);
    const child = spawn(process.execPath, [copy, "stats"], { stdio: ["ignore", "pipe", "pipe"] });
    let err = "";
    child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
    const code = await new Promise((resolve) => child.on("close", resolve));
    expect({ code, err }).toEqual({ code: 70, err: expect.stringContaining("npm run build") });
  });
});
