// The files of `drain --input --output`: those that may not be read or written, that are full, or that are the same.
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, openSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openInput } from "../../src/cli/records-in.ts";
import { openResults } from "../../src/cli/results-out.ts";
import { builtModule } from "../support/built.ts";
import { type Bench, createBench } from "../support/cli.ts";
import { startCli } from "../support/cli-processes.ts";
import { asNobody } from "../support/nobody.ts";

const JOBS = `
import { defineJob } from "redrive";
export const enrich = defineJob("enrich", { run: ({ name }) => ({ upper: String(name).toUpperCase() }) });
`;
const RECORD = '{"id":1,"name":"ada"}\n';
const QUIET = { REDRIVE_LOG: "silent" };
const NO_STDIN = { stdin: (async function* () {})() };

describe("an input", () => {
  it("that may not be read is refused before anything is done", () => {
    const bench = createBench();
    chmodSync(bench.folder, 0o755);
    chmodSync(bench.write("secret.ndjson", '{"id":1}\n'), 0o000);
    const io = { ...NO_STDIN, cwd: bench.folder };
    expect(() => asNobody(() => openInput(io, "secret.ndjson"))).toThrow(
      expect.objectContaining({
        code: "invalid_argument",
        message: expect.stringMatching(
          /^input: expected a readable file; got "secret\.ndjson" \(EACCES: permission denied.*\); /,
        ),
      }),
    );
  });

  it("that is no regular file is told so, with the way to stdin", () => {
    const bench = createBench();
    const io = { ...NO_STDIN, cwd: bench.folder };
    expect(spawnSync("mkfifo", [join(bench.folder, "pipe")]).status).toBe(0);
    expect(() => openInput(io, "pipe")).toThrow('got "pipe"; it is a named pipe; send its content to stdin and pass -');
    expect(() => openInput(io, ".")).toThrow('got "."; it is a folder; name a file in it');
    expect(() => openInput(io, "none")).toThrow('got "none"; there is no such file; check the path');
  });
});

describe("an output", () => {
  const drain = (bench: Bench, input: string, output: string, ...more: string[]) =>
    bench.run(["drain", "--jobs", "jobs.mjs", "--input", input, "--output", output, ...more], { env: QUIET });
  const withInput = (): Bench => {
    const bench = createBench();
    bench.write("jobs.mjs", JOBS);
    bench.write("in.ndjson", RECORD);
    return bench;
  };

  it("that cannot be begun is refused before anything is done", async () => {
    const bench = withInput();
    mkdirSync(join(bench.folder, "out.ndjson.part"));
    expect(await drain(bench, "in.ndjson", "out.ndjson")).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^error: output: expected a file that can be written; got .*\(EISDIR: .*\); /),
    });
    expect(readdirSync(bench.folder).toSorted()).toEqual(["in.ndjson", "jobs.mjs", "out.ndjson.part"]);
    chmodSync(bench.folder, 0o555);
    const io = { cwd: bench.folder, stdout: { write: () => true } };
    expect(() => asNobody(() => openResults(io, "other.ndjson", "ndjson", null))).toThrow(
      expect.objectContaining({ code: "invalid_argument", message: expect.stringContaining("EACCES") }),
    );
  });

  it("that begins and cannot be used leaves nothing behind where the store cannot be opened", async () => {
    const bench = withInput();
    const none = ["--store", "sqlite:./none/redrive.db"];
    expect(await drain(bench, "in.ndjson", "out.ndjson", ...none)).toMatchObject({ code: 3 });
    expect(readdirSync(bench.folder).toSorted()).toEqual(["in.ndjson", "jobs.mjs"]);
  });

  it("that has a link in its way replaces the link, and leaves alone what it leads to", async () => {
    const bench = withInput();
    const victim = bench.write("victim", "mine");
    symlinkSync(victim, join(bench.folder, "out.ndjson.part"));
    expect(await drain(bench, "in.ndjson", "out.ndjson")).toMatchObject({ code: 0 });
    expect(readFileSync(victim, "utf8")).toBe("mine");
    expect(readFileSync(join(bench.folder, "out.ndjson"), "utf8")).toContain('"ADA"');
  });

  it.skipIf(process.platform === "win32")("on a disk that is full leaves what was there as it was", () => {
    const bench = withInput();
    bench.write("out.ndjson", "before\n");
    const script = bench.write(
      "fill.mjs",
      `import { openResults } from ${JSON.stringify(builtModule("cli/results-out.js"))};
      const out = openResults({ cwd: process.cwd(), stdout: process.stdout }, "out.ndjson", "ndjson", null);
      try {
        for (let id = 0; id < 40; id++) await out.write({ id, result: "x".repeat(5_000), attempts: 1 });
        await out.end();
      } catch ({ code, message }) {
        out.abandon();
        console.log(code, message);
      }`,
    );
    const { stdout } = spawnSync("sh", ["-c", 'ulimit -f 128 && exec "$0" "$1"', process.execPath, script], {
      cwd: bench.folder,
      encoding: "utf8",
      timeout: 60_000,
    });
    expect(stdout).toMatch(/^aborted output: expected to write .*out\.ndjson to its end; got EFBIG: .*; make room/);
    expect(readFileSync(join(bench.folder, "out.ndjson"), "utf8")).toBe("before\n");
    expect(readdirSync(bench.folder)).not.toContain("out.ndjson.part");
  });

  it("that is the input is refused, under any name", async () => {
    const bench = withInput();
    symlinkSync("in.ndjson", join(bench.folder, "link.ndjson"));
    bench.write("half.ndjson.part", RECORD);
    for (const [input, output] of [
      ["in.ndjson", "in.ndjson"],
      ["in.ndjson", "./link.ndjson"],
      ["link.ndjson", "in.ndjson"],
      ["half.ndjson.part", "half.ndjson"],
    ] as const)
      expect(await drain(bench, input, output)).toMatchObject({
        code: 2,
        err: expect.stringContaining("output: expected a file other than the input"),
      });
    const query = ["--query", "select 1 as id", "--from", "sqlite:in.ndjson", "--output", "in.ndjson"];
    expect(await bench.run(["drain", "--jobs", "jobs.mjs", ...query], { env: QUIET })).toMatchObject({ code: 2 });
    for (const name of ["in.ndjson", "half.ndjson.part"])
      expect(readFileSync(join(bench.folder, name), "utf8")).toBe(RECORD);
  });

  it("that is the file on stdin is refused, and stays", async () => {
    const bench = withInput();
    const call = ["drain", "--jobs", "jobs.mjs", "--input", "-", "--output"];
    const redirected = (): number => openSync(join(bench.folder, "in.ndjson"), "r");
    const refused = startCli(bench, [...call, "in.ndjson"], {}, redirected());
    expect(await refused.ended).toMatchObject({ code: 2 });
    expect(refused.text.err).toContain("output: expected a file other than the input");
    expect(readFileSync(join(bench.folder, "in.ndjson"), "utf8")).toBe(RECORD);
    expect(await startCli(bench, [...call, "out.ndjson"], {}, redirected()).ended).toMatchObject({ code: 0 });
    expect(readFileSync(join(bench.folder, "out.ndjson"), "utf8")).toContain('"ADA"');
  });
});
