// Redrive runs: fences, and the outcomes of letters.
import { expect } from "vitest";
import type { Job, LetterOutcome } from "../../src/core/job.ts";
import type { RedriveSums } from "../../src/core/recovery/outcome.ts";
import { NO_SUMS } from "../../src/store/dead-letters.ts";
import type { Settlement, Store } from "../../src/store/store.ts";
import { add, finish, leaseOf, read, take, takeOne } from "../support/runs.ts";
import { cancel, complete, crashed, dead, forgotten, release, retry } from "../support/verdicts.ts";
import { RUN, SAME, OTHER, cell, sent, sendMany, settle, letterOf, countsOf } from "./sent-jobs.ts";
import type { Suite } from "./suite.ts";

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
