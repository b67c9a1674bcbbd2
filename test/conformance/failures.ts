// The failures that a store keeps, and upkeep that gives them the fingerprints of new rules.
import { expect } from "vitest";
import type { Job } from "../../src/core/job.ts";
import { fingerprintOf } from "../../src/core/verdict.ts";
import type { KeptFailure, NewFingerprint, Store } from "../../src/store/store.ts";
import { renewFingerprints } from "../../src/upkeep/fingerprints.ts";
import { add, finish, start, end, takeOne } from "../support/runs.ts";
import { complete, dead, failure, retry } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

/** A message that holds what stands in the stored text, and characters that are stored in another way. */
const OLD = failure({ fingerprint: "00000000000000ff", message: 'a "fingerprint":"00000000000000ff" \u0000 \ud800 b' });

async function all(store: Store, limit: number): Promise<KeptFailure[]> {
  const found: KeptFailure[] = [];
  for (let after: number | null = 0; after !== null; ) {
    const page = await store.failures({ after, limit });
    found.push(...page.items);
    after = page.next;
  }
  return found;
}

/** A job that failed, died, was redriven and failed again. */
async function troubled(store: Store): Promise<Job> {
  const job = await finish(store, dead({ failure: OLD }));
  await store.redrive([{ id: job.id, generation: job.generation, delayMs: 0 }]);
  await end(store, await takeOne(store, job.id), retry({ failure: OLD, delayMs: 0 }));
  return job;
}

/** Tests of failures and setFingerprints. */
export function failureFacts({ fact }: Suite): void {
  fact("reads what jobs, history and letters keep, each once, whatever the page", async ({ store }) => {
    await finish(store, complete());
    await troubled(store);
    await add(store);
    await finish(store, dead({ failure: OLD }));
    const found = await all(store, 200);
    expect(found.map(({ of }) => of).sort()).toEqual(
      ["attempt", "attempt", "attempt", "job", "job", "letter", "letter"].sort(),
    );
    for (const each of found) expect(each.failure).toEqual(OLD);
    const byPlace = (items: KeptFailure[]) => items.map(({ of, seq, at }) => `${seq} ${of} ${at}`).sort();
    for (const limit of [1, 2]) expect(byPlace(await all(store, limit))).toEqual(byPlace(found));
    expect(await store.failures({ after: 0, limit: 200 })).toMatchObject({ next: null });
  });

  fact("rewrites fingerprints, and nothing else", async ({ store }) => {
    const { id } = await troubled(store);
    const changes = (await all(store, 10)).map(({ failure: { fingerprint: was }, ...place }) => {
      return { of: place.of, seq: place.seq, at: place.at, was, fingerprint: "new" } satisfies NewFingerprint;
    });
    expect(await store.setFingerprints(changes)).toBe(4);
    const renewed = { ...OLD, fingerprint: "new" };
    expect((await store.get([id]))[0]?.failure).toEqual(renewed);
    expect((await store.history(id)).map((record) => record.failure)).toEqual([renewed, renewed]);
    const letters = await store.deadLetters({ limit: 10, redriven: true, fingerprint: "new" });
    expect(letters.items.map((letter) => letter.failure)).toEqual([renewed]);
    expect((await store.tally({ redriven: true })).causes.map(({ fingerprint }) => fingerprint)).toEqual(["new"]);
  });

  fact("rewrites none that has changed since, and none that is gone", async ({ store }) => {
    await finish(store, dead({ failure: OLD }));
    const found = await all(store, 10);
    expect(found).toHaveLength(3);
    for (const { of, seq, at } of found) {
      const change = { of, seq, at, was: "other", fingerprint: "new" };
      expect(await store.setFingerprints([change, { ...change, seq: seq + 999, was: OLD.fingerprint }])).toBe(0);
    }
    expect(await store.setFingerprints([])).toBe(0);
    for (const each of await all(store, 10)) expect(each.failure).toEqual(OLD);
  });

  fact("upkeep gives every failure the fingerprint of today's rules", async ({ store }) => {
    for (let i = 0; i < 60; i++) await start(store).then((run) => end(store, run, dead({ failure: OLD })));
    const { id } = await troubled(store);
    let steps = 0;
    for (let waitMs = 0; waitMs < 60_000 && steps < 10; steps++) waitMs = await renewFingerprints(store, 50);
    expect(steps).toBe(2);
    const today = fingerprintOf(OLD);
    expect(today).not.toBe(OLD.fingerprint);
    expect((await store.tally({ redriven: true })).causes).toMatchObject([{ fingerprint: today, count: 61 }]);
    expect((await store.history(id)).map((record) => record.failure.fingerprint)).toEqual([today, today]);
    expect((await store.get([id]))[0]?.failure).toEqual({ ...OLD, fingerprint: today });
  });
}
