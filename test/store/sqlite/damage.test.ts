// Rows damaged by hand, over a second connection as an operator has it: the others flow, and nothing is thrown away.
import { describe, expect, it } from "vitest";
import type { Verdict } from "../../../src/core/verdict.ts";
import type { SqliteDatabase } from "../../../src/store/sqlite/driver.ts";
import { connect, inlineStore } from "../../support/database-file.ts";
import { add, claimBy, end, finish, leaseOf, read, signUp, start, take } from "../../support/runs.ts";
import { complete, dead, retry } from "../../support/verdicts.ts";

/** A store with a connection that skips the checks, and a way to damage one job through it. */
async function setup() {
  const world = await inlineStore();
  const db = connect(world.path);
  db.exec("pragma ignore_check_constraints = on");
  const damage = (id: string, set: string) => expect(db.prepare(`update job set ${set} where id = ?`).run(id)).toBe(1);
  return { ...world, db, damage };
}

const rawPayload = (db: SqliteDatabase, id: string) =>
  db.prepare("select payload from job where id = ?").all(id)[0]?.[0];

/** Lanes that no job belongs to: one never made, one before all others, one that no JavaScript number is equal to. */
const NO_LANES = ["4711", "-5", "9007199254740993"];

describe("a lane that does not exist", () => {
  it.each(NO_LANES)("%s: the waiting job ends as a dead letter with its payload untouched", async (lane) => {
    const { store, db, damage } = await setup();
    const payload = '{"odd":"\\u0000\\ud800", "n": 1e400}';
    const id = await add(store, { payload });
    const others = [await add(store), await add(store, { type: "video" })];
    damage(id, `lane = ${lane}`);
    const worker = await signUp(store);
    const { jobs } = await claimBy(store, worker);
    expect(jobs.map((job) => job.id).sort()).toEqual([...others].sort());
    const { items } = await store.deadLetters({ limit: 10 });
    expect(items.map((letter) => letter.job.id)).toEqual([id]);
    expect(items[0]?.job).toMatchObject({ id, state: "dead", payload });
    expect(items[0]?.failure.message).toContain("does not exist");
    expect(rawPayload(db, id)).toBe(payload);
    expect(await store.count()).toMatchObject({ queued: 0, running: 2, dead: 1 });
  });

  it.each(NO_LANES.slice(0, 2))("%s: a claim that names it takes the others", async (lane) => {
    const { store, damage } = await setup();
    const [id, other] = [await add(store), await add(store)];
    damage(id, `lane = ${lane}`);
    const worker = await signUp(store);
    const { lanes } = await store.lanes(null, 100);
    const quotas = [{ lane: Number(lane), limit: 5 }, ...lanes.map((found) => ({ lane: found.lane, limit: 5 }))];
    const { jobs } = await claimBy(store, worker, { quotas });
    expect(jobs.map((job) => job.id)).toEqual([other]);
  });

  it.each(NO_LANES)("%s: pages of lanes come to their end", async (lane) => {
    const { store, damage } = await setup();
    damage(await add(store), `lane = ${lane}`);
    await add(store);
    let after: number | null = null;
    let pages = 0;
    do {
      pages += 1;
      after = (await store.lanes(after, 1)).next;
    } while (after !== null && pages < 10);
    expect(pages).toBeLessThan(10);
  });

  it("the quarantined job can be redriven, and stays one that people see", async () => {
    const { store, damage } = await setup();
    const id = await add(store);
    damage(id, "lane = 4711");
    await store.lanes(null, 100);
    expect(await store.get([id])).toEqual([expect.objectContaining({ id, state: "dead" })]);
    expect((await store.list({ limit: 10, state: "dead" })).items.map((job) => job.id)).toEqual([id]);
    expect(await store.redrive([{ id, generation: 1, delayMs: 0 }])).toEqual(["redriven"]);
  });

  it("the running job of a dead worker does not stay running for ever", async () => {
    const { store, clock, damage } = await setup();
    const worker = await signUp(store, 1_000);
    const [run, other] = [await start(store, {}, worker), await start(store, {}, worker)];
    damage(run.id, "lane = 4711");
    clock.now += 60_000;
    const expired = await store.expired({ gone: [], limit: 10 });
    expect(expired.map(({ job }) => job.id)).toContain(other.id);
    const settlements = expired.map(({ lease }) => ({ ...leaseOf(lease), verdict: dead() }));
    await store.settle({ settlements });
    expect(await store.count()).toMatchObject({ running: 0, dead: 2 });
  });

  it("the dead letter of a job that had died before is still listed", async () => {
    const { store, damage } = await setup();
    const died = [await finish(store, dead()), await finish(store, dead())];
    damage((died[0] as { id: string }).id, "lane = 4711");
    const { items } = await store.deadLetters({ limit: 10 });
    expect(items.map((letter) => letter.job.id)).toEqual(died.map((job) => job.id).reverse());
  });
});

describe("text that is not what it should be", () => {
  it.each(['{"class":', "", "\0", "[", "42", "null", '"text"', "[]", "{}"])(
    "a failure of %j: jobs, dead letters, history and claims flow, and it is shown as unreadable",
    async (text) => {
      const { store, db } = await setup();
      const worker = await signUp(store);
      const died = await finish(store, dead());
      const waiting = await start(store, {}, worker);
      await end(store, waiting, retry());
      db.prepare("update job set failure = ?").run(text);
      db.prepare("update dead_letter set failure = ?").run(text);
      db.prepare("update attempt set failure = ?").run(text);
      const unreadable = expect.objectContaining({ name: "UnreadableFailure", message: text });
      expect((await read(store, died.id)).failure).toEqual(unreadable);
      expect((await store.list({ limit: 10 })).items.map((job) => job.failure)).toEqual([unreadable, unreadable]);
      expect((await store.deadLetters({ limit: 10 })).items.map((letter) => letter.failure)).toEqual([unreadable]);
      expect((await store.history(died.id)).map((record) => record.failure)).toEqual([unreadable]);
      const [again] = await take(store, worker);
      expect(again?.failure).toEqual(unreadable);
      expect((await end(store, again as typeof waiting, complete())).state).toBe("completed");
    },
  );

  it.each(['{"key":"a.m', "", "undefined", "\0\0", "\ufffd"])("a payload of %j comes back as it is", async (text) => {
    const { store, db } = await setup();
    const [id, other] = [await add(store), await add(store)];
    db.prepare("update job set payload = ? where id = ?").run(text, id);
    expect((await read(store, id)).payload).toBe(text);
    const jobs = await take(store);
    expect(jobs.map((job) => [job.id, job.payload])).toEqual([
      [id, text],
      [other, '{"key":"a.mp4"}'],
    ]);
    for (const job of jobs) await end(store, job, dead());
    expect((await store.deadLetters({ limit: 10 })).items.map((letter) => letter.job.payload)).toContain(text);
  });
});

describe("numbers and states that the schema forbids", () => {
  const FORBIDDEN = [
    "attempts = -3",
    "crashes = -1",
    "max_attempts = 0",
    "releases = -1",
    "generation = 0",
    "nonce = 'left over'",
    "finished_at = 1",
  ];

  it.each(FORBIDDEN)("%s: the others are claimed and settled together with it", async (set) => {
    const { store, damage } = await setup();
    const [first, odd, last] = [await add(store), await add(store), await add(store)];
    damage(odd, set);
    const jobs = await take(store);
    const verdicts = new Map<string, Verdict>([
      [first, complete()],
      [odd, retry()],
      [last, dead()],
    ]);
    const settlements = jobs.map((job) => ({ ...leaseOf(job), verdict: verdicts.get(job.id) ?? complete() }));
    expect((await store.settle({ settlements })).stale).toEqual([]);
    expect((await store.get([first, last])).map((job) => job?.state)).toEqual(["completed", "dead"]);
    expect((await store.list({ limit: 10 })).items).toHaveLength(3);
  });

  it("an unknown state: nobody claims the job, and claims, lists and counts of the others flow", async () => {
    const { store, damage } = await setup();
    const [odd, died, waiting] = [await add(store), (await finish(store, dead())).id, await add(store)];
    damage(odd, "state = 'lost'");
    expect((await store.list({ limit: 10 })).items.map((job) => job.id)).toEqual([waiting, died, odd]);
    expect((await store.deadLetters({ limit: 10 })).items).toHaveLength(1);
    expect(await store.count()).toMatchObject({ queued: 1, running: 0, completed: 0, dead: 1, cancelled: 0 });
    expect((await take(store)).map((job) => job.id)).toEqual([waiting]);
    const retention = { keep: { finishedMs: 0, deadMs: 0 }, types: [], keyMs: 0, limit: 100, isFirst: true };
    expect(await store.prune(retention)).toEqual({ completed: 0, cancelled: 0, dead: 1, more: false });
  });

  it("a run without its worker's row is listed as expired", async () => {
    const { store, db } = await setup();
    const run = await start(store);
    db.exec("delete from worker");
    expect((await store.expired({ gone: [], limit: 10 })).map(({ job }) => job.id)).toEqual([run.id]);
  });
});
