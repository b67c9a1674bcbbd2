// Metrics and probes as monitors meet them: real workers and real `redrive metrics` processes, asked over HTTP on each
// store.
import { describe, expect, inject, it } from "vitest";
import { type Bench, createBench } from "../support/cli.ts";
import { type Running, startCli, until } from "../support/cli-processes.ts";
import { testSchema } from "../support/postgres-queue.ts";
import { promtool } from "../support/promtool.ts";

const JOBS = `
import { defineJob, fixed, PermanentError } from "redrive";
import { existsSync } from "node:fs";
export const hello = defineJob("hello", { run: () => null });
export const flaky = defineJob("flaky", {
  backoff: fixed(1),
  run(_input: unknown, { attempt }) { if (attempt < 3) throw new Error("not yet"); return attempt; },
});
export const broken = defineJob("broken", {
  service: "files",
  run() { if (!existsSync("mended")) throw new PermanentError("no such file"); return null; },
});
`;

const STORES: readonly (readonly [string, () => string])[] = [
  ["sqlite", () => "sqlite:redrive.db"],
  ["postgres 18", () => testSchema(inject("postgres18")).url],
];
const OPEN_METRICS = "application/openmetrics-text";

interface Answer {
  readonly status: number;
  readonly type: string | null;
  readonly text: string;
}

/** What a port answers. */
async function ask(port: number, path: string, init: RequestInit = {}): Promise<Answer> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { ...init, signal: AbortSignal.timeout(30_000) });
  return { status: answer.status, type: answer.headers.get("content-type"), text: await answer.text() };
}

/** The value of a series by its whole name; 0 where it is not shown. */
function valueIn(text: string, series: string): number {
  const line = text.split("\n").find((each) => each.startsWith(`${series} `));
  return line === undefined ? 0 : Number(line.slice(series.length + 1));
}

/** Waits for a port that a process says on stderr. */
async function portOf({ text, child }: Running, said: RegExp): Promise<number> {
  await until(
    () => said.test(text.err) || child.exitCode !== null,
    () => text.err,
  );
  expect(text.err).toMatch(said);
  return Number(said.exec(text.err)?.[1]);
}

async function startWorker(bench: Bench, store: string, ...flags: string[]) {
  bench.write("jobs.ts", JOBS);
  const running = startCli(bench, ["worker", "--store", store, "--jobs", "jobs.ts", "--health-port", "0", ...flags]);
  return { ...running, port: await portOf(running, /health=(\d+)/) };
}

describe.each(STORES)("on %s", (_name, storeOf) => {
  it("a worker's probes and figures follow its runs", { timeout: 120_000 }, async () => {
    const bench = createBench();
    const store = storeOf();
    const worker = await startWorker(bench, store);
    expect(await ask(worker.port, "/live")).toMatchObject({ status: 200, text: "ok\n" });
    // Ready with its first look at the store.
    await expect.poll(() => ask(worker.port, "/ready")).toMatchObject({ status: 200, text: "ok\n" });
    const figures = async () => (await ask(worker.port, "/metrics")).text;
    const reaches = (series: string, value: number): Promise<void> =>
      expect.poll(async () => valueIn(await figures(), series), { timeout: 60_000 }).toBe(value);
    expect(valueIn(await figures(), 'redrive_slots{state="busy"}')).toBe(0);
    const call = async (...args: string[]) => {
      const { code, err, out } = await bench.run([...args, "--store", store]);
      expect({ args, code, err }).toMatchObject({ args, code: 0 });
      return out;
    };
    for (const type of ["hello", "flaky", "broken", "broken"]) await call("enqueue", type, "{}");
    await reaches('redrive_runs_total{type="hello",outcome="completed"}', 1);
    await reaches('redrive_runs_total{type="flaky",outcome="completed"}', 1);
    await reaches('redrive_runs_total{type="flaky",outcome="retried"}', 2);
    await reaches('redrive_runs_total{type="broken",outcome="dead"}', 2);
    expect(valueIn(await figures(), 'redrive_failures_total{type="broken",class="permanent"}')).toBe(2);
    expect(valueIn(await call("metrics"), 'redrive_dead_letters{type="broken"}')).toBe(2);
    bench.write("mended", "");
    await call("dlq", "retry", "--all");
    await reaches('redrive_runs_total{type="broken",outcome="completed"}', 2);
    const text = await figures();
    expect(valueIn(text, 'redrive_run_seconds_count{type="broken"}')).toBe(4);
    expect(valueIn(text, 'redrive_retry_delay_seconds_count{class="transient"}')).toBe(2);
    const gauges = await call("metrics");
    expect(valueIn(gauges, 'redrive_dead_letters{type="broken"}')).toBe(0);
    expect(valueIn(gauges, 'redrive_jobs{state="completed"}')).toBe(4);
    expect(valueIn(gauges, 'redrive_workers{state="alive"}')).toBe(1);
    worker.child.kill("SIGTERM");
    expect((await worker.ended).code).toBe(143);
  });

  it("`metrics --serve` answers the gauges in both forms, with the secret only", { timeout: 120_000 }, async () => {
    const bench = createBench();
    const store = storeOf();
    bench.write("token", "s3cret\n");
    await bench.run(["enqueue", "hello", "{}", "--store", store]);
    const flags = ["--serve", "0", "--host", "0.0.0.0", "--metrics-token-file", "token"];
    const running = startCli(bench, ["metrics", "--store", store, ...flags]);
    const port = await portOf(running, /Metrics on http:\/\/0\.0\.0\.0:(\d+)\/metrics/);
    const headers = { authorization: "Bearer s3cret" };
    for (const wrong of [{}, { authorization: "Bearer wrong" }, { authorization: "Basic s3cret" }])
      expect(await ask(port, "/metrics", { headers: wrong as Record<string, string> })).toMatchObject({ status: 401 });
    const plain = await ask(port, "/metrics", { headers });
    expect(plain).toMatchObject({ status: 200, type: "text/plain; version=0.0.4; charset=utf-8" });
    expect(valueIn(plain.text, 'redrive_due{type="hello"}')).toBe(1);
    const open = await ask(port, "/metrics", { headers: { ...headers, accept: `${OPEN_METRICS};version=1.0.0` } });
    expect(open).toMatchObject({ status: 200, type: `${OPEN_METRICS}; version=1.0.0; charset=utf-8` });
    expect(open.text).toMatch(/\n# EOF\n$/);
    expect(await ask(port, "/metrics", { headers, method: "HEAD" })).toMatchObject({ status: 200, text: "" });
    for (const method of ["POST", "PUT", "DELETE"])
      expect(await ask(port, "/metrics", { headers, method })).toMatchObject({ status: 405 });
    expect(await ask(port, "/live", { headers })).toMatchObject({ status: 404 });
    running.child.kill("SIGTERM");
    expect((await running.ended).code).toBe(143);
  });
});

describe("a worker that other machines reach", () => {
  it("serves no metrics without a secret, and says so once", { timeout: 120_000 }, async () => {
    const worker = await startWorker(createBench(), "sqlite:redrive.db", "--health-host", "0.0.0.0");
    for (let n = 0; n < 3; n += 1) expect(await ask(worker.port, "/metrics")).toMatchObject({ status: 404 });
    expect(await ask(worker.port, "/live")).toMatchObject({ status: 200 });
    expect(await ask(worker.port, "/ready")).toMatchObject({ status: 200 });
    expect(worker.text.err.split("/metrics is not served")).toHaveLength(2);
  });

  it("serves them with one", { timeout: 120_000 }, async () => {
    const bench = createBench();
    bench.write("token", "s3cret\n");
    const worker = await startWorker(
      bench,
      "sqlite:redrive.db",
      "--health-host",
      "0.0.0.0",
      "--metrics-token-file",
      "token",
    );
    const as = (secret: string) =>
      ask(worker.port, "/metrics", { headers: { authorization: `Bearer ${secret}`, accept: OPEN_METRICS } });
    expect(await as("wrong")).toMatchObject({ status: 401 });
    expect(await as("s3cret")).toMatchObject({ status: 200, text: expect.stringMatching(/\n# EOF\n$/) });
    expect(worker.text.err).not.toContain("is not served");
    expect(worker.text.err).not.toContain("s3cret");
  });

  it.each([
    ["missing", /missing cannot be read/],
    ["empty", /empty is empty/],
  ])("does not start with a secret file that is %s", async (file, message) => {
    const bench = createBench();
    bench.write("jobs.ts", JOBS);
    bench.write("empty", " \n");
    const flags = ["--jobs", "jobs.ts", "--health-port", "0", "--metrics-token-file", file];
    const { code, err } = await bench.run(["worker", ...flags]);
    expect({ code, err }).toEqual({ code: 78, err: expect.stringMatching(message) });
  });
});

describe.skipIf(promtool === null)("promtool", () => {
  it("finds nothing wrong with the page of a worker that ran and that of the store", { timeout: 120_000 }, async () => {
    const bench = createBench();
    const worker = await startWorker(bench, "sqlite:redrive.db");
    for (const type of ["hello", "flaky", "broken"]) await bench.run(["enqueue", type, "{}"]);
    const page = async () => (await ask(worker.port, "/metrics")).text;
    await expect
      .poll(async () => valueIn(await page(), 'redrive_runs_total{type="flaky",outcome="completed"}'), {
        timeout: 60_000,
      })
      .toBe(1);
    expect(promtool?.(await page())).toEqual({ code: 0, said: "" });
    expect(promtool?.((await bench.run(["metrics"])).out)).toEqual({ code: 0, said: "" });
  });

  it("would find a bad name and a bad line", () => {
    expect(promtool?.("# TYPE bad_name_total gauge\nbad_name_total 1\n").code).not.toBe(0);
    expect(promtool?.('redrive_jobs{state="a"b"} 1\n').code).not.toBe(0);
  });
});
