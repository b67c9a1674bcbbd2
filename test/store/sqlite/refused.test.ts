// Writes that the database refuses: said as what they are, never as a store that is of no use, and undone as a whole.
import { describe, expect, it } from "vitest";
import { connect, inlineStore, testPath } from "../../support/database-file.ts";
import { newJob } from "../../support/new-job.ts";
import { end, finish, leaseOf, read, start, takeOne } from "../../support/runs.ts";
import { threadedStore } from "../../support/store-processes.ts";
import { complete, dead, failure } from "../../support/verdicts.ts";

/** Has the database refuse the death of a job, as a trigger of somebody's own does. */
function forbid(path: string, id: string): void {
  connect(path).exec(
    `create trigger forbidden before update on job when new.id = '${id}' and new.state = 'dead'
     begin select raise(abort, 'it may not die'); end`,
  );
}

describe("a verdict that the database refuses", () => {
  it("is an illegal transition, with SQLite's own words, and changes nothing", async () => {
    const { path, store } = await inlineStore();
    const run = await start(store);
    forbid(path, run.id);
    const settled = store.settle({ settlements: [{ ...leaseOf(run), verdict: dead() }] });
    await expect(settled).rejects.toMatchObject({
      code: "illegal_transition",
      message: expect.stringMatching(/refused this write: .*it may not die.*Nothing was written/),
    });
    expect(await read(store, run.id)).toMatchObject({ state: "running", attempts: 0, failure: null });
    expect((await store.deadLetters({ limit: 10 })).items).toEqual([]);
    expect((await end(store, run, complete())).state).toBe("completed");
  });

  it("undoes the verdicts of its own call and of no other", async () => {
    const path = testPath();
    const store = await threadedStore(path);
    const [guilty, beside, apart] = [await start(store), await start(store), await start(store)];
    forbid(path, guilty.id);
    const answers = await Promise.allSettled([
      store.settle({
        settlements: [
          { ...leaseOf(beside), verdict: complete() },
          { ...leaseOf(guilty), verdict: dead() },
        ],
      }),
      store.settle({ settlements: [{ ...leaseOf(apart), verdict: complete() }] }),
      store.enqueue([newJob({ id: "new" })]),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
    expect(answers[0]).toMatchObject({ reason: { code: "illegal_transition" } });
    const states = (await store.get([guilty.id, beside.id, apart.id, "new"])).map((job) => job?.state);
    expect(states).toEqual(["running", "running", "completed", "queued"]);
  });
});

describe("a dead job that was set back by hand", () => {
  it("dies again under the same generation: the newer letter takes the place of the older", async () => {
    const { path, store, clock } = await inlineStore();
    const older = dead({ failure: failure({ message: "the older", fingerprint: "f-old" }) });
    const { id, generation } = await finish(store, older, { type: "fragile" });
    clock.now += 60_000;
    const changed = connect(path)
      .prepare(
        "update job set state = 'queued', finished_at = null, expires_at = null, attempts = 0, run_at = ? where id = ?",
      )
      .run(clock.now, id);
    expect(changed).toBe(1);
    const newer = dead({ reason: "permanent", failure: failure({ message: "the newer", fingerprint: "f-new" }) });
    expect((await end(store, await takeOne(store, id), newer)).state).toBe("dead");
    const { items } = await store.deadLetters({ limit: 10 });
    expect(items).toMatchObject([
      {
        job: { id, generation },
        reason: "permanent",
        attempts: 1,
        diedAt: clock.now,
        redrivenAt: null,
        failure: { message: "the newer", fingerprint: "f-new" },
      },
    ]);
  });
});
