// `redrive metrics`, and `/metrics` on the port of a worker and of `--serve`: what they answer, and to which callers.
import { describe, expect, it, onTestFinished } from "vitest";
import { metricsText } from "../../src/metrics/text.ts";
import { type HealthPortOptions, isLoopback, serveHealth } from "../../src/worker/health-port.ts";
import { collectLog } from "../../src/testing/collect-log.ts";
import { createBench, JOBS_TS } from "../support/cli.ts";

describe("redrive metrics", () => {
  it("prints the gauges of the store as Prometheus text, and as JSON", async () => {
    const bench = createBench();
    await bench.run(["enqueue", "thing", "{}"]);
    const { code, out } = await bench.run(["metrics"]);
    expect(code).toBe(0);
    expect(out).toContain('redrive_jobs{state="queued"} 1\n');
    expect(out).toContain('redrive_due{type="thing"} 1\n');
    expect(out).toMatch(/^redrive_health_score 0\.7$/m);
    const { document } = await bench.json(["metrics"]);
    expect(document.families[0]).toMatchObject({ name: "redrive_jobs", type: "gauge" });
  });

  it.each<[string[], number, RegExp]>([
    [["--serve", "0", "--host", "0.0.0.0"], 78, /expected a loopback address, or --metrics-token-file/],
    [["--metrics-token-file", "missing"], 78, /missing cannot be read/],
    [["--metrics-token-file", "empty"], 78, /empty is empty/],
    [["--metrics-token-file", "long"], 78, /long has more than that, or spaces/],
    [["--serve", "70000"], 2, /port: expected a whole number from 0 to 65535|65535/],
  ])("refuses %j with %i", async (args, code, message) => {
    const bench = createBench();
    bench.write("empty", "\n");
    bench.write("long", "x".repeat(256));
    await bench.run(["migrate"]);
    const answer = await bench.run(["metrics", ...args]);
    expect({ code: answer.code, err: answer.err }).toEqual({ code, err: expect.stringMatching(message) });
  });

  it("takes the secret of a worker only with a port", async () => {
    const bench = createBench();
    bench.write("jobs.ts", JOBS_TS);
    bench.write("token", "s3cret\n");
    const { code, err } = await bench.run(["drain", "--jobs", "jobs.ts", "--metrics-token-file", "token"]);
    expect({ code, err }).toEqual({
      code: 2,
      err: expect.stringContaining("expected --health-port beside --metrics-token-file; got none"),
    });
  });
});

describe("the port", () => {
  const text = metricsText([
    { name: "redrive_orphans", type: "gauge", help: "x", samples: [{ labels: {}, value: 1 }] },
  ]);
  async function open(options: Partial<HealthPortOptions> = {}) {
    const log = collectLog();
    const metrics = (accept: string | undefined) => ({ mediaType: accept ?? "text/plain", text });
    const given = { port: 0, isLive: () => true, isReady: () => false, metrics, log, ...options };
    const port = await serveHealth(given);
    onTestFinished(() => port.close());
    const get = async (path: string, init: RequestInit = {}) => {
      const answer = await fetch(`http://127.0.0.1:${port.port}${path}`, init);
      return { status: answer.status, text: await answer.text(), type: answer.headers.get("content-type") };
    };
    return { get, log };
  }

  it("answers metrics beside the probes, in the form that is asked for", async () => {
    const { get, log } = await open();
    expect(await get("/metrics", { headers: { accept: "application/openmetrics-text" } })).toEqual({
      status: 200,
      text,
      type: "application/openmetrics-text",
    });
    expect([(await get("/live")).status, (await get("/ready")).status]).toEqual([200, 503]);
    expect(await get("/else")).toMatchObject({ status: 404, text: "not found: /live or /ready or /metrics\n" });
    expect((await get("/metrics", { method: "POST" })).status).toBe(405);
    expect(log.lines).toEqual([]);
  });

  it("wants the secret where there is one", async () => {
    const { get } = await open({ metricsToken: "s3cret" });
    const as = (authorization: string) => get("/metrics", { headers: { authorization } });
    expect((await get("/metrics")).status).toBe(401);
    expect((await as("Bearer s3cre")).status).toBe(401);
    expect((await as("s3cret")).status).toBe(401);
    expect(await as("Bearer s3cret")).toMatchObject({ status: 200, text });
    expect((await get("/live")).status).toBe(200);
  });

  it("does not serve metrics off loopback without a secret, says so once, and answers probes", async () => {
    const { get, log } = await open({ host: "0.0.0.0" });
    for (let n = 0; n < 2; n += 1)
      expect(await get("/metrics")).toMatchObject({ status: 404, text: "not found: /live or /ready\n" });
    expect((await get("/live")).status).toBe(200);
    expect(log.said("/metrics is not served")).toHaveLength(1);
    const { get: ask } = await open({ host: "0.0.0.0", metricsToken: "s3cret" });
    expect((await ask("/metrics")).status).toBe(401);
  });

  it("answers 503 where the metrics cannot be read, without saying why", async () => {
    const { get, log } = await open({ metrics: () => Promise.reject(new Error("password is wrong")) });
    expect(await get("/metrics")).toMatchObject({ status: 503, text: expect.not.stringContaining("password") });
    expect(log.said("could not be read")).toHaveLength(1);
  });

  it.each([
    ["127.0.0.1", true],
    ["127.1.2.3", true],
    ["::1", true],
    ["localhost", true],
    ["0.0.0.0", false],
    ["::", false],
    ["10.0.0.1", false],
    ["127.0.0.1.example.com", false],
  ])("takes %s for loopback: %s", (host, is) => expect(isLoopback(host)).toBe(is));
});
