// Dead letters, the history of a job, and the way back to work.
import { expect } from "vitest";
import type { Job } from "../../src/core/job.ts";
import type { ClaimedJob, DeadLetterQuery, Store } from "../../src/store/store.ts";
import { add, dueLanes, end, finish, inState, read, start, take, takeOne } from "../support/runs.ts";
import { complete, dead, failure, retry } from "../support/verdicts.ts";
import { walk } from "../support/letter-pages.ts";
import type { Suite } from "./suite.ts";

async function revive(store: Store, { id, generation }: Job): Promise<ClaimedJob> {
  expect(await store.redrive([{ id, generation, delayMs: 0 }])).toEqual(["redriven"]);
  return takeOne(store, id);
}

/** Tests of dead letters. */
export function deadLetterFacts({ fact, timed }: Suite): void {
  fact("lists nothing where nobody died", async ({ store }) => {
    await finish(store, complete());
    expect(await store.deadLetters({ limit: 10 })).toEqual({ items: [], next: null });
  });

  timed("lists the latest death first, whenever the job was enqueued", async ({ store, clock }) => {
    const runs = [await start(store), await start(store), await start(store)];
    for (const i of [1, 0, 2]) {
      clock.now += 10;
      await end(store, runs[i] as ClaimedJob, dead());
    }
    const expected = [runs[2]?.id, runs[0]?.id, runs[1]?.id];
    for (const limit of [1, 2, 3, 200]) expect(await walk(store, { limit })).toEqual(expected);
  });

  fact("pages on while others die and are redriven", async ({ store }) => {
    const jobs: Job[] = [];
    for (let i = 0; i < 6; i++) jobs.push(await finish(store, dead()));
    const first = await store.deadLetters({ limit: 2 });
    await finish(store, dead());
    await revive(store, jobs[5] as Job);
    const rest = await store.deadLetters({ limit: 10, cursor: first.next });
    const ids = [...first.items, ...rest.items].map(({ job }) => job.id);
    expect(ids).toEqual(jobs.map(({ id }) => id).toReversed());
  });

  fact("narrows by job, type, class, reason and fingerprint", async ({ store }) => {
    const a = await finish(store, dead({ reason: "stuck", failure: failure({ class: "stuck", fingerprint: "x" }) }));
    const b = await finish(
      store,
      dead({ reason: "exhausted", failure: failure({ class: "network", fingerprint: "y" }) }),
    );
    const queries: [Partial<DeadLetterQuery>, Job[]][] = [
      [{ jobId: a.id }, [a]],
      [{ type: b.type }, [b]],
      [{ class: "stuck" }, [a]],
      [{ reason: "exhausted" }, [b]],
      [{ fingerprint: "y" }, [b]],
      [{ fingerprint: "y", reason: "stuck" }, []],
      [{ jobId: "nobody" }, []],
      [{}, [b, a]],
    ];
    for (const [query, jobs] of queries) {
      expect(await walk(store, { limit: 1, ...query })).toEqual(jobs.map(({ id }) => id));
    }
  });

  fact("has the letter and the state together for every observer", async ({ store, peer }) => {
    const second = await peer();
    const runs = [];
    for (let i = 0; i < 20; i++) runs.push(await start(store));
    let watching = true;
    const watch = async (): Promise<void> => {
      while (watching) {
        // Deaths only grow here, so what a letter says must hold for a state read after it, and the other way round.
        const lettered = (await second.deadLetters({ limit: 200 })).items.map(({ job }) => job);
        expect(lettered.every(({ state }) => state === "dead")).toBe(true);
        const buried = (await second.list({ limit: 200, state: "dead" })).items.map(({ id }) => id);
        const letters = new Set((await second.deadLetters({ limit: 200 })).items.map(({ job }) => job.id));
        expect(buried.filter((id) => !letters.has(id))).toEqual([]);
      }
    };
    const watcher = watch();
    for (const run of runs) await end(store, run, dead());
    watching = false;
    await watcher;
    expect((await store.deadLetters({ limit: 200 })).items).toHaveLength(20);
  });
}

/** Tests of history. */
export function historyFacts({ fact }: Suite): void {
  fact("has no history for a clean job or a stranger", async ({ store }) => {
    const { id } = await finish(store, complete());
    expect(await store.history(id)).toEqual([]);
    expect(await store.history("nobody")).toEqual([]);
  });

  for (const runs of [9, 10, 11, 25]) {
    fact(`keeps the first and the last nine of ${runs} bad runs, oldest first`, async ({ store }) => {
      const { id } = await start(store, { maxAttempts: 100 }).then((run) =>
        end(store, run, retry({ failure: failure({ message: "1" }) })),
      );
      for (let i = 2; i < runs; i++)
        await end(store, await takeOne(store, id), retry({ failure: failure({ message: `${i}` }) }));
      const last = await end(store, await takeOne(store, id), dead({ failure: failure({ message: `${runs}` }) }));
      const all = Array.from({ length: runs }, (_, i) => i + 1);
      const kept = runs <= 10 ? all : [1, ...all.slice(-9)];
      const history = await store.history(id);
      expect(history.map(({ attempt, failure: { message } }) => [attempt, message])).toEqual(
        kept.map((n) => [n, `${n}`]),
      );
      expect(last.attempts).toBe(runs);
    });
  }

  fact("keeps the history of each generation", async ({ store }) => {
    const run = await start(store);
    await end(store, run, retry());
    const died = await end(store, await takeOne(store, run.id), dead());
    const again = await revive(store, died);
    for (let i = 0; i < 11; i++) await end(store, i ? await takeOne(store, run.id) : again, retry());
    const history = await store.history(run.id);
    const generations = history.map(({ generation, attempt }) => [generation - died.generation, attempt]);
    const second = [1, 3, 4, 5, 6, 7, 8, 9, 10, 11].map((attempt) => [1, attempt]);
    expect(generations).toEqual([[0, 1], [0, 2], ...second]);
  });

  fact("keeps the histories of jobs apart", async ({ store }) => {
    const a = await finish(store, retry());
    const b = await finish(store, dead());
    expect((await store.history(a.id)).map(({ jobId }) => jobId)).toEqual([a.id]);
    expect((await store.history(b.id)).map(({ jobId }) => jobId)).toEqual([b.id]);
  });
}

/** Tests of redrive. */
export function redriveFacts({ fact, timed }: Suite): void {
  timed("sends a dead job back with a clean record and its epoch", async ({ store, clock }) => {
    const run = await start(store, { deadlineMs: 1_000, priority: 2 });
    await end(store, run, retry());
    const died = await end(store, await takeOne(store, run.id), dead({ charge: { attempts: 1, crashes: 1 } }));
    clock.now += 60_000;
    expect(await store.redrive([{ id: died.id, generation: died.generation, delayMs: 300 }])).toEqual(["redriven"]);
    const job = await read(store, died.id);
    expect(job).toMatchObject({
      state: "queued",
      generation: died.generation + 1,
      attempts: 0,
      crashes: 0,
      epoch: died.epoch,
      runAt: clock.now + 300,
      dueAt: clock.now + 300,
      finishedAt: null,
      createdAt: died.createdAt,
      payload: died.payload,
      priority: 2,
    });
    clock.now += 300;
    expect(await dueLanes(store)).toMatchObject([{ kind: "first", priority: 2 }]);
    expect(await take(store)).toMatchObject([{ id: died.id, epoch: died.epoch + 1 }]);
  });

  timed("marks the letter as redriven and shows it only when asked", async ({ store, clock }) => {
    const died = await finish(store, dead());
    clock.now += 60;
    await store.redrive([{ id: died.id, generation: died.generation, delayMs: 0 }]);
    expect((await store.deadLetters({ limit: 10 })).items).toEqual([]);
    const { items } = await store.deadLetters({ limit: 10, redriven: true });
    const letter = { generation: died.generation, redrivenAt: clock.now, diedAt: clock.now - 60, attempts: 1 };
    expect(items).toMatchObject([letter]);
    expect(items[0]?.failure).toStrictEqual(died.failure);
  });

  fact("writes a second letter when the job dies again", async ({ store }) => {
    const died = await finish(store, dead());
    const again = await end(store, await revive(store, died), dead({ reason: "permanent" }));
    expect((await store.deadLetters({ limit: 10 })).items).toMatchObject([
      { generation: again.generation, reason: "permanent", redrivenAt: null },
    ]);
    const all = (await store.deadLetters({ limit: 10, redriven: true })).items;
    expect(all.map(({ generation }) => generation - died.generation)).toEqual([1, 0]);
  });

  fact("leaves the letter as history when the job completes after all", async ({ store }) => {
    const died = await finish(store, dead());
    await end(store, await revive(store, died), complete());
    expect((await store.deadLetters({ limit: 10 })).items).toEqual([]);
    expect((await store.deadLetters({ limit: 10, redriven: true })).items).toHaveLength(1);
  });

  fact("refuses another generation than the one seen", async ({ store }) => {
    const died = await finish(store, dead());
    for (const generation of [died.generation - 1, died.generation + 1]) {
      expect(await store.redrive([{ id: died.id, generation, delayMs: 0 }])).toEqual(["refused"]);
    }
    expect(await read(store, died.id)).toStrictEqual(died);
    const again = await end(store, await revive(store, died), dead());
    expect(await store.redrive([{ id: died.id, generation: died.generation, delayMs: 0 }])).toEqual(["refused"]);
    expect(await read(store, died.id)).toStrictEqual(again);
  });

  fact("answers each of a set for itself, in its order", async ({ store }) => {
    const died = await finish(store, dead());
    const { id: running } = await inState(store, "running");
    const waiting = await add(store, { delayMs: 60_000 });
    const ask = (id: string) => ({ id, generation: died.generation, delayMs: 0 });
    const answers = await store.redrive(["nobody", running, died.id, waiting, died.id].map(ask));
    expect(answers).toEqual(["missing", "refused", "redriven", "refused", "refused"]);
  });

  fact("redrives a job once however many ask", async ({ store, peer }) => {
    const second = await peer();
    const died = await finish(store, dead());
    const ask = { id: died.id, generation: died.generation, delayMs: 0 };
    const answers = await Promise.all([store, second, store, second].map((each) => each.redrive([ask])));
    expect(answers.flat().filter((answer) => answer === "redriven")).toHaveLength(1);
    expect((await read(store, died.id)).generation).toBe(died.generation + 1);
  });

  fact("redrives nothing of a set with a delay out of range", async ({ store }) => {
    const died = await finish(store, dead());
    const { id, generation } = died;
    for (const delayMs of [-1, 0.1, Number.NaN, Number.POSITIVE_INFINITY]) {
      const refused = store.redrive([
        { id, generation, delayMs: 0 },
        { id, generation, delayMs },
      ]);
      await expect(refused).rejects.toMatchObject({ code: "invalid_argument" });
    }
    expect(await read(store, id)).toStrictEqual(died);
  });
}
