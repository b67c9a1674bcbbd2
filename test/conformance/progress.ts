// What a run says on its way: kept with the job, under its lease, without an end.
import { expect } from "vitest";
import { end, isStale, leaseOf, read, signUp, start, takeOne } from "../support/runs.ts";
import { complete, progress, retry } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

/** Tests of settle with a word about progress. */
export function progressFacts({ fact, timed }: Suite): void {
  timed("keeps the last word and the lease", async ({ store, clock }) => {
    const run = await start(store);
    expect((await read(store, run.id)).progress).toBeNull();
    clock.now += 40;
    await end(store, run, progress('{"done":1}'));
    const job = await end(store, run, progress('{"done":2}'));
    const { nonce: _nonce, ticket: _ticket, said: _said, ...before } = run;
    expect(job).toStrictEqual({ ...before, progress: '{"done":2}', updatedAt: clock.now });
    expect((await end(store, run, complete())).state).toBe("completed");
  });

  fact("leaves no history and no charge", async ({ store }) => {
    const run = await start(store);
    await end(store, run, progress("1"));
    expect(await store.history(run.id)).toEqual([]);
    expect(await read(store, run.id)).toMatchObject({ attempts: 0, releases: 0, epoch: run.epoch });
  });

  fact("comes with the verdict in one set, in its order", async ({ store }) => {
    const run = await start(store);
    const lease = leaseOf(run);
    const words = [progress("1"), complete("2"), progress("3")];
    const { stale } = await store.settle({ settlements: words.map((verdict) => ({ ...lease, verdict })) });
    expect(stale).toEqual([lease]);
    expect(await read(store, run.id)).toMatchObject({ state: "completed", progress: "1", result: "2" });
  });

  fact("is refused from whoever lost the lease", async ({ store }) => {
    const run = await start(store);
    await end(store, run, retry());
    expect(await isStale(store, leaseOf(run), progress("late"))).toBe(true);
    const again = await takeOne(store, run.id);
    expect(await isStale(store, leaseOf(run), progress("late"))).toBe(true);
    expect((await read(store, again.id)).progress).not.toBe("late");
  });

  fact("is accepted while a cancel waits", async ({ store }) => {
    const run = await start(store, {}, await signUp(store));
    await store.cancel([run.id]);
    expect(await end(store, run, progress("1"))).toMatchObject({
      state: "running",
      progress: "1",
      cancelRequested: true,
    });
  });

  fact("is kept byte for byte", async ({ store }) => {
    const run = await start(store);
    const value = '{ "a": "\\u0000\\ud800😀", "__proto__": 12345678901234567890, "n": [-0, 1e400] }';
    expect((await end(store, run, progress(value))).progress).toBe(value);
  });
}
