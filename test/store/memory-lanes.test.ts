// The memory store forgets lanes that were without a job for long; one that comes back has a number of its own.
import { expect, it } from "vitest";
import { add, dueLanes, end, take } from "../support/runs.ts";
import { complete } from "../support/verdicts.ts";
import { memoryWorld } from "../support/worlds.ts";

const keep = { finishedMs: 0, deadMs: 0 };
const LANES = { keep, types: [], keyMs: 0, laneMs: 1_000, limit: 1_000, isFirst: true } as const;

it("forgets a lane once it was empty for as long as was said, and not before", async () => {
  const { store, clock } = await memoryWorld();
  const numberOf = async (): Promise<number | undefined> => {
    await add(store, { type: "mail", tenant: "acme" });
    const [lane] = await dueLanes(store);
    for (const job of await take(store)) await end(store, job, complete());
    return lane?.lane;
  };
  const first = await numberOf();
  await store.prune(LANES);
  expect(await numberOf()).toBe(first);
  await store.prune(LANES);
  clock.now += 1_000;
  await store.prune(LANES);
  expect(await numberOf()).not.toBe(first);
});
