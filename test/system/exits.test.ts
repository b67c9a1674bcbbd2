// Programs that are done: nothing of the library keeps their process, and the flags they were started with do no harm.
import { describe, expect, it } from "vitest";
import { reader, testPath } from "../support/database-file.ts";
import { runNode, withLibrary, writeProgram } from "./programs.ts";

/** What a timer that was left behind would exceed by far: the shortest of them is 25 s. */
const AT_ONCE_MS = 20_000;

const OPEN = `
import { createRedrive, defineJob } from "redrive";
const double = defineJob("double", { run: ({ n }) => n * 2 });
const store = process.argv.at(-1);
const redrive = await createRedrive({ store, jobs: [double], log: "silent" });
await redrive.enqueue(double, { n: 21 });
`;

const ENDS: readonly [string, string][] = [
  ["drains and closes", "await redrive.worker().drain({ grace: 0 });"],
  ["drains and stops", "const worker = redrive.worker(); await worker.drain({ grace: 0 }); await worker.stop();"],
  [
    "stops twice at once",
    "const worker = redrive.worker(); await worker.start(); await Promise.all([worker.stop(), worker.stop()]);",
  ],
  [
    "stops twice, in a row",
    "const worker = redrive.worker(); await worker.start(); await worker.stop(); await worker.stop();",
  ],
  ["stops what never started", "await redrive.worker().stop();"],
  ["closes with a question under way", "void redrive.jobs.count(); void redrive.store.control();"],
  ["closes a running worker", "await redrive.worker().start();"],
];

describe.each(["memory", "sqlite"])("a program on %s", (kind) => {
  it.each(ENDS)("that %s ends at once", async (_what, text) => {
    const program = writeProgram("program.mjs", `${OPEN}${text}\nawait redrive.close();\nconsole.log("closed");\n`);
    const store = kind === "memory" ? "memory:" : `sqlite:${testPath()}`;
    const { code, out, err, lingeredMs } = await runNode([program, store]);
    expect({ code, out, err }).toEqual({ code: 0, out: "closed\n", err: "" });
    expect(lingeredMs).toBeLessThan(AT_ONCE_MS);
  });
});

describe("a program given on the command line", () => {
  const WORK = `${OPEN}
console.log(JSON.stringify(await redrive.worker().drain({ grace: 0 })));
await redrive.close();
`;

  it.each([
    ["as a module", ["--input-type=module", "-e"]],
    ["as a module, with other flags of Node", ["--expose-gc", "--stack-trace-limit=50", "--input-type=module", "-e"]],
  ])("%s uses the SQLite store", async (_how, flags) => {
    const path = testPath();
    const { code, out, err } = await runNode([...flags, withLibrary(WORK), "--", `sqlite:${path}`]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(JSON.parse(out)).toMatchObject({ completed: 1, dead: 0 });
    expect(reader(path)("select state, result from job")).toEqual([["completed", "42"]]);
  });

  it("as a script that imports the library uses it too", async () => {
    const path = testPath();
    const module = writeProgram("work.mjs", WORK);
    const { code, out, err } = await runNode(["-e", `import(${JSON.stringify(module)})`, "--", `sqlite:${path}`]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(JSON.parse(out)).toMatchObject({ completed: 1 });
  });
});
