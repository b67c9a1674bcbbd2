// The files of `drain --input --output`: those that may not be read or written, that are full, or that are the same.
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openInput } from "../../src/cli/records-in.ts";
import { openResults } from "../../src/cli/results-out.ts";
import { type Bench, createBench } from "../support/cli.ts";
import { asNobody } from "../support/nobody.ts";

const JOBS = `
import { defineJob } from "redrive";
export const enrich = defineJob("enrich", { run: ({ name }) => ({ upper: String(name).toUpperCase() }) });
`;
const RECORD = '{"id":1,"name":"ada"}\n';
const QUIET = { REDRIVE_LOG: "error" };
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
          /^input: expected a file that may be read; got "secret\.ndjson" \(EACCES: permission denied.*\); /,
        ),
      }),
    );
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
      err: expect.stringMatching(/^error: output: expected a file that may be written; got .*\(EISDIR: .*\); /),
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

  it.skipIf(!existsSync("/dev/full"))(
    "on a disk that is full ends the call with its path and exit code 3",
    async () => {
      const bench = withInput();
      bench.write("out.ndjson", "before\n");
      symlinkSync("/dev/full", join(bench.folder, "out.ndjson.part"));
      const { code, err } = await drain(bench, "in.ndjson", "out.ndjson");
      expect({ code, err }).toEqual({
        code: 3,
        err: expect.stringMatching(/^error: output: expected to write .*out\.ndjson.*; got ENOSPC: .*; make room/),
      });
      expect(readFileSync(join(bench.folder, "out.ndjson"), "utf8")).toBe("before\n");
      // What was done is known: with room, the same call has it all.
      expect(await drain(bench, "in.ndjson", "out.ndjson")).toMatchObject({ code: 0 });
      expect(readFileSync(join(bench.folder, "out.ndjson"), "utf8")).toContain('"ADA"');
    },
  );

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
        err: expect.stringContaining("output: expected another file than the input"),
      });
    const query = ["--query", "select 1 as id", "--from", "sqlite:in.ndjson", "--output", "in.ndjson"];
    expect(await bench.run(["drain", "--jobs", "jobs.mjs", ...query], { env: QUIET })).toMatchObject({ code: 2 });
    for (const name of ["in.ndjson", "half.ndjson.part"])
      expect(readFileSync(join(bench.folder, name), "utf8")).toBe(RECORD);
  });
});
