// A bad day under Debian's Prometheus: real workers fail, lose a service, are killed and come back while it scrapes them
// and the fleet. Every expression of the board and of the rules must be answered without error, and every panel of the
// board must have data. With REDRIVE_PROVE_PICTURE the range of each panel is written there, for the picture of the board.
// Run by `npm run prove -- monitoring`; skipped where Prometheus is not installed (node scripts/prepare.mjs --prometheus).
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import type { Redrive } from "../../src/index.ts";
import { importBuilt } from "../support/built.ts";
import { type Bench, createBench } from "../support/cli.ts";
import { type Running, startCli, until } from "../support/cli-processes.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const HAS_PROMETHEUS = spawnSync("prometheus", ["--version"]).status === 0;
const DAY_MS = 90_000;

const JOBS = `
import { existsSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { defineJob, fixed, permanent } from "redrive";
export const mail = defineJob("mail", { maxAttempts: 3, backoff: fixed("1s"), run: async (n) => {
  await setTimeout(20 + (n % 5) * 20);
  if (n % 20 === 0) return permanent("no such address");
  if (n % 7 === 0) throw new Error("busy");
} });
export const charge = defineJob("charge", { service: "pricing", maxAttempts: 20, backoff: fixed("2s"), run: async () => {
  await setTimeout(30);
  if (existsSync("outage")) throw Object.assign(new Error("connect ECONNREFUSED 10.0.0.1:443"), { code: "ECONNREFUSED" });
} });
`;

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const portOf = async (running: Running, pattern: RegExp): Promise<string> => {
  const found = (): string | undefined => pattern.exec(running.text.err + running.text.out)?.[1];
  await until(
    () => found() !== undefined,
    () => running.text.err,
  );
  return found() ?? "";
};

/** A program that enqueues, such as a web server, and serves its own metrics. */
async function startProducer({ folder }: Bench): Promise<{ readonly redrive: Redrive; readonly port: string }> {
  const { createRedrive, defineJob } = await importBuilt<typeof import("../../src/index.ts")>("index.js");
  // A job has the service that its producer knows.
  const run = (): null => null;
  const jobs = [defineJob("mail", { run }), defineJob("charge", { service: "pricing", run })];
  const redrive = await createRedrive({ store: `sqlite:${join(folder, "redrive.db")}`, jobs, log: "silent" });
  const server = createHttpServer((_request, response) => {
    void redrive.metrics().then((metrics) => response.end(metrics.text()));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await redrive.close();
  });
  return { redrive, port: String((server.address() as AddressInfo).port) };
}

/** Prometheus on files of its own, which scrapes these addresses every second. */
async function startPrometheus(
  bench: Bench,
  targets: readonly string[],
): Promise<{ readonly url: string; readonly child: ChildProcess }> {
  const port = await freePort();
  const config = {
    global: { scrape_interval: "1s", evaluation_interval: "1s" },
    scrape_configs: [{ job_name: "redrive", static_configs: [{ targets }] }],
    rule_files: [join(ROOT, "monitoring", "alerts.yml")],
  };
  bench.write("prometheus.yml", JSON.stringify(config));
  const flags = ["--config.file=prometheus.yml", "--storage.tsdb.path=tsdb", `--web.listen-address=127.0.0.1:${port}`];
  const child = spawn("prometheus", flags, { cwd: bench.folder, stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  const url = `http://127.0.0.1:${port}`;
  let isReady = false;
  for (let tries = 0; tries < 300 && !isReady; tries += 1) {
    isReady = await fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (!isReady) await pause(100);
  }
  expect(isReady).toBe(true);
  return { url, child };
}

interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly values: readonly (readonly [number, string])[];
}

async function rangeOf(url: string, expr: string, from: number, to: number): Promise<readonly Series[]> {
  const query = new URLSearchParams({
    query: expr.replaceAll("$__rate_interval", "15s"),
    start: String(from),
    end: String(to),
    step: "1",
  });
  const answer = (await (await fetch(`${url}/api/v1/query_range?${query.toString()}`)).json()) as {
    readonly status: string;
    readonly error?: string;
    readonly data: { readonly result: readonly Series[] };
  };
  expect([expr, answer.status, answer.error]).toEqual([expr, "success", undefined]);
  return answer.data.result;
}

it.skipIf(!HAS_PROMETHEUS)(
  "every expression of board and rules answers after a bad day",
  { timeout: 600_000 },
  async () => {
    const bench = createBench();
    bench.write("jobs.mjs", JOBS);
    bench.write(
      "redrive.config.yaml",
      "store: sqlite:./redrive.db\njobs: ./jobs.mjs\nservices: { pricing: { rateLimit: { limit: 50, per: 1s } } }\n",
    );
    await bench.run(["migrate"]);
    const worker = async (): Promise<Running> =>
      startCli(bench, ["worker", "--health-port", "0", "--lease", "2s", "--heartbeat", "500ms"]);
    const health = /health=(\d+)/;
    const [one, two] = [await worker(), await worker()];
    const producer = await startProducer(bench);
    const fleet = startCli(bench, ["metrics", "--serve", "0"]);
    const ports = [
      await portOf(one, health),
      await portOf(two, health),
      await portOf(fleet, /:(\d+)\/metrics/),
      producer.port,
    ];
    const { url } = await startPrometheus(
      bench,
      ports.map((port) => `127.0.0.1:${port}`),
    );
    const from = Date.now() / 1_000;
    const began = Date.now();
    let isOver = false;
    const feed = (async () => {
      for (let n = 0; !isOver; n += 20) {
        const numbers = Array.from({ length: 20 }, (_, at) => n + at);
        for (const type of ["mail", "charge"]) await producer.redrive.enqueueMany(type, numbers);
        await pause(500);
      }
    })();
    const at = (share: number): Promise<void> => pause(Math.max(0, began + share * DAY_MS - Date.now()));
    await at(0.25);
    bench.write("outage", "");
    await at(0.5);
    two.child.kill("SIGKILL");
    await at(0.6);
    spawnSync("rm", ["-f", join(bench.folder, "outage")]);
    await at(1);
    isOver = true;
    await feed;
    const to = Date.now() / 1_000;
    const board = JSON.parse(readFileSync(join(ROOT, "monitoring", "grafana.json"), "utf8"));
    const panels: { title: string; unit: string; series: readonly Series[] }[] = [];
    for (const { title, targets, fieldConfig } of board.panels) {
      const series = (
        await Promise.all(targets.map(({ expr }: { expr: string }) => rangeOf(url, expr, from, to)))
      ).flat() as Series[];
      panels.push({ title, unit: fieldConfig.defaults.unit, series });
    }
    const rules = parse(readFileSync(join(ROOT, "monitoring", "alerts.yml"), "utf8")).groups[0].rules as {
      expr: string;
    }[];
    for (const { expr } of rules) await rangeOf(url, expr, from, to);
    const empty = panels.filter(({ series }) => series.length === 0).map(({ title }) => title);
    process.stdout.write(
      `${panels.length} panels, ${panels.reduce((sum, { series }) => sum + series.length, 0)} series, ${rules.length} rules\n`,
    );
    const picture = process.env.REDRIVE_PROVE_PICTURE;
    if (picture) writeFileSync(picture, JSON.stringify({ from, to, outage: [0.25, 0.6], kill: 0.5, panels }));
    expect(empty).toEqual([]);
    for (const running of [one, fleet]) running.child.kill("SIGTERM");
  },
);
