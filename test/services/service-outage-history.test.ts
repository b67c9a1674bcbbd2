// The history of an outage, as the calls of every worker wrote it, before the checker of histories: nothing is claimed for a
// service whose breaker is open, and while it is half-open no more than its probes (R10). On virtual time.
import { describe, expect, it } from "vitest";
import type { Control, Store } from "../../src/store/store.ts";
import { check } from "../support/history/check.ts";
import { Scribe } from "../support/history/scribe.ts";
import { newJob } from "../support/new-job.ts";
import { openBench, SCENE_STORES, type VirtualStore } from "../support/virtual-bench.ts";
import { around, type Bench } from "../support/worker-bench.ts";
import { FlakyService, quoteFor } from "./service-outage-scenes.ts";

/** The store as somebody uses it whose calls are written down. */
function recorded({ store, world }: Bench, scribe: Scribe, name: string): Store {
  return around(store, async (verb, next, args) => {
    const call = scribe.sent(name, verb, args as never);
    try {
      const answer = await next();
      call?.answered(answer, world.now);
      return answer;
    } catch (error) {
      call?.lost();
      throw error;
    }
  });
}

/** A defect: whoever uses this never hears of a breaker. */
function blind(store: Store): Store {
  return around(store, async (verb, next) => {
    const answer = await next();
    return verb === "control" ? { ...(answer as Control), services: [] } : answer;
  });
}

/** A service is down for some seconds and comes back; what the checker finds, and the states that its breaker went through. */
async function playOutage(store: VirtualStore, through: (store: Store) => Store = (same) => same) {
  const bench = await openBench(16, store);
  const scribe = new Scribe();
  const pricing = new FlakyService(bench);
  const producer = recorded(bench, scribe, "producer");
  const services = { pricing: { breaker: { openFor: "3s" }, ramp: "2s" } } as const;
  for (const n of [1, 2, 3])
    await bench.employ([quoteFor(pricing, n)], {
      concurrency: 5,
      services,
      through: through(recorded(bench, scribe, `worker-${n}`)),
    });
  for (let second = 0; second < 25; second++) {
    pricing.down = second >= 3 && second < 18;
    await producer.enqueue(Array.from({ length: 10 }, () => newJob({ type: "quote", service: "pricing" })));
    await bench.advance(1_000);
  }
  const dump = { jobs: [], letters: [], workers: [], storeTime: bench.world.now, drained: false };
  const { violations } = check(scribe.events, dump);
  return {
    violations: violations.filter(({ rule }) => rule === "R10"),
    states: scribe.events.filter(({ op, phase }) => op === "breaker" && phase === "ok").map(({ answer }) => answer),
    claims: scribe.events.filter(({ op, phase, job }) => op === "claim" && phase === "ok" && job !== null).length,
  };
}

describe.each(SCENE_STORES)("the history of an outage, on %s", (store) => {
  it("holds no claim while the breaker is open, and none but probes while it is half-open", async () => {
    const { violations, states, claims } = await playOutage(store);
    expect(violations).toEqual([]);
    expect(new Set(states)).toEqual(new Set(["open", "half-open", "closed"]));
    expect(states.filter((state) => state === "open").length).toBeGreaterThan(3);
    expect(claims).toBeGreaterThan(150);
  });
});

it("a worker that hears of no breaker is found by its history", async () => {
  let hired = 0;
  const { violations } = await playOutage("memory", (store) => (++hired === 3 ? blind(store) : store));
  expect(violations.length).toBeGreaterThan(0);
});
