// Groups under a crowd: many who claim and settle at the same time, each with a picture of its own that is always old.
import { describe, expect, inject, it } from "vitest";
import type { ActiveLane } from "../../../src/core/lane.ts";
import type { Store } from "../../../src/store/store.ts";
import { newJob } from "../../support/new-job.ts";
import { postgresWorld } from "../../support/postgres-world.ts";
import { nextNonce, signUp } from "../../support/runs.ts";
import { complete, release, retry } from "../../support/verdicts.ts";

const GROUPS = 6;
const JOBS = 25;

/** What was seen: how many of a group were in hand at the same time, and in which order they ended. */
class Watch {
  readonly inHand = new Map<string, number>();
  readonly most = new Map<string, number>();
  readonly ended = new Map<string, string[]>();
  runs = 0;

  took(group: string): void {
    this.runs += 1;
    const count = (this.inHand.get(group) ?? 0) + 1;
    this.inHand.set(group, count);
    this.most.set(group, Math.max(this.most.get(group) ?? 0, count));
  }

  letGo(group: string): void {
    this.inHand.set(group, (this.inHand.get(group) ?? 0) - 1);
  }
}

/** One of the crowd: claims from all lanes it saw last, and settles what it got, some of it not for good. */
async function work(store: Store, watch: Watch, total: number): Promise<void> {
  const worker = await signUp(store);
  const { version: control } = await store.control();
  let lanes: readonly ActiveLane[] = [];
  for (let turn = 0; turn < 5_000; turn++) {
    if ([...watch.ended.values()].flat().length >= total) return;
    if (turn % 3 === 0) lanes = (await store.lanes(null, 100)).lanes;
    const quotas = lanes.map(({ lane }) => ({ lane, limit: 3 }));
    const request = { worker, quotas, limit: 10, nonce: nextNonce(), control, ticket: 1, startedThrough: 0 };
    const { jobs } = await store.claim(request);
    for (const { group } of jobs) watch.took(group as string);
    const settlements = jobs.map(({ id, epoch, nonce, releases, attempts }, at) => {
      const again =
        releases + attempts > 2 ? complete() : at % 2 === 0 ? retry({ delayMs: 0 }) : release({ delayMs: 0 });
      return { id, epoch, nonce, verdict: (turn + at) % 3 === 0 ? again : complete(), grouped: true };
    });
    for (const [at, { verdict }] of settlements.entries()) {
      const { id, group } = jobs[at] as { id: string; group: string };
      watch.letGo(group);
      if (verdict.kind === "complete") watch.ended.set(group, [...(watch.ended.get(group) ?? []), id]);
    }
    if (settlements.length > 0) expect((await store.settle({ settlements, worker })).stale).toEqual([]);
  }
}

describe.each(["postgres18", "postgres15"] as const)("a crowd on %s", (server) => {
  it("never has more of a group in hand than it allows, and keeps the order of those of one", {
    timeout: 120_000,
  }, async (context) => {
    const url = inject(server);
    if (!url) return context.skip("this server is not installed");
    const world = await postgresWorld(url);
    try {
      const enqueued = new Map<string, string[]>();
      for (let n = 0; n < JOBS; n++) {
        const jobs = Array.from({ length: GROUPS }, (_, at) =>
          newJob({ group: `g${at}`, groupConcurrency: 1 + (at % 3) }),
        );
        await world.store.enqueue(jobs);
        for (const { id, group } of jobs) enqueued.set(group as string, [...(enqueued.get(group as string) ?? []), id]);
      }
      const watch = new Watch();
      const stores = [world.store, await world.peer(), await world.peer(), await world.peer()];
      await Promise.all([...stores, ...stores].map((store) => work(store, watch, GROUPS * JOBS)));
      expect(watch.runs).toBeGreaterThan(GROUPS * JOBS);
      for (let at = 0; at < GROUPS; at++) {
        const group = `g${at}`;
        expect(watch.most.get(group)).toBeLessThanOrEqual(1 + (at % 3));
        if (at % 3 === 0) expect(watch.ended.get(group)).toEqual(enqueued.get(group));
        else expect(new Set(watch.ended.get(group))).toEqual(new Set(enqueued.get(group)));
        expect(await world.store.holders({ type: "thumbnail", group })).toEqual([]);
      }
    } finally {
      await world.close();
    }
  });
});
