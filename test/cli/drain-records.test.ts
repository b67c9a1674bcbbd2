// `drain` with records: from files and stdin, with results, known ids, and input that makes no sense.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Bench, createBench } from "../support/cli.ts";
import { startCli, until } from "../support/cli-processes.ts";

const JOBS = `
import { defineJob, PermanentError } from "redrive";
export const enrich = defineJob("enrich", { preset: "records", run(record, { attempt }) {
  if (record.name === "gone") throw new PermanentError("no such customer");
  if (record.name === "late" && attempt === 1) throw new Error("api down");
  return { upper: String(record.name).toUpperCase() };
} });
`;
const QUIET = { REDRIVE_LOG: "silent" };

function withJobs(): Bench {
  const bench = createBench();
  bench.write("jobs.mjs", JOBS);
  return bench;
}

describe("drain --input", () => {
  it("takes NDJSON, writes results, and skips what it knows", async () => {
    const bench = withJobs();
    bench.write("in.ndjson", '{"id":1,"name":"ada"}\n\n{"id":2,"name":"gone"}\n{"id":3,"name":"late"}\n');
    const call = ["drain", "--jobs", "jobs.mjs", "--input", "in.ndjson", "--output", "out.ndjson"];
    const first = await bench.json(call, { env: QUIET });
    expect(first).toMatchObject({
      code: 1,
      document: { records: 3, enqueued: 3, known: 0, completed: 1, retried: 1, dead: 1, retryQueue: 1, deadLetters: 1 },
    });
    const line = '{"id":"1","result":{"upper":"ADA"},"attempts":1}\n';
    expect(readFileSync(join(bench.folder, "out.ndjson"), "utf8")).toBe(line);
    expect(existsSync(join(bench.folder, "out.ndjson.part"))).toBe(false);
    const second = await bench.run(call, { env: QUIET });
    expect(second).toMatchObject({ code: 0, err: "" });
    expect(second.out).toMatch(
      /^3 records: 0 new, 3 known\nsuccess rate -, - retries a record, 1 in the retry queue, 1 dead letter\n0 runs: /,
    );
    expect(readFileSync(join(bench.folder, "out.ndjson"), "utf8")).toBe(line);
    expect(bench.sql("select record_id, error_msg, retry_count from retry_queue")).toEqual([["3", "api down", 1]]);
  });

  it("takes CSV from stdin and writes CSV to stdout, with the figures beside it", async () => {
    const bench = withJobs();
    const call = ["drain", "--jobs", "jobs.mjs", "--input", "-", "--format", "csv", "--output", "-", "--output-format"];
    const stdin = '\ufeffid,name\r\n7,"a,""b"""\r\n8,x\r\n';
    const { code, out, err } = await bench.run([...call, "csv"], { stdin, env: QUIET });
    expect({ code, lines: out.split("\n").toSorted() }).toEqual({
      code: 0,
      lines: ["", '7,"A,""B""",', "8,X,", "record_id,upper,more"],
    });
    expect(err).toContain("2 records: 2 new, 0 known\n");
  });

  it("keeps records byte for byte, integers beyond 2^53 too", async () => {
    const bench = withJobs();
    const text = '{"id":"big", "n":12345678901234567890, "name":"x"}';
    await bench.run(["drain", "--jobs", "jobs.mjs", "--input", "-"], { stdin: `${text}\n`, env: QUIET });
    expect(bench.sql("select payload from jobs")).toEqual([[text]]);
  });

  it("takes a JSON array by the name of its file", async () => {
    const bench = withJobs();
    bench.write("in.json", '[{"id":"a","name":"x"},{"id":"b","name":"y"}]');
    const { document } = await bench.json(["drain", "--jobs", "jobs.mjs", "--input", "in.json"], { env: QUIET });
    expect(document).toMatchObject({ records: 2, completed: 2, successRate: 1 });
  });

  it("has what came before a bad line, and goes on with the rest when it is mended", async () => {
    const bench = withJobs();
    const drain = (stdin: string) => bench.run(["drain", "--jobs", "jobs.mjs", "--input", "-"], { stdin, env: QUIET });
    const bad = await drain('{"id":1,"name":"a"}\n{"id":2,"name":"b"}\n{nope\n');
    expect(bad).toMatchObject({
      code: 2,
      err: expect.stringMatching(/line 3: expected JSON.*\(2 before it were enqueued\)/),
    });
    const good = await drain('{"id":1,"name":"a"}\n{"id":2,"name":"b"}\n{"id":3,"name":"c"}\n');
    expect(good).toMatchObject({ code: 0, out: expect.stringContaining("3 records: 1 new, 2 known") });
    expect(bench.sql("select key from job where state = 'completed' order by key")).toEqual([["1"], ["2"], ["3"]]);
  });

  it("has what came before a record that is too large, too deep, or has too long an id, and names its line", async () => {
    const bench = withJobs();
    const drain = (stdin: string) => bench.run(["drain", "--jobs", "jobs.mjs", "--input", "-"], { stdin, env: QUIET });
    for (const [at, [record, said]] of [
      [`{"id":"large","name":"${"x".repeat(1_100_000)}"}`, "payload may have at most 1048576 bytes"],
      [`{"id":"deep","name":${"[".repeat(70)}${"]".repeat(70)}}`, "payload: expected at most 64 levels"],
      [`{"id":"${"x".repeat(300)}"}`, 'expected at most 255 bytes in "id"; got 300'],
    ].entries()) {
      const { code, err } = await drain(`{"id":"${at}a"}\n\n{"id":"${at}b"}\n${record}\n{"id":"after"}\n`);
      expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(`error: line 4: ${said}`) });
      expect(err).toContain("(2 before it were enqueued)");
    }
    expect(bench.sql("select key from job order by key")).toEqual(
      ["0a", "0b", "1a", "1b", "2a", "2b"].map((id) => [id]),
    );
  });

  it("logs what failed and what died, and not every record", async () => {
    const bench = withJobs();
    const stdin = '{"id":1,"name":"ada"}\n{"id":2,"name":"gone"}\n{"id":3,"name":"late"}\n';
    const call = ["drain", "--jobs", "jobs.mjs", "--input", "-"];
    const { err } = await bench.run(call, { stdin });
    expect(
      err
        .trim()
        .split("\n")
        .toSorted((a, b) => a.slice(25).localeCompare(b.slice(25))),
    ).toEqual([
      expect.stringContaining("no such customer (attempt 1/6), moved to the dead"),
      expect.stringContaining("api down (attempt 1/6), requeueing"),
    ]);
    // Fed again, the dead one is a number and no news.
    const again = await bench.run(call, { stdin });
    expect(again).toMatchObject({ code: 0, err: "", out: expect.stringContaining("1 dead letter") });
    const all = await bench.run(call, { stdin: stdin.replaceAll('"id":', '"id":1'), env: { REDRIVE_LOG: "info" } });
    expect(all.err.match(/processing/g)).toHaveLength(3);
  });

  it("writes any number of results with the same few listeners", async () => {
    const warnings: string[] = [];
    const hear = ({ message }: Error): void => void warnings.push(message);
    process.on("warning", hear);
    const bench = createBench();
    const job = `run: () => "x".repeat(30_000)`;
    bench.write("jobs.mjs", `import { defineJob } from "redrive"; export const long = defineJob("long", { ${job} });`);
    const stdin = Array.from({ length: 300 }, (_, at) => `{"id":${at}}\n`);
    const call = ["drain", "--jobs", "jobs.mjs", "--input", "-", "--output", "out.ndjson"];
    expect(await bench.run(call, { stdin, env: QUIET })).toMatchObject({ code: 0 });
    process.off("warning", hear);
    expect(warnings).toEqual([]);
    expect(readFileSync(join(bench.folder, "out.ndjson"), "utf8").split("\n")).toHaveLength(301);
  });

  it("leaves the output of before where it is stopped in the middle", async () => {
    const bench = createBench();
    const job = `run: () => new Promise((done) => setTimeout(() => done(1), 400))`;
    bench.write("jobs.mjs", `import { defineJob } from "redrive"; export const slow = defineJob("slow", { ${job} });`);
    bench.write("out.ndjson", "before\n");
    const stdin = Array.from({ length: 20 }, (_, at) => `{"id":${at}}\n`);
    const call = ["drain", "--jobs", "jobs.mjs", "--input", "-", "--output", "out.ndjson"];
    const onReady = (send: (signal: "SIGTERM") => void): void => void setTimeout(() => send("SIGTERM"), 300);
    const one = ["--concurrency", "1"];
    expect(await bench.run([...call, ...one], { stdin, env: QUIET, onReady })).toMatchObject({ code: 143 });
    expect(readFileSync(join(bench.folder, "out.ndjson"), "utf8")).toBe("before\n");
    const { document } = await bench.json(call, { stdin, env: QUIET });
    expect(document).toMatchObject({ records: 20, deadLetters: 0, retryQueue: 0 });
    expect(readFileSync(join(bench.folder, "out.ndjson"), "utf8").trim().split("\n")).toHaveLength(20);
  });

  const refused: [name: string, args: string[], stdin: string, message: string][] = [
    ["no JSON", ["--input", "-"], '{"id":1}\n{nope\n', "line 2: expected JSON"],
    [
      "no id",
      ["--input", "-"],
      '{"name":"x"}\n',
      'line 1: expected text or a whole number below 2^53 in "id"; got none',
    ],
    ["an empty id", ["--input", "-"], '{"id":""}\n', 'in "id"; got empty text; '],
    ["an array without its format", ["--input", "-"], '[{"id":1}]\n', "line 1: expected a JSON object; got an array"],
    ["the same in lines", ["--input", "-"], '[\n{"id":1}\n]\n', "the whole input is one, pass --format json"],
    ["an id of another field", ["--input", "-", "--id-field", "key"], '{"id":1}\n', 'in "key"'],
    [
      "a row that is too long",
      ["--input", "-", "--format", "csv"],
      "id,name\n1,a,b\n",
      "line 2: expected as many values",
    ],
    ["two columns of one name", ["--input", "-", "--format", "csv"], "id,id\n1,2\n", 'got "id" twice'],
    ["an open quote", ["--input", "-", "--format", "csv"], 'id,name\n1,"a\n', "expected CSV"],
    ["an object for an array", ["--input", "-", "--format", "json"], "{}", "input: expected a JSON array"],
    ["an unknown format", ["--input", "-", "--format", "xml"], "", "format: expected ndjson, csv, json"],
    ["no such file", ["--input", "none.csv"], "", "there is no such file"],
    ["an output without input", ["--output", "x"], "", "output: expected --input or --query too"],
    ["an output in no folder", ["--input", "-", "--output", "no/x"], "", "output: expected the path of a file"],
    ["a format of no output", ["--input", "-", "--output-format", "xml"], "", "output-format: expected --output too"],
    ["two sources", ["--input", "-", "--query", "select 1"], "", "expected --input or --query; got both"],
    ["a query of nothing", ["--query", "select 1 as id"], "", "query: expected --from URL too"],
    ["an unknown type", ["--input", "-", "--type", "x"], "", "type: expected enrich"],
  ];
  it.each(refused)("refuses %s without a trace", async (_name, args, stdin, message) => {
    const bench = withJobs();
    const { code, err } = await bench.run(["drain", "--jobs", "jobs.mjs", ...args], { stdin, env: QUIET });
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(message) });
    expect(err).not.toMatch(/^\s+at /m);
  });
});

describe("alerts in the config", () => {
  const input = '{"id":1,"name":"ada"}\n{"id":2,"name":"gone"}\n{"id":3,"name":"late"}\n';
  const call = ["drain", "--jobs", "jobs.mjs", "--input", "-"];

  it("are raised in words, in the document and by the exit code", async () => {
    const bench = withJobs();
    bench.write(
      "redrive.config.yaml",
      "alerts: { minSuccessRate: 0.9, maxRetryQueue: 0, maxDeadLetters: 0, maxAverageRetries: 0.5, maxTime: 1h }",
    );
    const { code, err } = await bench.run(call, { stdin: input, env: QUIET });
    expect({ code, lines: err.trim().split("\n") }).toEqual({
      code: 1,
      lines: [
        "alert: the success rate is 50.0 %, under 90.0 %",
        "alert: the retry queue is 1, over 0",
        "alert: the number of dead letters is 1, over 0",
      ],
    });
    // Nothing dies this time: it is the alarm that fails the call, with records and without.
    const again = await bench.json(call, { stdin: input, env: QUIET });
    const queue = { figure: "retryQueue", value: 1, limit: 0, message: "the retry queue is 1, over 0" };
    expect(again).toMatchObject({ code: 1, document: { dead: 0, alerts: [queue, { figure: "deadLetters" }] } });
    const plain = await bench.json(["drain", "--jobs", "jobs.mjs"], { env: QUIET });
    expect(plain).toMatchObject({ code: 1, document: { dead: 0, alerts: [queue, { figure: "deadLetters" }] } });
  });

  it("are quiet within their limits, and refused where they make no sense", async () => {
    const bench = withJobs();
    bench.write("redrive.config.yaml", "alerts: { maxRetryQueue: 1, maxDeadLetters: 5, minSuccessRate: 0.5 }");
    const good = await bench.json(call, { stdin: '{"id":1,"name":"ada"}\n', env: QUIET });
    expect(good).toMatchObject({ code: 0, document: { alerts: [] } });
    for (const [text, message] of [
      ["alerts: { maxDeadLeters: 5 }", 'did you mean "maxDeadLetters"?'],
      ["alerts: { minSuccessRate: 90 }", "line 1: alerts.minSuccessRate: expected a number from 0 to 1"],
    ] as const) {
      bench.write("redrive.config.yaml", text);
      expect(await bench.run(call, { stdin: "" })).toMatchObject({ code: 78, err: expect.stringContaining(message) });
    }
  });
});

describe("drain --output beside a worker of another process", () => {
  it.each([
    ["has a line for what that one ran", "1d", 0, ["a", "b"], ""],
    [
      "says what is missing where finished jobs are deleted at once",
      "0",
      1,
      ["b"],
      "missing in the output: 1 record; ",
    ],
  ] as const)("%s", async (_what, keep, code, lines, said) => {
    const bench = createBench();
    bench.write(
      "jobs.mjs",
      `import { existsSync, writeFileSync } from "node:fs";
      import { defineJob } from "redrive";
      const there = (name) => existsSync(new URL(name, import.meta.url));
      export const enrich = defineJob("enrich", { keep: { finished: ${JSON.stringify(keep === "0" ? 0 : keep)} }, async run({ id }) {
        if (id === "a") writeFileSync(new URL("taken", import.meta.url), "");
        while (id === "a" && !there("go")) await new Promise((resolve) => setTimeout(resolve, 20));
        return id;
      } });`,
    );
    const place = (name: string): string => join(bench.folder, name);
    await bench.run(["enqueue", "enrich", '{"id":"a"}', "--key", "a"]);
    const worker = startCli(bench, ["worker", "--jobs", "jobs.mjs", "--concurrency", "1"]);
    await until(
      () => existsSync(place("taken")),
      () => worker.text.err,
    );
    bench.write("in.ndjson", '{"id":"a"}\n{"id":"b"}\n');
    const drain = startCli(bench, ["drain", "--jobs", "jobs.mjs", "--input", "in.ndjson", "--output", "out.ndjson"]);
    await drain.says("waiting for records that other workers are running");
    bench.write("go", "");
    expect({ ...(await drain.ended), err: drain.text.err }).toMatchObject({ code, err: expect.stringContaining(said) });
    const out = readFileSync(place("out.ndjson"), "utf8").trimEnd().split("\n");
    expect(out.map((line) => (JSON.parse(line) as { id: string }).id).toSorted()).toEqual(lines);
  });
});
