// Jobs that end their process as if all were well, and killers under a worker of the library with `jobsFile`: in real
// processes, with the child's end as evidence.
import { describe, expect, it } from "vitest";
import { createMemoryStore } from "../../src/store/memory/index.ts";
import { createRedrive } from "../../src/index.ts";
import { runNode, writeProgram } from "../system/programs.ts";
import { testFolder } from "../support/database-file.ts";
import { claimBy, signUp } from "../support/runs.ts";
import { crashed } from "../support/verdicts.ts";
import { createSite, type Site } from "../support/worker-processes.ts";

/** Far longer than a test may take: nothing here waits for it. */
const OPTIONS = { lease: "2m", heartbeat: "1s" } as const;

const JOBS = `
import { defineJob } from "redrive";
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export const leaver = defineJob("leaver", {
  run() {
    console.log("all is well, says the leaver");
    process.exit(0);
  },
});
export const lateLeaver = defineJob("late-leaver", {
  async run() {
    await wait(300);
    console.error("time to go, says the late leaver");
    process.exit(0);
  },
});
export const talker = defineJob("talker", {
  async run(_input, context) {
    await context.progress({ done: 1 });
    process.exit(0);
  },
});
export const killer = defineJob("killer", {
  run() {
    console.log("the killer was here");
    process.kill(process.pid, "SIGKILL");
    return wait(60_000);
  },
});
export const fine = defineJob("fine", { run: () => process.pid });
`;

/** A job that was already part of two crashes: the next one is its last. */
async function lastChance(site: Site, type: string): Promise<string> {
  const id = await site.add(type);
  for (const lane of ["suspect", "last"] as const) {
    const worker = await signUp(site.store);
    const { jobs } = await claimBy(site.store, worker, { only: (found) => found.type === type });
    const verdict = crashed({ charge: { attempts: 0, crashes: 1 }, lane });
    const settlements = jobs.map(({ id: job, epoch, nonce }) => ({ id: job, epoch, nonce, verdict }));
    await site.store.settle({ settlements });
    await site.store.leave(worker);
  }
  return id;
}

describe("a job that ends its own process with exit code 0", () => {
  it.each([
    ["at once", "leaver", "all is well, says the leaver"],
    ["after a while", "late-leaver", "time to go, says the late leaver"],
    ["after it has noted its progress", "talker", null],
  ])("%s is dead with that code and its last output, without waiting for the lease", async (_when, type, words) => {
    const site = await createSite();
    const id = await lastChance(site, type);
    const env = { REDRIVE_JOBS: writeProgram("jobs.mjs", JOBS) };
    const worker = await site.start({ options: OPTIONS, isolate: true, env });
    await worker.tells("job.dead", 1);
    const { items } = await site.store.deadLetters({ limit: 10 });
    expect(items).toMatchObject([
      { job: { id, state: "dead" }, reason: "crashed", crashes: 3, failure: { name: "ProcessDied", code: "0" } },
    ]);
    expect(items[0]?.failure.message).toContain("exit code 0");
    if (words !== null) expect(items[0]?.failure.stack).toContain(words);
    expect(worker.child.exitCode).toBeNull();
  });

  it("does not stand in the way of the next last chance", async () => {
    const site = await createSite();
    await lastChance(site, "leaver");
    const next = await lastChance(site, "fine");
    const env = { REDRIVE_JOBS: writeProgram("jobs.mjs", JOBS) };
    const worker = await site.start({ options: OPTIONS, isolate: true, env });
    await worker.tells("job.completed", 1);
    await worker.tells("job.dead", 1);
    expect(await site.read(next)).toMatchObject({ state: "completed", crashes: 2 });
  });
});

/** A program with a worker that has `jobsFile`; it says what it has done. */
const PROGRAM = `
import { createRedrive } from "redrive";
import * as jobs from "./jobs.mjs";
const redrive = await createRedrive({ store: process.argv[2], jobs: Object.values(jobs), log: "silent" });
const worker = redrive.worker({ jobsFile: process.argv[3], lease: "2m", heartbeat: "1s" });
console.log(JSON.stringify(await worker.drain({ grace: "1s" })));
await redrive.close();
`;

describe("a worker with jobsFile", () => {
  it("runs a killer with its last crash left in a child, whose signal is the evidence", async () => {
    const site = await createSite();
    const id = await lastChance(site, "killer");
    for (let n = 0; n < 5; n++) await site.add("fine");
    const folder = testFolder();
    const jobs = writeProgram("jobs.mjs", JOBS, folder);
    const program = writeProgram("program.mjs", PROGRAM, folder);
    const { code, signal, out } = await runNode([program, `sqlite:${site.path}`, jobs]);
    expect({ code, signal }).toEqual({ code: 0, signal: null });
    expect(JSON.parse(out)).toMatchObject({ completed: 5, dead: 1 });
    const { items } = await site.store.deadLetters({ limit: 10 });
    expect(items).toMatchObject([
      {
        job: { id },
        reason: "crashed",
        failure: { name: "ProcessDied", code: "SIGKILL", stack: expect.stringContaining("the killer was here") },
      },
    ]);
  });

  it("loses no more than two processes to a killer from its first run to its end", async () => {
    const site = await createSite();
    const id = await site.add("killer");
    const folder = testFolder();
    const jobs = writeProgram("jobs.mjs", JOBS, folder);
    const program = writeProgram("program.mjs", PROGRAM, folder);
    const ends: (string | null)[] = [];
    // A supervisor: whoever dies is replaced, as in production.
    for (let n = 0; n < 5 && ends.at(-1) !== null; n++)
      ends.push((await runNode([program, `sqlite:${site.path}`, jobs])).signal);
    expect(ends).toEqual(["SIGKILL", "SIGKILL", null]);
    expect(await site.read(id)).toMatchObject({ state: "dead", crashes: 3, failure: { code: "SIGKILL" } });
  });

  it("refuses a file that does not exist", async () => {
    await using redrive = await createRedrive({ store: "memory:", log: "silent" });
    const jobsFile = `${testFolder()}/no-such-file.mjs`;
    expect(() => redrive.worker({ jobsFile })).toThrow(expect.objectContaining({ code: "invalid_argument" }));
    expect(() => redrive.worker({ jobsFile })).toThrow(/jobsFile.*no-such-file/);
    expect(() => redrive.worker({ jobsFile: 7 as unknown as string })).toThrow(
      expect.objectContaining({ code: "invalid_argument" }),
    );
  });

  it("refuses a store that was opened elsewhere, which no child could open", async () => {
    const store = createMemoryStore({ clock: Date.now });
    await using redrive = await createRedrive({ store, log: "silent" });
    const jobsFile = writeProgram("jobs.mjs", JOBS);
    expect(() => redrive.worker({ jobsFile })).toThrow(expect.objectContaining({ code: "invalid_argument" }));
    expect(() => redrive.worker({ jobsFile })).toThrow(/jobsFile.*URL/);
  });
});
