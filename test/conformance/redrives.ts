// Redrive runs: fences, outcomes of letters, counts of runs, and recalls.
import { expect } from "vitest";
import type { DeadLetter, Job, LetterOutcome } from "../../src/core/job.ts";
import { REDRIVE_SUMS, type RedriveSums } from "../../src/core/recovery/outcome.ts";
import { NO_SUMS } from "../../src/store/dead-letters.ts";
import type { CellChange, Settlement, Store } from "../../src/store/store.ts";
import { newJob } from "../support/new-job.ts";
import { add, claimBy, finish, leaseOf, read, signUp, take, takeOne } from "../support/runs.ts";
import { cancel, complete, crashed, dead, failure, forgotten, release, retry } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

const RUN = "r_1";
const SAME = dead().failure;
const OTHER = failure({ fingerprint: "f9" });
const KEEP = { finishedMs: 0, deadMs: 0 };

const cell = (change: Partial<CellChange> = {}): CellChange => {
  return { kind: "redrive", name: RUN, holder: "", version: null, value: "1", ...change };
};

/** A dead job that the run has sent back to work. */
async function sent(store: Store, redrive: string | null = RUN, overrides = {}): Promise<Job> {
  const job = await finish(store, dead(), overrides);
  const request = { id: job.id, generation: 1, delayMs: 0, ...(redrive !== null && { redrive }) };
  expect(await store.redrive([request])).toEqual(["redriven"]);
  return read(store, job.id);
}

/** So many dead jobs of one type that the run has sent back to work together. */
async function sendMany(store: Store, count: number): Promise<Job[]> {
  const jobs: Job[] = [];
  for (let n = 0; n < count; n++) jobs.push(await finish(store, dead(), { type: "many" }));
  await store.redrive(jobs.map(({ id }) => ({ id, generation: 1, delayMs: 0, redrive: RUN })));
  return jobs;
}

/** Settles as a worker does, which knows that the job was sent back. */
async function settle(store: Store, { id }: Job, verdict: Settlement["verdict"], worker?: string): Promise<void> {
  const run = await takeOne(store, id, worker);
  const settlement = { ...leaseOf(run), verdict, redriven: run.generation > 1 };
  const { stale } = await store.settle({ settlements: [settlement], ...(worker !== undefined && { worker }) });
  expect(stale).toEqual([]);
}

async function letterOf(store: Store, id: string, generation = 1): Promise<DeadLetter> {
  const { items } = await store.deadLetters({ jobId: id, redriven: true, limit: 10 });
  return items.find((letter) => letter.generation === generation) as DeadLetter;
}

async function countsOf(store: Store, redrive = RUN): Promise<Partial<RedriveSums>> {
  const [counts] = await store.redriveCounts([redrive]);
  const some = REDRIVE_SUMS.filter((count) => counts?.[count] !== 0);
  return Object.fromEntries(some.map((count) => [count, counts?.[count]]));
}

/** Tests of fences. */
export function fenceFacts({ fact }: Suite): void {
  fact("writes the cell together with what it sends", async ({ store }) => {
    const job = await finish(store, dead());
    await store.setCells([cell({ version: 0 })]);
    const answers = await store.redrive([{ id: job.id, generation: 1, delayMs: 0 }], cell({ version: 1, value: "2" }));
    expect(answers).toEqual(["redriven"]);
    expect((await store.cells([{ kind: "redrive" }])).cells).toMatchObject([{ version: 2, value: "2" }]);
  });

  fact("writes nothing where the cell has another version", async ({ store }) => {
    const jobs = [await finish(store, dead()), await finish(store, dead())];
    await store.setCells([cell({ version: 0 })]);
    const before = await store.cells([{ kind: "redrive" }]);
    const requests = jobs.map(({ id }) => ({ id, generation: 1, delayMs: 0, redrive: RUN }));
    for (const version of [0, 2])
      expect(await store.redrive(requests, cell({ version, value: "2" }))).toEqual(["fenced", "fenced"]);
    for (const { id } of jobs) expect(await read(store, id)).toMatchObject({ state: "dead", generation: 1 });
    expect((await store.cells([{ kind: "redrive" }])).cells).toEqual(before.cells);
    expect(await countsOf(store)).toEqual({});
  });

  fact("makes, overwrites and deletes the cell as a set does", async ({ store }) => {
    const none = [{ id: "nobody", generation: 1, delayMs: 0 }];
    const cells = async () =>
      (await store.cells([{ kind: "redrive" }])).cells.map(({ version, value }) => [version, value]);
    expect(await store.redrive(none, cell({ version: 0 }))).toEqual(["missing"]);
    expect(await cells()).toEqual([[1, "1"]]);
    expect(await store.redrive(none, cell({ version: 0 }))).toEqual(["fenced"]);
    expect(await store.redrive([], cell({ value: "2" }))).toEqual([]);
    expect(await cells()).toEqual([[2, "2"]]);
    expect(await store.redrive(none, cell({ version: 2, value: null }))).toEqual(["missing"]);
    expect(await cells()).toEqual([]);
    expect(await store.redrive(none, cell({ version: 2 }))).toEqual(["fenced"]);
    expect(await cells()).toEqual([]);
  });

  fact("of two with the same version lets one through", async ({ store, peer }) => {
    const other = await peer();
    const jobs = [await finish(store, dead()), await finish(store, dead())];
    await store.setCells([cell({ version: 0 })]);
    const ways = [store, other].map((way, at) =>
      way.redrive([{ id: (jobs[at] as Job).id, generation: 1, delayMs: 0 }], cell({ version: 1 })),
    );
    expect((await Promise.all(ways)).flat().sort()).toEqual(["fenced", "redriven"]);
    const states = (await store.get(jobs.map(({ id }) => id))).map((job) => job?.state);
    expect(states.filter((state) => state === "dead")).toHaveLength(1);
  });

  fact("keeps the cell where a request is refused", async ({ store }) => {
    const job = await finish(store, complete());
    expect(await store.redrive([{ id: job.id, generation: 1, delayMs: 0 }], cell({ version: 0 }))).toEqual(["refused"]);
    expect((await store.cells([{ kind: "redrive" }])).cells).toHaveLength(1);
  });

  fact("gives the job another payload and counts no version for the same one", async ({ store }) => {
    const job = await finish(store, dead(), { payload: '{"n":9007199254740993}' });
    const payload = '{"n":9007199254740993,"s":"\\ud800"}';
    expect(await store.redrive([{ id: job.id, generation: 1, delayMs: 0, redrive: RUN, payload }])).toEqual([
      "redriven",
    ]);
    expect((await read(store, job.id)).payload).toBe(payload);
    expect((await takeOne(store, job.id)).payload).toBe(payload);
  });
}

type Ending = (store: Store, job: Job) => Promise<void>;
const bySettle =
  (...verdicts: Settlement["verdict"][]): Ending =>
  async (store, job) => {
    for (const verdict of verdicts) await settle(store, job, verdict);
  };

const ENDINGS: readonly (readonly [string, Ending, LetterOutcome | null, Partial<RedriveSums>])[] = [
  ["completed at once", bySettle(complete()), "completed", { good: 1 }],
  ["failed by its old cause", bySettle(retry({ failure: SAME })), "failing", { same: 1 }],
  ["failed otherwise", bySettle(retry({ failure: OTHER })), "failing", { other: 1 }],
  ["failed twice", bySettle(retry({ failure: SAME }), retry({ failure: OTHER })), "failing", { same: 1 }],
  [
    "lost its worker",
    bySettle(crashed({ charge: { attempts: 0, crashes: 1 }, failure: OTHER })),
    "failing",
    { other: 1 },
  ],
  ["failed uncharged", bySettle(retry({ charge: { attempts: 0, crashes: 0 } })), null, {}],
  ["was handed back", bySettle(release()), null, {}],
  ["was handed back and completed", bySettle(release(), complete()), "completed", { good: 1 }],
  ["failed and completed", bySettle(retry({ failure: SAME }), complete()), "completed", { same: 1, recovered: 1 }],
  ["died at once", bySettle(dead()), "dead", { same: 1, dead: 1 }],
  [
    "died uncharged",
    bySettle(dead({ charge: { attempts: 0, crashes: 0 }, failure: OTHER })),
    "dead",
    { other: 1, dead: 1 },
  ],
  ["failed and died", bySettle(retry({ failure: OTHER }), dead()), "dead", { other: 1, dead: 1 }],
  ["was stopped", bySettle(cancel()), "cancelled", { cancelled: 1 }],
  ["failed and was stopped", bySettle(retry({ failure: SAME }), cancel()), "cancelled", { same: 1 }],
  [
    "was cancelled as it waited",
    async (store, { id }) => void (await store.cancel([id])),
    "cancelled",
    { cancelled: 1 },
  ],
  [
    "failed and was cancelled as it waited",
    async (store, job) => {
      await settle(store, job, retry({ failure: SAME }));
      await store.cancel([job.id]);
    },
    "cancelled",
    { same: 1 },
  ],
  ["failed with a cancel under way", endedUnderCancel(retry({ failure: SAME })), "cancelled", { same: 1 }],
  ["was handed back with a cancel under way", endedUnderCancel(release()), "cancelled", { cancelled: 1 }],
];

function endedUnderCancel(verdict: Settlement["verdict"]): Ending {
  return async (store, { id }) => {
    const run = await takeOne(store, id);
    expect(await store.cancel([id])).toEqual(["requested"]);
    await store.settle({ settlements: [{ ...leaseOf(run), verdict, redriven: true }] });
  };
}

/** Tests of outcomes. */
export function outcomeFacts({ fact, timed }: Suite): void {
  for (const [name, ending, outcome, counts] of ENDINGS) {
    fact(`of a job that ${name}`, async ({ store }) => {
      const job = await sent(store);
      expect(await letterOf(store, job.id)).toMatchObject({ redrive: RUN, outcome: null, outcomeAt: null });
      await ending(store, job);
      expect((await letterOf(store, job.id)).outcome).toBe(outcome);
      expect(await countsOf(store)).toEqual({ sent: 1, ...counts });
    });
  }

  timed("is written once, with the time of the verdict", async ({ store, clock }) => {
    const job = await sent(store);
    clock.now += 5;
    await settle(store, job, retry({ failure: SAME }));
    expect(await letterOf(store, job.id)).toMatchObject({ outcome: "failing", outcomeAt: clock.now });
    const failedAt = clock.now;
    clock.now += 5;
    await settle(store, job, retry({ failure: SAME }));
    expect(await letterOf(store, job.id)).toMatchObject({ outcome: "failing", outcomeAt: failedAt });
    await settle(store, job, complete());
    expect(await letterOf(store, job.id)).toMatchObject({ outcome: "completed", outcomeAt: clock.now });
  });

  fact("of a job that no run has sent is known and not counted", async ({ store }) => {
    const job = await sent(store, null);
    await settle(store, job, complete());
    expect(await letterOf(store, job.id)).toMatchObject({ redrive: null, outcome: "completed" });
    expect(await store.redriveCounts([RUN])).toEqual([{ id: RUN, ...NO_SUMS, recent: NO_SUMS }]);
  });

  fact("belongs to the letter of the generation that ran", async ({ store }) => {
    const job = await sent(store);
    await settle(store, job, dead());
    await store.redrive([{ id: job.id, generation: 2, delayMs: 0, redrive: "r_2" }]);
    await settle(store, job, complete());
    expect(await letterOf(store, job.id, 1)).toMatchObject({ redrive: RUN, outcome: "dead" });
    expect(await letterOf(store, job.id, 2)).toMatchObject({ redrive: "r_2", outcome: "completed" });
    expect(await countsOf(store)).toEqual({ sent: 1, same: 1, dead: 1 });
    expect(await countsOf(store, "r_2")).toEqual({ sent: 1, good: 1 });
  });

  fact("is not written under a stale lease, nor for a job that was never sent back", async ({ store }) => {
    const job = await sent(store);
    const run = await takeOne(store, job.id);
    const forged = { ...leaseOf(run), nonce: "forged", verdict: complete(), redriven: true };
    expect((await store.settle({ settlements: [forged] })).stale).toHaveLength(1);
    expect((await letterOf(store, job.id)).outcome).toBeNull();
    const fresh = await takeOne(store, await add(store, { type: "fresh" }));
    const { stale } = await store.settle({ settlements: [{ ...leaseOf(fresh), verdict: complete(), redriven: true }] });
    expect(stale).toEqual([]);
    expect(await countsOf(store)).toEqual({ sent: 1 });
  });

  fact("of many jobs is written by one settle", async ({ store }) => {
    await sendMany(store, 60);
    const runs = await take(store);
    const verdictAt = (at: number): Settlement["verdict"] =>
      [complete(), complete(), retry({ failure: SAME }), dead({ failure: OTHER }), cancel(), forgotten()][
        at % 6
      ] as never;
    const settlements = runs.map((run, at) => ({ ...leaseOf(run), verdict: verdictAt(at), redriven: true }));
    expect((await store.settle({ settlements })).stale).toEqual([]);
    expect(await countsOf(store)).toEqual({ sent: 60, good: 30, same: 10, other: 10, dead: 10, cancelled: 10 });
    expect((await store.deadLetters({ redrive: RUN, limit: 200 })).items).toHaveLength(50);
  });

  fact("of many jobs that complete is written by one settle", async ({ store }) => {
    await sendMany(store, 55);
    const settlements = (await take(store)).map((run) => ({ ...leaseOf(run), verdict: complete(), redriven: true }));
    await store.settle({ settlements });
    expect(await countsOf(store)).toEqual({ sent: 55, good: 55 });
    expect((await store.deadLetters({ outcome: "completed", limit: 200 })).items).toHaveLength(55);
  });

  fact("that is not kept counts as completed", async ({ store }) => {
    const [first, later] = [await sent(store), await sent(store)];
    await settle(store, first, forgotten());
    await settle(store, later, retry({ failure: SAME }));
    await settle(store, later, forgotten());
    expect(await countsOf(store)).toEqual({ sent: 2, good: 1, same: 1, recovered: 1 });
    expect((await store.deadLetters({ redriven: true, limit: 10 })).items).toEqual([]);
  });
}

/** Tests of counts of runs, and of letters found by run and outcome. */
export function redriveCountFacts({ fact, timed }: Suite): void {
  fact("counts a job as gone that is deleted before its outcome is known", async ({ store }) => {
    // As programs of version 1 settle: without saying that the job was sent back.
    const jobs = [await sent(store), await sent(store), await sent(store), await sent(store)] as [Job, Job, Job, Job];
    for (const [at, verdict] of [dead(), cancel(), complete(), dead()].entries()) {
      const { id } = jobs[at] as Job;
      await store.settle({ settlements: [{ ...leaseOf(await takeOne(store, id)), verdict }] });
    }
    expect(await store.remove(jobs.slice(0, 3).map(({ id }) => id))).toBe(3);
    expect(await countsOf(store)).toEqual({ sent: 4, gone: 2 });
    const retention = { keep: KEEP, types: [], keyMs: 0, limit: 10, isFirst: true };
    await store.prune(retention);
    await store.prune(retention);
    expect(await countsOf(store)).toEqual({ sent: 4, gone: 3 });
  });

  fact("does not count a job as gone whose outcome is known", async ({ store }) => {
    const job = await sent(store);
    await settle(store, job, dead());
    expect(await store.remove([{ id: job.id, generation: 2 }])).toBe(1);
    expect(await countsOf(store)).toEqual({ sent: 1, same: 1, dead: 1 });
  });

  timed("keeps the counts of a run when their ticks become one an hour", async ({ store, clock }) => {
    const worker = await signUp(store, 86_400_000);
    const run = async (count: number, verdict: Settlement["verdict"]): Promise<void> => {
      await sendMany(store, count);
      const taken = await take(store, worker, { only: ({ type }) => type === "many" });
      await store.settle({ settlements: taken.map((each) => ({ ...leaseOf(each), verdict, redriven: true })), worker });
    };
    clock.now += 3_600_000 - (clock.now % 3_600_000);
    await run(5, dead({ failure: OTHER }));
    clock.now += 10_000;
    await run(100, complete());
    const counts = { sent: 105, good: 100, other: 5, dead: 5 };
    expect(await countsOf(store)).toEqual(counts);
    expect((await store.redriveCounts([RUN]))[0]?.recent).toEqual({ ...NO_SUMS, sent: 100, good: 100 });
    clock.now += 8 * 3_600_000;
    for (let more = true; more; ) ({ more } = await store.fold({ limit: 1_000 }));
    expect(await countsOf(store)).toEqual(counts);
    expect((await store.redriveCounts([RUN]))[0]?.recent).toEqual({ ...NO_SUMS, ...counts });
  });

  timed("knows the newest ticks that have a hundred first runs", async ({ store, clock }) => {
    const worker = await signUp(store, 86_400_000);
    const runs = async (count: number, verdict: Settlement["verdict"], by: string | undefined) => {
      await sendMany(store, count);
      const settlements = (await take(store, worker, { only: ({ type }) => type === "many" })).map((run) => {
        return { ...leaseOf(run), verdict, redriven: true };
      });
      await store.settle({ settlements, ...(by !== undefined && { worker: by }) });
    };
    clock.now += 10_000 - (clock.now % 10_000);
    await runs(5, dead({ failure: OTHER }), worker);
    clock.now += 10_000;
    await runs(40, complete(), worker);
    await runs(10, retry({ failure: SAME, delayMs: 86_400_000 }), undefined);
    clock.now += 10_000;
    const [few] = await store.redriveCounts([RUN]);
    expect(few?.recent).toEqual({ ...NO_SUMS, sent: 55, good: 40, same: 10, other: 5, dead: 5 });
    await runs(60, complete(), worker);
    const [counts, none] = await store.redriveCounts([RUN, "r_none"]);
    expect(counts).toMatchObject({ id: RUN, sent: 115, good: 100, same: 10, other: 5, dead: 5 });
    expect(counts?.recent).toEqual({ ...NO_SUMS, sent: 110, good: 100, same: 10 });
    expect(none).toEqual({ id: "r_none", ...NO_SUMS, recent: NO_SUMS });
  });

  fact("finds letters by run and outcome", async ({ store }) => {
    const [good, bad, waits, own] = [await sent(store), await sent(store), await sent(store), await sent(store, null)];
    const live = await finish(store, dead());
    await settle(store, good, complete());
    await settle(store, bad, retry({ failure: SAME }));
    const ids = async (query: object) =>
      (await store.deadLetters({ limit: 10, oldest: true, ...query })).items.map(({ job }) => job.id);
    expect(await ids({ redrive: RUN })).toEqual([good.id, bad.id, waits.id]);
    expect(await ids({ redrive: RUN, sort: "enqueued" })).toEqual([good.id, bad.id, waits.id]);
    expect(await ids({ redrive: RUN, outcome: "completed" })).toEqual([good.id]);
    expect(await ids({ outcome: "failing" })).toEqual([bad.id]);
    expect(await ids({ outcome: "none" })).toEqual([waits.id, own.id]);
    expect(await ids({})).toEqual([live.id]);
    expect((await store.tally({ redrive: RUN })).total).toBe(3);
  });

  fact("tells the upper end of a list in the order of enqueue, and keeps to a given one", async ({ store }) => {
    const page = (query = {}) => store.deadLetters({ limit: 1, sort: "enqueued", ...query });
    expect(await page()).toEqual({ items: [], next: null, through: 0 });
    const first = await finish(store, dead());
    const { through } = await page();
    const later = await finish(store, dead());
    expect((await page()).through).toBeGreaterThan(through as number);
    const kept = await page({ through, limit: 5 });
    expect(kept.items.map(({ job }) => job.id)).toEqual([first.id]);
    expect(kept).toMatchObject({ next: null, through });
    const all = await page();
    const next = await page({ cursor: all.next });
    expect(next.items.map(({ job }) => job.id)).toEqual([later.id]);
    expect((await page({ cursor: all.next, through })).items).toEqual([]);
  });

  fact("keeps the dead where a prune is told to", async ({ store }) => {
    const [gone, kept] = [await finish(store, complete()), await finish(store, dead())];
    const retention = { keep: KEEP, types: [], keyMs: 0, limit: 10, isFirst: false };
    await store.prune({ ...retention, holdDead: true });
    expect(await store.prune({ ...retention, holdDead: true })).toMatchObject({ dead: 0, more: false });
    expect((await store.get([gone.id, kept.id])).map((job) => job?.state ?? null)).toEqual([null, "dead"]);
    expect((await store.prune(retention)).dead).toBe(1);
  });

  fact("knows the newer job under the key of a letter", async ({ store }) => {
    const old = await finish(store, dead(), { type: "keyed", key: "k" });
    const without = await finish(store, dead(), { type: "keyless" });
    const holder = async (id: string) => (await letterOf(store, id)).supersededBy;
    expect(await holder(old.id)).toBeNull();
    expect(await holder(without.id)).toBeNull();
    const newer = newJob({ type: "keyed", key: "k", unique: "active" });
    expect((await store.enqueue([newer]))[0]).toMatchObject({ kind: "created" });
    expect(await holder(old.id)).toEqual({ id: newer.id, state: "queued" });
    const run = await takeOne(store, newer.id);
    expect(await holder(old.id)).toEqual({ id: newer.id, state: "running" });
    await store.settle({ settlements: [{ ...leaseOf(run), verdict: complete() }] });
    expect(await holder(old.id)).toEqual({ id: newer.id, state: "completed" });
    await store.remove([newer.id]);
    expect(await holder(old.id)).toEqual({ id: newer.id, state: null });
  });
}

/** Tests of recalls. */
export function recallFacts({ fact, timed }: Suite): void {
  const target = ({ id }: Job, generation = 1) => ({ id, generation });

  timed("takes a job back that no worker has taken", async ({ store, clock }) => {
    const verdict = dead({ reason: "permanent" });
    const was = await finish(store, verdict, { maxAttempts: 3, keepDeadMs: 5_000 });
    const old = await letterOf(store, was.id);
    clock.now += 1_000;
    await store.redrive([{ id: was.id, generation: 1, delayMs: 50, redrive: RUN }]);
    clock.now += 10;
    expect(await store.recall([target(was)])).toEqual(["recalled"]);
    const job = await read(store, was.id);
    expect(job).toMatchObject({ state: "dead", generation: 2, epoch: was.epoch, attempts: 0, finishedAt: clock.now });
    expect(job.expiresAt).toBe(clock.now + 5_000);
    const { redrivenAt, generation, job: _job, ...rest } = await letterOf(store, was.id, 2);
    const { redrivenAt: _sent, generation: _old, job: _was, ...before } = old;
    expect({ redrivenAt, generation }).toEqual({ redrivenAt: null, generation: 2 });
    expect(rest).toStrictEqual(before);
    expect(await letterOf(store, was.id, 1)).toMatchObject({ redrive: RUN, outcome: "recalled", outcomeAt: clock.now });
    expect(await countsOf(store)).toEqual({ sent: 1, recalled: 1 });
  });

  fact("leaves nothing to claim, and counts no new death", async ({ store }) => {
    const job = await sent(store);
    const [before] = (await store.causes({ limit: 10, idle: true })).items;
    expect(before).toMatchObject({ live: 0, deaths: 1, failures: 1 });
    await store.recall([target(job)]);
    expect((await claimBy(store, await signUp(store))).jobs).toEqual([]);
    expect((await store.causes({ limit: 10 })).items).toMatchObject([{ live: 1, deaths: 1, failures: 1 }]);
    expect(await store.recount({ after: "", limit: 10 })).toMatchObject({ mended: 0 });
  });

  fact("is refused for the old death, and the job can be sent again", async ({ store }) => {
    const job = await sent(store);
    await store.recall([target(job)]);
    expect(await store.redrive([{ id: job.id, generation: 1, delayMs: 0, redrive: RUN }])).toEqual(["refused"]);
    expect(await store.recall([target(job), target(job, 2)])).toEqual(["refused", "refused"]);
    expect(await store.redrive([{ id: job.id, generation: 2, delayMs: 0, redrive: RUN }])).toEqual(["redriven"]);
    expect((await read(store, job.id)).generation).toBe(3);
    expect(await store.recall([target(job, 2)])).toEqual(["recalled"]);
    expect(await countsOf(store)).toEqual({ sent: 2, recalled: 2 });
  });

  fact("is refused once a worker has taken the job, whatever became of the run", async ({ store }) => {
    const verdicts = [release(), retry({ charge: { attempts: 0, crashes: 0 } }), retry(), complete(), dead(), cancel()];
    for (const verdict of [null, ...verdicts]) {
      const job = await sent(store);
      const run = await takeOne(store, job.id);
      if (verdict) await store.settle({ settlements: [{ ...leaseOf(run), verdict, redriven: true }] });
      const before = await read(store, job.id);
      expect(await store.recall([target(job)])).toEqual(["refused"]);
      expect(await read(store, job.id)).toEqual(before);
    }
  });

  fact(
    "is refused for a job that was never sent back, was cancelled, or is named by another generation",
    async ({ store }) => {
      const [fresh, died, stopped, other] = [
        await add(store),
        await finish(store, dead()),
        await sent(store),
        await sent(store),
      ];
      await store.cancel([stopped.id]);
      const targets = [{ id: fresh, generation: 0 }, { id: fresh, generation: 1 }, target(died), target(stopped)];
      expect(await store.recall([...targets, target(other, 2), { id: "nobody", generation: 1 }])).toEqual([
        ...Array(5).fill("refused"),
        "missing",
      ]);
      expect((await read(store, other.id)).state).toBe("queued");
    },
  );

  fact("takes back a job once, however often it is named", async ({ store }) => {
    const [a, b] = [await sent(store), await sent(store)];
    expect(await store.recall([target(a), target(b), target(a)])).toEqual(["recalled", "recalled", "refused"]);
    expect(await countsOf(store)).toEqual({ sent: 2, recalled: 2 });
  });

  fact("takes back a job that was moved meanwhile", async ({ store }) => {
    const job = await sent(store);
    await store.reschedule([{ id: job.id, delayMs: 60_000, priority: 9 }]);
    expect(await store.recall([target(job)])).toEqual(["recalled"]);
    expect(await store.count()).toMatchObject({ queued: 0, dead: 1 });
  });

  fact("lets the next job of its group go", async ({ store }) => {
    const first = await sent(store, RUN, { type: "g", group: "one" });
    const next = await add(store, { type: "g", group: "one" });
    expect(await store.recall([target(first)])).toEqual(["recalled"]);
    expect((await take(store)).map(({ id }) => id)).toEqual([next]);
    expect((await store.holders({ type: "g", group: "one" })).map(({ id }) => id)).toEqual([next]);
  });

  fact("keeps a job that another process claims at the same time, or gets it", async ({ store, peer }) => {
    const other = await peer();
    const worker = await signUp(store);
    const jobs = await sendMany(store, 20);
    const [claimed, answers] = await Promise.all([
      claimBy(store, worker, { limit: 10 }),
      other.recall(jobs.map((job) => target(job))),
    ]);
    const recalled = answers.filter((answer) => answer === "recalled");
    const rest = (await claimBy(store, worker)).jobs;
    expect(claimed.jobs.length + rest.length + recalled.length).toBe(20);
    expect(await countsOf(store)).toEqual({ sent: 20, ...(recalled.length > 0 && { recalled: recalled.length }) });
  });
}
