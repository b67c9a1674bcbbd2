// Handlers in other languages: real commands, the bad ones among them.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { importBuilt } from "../support/built.ts";
import { testFolder } from "../support/database-file.ts";
import { testSchema } from "../support/postgres-queue.ts";

type Library = typeof import("../../src/index.ts");
type SubprocessOptions = import("../../src/jobs/subprocess.ts").SubprocessOptions;

const folder = mkdtempSync(join(tmpdir(), "redrive-commands-"));
let library: Library;
beforeAll(async () => {
  library = await importBuilt<Library>("index.js");
});
afterAll(() => rmSync(folder, { recursive: true }));

let stores = 0;
const sqlite = (): string => `sqlite:${join(folder, `store-${++stores}.db`)}`;

interface Ran {
  readonly states: Readonly<Record<string, string>>;
  readonly jobs: readonly import("../../src/index.ts").Job[];
  readonly counts: { readonly released: number };
}

/** Runs these inputs through a command; each is its own key. */
async function ran(
  inputs: readonly unknown[],
  options: Partial<SubprocessOptions> & Pick<SubprocessOptions, "command">,
  { size = 4, store = "memory:", maxAttempts = 1 } = {},
): Promise<Ran> {
  const { createRedrive, defineJob, immediate, subprocess } = library;
  const job = defineJob("command", {
    maxAttempts,
    backoff: immediate(),
    batch: { size },
    runBatch: subprocess({ timeout: "20s", killAfter: "1s", ...options }),
  });
  await using redrive = await createRedrive({ store, jobs: [job], log: "silent" });
  const ids: string[] = [];
  for (const each of await Promise.all(inputs.map((input) => redrive.enqueue(job, input)))) ids.push(each.id);
  const counts = await redrive.worker({ concurrency: 2 }).drain({ grace: 0 });
  const jobs: Ran["jobs"][number][] = [];
  for (let at = 0; at < ids.length; at += 100) {
    const found = await Promise.all(ids.slice(at, at + 100).map((id) => redrive.jobs.get(id)));
    jobs.push(...(found as typeof jobs));
  }
  return { jobs, counts, states: Object.fromEntries(jobs.map(({ payload, state }) => [payload, state])) };
}

/** A Node program of these lines that keeps a journal of the inputs it was given. */
function program(name: string, ...lines: string[]): string[] {
  const file = join(folder, `${name}.mjs`);
  writeFileSync(file, ['import { appendFileSync, writeSync } from "node:fs";', ...lines].join("\n"));
  return [process.execPath, file];
}

const IN = `let text = ""; for await (const chunk of process.stdin) text += chunk;`;
const ITEMS = `${IN} const items = text.split("\\n").filter(Boolean).map((line) => JSON.parse(line));`;
const SAY = `const say = (word) => process.stdout.write(JSON.stringify(word) + "\\n");`;

/** Processes whose command line has this in it. */
function left(mark: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        return line.includes(mark) ? [`${pid} ${line}`] : [];
      } catch {
        return [];
      }
    });
}

describe("the plain contract", () => {
  it("gives the inputs on stdin and in JOB_INPUT, and takes exit code 0 for all", async () => {
    const command = program("both", IN, `if (text !== process.env.JOB_INPUT || text !== '["a","b"]') process.exit(3);`);
    expect((await ran(["a", "b"], { command })).states).toEqual({ '"a"': "completed", '"b"': "completed" });
  });

  it("names a file in place of the variable where the inputs do not fit there, and removes it afterwards", async () => {
    const note = join(testFolder(), "note");
    const command = program(
      "large",
      IN,
      `import { readFileSync, statSync, writeFileSync } from "node:fs";`,
      `const { JOB_INPUT, JOB_INPUT_FILE: file } = process.env;`,
      `writeFileSync(${JSON.stringify(note)}, file + " " + (statSync(file).mode & 0o777).toString(8));`,
      `process.exit(JOB_INPUT === undefined && text.length > 140000 && readFileSync(file, "utf8") === text ? 0 : 3);`,
    );
    expect(Object.values((await ran(["x".repeat(140_000)], { command })).states)).toEqual(["completed"]);
    const [file = "", mode] = readFileSync(note, "utf8").split(" ");
    expect([mode, existsSync(file), existsSync(dirname(file))]).toEqual(["600", false, false]);
  });

  it("shows the child nothing of our environment but what was named", async () => {
    process.env.REDRIVE_TEST_SHOWN = "1";
    process.env.REDRIVE_TEST_HIDDEN = "1";
    const command = program(
      "env",
      `const { REDRIVE_TEST_SHOWN: shown, REDRIVE_TEST_HIDDEN: hidden, PATH } = process.env;`,
      `process.exit(shown === "1" && hidden === undefined && PATH ? 0 : 3);`,
    );
    expect((await ran(["a"], { command, env: ["REDRIVE_TEST_SHOWN"] })).states).toEqual({ '"a"': "completed" });
  });

  it("shows the child all of our environment for *, but not the input of another command", async () => {
    process.env.REDRIVE_TEST_SHOWN = "1";
    process.env.JOB_INPUT_FILE = "/not/for/it";
    onTestFinished(() => void delete process.env.JOB_INPUT_FILE);
    const command = program(
      "all",
      `const { REDRIVE_TEST_SHOWN: shown, JOB_INPUT: input, JOB_INPUT_FILE: file } = process.env;`,
      `process.exit(shown === "1" && input === '["a"]' && file === undefined ? 0 : 3);`,
    );
    expect((await ran(["a"], { command, env: ["*"] })).states).toEqual({ '"a"': "completed" });
  });

  const [count, size, bad] = [10_000, 100, [0, 99, 1_234, 1_235, 5_000, 7_777, 9_999]];
  // How small a batch may be is decided in core, and that each store keeps it is a fact of conformance; `npm run prove --
  // batch` looks at every store.
  const kinds = process.env["REDRIVE_PROVE"] === "batch" ? ["memory", "sqlite", "postgres"] : ["postgres"];
  it.each(kinds)("finds the bad among many by the exit code alone, on %s", async (kind) => {
    const journal = join(folder, `journal-${kind}`);
    const patterns = bad.map((n) => `*,${n},*`).join("|");
    const script = `text=$(cat); text=\${text#[}; echo x >> ${journal}; case ",\${text%]}," in ${patterns}) echo bad code >&2; exit 7; esac`;
    const command = ["/bin/sh", "-c", script];
    const store = kind === "sqlite" ? sqlite() : kind === "postgres" ? testSchema(inject("postgres18")).url : "memory:";
    const numbers = Array.from({ length: count }, (_, at) => at);
    const { jobs } = await ran(numbers, { command }, { size, store });
    const wrong = jobs.filter(({ payload, state, attempts }) => {
      const isBad = bad.includes(Number(payload));
      return state !== (isBad ? "dead" : "completed") || attempts !== (isBad ? 1 : 0);
    });
    expect(wrong).toEqual([]);
    const found = jobs.find(({ payload }) => Number(payload) === bad[1])?.failure;
    expect(found).toMatchObject({ name: "ExitCode", code: "7", class: "transient" });
    expect(found?.message).toContain("ended with exit code 7. Its last output: bad code");
    const runs = readFileSync(journal, "utf8").trim().split("\n").length;
    if (process.env["REDRIVE_PROVE"] === "batch") console.log(`${kind}: all ${bad.length} found in ${runs} runs`);
    // The slack: the run that charges a bad one, alone, and batches of those that were put aside.
    expect(runs).toBeLessThanOrEqual(1.1 * (count / size + bad.length * Math.log2(size)));
  });
});

it("tells the error of a command, not what its stdout held back until the end", async () => {
  const script = `trap 'echo 3 files read' EXIT; echo "no video ABC" >&2; exit 1`;
  const { jobs } = await ran(["a"], { command: ["/bin/sh", "-c", script] });
  expect(jobs[0]?.failure?.message).toMatch(/Its last output: no video ABC$/);
  expect(jobs[0]?.failure?.stack).toContain("3 files read");
});

describe("the contract of lines", () => {
  it("settles each item by its own word, and runs no good one again", async () => {
    const journal = join(folder, "journal-lines");
    const command = program(
      "lines",
      SAY,
      ITEMS,
      `for (const { id, input } of items) {`,
      `  appendFileSync(${JSON.stringify(journal)}, input + "\\n");`,
      `  say({ id, status: "started" });`,
      `  if (input % 10 === 3) say({ id, status: "permanent", error: { name: "NoSuchCode", message: "no " + input, code: "E_CODE" } });`,
      `  else if (input % 10 === 4) say({ id, status: "transient", error: "busy" });`,
      `  else say({ id, status: "done", result: { twice: input * 2 } });`,
      `}`,
    );
    const numbers = Array.from({ length: 100 }, (_, at) => at);
    const { jobs } = await ran(numbers, { command, contract: "lines" }, { size: 20, maxAttempts: 2 });
    expect(jobs[3]).toMatchObject({
      state: "dead",
      attempts: 1,
      failure: { class: "permanent", name: "NoSuchCode", message: "no 3", code: "E_CODE" },
    });
    expect(jobs[4]).toMatchObject({ state: "dead", attempts: 2, failure: { class: "transient", message: "busy" } });
    expect(jobs[5]).toMatchObject({ state: "completed", attempts: 0, result: '{"twice":10}' });
    const seen = readFileSync(journal, "utf8").trim().split("\n").map(Number);
    expect(seen).toHaveLength(100 + 10);
  });

  it("that dies leaves what is done done, charges what was started, and what was not goes back", async () => {
    const journal = join(folder, "journal-died");
    const command = program(
      "died",
      SAY,
      ITEMS,
      `for (const { id, input } of items) {`,
      `  say({ id, status: "started" });`,
      `  appendFileSync(${JSON.stringify(journal)}, input + "\\n");`,
      `  await new Promise((resolve) => setTimeout(resolve, 50));`,
      `  if (input === "b") process.kill(process.pid, "SIGKILL");`,
      `  say({ id, status: "done" });`,
      `}`,
    );
    const { jobs } = await ran(["a", "b", "c", "d"], { command, contract: "lines" }, { size: 4 });
    const said = jobs.map(({ payload, state, attempts }) => [payload, state, attempts]);
    expect(said).toEqual([
      ['"a"', "completed", 0],
      ['"b"', "dead", 1],
      ['"c"', "completed", 0],
      ['"d"', "completed", 0],
    ]);
    expect(jobs[1]?.failure).toMatchObject({ name: "ProcessDied", code: "SIGKILL" });
    expect(jobs[1]?.failure?.message).toContain("was ended by SIGKILL (perhaps the system was out of memory)");
    expect(readFileSync(journal, "utf8")).toBe("a\nb\nc\nd\n");
  });

  it("takes outcomes on descriptor 3, so that stdout is free", async () => {
    const command = program(
      "descriptor",
      ITEMS,
      `console.log('{"id":"nobody","status":"done"}'); console.log("{ not json");`,
      `for (const { id } of items) writeSync(Number(process.env.REDRIVE_OUTCOMES_FD), JSON.stringify({ id, status: "done" }) + "\\n");`,
    );
    expect(Object.values((await ran([1, 2, 3], { command, contract: "lines" })).states)).toEqual(
      Array(3).fill("completed"),
    );
  });

  it("keeps a child for many batches where asked, and ends it with us", async () => {
    const starts = join(folder, "starts");
    const command = program(
      "kept",
      `import { createInterface } from "node:readline";`,
      `appendFileSync(${JSON.stringify(starts)}, "x");`,
      `for await (const line of createInterface({ input: process.stdin })) {`,
      `  if (line === "") console.log('{"end":true}');`,
      `  else console.log(JSON.stringify({ id: JSON.parse(line).id, status: "done" }));`,
      `}`,
    );
    const numbers = Array.from({ length: 60 }, (_, at) => at);
    const { states } = await ran(numbers, { command, contract: "lines", keepAlive: true }, { size: 5 });
    expect(new Set(Object.values(states))).toEqual(new Set(["completed"]));
    expect(readFileSync(starts, "utf8").length).toBeLessThanOrEqual(2);
  });
});

describe("a command that misbehaves", () => {
  const bad: [string, string[], Partial<SubprocessOptions>, object][] = [
    [
      "exits in the middle of a line",
      [
        SAY,
        ITEMS,
        `say({ id: items[0].id, status: "done" }); process.stdout.write('{"id":"' + items[1]?.id + '","sta'); process.exit(4);`,
      ],
      { contract: "lines" },
      { name: "ExitCode", code: "4" },
    ],
    [
      "prints garbage",
      [
        SAY,
        ITEMS,
        `process.stdout.write(Buffer.from([0, 255, 10, 123, 10, 34])); console.log("\\n[]\\nnull"); say({ id: items[0].id, status: "done" }); process.exit(5);`,
      ],
      { contract: "lines" },
      { name: "ExitCode", code: "5" },
    ],
    [
      "prints 100 MB without a line break",
      [
        SAY,
        ITEMS,
        `say({ id: items[0].id, status: "done" }); const part = Buffer.alloc(1048576, 120); let n = 0;`,
        `const more = () => { while (n++ < 100) if (!process.stdout.write(part)) return process.stdout.once("drain", more); process.exit(6); }; more();`,
      ],
      { contract: "lines" },
      { name: "OutputTooLong" },
    ],
    [
      "ignores SIGTERM",
      [
        SAY,
        ITEMS,
        `process.on("SIGTERM", () => {}); say({ id: items[0].id, status: "done" }); setInterval(() => {}, 1000);`,
      ],
      { contract: "lines", timeout: "1s" },
      { name: "TimeoutError", class: "timeout" },
    ],
    [
      "leaves grandchildren that hold its output",
      [
        SAY,
        ITEMS,
        `import { spawn } from "node:child_process"; say({ id: items[0].id, status: "done" });`,
        `spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)", process.argv[1]], { stdio: "inherit" }).unref(); setTimeout(() => process.exit(8), 200);`,
      ],
      { contract: "lines" },
      { name: "ExitCode", code: "8" },
    ],
    [
      "is killed",
      [
        SAY,
        ITEMS,
        `say({ id: items[0].id, status: "done" }); setTimeout(() => process.kill(process.pid, "SIGKILL"), 100);`,
      ],
      { contract: "lines" },
      { name: "ProcessDied", class: "crashed", code: "SIGKILL" },
    ],
  ];

  it.each(bad)(
    "%s: what it said stands, the rest is its failure, nothing is left",
    async (name, lines, options, failure) => {
      const command = program(name.replaceAll(" ", "-"), ...lines);
      const { jobs } = await ran(["a", "b"], { command, ...options }, { size: 2 });
      const [first, second] = jobs;
      expect(first?.state).toBe("completed");
      expect(second).toMatchObject({ state: "dead", attempts: 1, failure });
      await expect.poll(() => left(command[1] as string)).toEqual([]);
    },
  );

  it("allocates without end: it dies alone", async () => {
    const command = program("bomb", `const all = []; for (;;) all.push(Buffer.alloc(16777216, 1));`);
    const limited = ["/bin/sh", "-c", `ulimit -v 2000000; exec "$@"`, "sh", ...command];
    const { jobs } = await ran(["a"], { command: limited });
    expect(jobs[0]).toMatchObject({ state: "dead", attempts: 1 });
    expect(jobs[0]?.failure?.name).toMatch(/^(ProcessDied|ExitCode)$/);
    await expect.poll(() => left(command[1] as string)).toEqual([]);
  });

  it("prints 100 MB in the plain contract: the tail is kept", async () => {
    const command = ["/bin/sh", "-c", "head -c 100000000 /dev/zero | tr '\\0' y; echo; echo the end; exit 9"];
    const { jobs } = await ran(["a"], { command, outputBytes: 1_024 });
    expect(jobs[0]?.failure).toMatchObject({ code: "9" });
    expect(jobs[0]?.failure?.message).toContain("the end");
  });

  it.each([
    ["says nothing of an item", {}, `console.log("lost it"); process.exit(0);`, "NoOutcome", "0", "lost it"],
    [
      "is kept and says nothing of an item",
      { keepAlive: true },
      `process.stdin.on("data", () => { console.error("lost it"); setTimeout(() => console.log('{"end":true}'), 200); });`,
      "NoOutcome",
      undefined,
      "lost it",
    ],
    [
      "writes a line that is too long",
      { outputBytes: 1_024 },
      `console.error("lost it"); setTimeout(() => console.log("x".repeat(2000)), 200); setInterval(() => {}, 1000);`,
      "OutputTooLong",
      "SIGTERM",
      "xxx",
    ],
  ] as const)("%s: how it ended and its last output are kept", async (name, options, line, kind, code, said) => {
    const command = program(name.replaceAll(" ", "-"), line);
    const { jobs } = await ran(["a"], { command, contract: "lines", ...options });
    expect(jobs[0]?.failure).toMatchObject({ name: kind, stack: expect.stringContaining(said) });
    expect(jobs[0]?.failure?.code).toBe(code);
    expect(jobs[0]?.failure?.message).toContain("Its last output: lost it");
  });

  it("cannot be started at all: the failure says so", async () => {
    const { jobs } = await ran(["a"], { command: ["no-such-program-anywhere"] });
    expect(jobs[0]?.failure).toMatchObject({ name: "NotStarted", class: "transient" });
  });

  it("is ended with its group when Redrive itself is killed", async () => {
    const marker = `redrive-orphan-${process.pid}`;
    const child = program("orphan", `process.on("SIGTERM", () => {}); console.log("up"); setInterval(() => {}, 1000);`);
    const main = join(folder, "main.mjs");
    const built = new URL("../../dist/index.js", import.meta.url).href;
    writeFileSync(
      main,
      `import { defineJob, createRedrive, subprocess } from ${JSON.stringify(built)};
      const job = defineJob("j", { batch: { size: 2 }, runBatch: subprocess({ timeout: "1m", killAfter: "1s", command: ${JSON.stringify([...child, marker])} }) });
      const redrive = await createRedrive({ store: "memory:", jobs: [job], log: "silent" });
      await redrive.enqueue(job, 1);
      await redrive.worker().start();
      setTimeout(() => process.kill(process.pid, "SIGKILL"), 700);`,
    );
    const { signal } = spawnSync(process.execPath, [main], { stdio: "ignore", timeout: 20_000 });
    expect(signal).toBe("SIGKILL");
    await expect.poll(() => left(marker)).toEqual([]);
  });
});
