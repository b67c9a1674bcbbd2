// The tables of docs/concepts say what the program does, and the reference of options is what its source says.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { type Backoff, delayBefore, exponential, fixed, immediate, linear } from "../src/core/backoff.ts";
import { DEFAULT_SEVERITY, isRetryable } from "../src/core/classify-rules.ts";
import { classify } from "../src/core/classify.ts";
import { formatDuration } from "../src/core/duration.ts";
import { DEATH_REASONS, FAILURE_CLASSES, STATES } from "../src/core/job.ts";
import { UNIQUE_MODES } from "../src/core/new-job.ts";
import { type Policy, PRESETS } from "../src/core/policy.ts";
import { NEWER_WORKER_MS } from "../src/worker/executor.ts";
import { resolveWorker, WORKER_DEFAULTS } from "../src/worker/settings.ts";
import { failure } from "./support/verdicts.ts";

const root = new URL("..", import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), "utf8");
const CLASSES = read("docs/concepts/failure-classes.md");
const BACKOFF = read("docs/concepts/backoff-and-presets.md");
const LEASES = read("docs/concepts/leases-and-guarantees.md");

/** The cells of the rows below this heading line, code marks removed. */
function table(page: string, heading: string): string[][] {
  const [, after = ""] = page.split(`${heading}\n| --- |`);
  const rows = after.split("\n\n")[0]?.split("\n").slice(1) ?? [];
  if (rows.length === 0) throw new Error(`There is no table under ${heading}`);
  return rows.map((row) =>
    row
      .slice(2, -1)
      .split(" | ")
      .map((cell) => cell.replaceAll("`", "").trim()),
  );
}

const column = (rows: readonly string[][], n: number): (string | undefined)[] => rows.map((row) => row[n]);

function waits(backoff: Backoff, retries = 4): string {
  const plain = "jitter" in backoff ? { ...backoff, jitter: "none" as const } : backoff;
  const random = (): number => 0.5;
  const delays = [1, 2, 3, 4]
    .slice(0, retries)
    .map((attempt) => delayBefore(plain, { attempt, failure: failure(), previousDelayMs: 0, random }));
  return delays.map(formatDuration).join(", ");
}

describe("failure-classes.md", () => {
  it("has every class with its severity and whether it is tried again", () => {
    const rows = table(CLASSES, "| class | tried again | severity | found from |");
    const actual = FAILURE_CLASSES.map((found) => [found, isRetryable(found) ? "yes" : "no", DEFAULT_SEVERITY[found]]);
    expect(rows.map((row) => row.slice(0, 3))).toEqual(actual);
  });

  it("names codes, names and statuses under the class they have", () => {
    const foundAs = (word: string): string => {
      const error = /^E[A-Z]+$/.test(word) ? { code: word } : { name: word };
      return classify(error, {}, [], 0).class;
    };
    const rows = CLASSES.matchAll(/^\| `(\w+)` \| (?:yes|no) \| \w+ \| (.*) \|$/gm);
    let words = 0;
    for (const [, found, from] of rows) {
      for (const [, word = ""] of (from ?? "").matchAll(/`(E[A-Z]+|[A-Z]\w+Error)`/g)) {
        words += 1;
        expect([word, foundAs(word)]).toEqual([word, found]);
      }
    }
    expect(words).toBeGreaterThan(10);
  });

  it("gives every HTTP status its class", () => {
    for (const [statuses = "", found] of table(CLASSES, "| status | class |")) {
      for (const status of statuses.split(", ").map(Number)) {
        expect([status, classify({ status }, {}, [], 0).class]).toEqual([status, found]);
      }
    }
  });

  it("tells which 403 is a rate limit", () => {
    const limits = [
      { headers: { "retry-after": "3" } },
      { headers: { "x-ratelimit-remaining": "0" } },
      { errors: [{ reason: "rateLimitExceeded" }] },
      { message: "API rate limit exceeded" },
    ];
    for (const more of limits) expect(classify({ status: 403, ...more }, {}, [], 0).class).toBe("rate_limited");
  });
});

describe("backoff-and-presets.md", () => {
  it("has the series of every strategy", () => {
    const rows = table(BACKOFF, "| strategy | wait before retry n (from 0) | the first four |");
    const actual = [exponential(), linear(), fixed("1s"), immediate()].map((backoff) => waits(backoff));
    expect(column(rows, 2).slice(0, 4)).toEqual(actual);
  });

  it("has every preset as it is", () => {
    const heading = "| preset | attempts | first waits | cap | jitter | deadline | stuck after | dead letters kept |";
    const rows = table(BACKOFF, heading);
    const row = ([name, policy]: [string, Policy]): string[] => {
      const { backoff, deadlineMs, stuckMs } = policy;
      const bounds = "maxMs" in backoff ? [formatDuration(backoff.maxMs), backoff.jitter] : ["–", "–"];
      const deadline = deadlineMs === null ? "none" : formatDuration(deadlineMs);
      const stuck = stuckMs === null ? "never" : formatDuration(stuckMs);
      const kept = formatDuration(policy.keepDeadMs);
      return [
        name,
        String(policy.maxAttempts),
        waits(backoff, policy.maxAttempts - 1),
        ...bounds,
        deadline,
        stuck,
        kept,
      ];
    };
    expect(rows).toEqual(Object.entries(PRESETS).map(row));
  });

  it("says about all presets what is true of all", () => {
    const all: Policy[] = Object.values(PRESETS);
    expect(new Set(all.map(({ maxCrashes }) => maxCrashes))).toEqual(new Set([3]));
    expect(new Set(all.map(({ keepFinishedMs }) => keepFinishedMs))).toEqual(new Set([86_400_000]));
    expect(new Set(all.map(({ timeoutMs }) => timeoutMs))).toEqual(new Set([null]));
    expect(PRESETS.handler.backoff).toMatchObject({ minMs: 100 });
    expect(PRESETS.runs).toMatchObject({ stuckRetryMs: 14_400_000 });
  });
});

describe("leases-and-guarantees.md", () => {
  it("has the defaults of a worker", () => {
    const { leaseMs, heartbeatMs, pollMs, stallMs, abortGraceMs, onContactLost } = resolveWorker();
    const spans = {
      lease: leaseMs,
      heartbeat: heartbeatMs,
      poll: pollMs,
      stallLimit: stallMs,
      abortGrace: abortGraceMs,
    };
    const actual = Object.entries(spans).map(([name, ms]) => [name, formatDuration(ms)]);
    const rows = table(LEASES, "| option | default | |");
    expect(rows.map((row) => row.slice(0, 2))).toEqual([...actual, ["onContactLost", onContactLost]]);
    expect(formatDuration(resolveWorker({ lease: "6s" }).heartbeatMs)).toBe("1s");
    expect(WORKER_DEFAULTS.concurrency).toBe(50);
  });

  it("has every guarantee, each with a test or the words not yet", () => {
    const rows = table(LEASES, "| | promise | shown by |");
    expect(column(rows, 0)).toEqual(Array.from({ length: 15 }, (_, i) => `G${i + 1}`));
    const mute = rows.filter(([, , shown = ""]) => !/\.\.\/test\/|not yet/.test(shown));
    expect(mute).toEqual([]);
  });
});

describe("the other concepts", () => {
  it("dead-letters.md has every reason", () => {
    const rows = table(read("docs/concepts/dead-letters.md"), "| reason | because |");
    expect(column(rows, 0)).toEqual([...DEATH_REASONS]);
  });

  it("job-states.md has every mode of a key and every stored state", () => {
    const states = read("docs/concepts/job-states.md");
    expect(column(table(states, "| `unique` | the job of that key waits | runs | has ended |"), 0)).toEqual([
      ...UNIQUE_MODES,
    ]);
    const stored = column(table(states, "| stored | shown as | when |"), 0).flatMap((cell) => cell?.split(", ") ?? []);
    expect(new Set(stored)).toEqual(new Set(STATES));
  });

  it("job-states.md says how long a job of a newer version is left alone", () => {
    const [, said = "nothing"] =
      /leaves the job alone for ([^,]+),\s+without using an attempt/.exec(read("docs/concepts/job-states.md")) ?? [];
    expect(said.replace(" ", "")).toBe(formatDuration(NEWER_WORKER_MS));
  });

  it.each(readdirSync(new URL("docs/concepts", root)))("%s is short and has the parts of the template", (name) => {
    const page = read(`docs/concepts/${name}`);
    expect(page.split("\n").length).toBeLessThanOrEqual(160);
    for (const part of ["## Smallest use", "## Patterns", "## Anti-patterns", "```ts", "```text", "| --- |"]) {
      expect([name, page.includes(part) ? part : `no ${part}`]).toEqual([name, part]);
    }
  });
});

describe("the reference pages", () => {
  it("are what the source says", () => {
    const script = fileURLToPath(new URL("scripts/docs.mjs", root));
    const { status, stderr } = spawnSync(process.execPath, [script, "--check"], { encoding: "utf8", timeout: 100_000 });
    expect([status, stderr]).toEqual([0, ""]);
  });

  it("leaves out no option that the program accepts", () => {
    const page = read("docs/reference/options.md");
    const sources = {
      createRedrive: "src/redrive-options.ts",
      enqueue: "src/enqueue/new-jobs.ts",
      worker: "src/worker/settings.ts",
    };
    for (const path of Object.values(sources)) {
      const [, list = ""] =
        /^(?:export )?const (?:WORKER_)?FIELDS = namesOf<\w+>\(\)\(\[([^\]]*)\]/m.exec(read(path)) ?? [];
      const fields = [...list.matchAll(/"(\w+)"/g)].map(([, field]) => field);
      expect(fields.length).toBeGreaterThan(4);
      expect(fields.filter((field) => !page.includes(`| \`${field}\``))).toEqual([]);
    }
  });
});
