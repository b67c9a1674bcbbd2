// The benchmarks still run: every row is printed and nothing crashes. Their figures are not judged here; a test machine
// is busy with the other tests. The test command plays some of them, `npm run prove -- bench` all.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

function bench(...args: string[]): { status: number | null; lines: string[]; errors: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["scripts/bench.mjs", ...args], {
    cwd: ROOT,
    encoding: "utf8",
    timeout: 110_000,
  });
  return { status, lines: stdout.split("\n").filter((line) => line.trim() !== ""), errors: stderr };
}

/** The rows of each benchmark, where it has subjects by those; `--only` knows their names. */
const ROWS: Record<string, readonly string[] | Record<string, readonly string[]>> = {
  store: [
    "equal-work loop",
    "store, claim 500 / settle 500",
    "share of the equal-work limit",
    "with 50000 scheduled and 10000 parked",
    "share of the rate without them",
    "heartbeat while saturated",
    "latest of",
    "verdict about a failure",
  ],
  worker: {
    throughput: [
      "equal-work loop",
      "Redrive, 1 worker process",
      "  share of the equal-work limit",
      "plainjob as shipped",
      "bee-queue on Redis",
      "Redrive, 2 worker processes",
    ],
    enqueue: [
      "Redrive, enqueue, 100 callers",
      "plainjob, enqueue, 100 callers",
      "Redrive, enqueue, one after the other",
      "plainjob, enqueue, one after the other",
    ],
    bulk: [
      "Redrive, bulk enqueue",
      "bare insert of the same rows",
      "  share of the bare insert",
      "bare insert that binds once what rows share",
      "Redrive, bulk enqueue with sync=normal",
      "plainjob, bulk enqueue",
    ],
    "pick-up": [
      "idle pick-up within a process",
      "idle pick-up across processes",
      "idle pick-up across, 50 a second",
      "  bare write and sync",
      "  worker that idles",
    ],
    retries: ["Redrive, 500 jobs that fail once", "bee-queue, 500 jobs that fail once"],
    scheduled: ["Redrive with 20000 scheduled for later", "  share of the rate without them"],
    memory: ["memory after 1000 jobs", "memory after 5000", "  peak while all"],
    killer: ["one killer among 200", "  processes that died"],
    traces: ["CPU per job without traces", "CPU per job with an OpenTelemetry SDK", "  with traces against without"],
  },
  postgres: {
    throughput: ["1 worker process", "2 worker processes"].flatMap((processes) => [
      `Redrive, ${processes}`,
      `Redrive, deleting, ${processes}`,
      "equal-work loop of Redrive",
      "  share of the equal-work limit",
      "equal-work loop of Redrive, deleting",
      "  share of the equal-work limit",
      "  Redrive, CPU per job",
      "  Redrive, deleting, CPU per job",
      "  the peers",
    ]),
    enqueue: ["Redrive, 100 callers", "  the peers", "equal-work loop, bulk", "Redrive, bulk", "  the peers"],
    "sql-enqueue": ["8 callers, a transaction a job", "1 caller, all in a transaction"].flatMap((kind) => [
      `bare inserts, ${kind}`,
      `redrive.enqueue(), ${kind}`,
      `redrive.enqueue() with a key, ${kind}`,
      "  redrive.enqueue() against bare inserts",
      "  redrive.enqueue() with a key against bare inserts",
    ]),
    "pick-up": ["Redrive, idle pick-up", "equal-work loop, idle pick-up", "  the peers"],
    idle: ["Redrive, an idle worker", "Redrive, 10 idle workers"],
    retries: [
      "equal-work loop, 500 jobs that fail once",
      "Redrive, 500 jobs that fail once",
      "  Redrive, CPU per job",
      "  the peers",
    ],
    unsettled: ["claimed and not settled, 2000 jobs that fail once", "  looks, memory of the worker"],
    crowded: ["Redrive with 20000 for later and 4000 parked", "  share of the rate without them"],
  },
  tenants: ["SQLite", "Postgres"].flatMap((store) => [
    `${store}, one tenant with 2000 jobs`,
    `${store}, 2000 tenants with one job each`,
    "  share of the rate of one tenant",
    `${store}, 200 tenants, jobs/s`,
    `${store}, 200 tenants with limits and breaker`,
    "  share of the rate without them",
  ]),
  questions: ["sqlite: 2000 jobs", "postgres: 2000 jobs"].flatMap((store) => [
    store,
    "count, at most 10,000 of each",
    "jobs, cancelled",
    "tally of a service",
    "health",
    "CPU a job with ten viewers",
  ]),
  records: [
    "plain loop without retries, records/s",
    ...["SQLite", "Postgres"].flatMap((store) => [
      `Redrive on ${store}, records/s`,
      "  share of the plain loop",
      "  CPU of the process a record",
      "  fed again, all known, records/s",
      "  peak of memory, 1000 → 3000 records",
    ]),
  ],
  retryable: [
    "bare call",
    "Redrive, ns per call",
    "  cockatiel",
    "  p-retry",
    "Redrive, no deadline",
    "  cockatiel",
    "Redrive, breaker",
    "  cockatiel, consecutive breaker",
    "  cockatiel, sampling breaker",
    "Redrive, timeout",
    "  cockatiel, timeout",
  ],
  startup: ["node -e 0", "redrive --version", "redrive --help", "redrive enqueue, one job", "redrive stats"],
  causes: [
    "2000 letters of 40 causes",
    "causes, a page of 50",
    "causes, one of them",
    "trend of a cause, an hour",
    "trend of the flow, an hour",
    "letters of a cause, a page of 50",
    "triage of one cause",
    "triage of 40 causes",
    "fold with nothing to do",
    "recount of one cause",
    "recount of all causes",
  ],
};

/** What is played: everything where it is to be proven, else what is over soon. */
const ALL: readonly [string, readonly string[]][] = Object.keys(ROWS).map((name) => [name, []]);
const SOME: readonly [string, readonly string[]][] = [
  ["worker", ["enqueue", "retries"]],
  ["postgres", ["retries"]],
  ["startup", []],
];
const IS_WHOLE = process.env["REDRIVE_PROVE"] === "bench";

function rowsOf(name: string, only: readonly string[]): readonly string[] {
  const rows = ROWS[name] as (typeof ROWS)[string];
  if (Array.isArray(rows)) return rows as readonly string[];
  return Object.entries(rows).flatMap(([subject, each]) => (only.length === 0 || only.includes(subject) ? each : []));
}

describe("npm run bench", () => {
  it.each(IS_WHOLE ? ALL : SOME)("prints every row of %s %j", (name, only) => {
    const chosen = only.length === 0 ? [] : ["--only", only.join(",")];
    const { status, lines, errors } = bench(name, "--short", "--no-peers", ...chosen);
    expect(status, errors).toBe(0);
    expect(lines).toEqual(
      rowsOf(name, only).map((row) => expect.stringMatching(`^${row.replaceAll(/[/.]/g, "\\$&")}`)),
    );
  });

  it.runIf(IS_WHOLE)("compares this tree with another one, here with itself", () => {
    const { status, lines, errors } = bench("against", "--short", "--only", "sqlite", "--tree", ".");
    expect(status, errors).toBe(0);
    const kinds = ["done", "fails", "fails with ids", "fails in a library"];
    const rows = kinds.flatMap((kind) => ["enqueue", "work"].map((figure) => `SQLite, ${kind}: ${figure}, process`));
    expect(lines).toEqual(rows.map((row) => expect.stringMatching(`^${row} .* us .* x$`)));
  });

  it("says how it is used when it is asked for what it does not have", () => {
    const { status, errors } = bench("stroe");
    expect(status).toBe(2);
    expect(errors).toContain("Usage: npm run bench");
  });

  it("refuses an option it does not know", () => {
    const { status, errors } = bench("worker", "--shrot");
    expect(status).toBe(2);
    expect(errors).toContain("--shrot");
  });
});
