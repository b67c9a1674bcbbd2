// Repairs on the command line on both stores: bytes that come back, letters that do not fit, and
// bad input, which is one line, the right exit code, and writes nothing.
import { readFileSync } from "node:fs";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import type { Redrive } from "../../src/index.ts";
import { importBuilt } from "../support/built.ts";
import { type Bench, createBench, type Outcome, RESTING_LOOP } from "../support/cli.ts";
import { testSchema } from "../support/postgres-queue.ts";

const { createRedrive, defineJob, PermanentError } = await importBuilt<typeof import("../../src/index.ts")>("index.js");

const JOBS = `
import { defineJob } from "redrive";
const input = { "~standard": { version: 1, vendor: "test", validate(value) {
  return typeof value.cents === "number" ? { value } : { issues: [{ message: "expected a number", path: ["cents"] }] };
} } };
export const pay = defineJob("pay", { input, run: () => null });
`;
const pay = defineJob("pay", {
  run(): never {
    throw new PermanentError("no currency");
  },
});
/** 2^53 + 1, a lone surrogate, equal keys, numbers and white space that JavaScript would write otherwise. */
const ODD = ' {"cents" : 1, "id":9007199254740993, "s":"\\ud800", "a":1,"a":2, "n":1.50e400, "password":"hunter2"}';

interface Scene {
  readonly bench: Bench;
  readonly redrive: Redrive;
  readonly ids: readonly string[];
  run(args: readonly string[], options?: { actor?: string; stdin?: string }): Promise<Outcome>;
  /** All payloads, states, versions and repairs in the event log. */
  picture(): Promise<unknown>;
}

async function withDead(store: string, bench: Bench, payloads: readonly string[]): Promise<Scene> {
  bench.write("jobs.mjs", JOBS);
  const redrive = await createRedrive({ store, jobs: [pay], log: "silent" });
  onTestFinished(() => redrive.close());
  const ids: string[] = [];
  for (const payload of payloads) ids.push((await redrive.enqueueText(pay, payload)).id);
  await redrive.worker().drain({ grace: 0 });
  return {
    bench,
    redrive,
    ids,
    run(args, { actor = "ada", stdin = "" } = {}) {
      const flags = ["--store", store, ...(args[1] === "retry" ? [] : ["--jobs", "jobs.mjs"])];
      return bench.run([...args, ...flags], { env: { REDRIVE_ACTOR: actor }, stdin });
    },
    async picture() {
      const { items } = await redrive.events({ limit: 200 });
      const jobs = await redrive.store.get(ids);
      const versions = await Promise.all(ids.map((id) => redrive.deadLetters.payloads(id)));
      const edits = items.filter(({ kind }) => kind.startsWith("job."));
      return { jobs: jobs.map((job) => [job?.state, job?.payload]), versions, edits };
    },
  };
}

/** Calls that must each be refused with one line and exit code 2, show no secret, and write nothing. */
async function refusesAll(
  { run, picture }: Scene,
  cases: readonly (readonly [args: readonly string[], said: RegExp, stdin?: string])[],
): Promise<void> {
  const before = await picture();
  for (const [args, said, stdin = ""] of cases) {
    const came = await run(["dlq", ...args], { stdin });
    expect(came.err).toMatch(said);
    expect(came.err.trimEnd().split("\n"), came.err).toHaveLength(1);
    expect(came.err).not.toContain("hunter2");
    expect(came).toMatchObject({ out: "", code: 2 });
  }
  expect(await picture()).toEqual(before);
}

describe.each<[string, (bench: Bench) => string]>([
  ["sqlite", ({ folder }) => `sqlite:${folder}/redrive.db`],
  ["postgres 18", () => testSchema(inject("postgres18")).url],
])("on %s", (name, place) => {
  const open = (payloads: readonly string[]): Promise<Scene> => {
    const bench = createBench();
    return withDead(place(bench), bench, payloads);
  };

  it("undo restores a payload byte for byte, dead or sent back to work", async () => {
    const { redrive, ids, run } = await open([ODD]);
    const [id = ""] = ids;
    const jobNow = async () => (await redrive.store.get([id]))[0];
    expect(await run(["dlq", "edit", id, "--patch", '{"cents":2,"s":null}', "--json"])).toMatchObject({ code: 0 });
    expect((await jobNow())?.payload).toBe(ODD.replace(": 1", ": 2").replace(' "s":"\\ud800",', ""));
    await redrive.deadLetters.retry(id, { delay: "1h" });
    const undone = await run(["dlq", "edit", id, "--undo", "--json"]);
    expect(JSON.parse(undone.out)).toEqual({ id, version: 2, changed: true, recalled: true });
    expect(await jobNow()).toMatchObject({ state: "dead", generation: 2, payload: ODD });
    const again = await run(["dlq", "edit", id, "--undo"]);
    expect(again).toMatchObject({
      code: 4,
      out: "",
      err: expect.stringMatching(/^error: Job .* nothing to undo.*\n$/),
    });
  });

  it("a recipe that makes 3 of 100 invalid is refused with those three named", async () => {
    const bad = new Set([7, 47, 87]);
    const { bench, ids, run, picture } = await open([...Array(100).keys()].map((n) => `{"cents":${n}}`));
    bench.write(
      "fix.mjs",
      `const bad = new Set([7, 47, 87]); export default ({ cents }) => ({ cents: bad.has(cents) ? "x" : cents, cur: "EUR" });`,
    );
    const before = await picture();
    const refused = await run(["dlq", "repair", "--type", "pay", "--with", "fix.mjs"]);
    const named = ids.filter((_, n) => bad.has(n)).map((id) => `  ${id}  cents: expected a number\n`);
    expect(refused.out).toBe(`100 dead letters: 97 fit, 3 do not fit\n${named.join("")}`);
    expect(refused.err).toMatch(/^error: 3 of 100 dead letters would not fit; .*; nothing was written\n$/);
    expect(refused.code).toBe(4);
    expect(await picture()).toEqual(before);
    const done = await run(["dlq", "repair", "--type", "pay", "--with", "fix.mjs", "--skip-misfits", "--json"]);
    expect(JSON.parse(done.out)).toMatchObject({ letters: 100, repaired: 97, skipped: 3, refused: 0, conflicts: [] });
    expect(done.code).toBe(0);
  });

  it("a module is called once for each letter", async () => {
    const { bench, run } = await open(['{"cents":1}', '{"cents":2}', '{"cents":3}']);
    bench.write(
      "fix.mjs",
      `import { appendFileSync } from "node:fs";
       export default ({ cents }) => { appendFileSync(${JSON.stringify(`${bench.folder}/calls.txt`)}, cents + " "); return { cents: cents + 1 }; };`,
    );
    expect(await run(["dlq", "repair", "--all", "--with", "fix.mjs"])).toMatchObject({
      code: 0,
      out: "3 dead letters repaired\n",
    });
    expect(readFileSync(`${bench.folder}/calls.txt`, "utf8")).toBe("1 2 3 ");
  });

  it("bad input of an edit is one line with what to do, and writes nothing", async () => {
    const scene = await open(['{"cents":1}', ODD]);
    const edit = ["edit", scene.ids[0] ?? ""];
    const large = `{"cents":1,"x":"${"x".repeat(2 ** 20)}"}`;
    const noJson = /expected JSON; got something else at line 1, column 10, .*; quote/;
    await refusesAll(scene, [
      [[...edit, "--payload", '{"cents":hunter2}'], noJson],
      [[...edit, "--payload", "-"], /at most 1048576 bytes; got \d+\. Store/, large],
      [[...edit, "--payload", '{"cents":"1"}'], /says cents: expected a number; correct it; nothing was written/],
      [[...edit, "--patch", "[1]"], /patch: expected a JSON object; got a list; name the fields/],
    ]);
  });

  it("a bad recipe is one line with what to do, and writes nothing", async () => {
    const scene = await open(['{"cents":1}', '{"cents":2}', ODD]);
    const wait = name === "sqlite" ? `() => { ${RESTING_LOOP} }` : "() => new Promise(() => setInterval(() => 0, 1e6))";
    const second = { throws: `(() => { throw new Error("no way"); })()`, nothing: "undefined", loops: `(${wait})()` };
    for (const [file, made] of Object.entries(second))
      scene.bench.write(`${file}.mjs`, `export default ({ cents }) => cents === 2 ? ${made} : { cents: 9 };`);
    scene.bench.write("broken.mjs", "export default (");
    const repair = ["repair", ...scene.ids.slice(0, 2), "--with"];
    await refusesAll(scene, [
      [[...repair, "throws.mjs"], /got an error: .*no way; correct the function; nothing was written/],
      [[...repair, "nothing.mjs"], /got undefined; return the payload, changed or not; nothing was written/],
      [[...repair, "loops.mjs"], /got no answer within 5 s; end its loop; nothing was written/],
      [[...repair, "broken.mjs"], /expected a module whose default export is a function; got .*; correct it; nothing/],
    ]);
  });

  it("an edit while another operator redrives the job is refused, with who it was", async () => {
    const { redrive, ids, run, picture } = await open(['{"cents":1}', '{"cents":2}']);
    const [id = "", other = ""] = ids;
    expect((await run(["dlq", "retry", id], { actor: "bob" })).code).toBe(0);
    await redrive.store.reschedule([{ id, delayMs: 3_600_000 }]);
    const before = await picture();
    const late = await run(["dlq", "edit", id, "--payload", '{"cents":3}']);
    expect(late.err).toMatch(
      /is queued, and only a dead job can be edited \(bob sent it back to work at .*Z\); nothing was written\.\n$/,
    );
    expect(late).toMatchObject({ code: 4, out: "" });
    expect(await picture()).toEqual(before);
    // Beside a letter that can be repaired, it is counted and named.
    const some = await run(["dlq", "repair", id, other, "--patch", '{"cur":"EUR"}']);
    expect(some).toMatchObject({ code: 1, out: "1 dead letter repaired, 1 not dead, or changed meanwhile\n" });
  });
});
