// What a worker with nothing to do asks of a store that tells signs of change with every look, counted on virtual time.
import { expect, it } from "vitest";
import { defineJob } from "../../src/jobs/define-job.ts";
import type { Verb } from "../../src/store/verb-facts.ts";
import { createMemoryStore } from "../../src/store/memory/index.ts";
import { createWorld } from "../simulation/world.ts";
import { around, createBench } from "../support/worker-bench.ts";

const MINUTE = 60_000;
const note = defineJob("note", { run: async () => undefined });

/** A bench whose questions are counted. */
function counted() {
  const world = createWorld(1);
  const asked = new Map<Verb, number>();
  const store = around(createMemoryStore({ clock: () => world.now }), (verb, next) => {
    asked.set(verb, (asked.get(verb) ?? 0) + 1);
    return next();
  });
  return { asked, bench: createBench(1, store, world) };
}

it("asks for little but its looks", async () => {
  const { asked, bench } = counted();
  await bench.employ([note]);
  await bench.advance(5 * MINUTE);
  asked.clear();
  await bench.advance(10 * MINUTE);
  const { lanes = 0, beat = 0, ...others } = Object.fromEntries(asked) as Partial<Record<Verb, number>>;
  expect(lanes).toBeLessThanOrEqual(601);
  expect(beat).toBe(120);
  const rest = Object.values(others).reduce((sum, times) => sum + times, 0);
  expect(rest / 600).toBeLessThan(0.2);
});

it("gives up a worker that is silent within two seconds of the end of its lease, all the same", async () => {
  const { asked, bench } = counted();
  await bench.employ([note]);
  await bench.store.register({ id: "silent", leaseMs: 3 * MINUTE, pid: 1, host: "elsewhere", release: null });
  await bench.advance(3 * MINUTE - 2_000);
  asked.clear();
  const known = async (): Promise<boolean> => (await bench.store.workers()).some(({ id }) => id === "silent");
  expect(await known()).toBe(true);
  await bench.advance(4_000);
  expect(await known()).toBe(false);
});
