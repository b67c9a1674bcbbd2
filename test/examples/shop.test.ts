// The demo: real runs of it as processes, small ones, and the books and the view as the pure functions they are. All
// runs but the first go side by side, because each of them mostly waits.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Board } from "../../examples/shop/board.ts";
import { balance, type BooksEvidence } from "../../examples/shop/books.ts";
import type { Evening } from "../../examples/shop/evening.ts";
import { frame } from "../../examples/shop/frame.ts";
import { News } from "../../examples/shop/news.ts";
import { planOrders } from "../../examples/shop/orders.ts";
import { answerTo } from "../../examples/shop/weather.ts";
import { widthOf } from "../../src/cli/table.ts";
import { isAlive } from "../../src/system/processes.ts";
import { builtModule } from "../support/built.ts";

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const folder = mkdtempSync(join(tmpdir(), "redrive-demo-"));
const children = new Set<ChildProcess>();
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

const built = builtModule("cli/process.js").slice(0, -"cli/process.js".length);
/** The shop as a program, and as the command line starts it. */
const SHOP = [fileURLToPath(`${built}examples/shop/main.js`)];
const COMMAND = [fileURLToPath(new URL("../support/cli-process.mjs", import.meta.url)), "demo"];

type Meanwhile = (child: ChildProcess, text: () => string) => void;

/** Starts a demo in a process of its own; `meanwhile` may hurt it. */
async function demo(program: readonly string[], flags: readonly string[], meanwhile?: Meanwhile): Promise<Ended> {
  const env = { ...process.env, REDRIVE_BUILT: built };
  const child = spawn(process.execPath, [...program, ...flags], { cwd: folder, env, stdio: "pipe" });
  children.add(child);
  let [stdout, stderr] = ["", ""];
  child.stderr.on("data", (text) => (stderr += text));
  child.stdout.on("data", (text) => {
    stdout += text;
    meanwhile?.(child, () => stdout);
  });
  const code = await new Promise<number | null>((resolve) => {
    child.on("close", resolve);
  });
  children.delete(child);
  return { code, stdout, stderr };
}

/** Sends the signal once the workers are at work. */
function onceAtWork(signal: NodeJS.Signals): Meanwhile {
  let asked = false;
  return (child, text) => {
    if (asked || !/workers \d+ and \d+ begin/.test(text())) return;
    asked = true;
    child.kill(signal);
  };
}

function workersOf({ stdout }: Ended): number[] {
  const [, ...pids] = /workers (\d+) and (\d+) begin/.exec(stdout) ?? [];
  expect(pids).toHaveLength(2);
  return pids.map(Number);
}

describe.skipIf(process.platform === "win32")("redrive demo", () => {
  let plain: Ended;
  let json: Ended;
  let interrupted: Ended;
  let told: Ended;
  let orphaned: Ended;
  beforeAll(async () => {
    // Alone: its story has times of its own, in which calls beside four other days would fail for want of a processor.
    plain = await demo(COMMAND, ["--jobs", "120"]);
    [json, interrupted, told, orphaned] = await Promise.all([
      demo(SHOP, ["--jobs", "60", "--seed", "3", "--json", "--file", "json.db"]),
      demo(SHOP, ["--jobs", "60", "--file", "interrupted.db"], onceAtWork("SIGINT")),
      demo(COMMAND, ["--jobs", "60", "--file", "told.db"], onceAtWork("SIGTERM")),
      demo(COMMAND, ["--jobs", "60", "--file", "orphaned.db"], onceAtWork("SIGKILL")),
    ]);
  });

  it("ends with books that balance, after a worker was killed and its jobs were taken over", () => {
    expect(plain.code, plain.stdout + plain.stderr).toBe(0);
    expect(plain.stdout).toMatch(/† kill -9 for worker \d+, in the middle of \d+ calls?/);
    expect(plain.stdout).toMatch(/✓ worker \d+ took over its \d+ jobs? after \d+ ms/);
    expect(plain.stdout).toMatch(/The books balance {2}120 jobs/);
    expect(plain.stdout).toMatch(/✓ 120 enqueued = \d+ completed \+ \d+ dead/);
    expect(plain.stdout).not.toContain("✗ 0");
  });

  it("tells the outage as the story of a breaker, which costs few attempts and no job", () => {
    expect(plain.stdout).toMatch(
      /payments goes down[^]*breaker of payments opens, \d+ .*: its jobs are parked\n[^]*probes succeed: breaker of payments closes/,
    );
    expect(plain.stdout).toMatch(/✓ outage: \d+ attempts charged, at most \d+; \d+ calls not charged/);
    expect(plain.stdout.split("Dead letters by cause")[1]).not.toContain("503");
  });

  it("says it in few plain lines where nobody watches", () => {
    const [news = ""] = plain.stdout.split("Dead letters by cause");
    expect(news.trim().split("\n").length).toBeLessThanOrEqual(44);
    expect(plain.stdout).not.toContain("\u001b");
  });

  it("keeps its jobs in a file of its own that others cannot read", () => {
    expect(statSync(join(folder, ".redrive")).mode & 0o777).toBe(0o700);
    expect(existsSync(join(folder, ".redrive/demo.db"))).toBe(true);
    expect(existsSync(join(folder, ".redrive/demo.db.pid"))).toBe(false);
    expect(plain.stdout).toMatch(/dlq show [0-9a-f-]{36} --store sqlite:\.redrive\/demo\.db/);
  });

  it("answers with one JSON document on request", () => {
    expect(json.code, json.stdout + json.stderr).toBe(0);
    const books = JSON.parse(json.stdout) as Record<string, unknown>;
    expect(books).toMatchObject({ balanced: true, enqueued: 60, lost: 0, open: 0, completedTwice: 0, seed: 3 });
    expect(books["completed"]).toBe(60 - (books["dead"] as number));
    expect((books["takeover"] as { jobs: number }).jobs).toBeGreaterThan(0);
  });

  it("stops on Ctrl-C and leaves no process behind", () => {
    expect(interrupted.code).toBe(130);
    for (const pid of workersOf(interrupted)) expect(isAlive(pid), String(pid)).toBe(false);
    expect(interrupted.stderr).toMatch(/Stopped by SIGINT/);
  });

  it("passes a signal on that only the command hears", () => {
    expect(told.code).toBe(143);
    for (const pid of workersOf(told)) expect(isAlive(pid), String(pid)).toBe(false);
    expect(told.stderr).toMatch(/Stopped by SIGTERM/);
  });

  it("ends by itself when the command that started it is killed", async () => {
    // The pipes close when the last process that holds them has ended; what comes after is about the workers.
    expect(orphaned.code).toBe(null);
    expect(orphaned.stderr).toMatch(/Stopped by SIGHUP/);
    const pids = workersOf(orphaned);
    await expect.poll(() => pids.filter(isAlive)).toEqual([]);
  });

  it("refuses a file that exists, and numbers it cannot do", async () => {
    const [file, few] = await Promise.all([
      demo(COMMAND, ["--file", "json.db"]),
      demo(COMMAND, ["--jobs", "3", "--file", "few.db", "--json"]),
    ]);
    expect(file).toMatchObject({ code: 2, stderr: expect.stringContaining("json.db does; remove it") });
    expect(few).toMatchObject({ code: 2, stderr: expect.stringContaining("from 20 to 2000; got 3") });
    expect(JSON.parse(few.stdout)).toMatchObject({ error: { code: "invalid_argument" } });
  });
});

const NONE_SENT = {
  cancelled: 0,
  gone: 0,
  pending: 0,
  byOthers: 0,
  recalled: 0,
  completed: 0,
  failed: 0,
  left: 0,
  sent: 0,
};

/** Two letters of the bug: one is sent before the fix, both after it. */
const EVENING: Evening = {
  letters: 2,
  before: { id: "r_1", state: "stopped", counts: { ...NONE_SENT, sent: 1, failed: 1, left: 1 } },
  after: { id: "r_2", state: "completed", counts: { ...NONE_SENT, sent: 2, completed: 2 } },
};

/** Four jobs: two completed, one of which was taken over and ran twice, and two dead. */
function evidence(change: Partial<BooksEvidence> = {}): BooksEvidence {
  return {
    planned: 4,
    enqueued: ["a", "b", "c", "d"],
    jobs: [
      { id: "a", state: "completed" },
      { id: "b", state: "completed" },
      { id: "c", state: "dead" },
      { id: "d", state: "dead" },
    ],
    deadLetters: ["d", "c"],
    completions: new Map([
      ["a", 1],
      ["b", 1],
    ]),
    effects: new Map([
      ["a", 1],
      ["b", 1],
    ]),
    repeats: new Map([["a", 1]]),
    outage: { calls: 9, charged: 4, most: 8 },
    takeover: { pid: 7, jobs: ["a"], started: 1, ms: 30 },
    evening: EVENING,
    ...change,
  };
}

describe("the books", () => {
  const jobs = evidence().jobs;
  const wrong = (change: Partial<BooksEvidence>): string[] => {
    const { balanced, checks } = balance(evidence(change));
    expect(balanced).toBe(false);
    return checks.filter(({ ok }) => !ok).map(({ name }) => name);
  };

  it("balance when everybody agrees", () => {
    const books = balance(evidence());
    expect(books).toMatchObject({ balanced: true, enqueued: 4, completed: 2, dead: 2, ranTwice: 1 });
    expect(books.checks.every(({ ok }) => ok)).toBe(true);
  });

  it("balance without the last report of a killed worker", () => {
    expect(balance(evidence({ completions: new Map([["a", 1]]) })).balanced).toBe(true);
  });

  it.each<[what: string, change: Partial<BooksEvidence>, found: string[]]>([
    ["a job is gone", { jobs: jobs.slice(1), takeover: null }, ["sum", "lost", "twice"]],
    [
      "a job is there that nobody enqueued",
      { jobs: [...jobs, { id: "e", state: "dead" }] },
      ["sum", "lost", "letters"],
    ],
    [
      "a job still waits",
      { enqueued: ["a", "b", "c", "d", "e"], jobs: [...jobs, { id: "e", state: "queued" }] },
      ["sum", "open"],
    ],
    ["a job was never enqueued", { planned: 5 }, ["sum"]],
    ["a job was enqueued twice", { enqueued: ["a", "b", "c", "d", "d"] }, ["sum"]],
    ["two workers completed one job", { completions: new Map([["a", 2]]) }, ["twice"]],
    ["a job was reported as completed and is dead", { completions: new Map([["c", 1]]) }, ["twice"]],
    ["a dead job has no dead letter", { deadLetters: ["c"] }, ["letters"]],
    ["a dead letter is there twice", { deadLetters: ["c", "c"] }, ["letters"]],
    ["the service knows nothing of a completed job", { effects: new Map([["a", 1]]) }, ["service"]],
    [
      "the service did something twice",
      {
        effects: new Map([
          ["a", 1],
          ["b", 2],
        ]),
      },
      ["service"],
    ],
    ["the outage cost more than it takes to notice it", { outage: { calls: 9, charged: 9, most: 8 } }, ["outage"]],
    ["more attempts were charged than calls were made", { outage: { calls: 3, charged: 4, most: 8 } }, ["outage"]],
    [
      "the redrive went on with the bug",
      { evening: { ...EVENING, before: { ...EVENING.before, counts: { ...NONE_SENT, sent: 2, failed: 2 } } } },
      ["redrive"],
    ],
    [
      "a letter of the bug did not complete with the fix",
      { evening: { ...EVENING, after: { ...EVENING.after, counts: { ...NONE_SENT, sent: 2, completed: 1 } } } },
      ["redrive"],
    ],
    ["a job of the killed worker is nowhere", { takeover: { pid: 7, jobs: ["x"], started: 1, ms: 3 } }, ["takeover"]],
  ])("do not balance when %s", (_what, change, found) => {
    expect(wrong(change)).toEqual(found);
  });
});

describe("the live view", () => {
  it.each([
    [72, 22],
    [80, 24],
    [120, 40],
    [300, 90],
  ])("fits a terminal of %i × %i", (columns, rows) => {
    let now = 0;
    const news = new News(() => now);
    const board = new Board({ total: 360, seed: 7, news, elapsed: () => now });
    board.members = Array.from({ length: 9 }, (_, at) => ({
      pid: 4_194_000 + at,
      state: at % 2 === 0 ? "killed" : "working",
      completed: 12_345,
      retried: 0,
      dead: 0,
      tookOver: 100,
    }));
    for (now = 0; now < 60_000; now += 700) {
      board.breakers.media = now % 1_400 === 0 ? "open" : "ramp";
      board.entered(String(now), "media");
      board.heldBack("mail", "parked");
      board.answered({ service: "media", order: 1, kind: now % 2_100 === 0 ? "down" : "ok" });
      board.counts = { queued: 10, running: 10, completed: now / 200, dead: 40, cancelled: 0 };
      news.tell("bad", "a very long line ".repeat(20));
      const fingerprint = String(now % 6_300);
      const failure = {
        class: "authentication",
        code: null,
        message: "a very long cause ".repeat(9),
        fingerprint,
      } as const;
      const job = { id: String(now), type: "t", service: "media", order: 1, attempts: 1, maxAttempts: 1 };
      board.reported({ ...job, outcome: "dead", crashed: false, started: true, delayMs: 0, failure });
      const lines = frame(board, { columns, rows });
      expect(lines.length).toBeLessThan(rows);
      for (const line of lines) {
        // oxlint-disable-next-line no-control-regex
        const text = line.replace(/\u001b\[[\d;]*m/g, "");
        expect(widthOf(text)).toBeLessThanOrEqual(columns);
      }
    }
  });
});

describe("the bad day", () => {
  it("is the same for the same seed", () => {
    expect(planOrders(100, 5)).toEqual(planOrders(100, 5));
    expect(planOrders(100, 5)).not.toEqual(planOrders(100, 6));
  });

  it("has something of everything, however few the jobs", () => {
    const fates = new Set(planOrders(20, 1).map(({ fate }) => fate));
    expect([...fates].toSorted()).toEqual(["broken", "fine", "hangs", "hangs once", "refused"]);
  });

  it("answers 429 and 503 in their spells and nothing but dice outside", () => {
    const ask = (at: number, dice: number, service: "mail" | "payments" = "mail") =>
      answerTo({ service, fate: "fine", earlier: 0, at, dice: () => dice }).kind;
    expect([ask(0.2, 0.9), ask(0.5, 0.1, "payments"), ask(0.5, 0.9), ask(0, 0.9), ask(0, 0.03), ask(0, 0.06)]).toEqual([
      "limited",
      "down",
      "ok",
      "ok",
      "reset",
      "error",
    ]);
  });
});
