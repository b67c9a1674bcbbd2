// `plan`, `start` and `redrives` on the command line: the JSON and the exit codes that scripts rely on, what is refused
// in one line with nothing written, and lines that fit a terminal.
import { describe, expect, inject, it } from "vitest";
import { type Bench, createBench, type Document } from "../support/cli.ts";
import { startCli } from "../support/cli-processes.ts";
import { testSchema } from "../support/postgres-queue.ts";

const JOBS = `
import { existsSync } from "node:fs";
import { defineJob, fixed } from "redrive";
export const charge = defineJob("charge", {
  maxAttempts: 1,
  backoff: fixed(1),
  run() { if (!existsSync(new URL("mended", import.meta.url))) throw new Error("card declined"); },
});
`;

interface Incident {
  readonly bench: Bench;
  readonly place: readonly string[];
  readonly json: (...args: string[]) => Promise<{ readonly code: number; readonly document: Document }>;
  readonly run: (...args: string[]) => Promise<{ readonly code: number; readonly out: string; readonly err: string }>;
  /** Plans all letters; answers the id. */
  readonly plan: () => Promise<string>;
  readonly mend: () => void;
}

/** A store with 12 dead letters of one cause. */
async function incident(place: readonly string[]): Promise<Incident> {
  const bench = createBench();
  bench.write("jobs.ts", JOBS);
  const stdin = Array.from({ length: 12 }, (_, n) => `{"n":${n}}\n`).join("");
  await bench.run(["enqueue", "charge", "-", ...place], { stdin });
  await bench.run(["drain", "--jobs", "jobs.ts", "--quiet", ...place]);
  const json: Incident["json"] = (...args) => bench.json([...args, ...place]);
  return {
    bench,
    place,
    json,
    run: (...args) => bench.run([...args, ...place]),
    plan: async () => (await json("plan", "--type", "charge")).document.id,
    mend: () => void bench.write("mended", ""),
  };
}

describe.each<[string, () => readonly string[]]>([
  ["sqlite", () => []],
  ["postgres 18", () => ["--store", testSchema(inject("postgres18")).url]],
])("redrive runs on the command line, on %s", (_name, open) => {
  it("are planned, started, followed and worked by one command, and stop where the bug is still there", async () => {
    const { json, run, plan, mend } = await incident(open());
    const planned = await json("plan", "--type", "charge");
    expect(planned).toMatchObject({
      code: 0,
      document: {
        id: expect.stringMatching(/^p_/),
        count: 12,
        toSend: 12,
        warnings: [{ kind: "no_worker", count: 1 }],
      },
    });
    expect(planned.document.expiresAt).toMatch(/^\d{4}-\d\d-\d\dT/);
    const follow = ["--follow", "--jobs", "jobs.ts", "--rate", "100", "--canary", "2,5"];
    const stopped = await json("start", await plan(), ...follow);
    expect(stopped.code).toBe(4);
    const { id, state, sent, completed, failed, recalled, left, reason, ...others } = stopped.document;
    expect(others).toEqual({});
    expect({ state, completed, left }).toEqual({ state: "stopped", completed: 0, left: 10 });
    expect([sent, failed + recalled]).toEqual([2, 2]);
    expect(reason).toMatch(/failed the same way/);
    expect((await json("redrives", "show", id)).document).toMatchObject({ id, state: "stopped", steps: [2, 5] });
    mend();
    const done = await json("start", await plan(), ...follow);
    expect(done).toMatchObject({
      code: 0,
      document: { state: "completed", sent: 12, completed: 12, left: 0, reason: null },
    });
    const list = await json("redrives", "list");
    expect(list.document).toMatchObject({ items: [{ state: "completed" }, { state: "stopped" }], next: null });
    expect((await run("redrives", "list", "--state", "stopped")).out).toContain(id);
  });

  it("patch payloads on their way, checked by the job definitions of the flag or of the config file", async () => {
    const { bench, json, run, mend } = await incident(open());
    const patched = ["plan", "--type", "charge", "--patch", '{"currency":"EUR"}'];
    expect((await run(...patched)).err).toContain("expected letters of types that this program defines");
    expect(await json(...patched, "--jobs", "jobs.ts")).toMatchObject({ code: 0, document: { toSend: 12 } });
    bench.write("redrive.config.yaml", "jobs: jobs.ts\n");
    const planned = await json(...patched);
    expect(planned).toMatchObject({ code: 0, document: { toSend: 12 } });
    mend();
    const start = ["start", planned.document.id, "--canary", "none", "--rate", "100", "--follow", "--jobs", "jobs.ts"];
    expect(await json(...start)).toMatchObject({ code: 0, document: { completed: 12 } });
    const { items } = (await json("jobs", "list", "--type", "charge")).document;
    const payloads = await Promise.all(
      items.map(async ({ id }: { id: string }) => (await json("jobs", "show", id)).document.payload),
    );
    expect(payloads.map(({ currency }: { currency: string }) => currency)).toEqual(Array(12).fill("EUR"));
  });

  it("say which cause has no letters", async () => {
    const { run, json } = await incident(open());
    const { fingerprint } = (await json("dlq", "causes")).document.items[0];
    await run("dlq", "remove", "--all", "--yes");
    const { code, out } = await run("plan", "--cause", fingerprint);
    expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining(`matches --cause ${fingerprint}`) });
  });

  it("are paused, resumed, cancelled and recalled, and a follower that is interrupted leaves the run", async () => {
    const { bench, place, json, plan } = await incident(open());
    const p = await plan();
    const follower = startCli(bench, ["start", p, "--follow", "--json", "--canary", "3", ...place]);
    const id = p.replace("p_", "r_");
    for (let looks = 0; looks < 200; looks++) {
      const { document } = await json("redrives", "show", id);
      if (document.sent === 3) break;
    }
    follower.child.kill("SIGINT");
    expect(await follower.ended).toMatchObject({ code: 130 });
    expect(JSON.parse(follower.text.out)).toMatchObject({ id, state: "running" });
    expect(follower.text.err).toContain("goes on without this command");
    expect(await json("redrives", "pause", id, "--why", "lunch")).toMatchObject({
      code: 0,
      document: { state: "paused" },
    });
    expect((await json("redrives", "pause", id)).code).toBe(4);
    expect(await json("redrives", "resume", id)).toMatchObject({ code: 0, document: { state: "running" } });
    expect(await json("redrives", "recall", id)).toMatchObject({
      code: 0,
      document: { state: "cancelled", sent: 3, recalled: 3, left: 9 },
    });
    for (const verb of ["resume", "cancel", "pause"]) expect((await json("redrives", verb, id)).code).toBe(4);
    const next = (await json("start", await plan())).document.id;
    expect(await json("redrives", "cancel", next)).toMatchObject({ code: 0, document: { state: "cancelled" } });
  });

  it("refuse bad input in one line that says what to do, and write nothing", async () => {
    const { json, run, plan } = await incident(open());
    const p = await plan();
    const many = Array.from({ length: 1_500 }, (_, n) => `id-${n}`);
    for (const [code, args, says] of [
      [1, ["plan", "--cause", "nope"], /There is no cause "nope" .* List them with/],
      [2, ["plan"], /at least one field besides limit/],
      [2, ["plan", ...many], /1 to 1000 ids; got "1500 ids"; select more letters by/],
      [2, ["plan", "--class", "odd"], /class: expected/],
      [2, ["plan", "--type", "charge", "--limit", "0"], /limit: expected/],
      [2, ["start", p, "--rate", "0"], /rate: expected a number from 0.01 to 10000/],
      [2, ["start", p, "--rate", "-1"], /rate: expected/],
      [2, ["start", p, "--rate", "1e9"], /rate: expected/],
      [2, ["start", p, "--canary", "50,5"], /none smaller than the one before/],
      [2, ["start", p, "--canary", "few"], /sizes such as 5,50, or none/],
      [2, ["start", p, "--tolerate", "100%"], /tolerate: expected a number from 0 to 0.9/],
      [2, ["start", p, "--judge-within", "soon"], /judgeWithin: expected/],
      [2, ["start", p, "--jobs", "jobs.ts"], /expected --follow too/],
      [4, ["start", "p_nowhere"], /this store has no such plan .*; check the id and the store, or plan again/],
      [1, ["redrives", "show", "r_nowhere"], /There is no redrive run "r_nowhere".* List them with/],
      [1, ["redrives", "show", "p_nowhere"], /There is no plan "p_nowhere".*plan again/],
      [1, ["redrives", "pause", "r_nowhere"], /There is no redrive run/],
      [2, ["redrives", "list", "--state", "odd"], /state: expected/],
    ] as const) {
      const answer = await run(...args);
      expect([args[0], answer.code, answer.err]).toEqual([args[0], code, expect.stringMatching(says)]);
      expect(answer.err.trimEnd().split("\n")).toHaveLength(1);
    }
    expect((await json("redrives", "list")).document.items).toEqual([]);
    const nothing = await json("plan", "--type", "other");
    expect(nothing).toMatchObject({ code: 0, document: { count: 0, toSend: 0, warnings: [] } });
    expect((await run("plan", "--type", "other")).out).toMatch(/there is nothing to send/);
    expect((await json("start", nothing.document.id)).code).toBe(4);
    const first = await run("start", p);
    expect(first.code).toBe(0);
    const again = await run("start", p);
    expect([again.code, again.err]).toEqual([
      4,
      expect.stringMatching(/it was started before, as r_.*; look at that run/),
    ]);
    const beside = await run("start", await plan());
    expect([beside.code, beside.err]).toEqual([
      4,
      expect.stringMatching(/may send the same letters; wait for it, cancel/),
    ]);
  });

  it("are refused where the letters have changed since the plan, and a plan can be shown again", async () => {
    const { json, run, plan } = await incident(open());
    const p = await plan();
    expect((await json("redrives", "show", p)).document).toMatchObject({ id: p, count: 12, started: null });
    const { items } = (await json("dlq", "list", "--limit", "6")).document;
    const ids = items.map(({ id }: { id: string }) => id);
    expect((await run("dlq", "remove", ...ids, "--yes")).code).toBe(0);
    const stale = await run("start", p);
    expect([stale.code, stale.err]).toEqual([4, expect.stringMatching(/6 of them are gone, .*; plan again/)]);
    const text = (await run("plan", "--type", "charge")).out;
    expect(text).toMatch(/^Plan p_\w+ {2}6 dead letters$/m);
    // The last line has the command to copy, with the address of the store.
    for (const line of text.split("\n").filter((each) => !each.startsWith("Good for")))
      expect(line.length, line).toBeLessThanOrEqual(80);
  });
});
