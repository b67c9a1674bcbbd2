// `redrive batch`: batches, rounds, the summary, and a run that is killed again and again.
import { spawn } from "node:child_process";
import { chmodSync, existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, inject, it, vi } from "vitest";
import { batchKills } from "../support/batch-kills.ts";
import { createBench, type Document, type World } from "../support/cli.ts";
import { connect } from "../support/database-file.ts";
import { testSchema } from "../support/postgres-queue.ts";
import { sql } from "../support/postgres-world.ts";

/** A bench with a command that notes its batches and fails for what the pattern names. */
function setup(pattern = "no-such-thing") {
  const bench = createBench();
  const script = bench.write(
    "entry.sh",
    `text=$(cat); echo "$text" >> runs.txt
case "$text" in *${pattern}*) echo "cannot do it" >&2; exit 3;; esac
`,
  );
  chmodSync(script, 0o755);
  const runs = (): unknown[][] =>
    readFileSync(join(bench.folder, "runs.txt"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown[]);
  // After -- every word belongs to the command.
  const json = async (args: readonly string[], world?: World): Promise<{ code: number; document: Document }> => {
    const { code, out } = await bench.run(["--json", ...args], world);
    return { code, document: JSON.parse(out) as Document };
  };
  return { ...bench, json, runs, command: ["--", "sh", "entry.sh"] };
}

/** What the run says, without what its command prints. */
function linesOf(err: string): string[] {
  return err.split("\n").filter((line) => !line.startsWith("sh["));
}

describe("batch", () => {
  it("shows payload, command line and last words on one line each, without escapes and secrets", async () => {
    const { run, write } = setup();
    write("leak.sh", "printf 'no \\033[2Jway\\nPGPASSWORD=hunter2' >&2; exit 3\n");
    const input = JSON.stringify([{ name: "a\u009b\u202e", password: "hunter1", note: "--token hunter4" }]);
    const env = { PATH: process.env.PATH ?? "", JOB_INPUT: input, MAX_RETRIES: "0" };
    const { code, err, out } = await run(["batch", "--", "sh", "leak.sh", "--token", "hunter3"], { env });
    expect(code).toBe(1);
    // oxlint-disable-next-line no-control-regex
    expect(out + err).not.toMatch(/hunter|[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
    const failed = err.split("\n").filter((line) => line.startsWith("failed: "));
    expect(failed).toEqual([
      expect.stringMatching(
        /^failed: item 1 \{.*"password":"\*\*\*".*sh leak\.sh --token \*\*\* ended .*PGPASSWORD=\*\*\*$/,
      ),
    ]);
  });

  it("refuses a program that is not there or may not be run before anything is written", async () => {
    const { run, folder, write } = setup();
    write("plain.sh", "exit 0\n");
    const env = { PATH: process.env.PATH ?? "", JOB_INPUT: "[1]" };
    for (const program of ["no-such-program", "./no-such-file", "./", "./plain.sh"]) {
      const { code, err } = await run(["batch", "--", program], { env });
      expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(`command: expected a program`) });
    }
    expect(existsSync(join(folder, "redrive.db"))).toBe(false);
  });

  it("runs JOB_INPUT in batches, retries what failed, and says how it ended", async () => {
    const { run, runs, command, sql: ask } = setup("'\"bad\"'");
    const env = { PATH: process.env.PATH ?? "", JOB_INPUT: '[1,2,3,"bad",5,6,7]', BATCH_SIZE: "3", MAX_RETRIES: "2" };
    const { code, out, err } = await run(["batch", ...command], { env });
    expect(code).toBe(1);
    expect(runs()).toEqual([[1, 2, 3], ["bad", 5, 6], [7], ["bad"], [5], [6], ["bad"]]);
    expect(out).toMatch(/^7 items: 6 succeeded, 1 failed, 3 retried in 2 rounds, /);
    expect(out).toMatch(/\nfirst pass .*, retries .* \(\d+ % of the time\)\n$/);
    expect(err.match(/^sh\[\d+\]: cannot do it$/gm)).toHaveLength(3);
    const [first, round1, round2, failed, list = "", show = ""] = linesOf(err);
    expect([first, round1, round2]).toEqual([
      "first pass: 7 items in batches of 3",
      "retry round 1: 3 items in batches of 1",
      "retry round 2: 1 item in batches of 1",
    ]);
    expect(failed).toMatch(
      /^failed: item 4 "bad" after 2 tries: ExitCode: sh entry.sh ended with exit code 3\. .*cannot do it$/,
    );
    expect(list).toMatch(/^list them all: redrive dlq list --type batch:run-/);
    expect(show).toMatch(/^output of the first one: redrive dlq show /);
    const shown = (await run(show.split(" redrive ")[1]?.split(" ") ?? [])).out;
    expect(shown).toContain("cannot do it");
    expect(shown).toContain("again in the next round");
    expect(shown).not.toMatch(/again in 7d/);
    const errors = ask("select item, attempt, error_name, error_stack from item_errors order by attempt");
    const stack = "Last output of sh entry.sh:\ncannot do it";
    expect(errors).toEqual([
      ['"bad"', 1, "ExitCode", stack],
      ['"bad"', 2, "ExitCode", stack],
    ]);
  });

  it("passes on what the command prints, with its name in front, unless asked to be quiet", async () => {
    const { run, write } = setup();
    const print = 'printf "to stdout\\nand \\033[2Jmore"; echo "to stderr" >&2; cat > /dev/null\n';
    write("print.sh", print);
    write(
      "lines.sh",
      `while read -r line && [ -n "$line" ]; do id=\${line#*:\\"}; echo "{\\"id\\":\\"\${id%%\\"*}\\",\\"status\\":\\"done\\"}"; done; ${print}`,
    );
    const env = { PATH: process.env.PATH ?? "", JOB_INPUT: "[1]" };
    const printed = ["and ␛[2Jmore", "to stderr", "to stdout"];
    for (const flags of [
      ["--", "sh", "print.sh"],
      ["--contract", "lines", "--", "sh", "lines.sh"],
    ]) {
      const { code, out, err } = await run(["--json", "batch", ...flags], { env });
      expect({ code, ...(JSON.parse(out) as object) }).toMatchObject({ code: 0, succeeded: 1 });
      const said = err.split("\n").flatMap((line) => /^sh\[\d+\]: (.*)$/.exec(line)?.[1] ?? []);
      expect(said.toSorted()).toEqual(printed);
    }
    expect((await run(["--quiet", "batch", "--name", "still", "--", "sh", "print.sh"], { env })).err).toBe("");
  });

  it("answers in JSON, begins anew after a finished run, and takes files and stdin in every form", async () => {
    const { json, write, runs, command } = setup();
    write("items.csv", "code,n\na,1\nb,2\n");
    write("items.ndjson", '{"code":"c"}\n{"code":"d"}\n');
    const document = { items: 2, succeeded: 2, failed: 0, retried: 0, rounds: 0, run: 1, isResumed: false };
    expect((await json(["batch", "--input", "items.csv", ...command])).document).toMatchObject(document);
    expect((await json(["batch", "--input", "items.csv", ...command])).document).toMatchObject({ ...document, run: 2 });
    expect((await json(["batch", "--input", "items.ndjson", ...command])).document).toMatchObject(document);
    const stdin = await json(["batch", "--input", "-", "--name", "tonight", ...command], { stdin: "[1, 2]" });
    expect(stdin).toMatchObject({ code: 0, document: { ...document, name: "tonight" } });
    expect(runs()[0]).toEqual([
      { code: "a", n: "1" },
      { code: "b", n: "2" },
    ]);
    expect(runs().slice(2)).toEqual([
      [{ code: "c" }, { code: "d" }],
      [1, 2],
    ]);
    expect(await json(["batch", "--input", "-", ...command], { stdin: "[]" })).toMatchObject({
      code: 0,
      document: { items: 0, failed: 0 },
    });
  });

  it("splits by --retry-batch-size, and charges nobody for the company of a bad one", async () => {
    const { run, runs, command, sql: ask } = setup("13");
    const stdin = JSON.stringify(Array.from({ length: 16 }, (_, at) => at));
    const flags = ["--input", "-", "--batch-size", "16", "--retry-batch-size", "4", "--max-retries", "1"];
    const { code, out, err } = await run(["batch", ...flags, ...command], { stdin });
    expect({ code, out }).toEqual({
      code: 1,
      out: expect.stringContaining("15 succeeded, 1 failed, 16 retried in 2 rounds"),
    });
    expect(runs().map(({ length }) => length)).toEqual([16, 4, 4, 4, 4, 2, 1, 1, 2]);
    expect(linesOf(err).slice(0, 3)).toEqual([
      "first pass: 16 items in batches of 16",
      "retry round 1: 16 items in batches of 4",
      "retry round 2: 2 items in batches of 2",
    ]);
    expect(ask("select count(*) from job where attempts > 0")).toEqual([[1]]);
  });

  it("gives every item to the command with all its digits, from each format and in each contract", async () => {
    const { run, write, folder, sql: ask } = setup();
    const item = '{"id": 12345678901234567890, "rate": 1.10}';
    write("items.json", `[\n  ${item},\n  "a \\"]\\" b", [[1], {"c": []}],\n  {\n "d": 1 }\n]`);
    write("items.ndjson", `${item}\n`);
    write("heard.sh", "cat >> heard.txt");
    const heard = (): string => readFileSync(join(folder, "heard.txt"), "utf8");
    for (const input of ["items.json", "items.ndjson"])
      expect((await run(["batch", "--input", input, "--", "sh", "heard.sh"])).code).toBe(0);
    expect(heard()).toBe(`[${item},"a \\"]\\" b",[[1], {"c": []}],{  "d": 1 }][${item}]`);
    expect(ask("select payload from job order by seq")[3]).toEqual(['{\n "d": 1 }']);
    const lines = [
      "batch",
      "--input",
      "items.json",
      "--contract",
      "lines",
      "--max-retries",
      "0",
      "--",
      "sh",
      "heard.sh",
    ];
    expect((await run(lines)).code).toBe(1);
    expect(heard()).toContain(`"input":${item},"attempt":1}\n`);
    expect(heard()).toContain('"input":{  "d": 1 },"attempt":1}\n');
  });

  it("tries the last item no more often than the others, though it runs alone", async () => {
    const { json, write, sql: ask } = setup();
    write(
      "entry.mjs",
      `let text = ""; for await (const chunk of process.stdin) text += chunk;
      for (const line of text.trim().split("\\n"))
        console.log(JSON.stringify({ id: JSON.parse(line).id, status: "transient", error: "busy" }));`,
    );
    const settings = ["--contract", "lines", "--batch-size", "2", "--max-retries", "1"];
    const args = ["batch", "--input", "-", ...settings, "--", process.execPath, "entry.mjs"];
    const { code, document } = await json(args, { stdin: "[1,2,3]" });
    expect({ code, document }).toMatchObject({ code: 1, document: { failed: 3 } });
    expect(ask("select attempts from job order by seq")).toEqual([[2], [2], [2]]);
  });

  it.each([0, 1])("runs the last item, which is alone from the first, %i times again", async (again) => {
    const { run, runs, command } = setup("bad");
    const flags = ["--input", "-", "--batch-size", "3", "--max-retries", String(again)];
    const { code, out } = await run(["batch", ...flags, ...command], { stdin: '["a","b","c","bad"]' });
    expect({ code, out }).toEqual({
      code: 1,
      out: expect.stringContaining(`3 succeeded, 1 failed, ${again} retried in ${again} round`),
    });
    expect(runs().slice(1)).toEqual(Array.from({ length: again + 1 }, () => ["bad"]));
  });

  it("looks for the bad one of a batch also without retries", async () => {
    const { run, runs, command } = setup("bad");
    const flags = ["--input", "-", "--batch-size", "3", "--max-retries", "0"];
    const { code, out } = await run(["batch", ...flags, ...command], { stdin: '["a","bad","c"]' });
    expect({ code, out }).toEqual({
      code: 1,
      out: expect.stringContaining("2 succeeded, 1 failed, 3 retried in 1 round"),
    });
    expect(runs()).toEqual([["a", "bad", "c"], ["a"], ["bad"], ["c"]]);
  });

  it("hears of each item where the command speaks in lines", async () => {
    const { json, write, sql: ask } = setup();
    write(
      "entry.mjs",
      `let text = ""; for await (const chunk of process.stdin) text += chunk;
      for (const line of text.trim().split("\\n")) {
        const { id, input, attempt } = JSON.parse(line);
        const word = input < 9 ? { status: "done", result: input * 2 } : attempt < 3 ? { status: "transient", error: "busy" } : { status: "done" };
        console.log(JSON.stringify({ id, ...word }));
      }`,
    );
    const stdin = JSON.stringify(Array.from({ length: 10 }, (_, at) => at));
    const args = ["batch", "--input", "-", "--contract", "lines", "--", process.execPath, "entry.mjs"];
    const { code, document } = await json(args, { stdin });
    expect({ code, document }).toMatchObject({ code: 0, document: { succeeded: 10, retried: 1, rounds: 2 } });
    expect(ask("select attempts, count(*) from job group by attempts")).toEqual([
      [0, 9],
      [2, 1],
    ]);
  });

  it("refuses other input for a run that is not finished, and what it cannot use", async () => {
    const { run, sql: ask, command, folder } = setup();
    const named = ["batch", "--name", "mine", "--input", "-", ...command];
    expect((await run(named, { stdin: "[1]" })).code).toBe(0);
    connect(join(folder, "redrive.db")).exec(
      `update cell set value = json_set(value, '$.isDone', json('false')) where kind = 'batch'`,
    );
    const other = await run(named, { stdin: "[2]" });
    expect(other).toMatchObject({ code: 4 });
    expect(other.err).toContain("the unfinished run mine");
    expect(await run(named, { stdin: "[1]" })).toMatchObject({
      code: 0,
      err: expect.stringContaining("resuming run 1"),
    });
    expect(ask("select count(*) from job")).toEqual([[1]]);
    for (const [args, text] of [
      [["batch", ...command], "input: expected a file, - for stdin"],
      [["batch", "--input", "none.json", ...command], "there is no such file"],
      [["batch", "--batch-size", "x", ...command], "batch-size: expected a whole number"],
      [["batch", "--contract", "tcp", ...command], 'error: contract: expected "plain" or "lines"; got "tcp"'],
      [["batch", "--timeout", "soon", ...command], "error: timeout: expected"],
      [["batch", "--env", "A B", ...command], 'error: env: expected names of variables; got "A B"'],
      [["batch", "--env", "A,B", ...command], 'error: env: expected one name; got "A,B"; write --env A --env B'],
      [["batch", "--env", "UNSET", ...command], 'error: env: expected a variable that is set; got "UNSET"'],
      [["batch", "--input", "-"], "command"],
      [["batch", "--input", "-", "cat", "-n"], "unknown option '-n'; options of the command come after --"],
      [
        ["batch", "--batch-size", "2", "--retry-batch-size", "3", ...command],
        "retry-batch-size: expected at most the batch size, 2; got 3",
      ],
    ] as const) {
      const { code, err } = await run(args);
      expect({ code, err }).toMatchObject({ code: 2, err: expect.stringContaining(text) });
    }
    const bad = await run(["batch", ...command], { env: { JOB_INPUT: "[1]", BATCH_SIZE: "0" } });
    expect(bad).toMatchObject({ code: 78, err: expect.stringContaining("BATCH_SIZE: expected") });
  });

  it.each([
    ["[1", [], "JOB_INPUT: expected a JSON array; got something else (", "check its brackets, quotes and commas"],
    ['{"a":1}', [], "JOB_INPUT: expected a JSON array; got an object; put brackets around what it holds"],
    ["[1]", ["--format", "xml"], 'format: expected json or none, because JOB_INPUT is a JSON array; got "xml"'],
  ] as const)("refuses JOB_INPUT=%s with %j and says what to do", async (JOB_INPUT, flags, ...texts) => {
    const { run, command } = setup();
    const { code, err } = await run(["batch", ...flags, ...command], { env: { JOB_INPUT } });
    expect(code).toBe(2);
    for (const text of texts) expect(err).toContain(text);
  });

  it("says that JOB_INPUT is not read beside --input", async () => {
    const { run, runs, command } = setup();
    const world = { stdin: "[2]", env: { JOB_INPUT: "[1]" } };
    const { code, err } = await run(["batch", "--input", "-", ...command], world);
    expect({ code, runs: runs() }).toEqual({ code: 0, runs: [[2]] });
    expect(err).toContain("JOB_INPUT is not read, because --input is given\n");
  });

  it("passes over places in PATH where nobody can look", async () => {
    const { run, folder } = setup();
    symlinkSync("round", join(folder, "round"));
    const env = { PATH: `${join(folder, "round")}:${process.env.PATH}`, JOB_INPUT: "[1]" };
    expect(await run(["batch", "--", "cat"], { env })).toMatchObject({ code: 0 });
    const nowhere = await run(["batch", "--", "no-such-program"], { env });
    expect(nowhere).toMatchObject({ code: 2, err: expect.stringContaining("command: expected a program in PATH") });
  });

  it.each([
    ["a line that is no JSON", "ndjson", '{"a":1}\n{nope\n', "line 2: expected JSON"],
    ["the same where nobody says the format", null, '{"a":1}\n{nope\n', "line 2: expected JSON"],
    [
      "an item that is too large",
      "json",
      `[1,"${"x".repeat(1_048_576)}"]`,
      "item 2: payload may have at most 1048576 bytes",
    ],
    [
      "an item that is too deep",
      "ndjson",
      `1\n\n${"[".repeat(65)}${"]".repeat(65)}`,
      "line 3: expected at most 64 levels",
    ],
    ["an array that is cut short", null, "[1,2", "input: expected a JSON array"],
    ["other bytes than UTF-8", null, Buffer.from([0x22, 0xff, 0x22]), "line 1: expected UTF-8"],
    ["two columns of one name", "csv", "a,b,a\n1,2,3\n", 'line 1: expected distinct column names; got "a"'],
  ] as const)("refuses %s before anything is written", async (_name, format, text, message) => {
    const { run, folder, command } = setup();
    writeFileSync(join(folder, "items"), text);
    const { code, err } = await run(["batch", "--input", "items", ...(format ? ["--format", format] : []), ...command]);
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(message) });
    expect(existsSync(join(folder, "redrive.db"))).toBe(false);
  });

  it("does the same on Postgres", async () => {
    const { json, runs, command } = setup("13");
    const server = inject("postgres18");
    const { schema, url } = testSchema(server);
    const stdin = JSON.stringify(Array.from({ length: 25 }, (_, at) => at));
    const { code, document } = await json(["--store", url, "batch", "--input", "-", ...command], { stdin });
    expect({ code, document }).toMatchObject({
      code: 1,
      document: { succeeded: 24, failed: 1, retried: 10, rounds: 3 },
    });
    expect(runs()).toHaveLength(3 + 10 + 1 + 1);
    const errors = await sql(server, `select item, attempt, error_name from ${schema}.item_errors order by attempt`);
    expect(errors).toEqual([1, 2, 3].map((attempt) => ({ item: "13", attempt, error_name: "ExitCode" })));
  });

  it.each([120, 0])("shows a bar on a terminal, of %s columns", async (columns) => {
    const { run, command } = setup();
    const { err } = await run(["batch", "--input", "-", ...command], { stdin: "[1,2,3]", columns });
    expect(err).toMatch(/first pass .*\d+ % {2}\d\/3 items, 0 failed, \d/);
  });
});

it("adds up the time of a first pass that was killed", async () => {
  const { folder, run, sql: ask } = setup();
  const args = ["batch", "--name", "timed", "--input", "items.json", "--", "sh", "-c", "test -e done || sleep 60"];
  writeFileSync(join(folder, "items.json"), "[1,2,3]");
  const start = fileURLToPath(new URL("../../bin/redrive.js", import.meta.url));
  const child = spawn(process.execPath, [start, ...args], { cwd: folder, stdio: "ignore" });
  const noted = (): number => {
    if (!existsSync(join(folder, "redrive.db"))) return 0;
    const found = ask("select count(*) from sqlite_schema where name = 'cell'")[0]?.[0];
    const rows = found === 1 ? ask("select value ->> '$.firstPassMs' from cell where kind = 'batch'") : [];
    return Number(rows[0]?.[0] ?? 0);
  };
  const ended = new Promise((resolve) => child.once("exit", resolve));
  try {
    await vi.waitFor(() => expect(noted()).toBeGreaterThan(0), { timeout: 30_000, interval: 100 });
  } finally {
    child.kill("SIGKILL");
  }
  await ended;
  const before = noted();
  writeFileSync(join(folder, "done"), "");
  const { code, out } = await run(["--json", ...args]);
  const { firstPassMs, isResumed } = JSON.parse(out) as Document;
  expect({ code, isResumed }).toEqual({ code: 0, isResumed: true });
  expect(firstPassMs).toBeGreaterThan(before);
});

// `npm run prove -- batch` plays the whole of it.
const KILLS = Number(process.env.REDRIVE_PROVE_KILLS ?? 5);
const SEED = Number(process.env.REDRIVE_PROVE_SEED ?? 7);

it("killed again and again, it goes on: each item completes once, and only what was in flight runs again", async () => {
  const start = [fileURLToPath(new URL("../../bin/redrive.js", import.meta.url))];
  const seconds = KILLS > 10 ? 0.4 : 0.2;
  const report = await batchKills({ start, items: KILLS * 40, kills: KILLS, seconds, seed: SEED, longestMs: 1_600 });
  if (process.env.REDRIVE_PROVE === "batch") console.log(JSON.stringify(report));
  expect(report.wrong).toEqual([]);
  expect(report.kills).toBeGreaterThanOrEqual(KILLS * 0.6);
}, 600_000);
