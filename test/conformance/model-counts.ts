// Random commands about counts: flow that is added, folds and recounts to their end, trends.
import fc from "fast-check";
import { FLOW_COUNTS } from "../../src/core/flow.ts";
import type { TypeFlow } from "../../src/store/store.ts";
import { command } from "./model-command.ts";

const type = fc.constantFrom("a", "b");
const limit = fc.integer({ min: 1, max: 3 });
const STEPS_MOST = 1_000;

/** Counts of a process. */
export const addFlow = command(
  "addFlow",
  fc.record({ type, holder: fc.constantFrom("p1", "p2"), n: fc.nat(3) }),
  (_, of) => {
    const counts = Object.fromEntries(FLOW_COUNTS.map((count, at) => [count, of.n * at])) as unknown as TypeFlow;
    return (store) => store.addFlow({ holder: of.holder, counts: [{ ...counts, type: of.type }] });
  },
);

/** A fold in steps, to its end: which rows a step takes first is each store's own affair. */
export const fold = command("fold", limit, (_, most) => async (store) => {
  for (let steps = 0; (await store.fold({ limit: most })).more; steps++)
    if (steps > STEPS_MOST) throw new Error("The fold has no end.");
});

/** A recount in steps, to its end: how much it had to mend. */
export const recount = command("recount", limit, (_, most) => async (store) => {
  let [mended, after] = [0, "" as string | null];
  for (let steps = 0; after !== null && steps < STEPS_MOST; steps++) {
    const answer = await store.recount({ after, limit: most });
    [mended, after] = [mended + answer.mended, answer.next];
  }
  return mended;
});

const trendSpec = fc.record(
  { type, fingerprint: fc.constantFrom("f1", "f2"), minutes: fc.constantFrom(1, 60) },
  { requiredKeys: ["minutes"] },
);

/** Counts over the last two days. */
export const trend = command("trend", trendSpec, ({ clock }, { minutes, ...of }) => {
  const stepMs = minutes * 60_000;
  const query = { ...of, from: clock.now - 900 * stepMs, until: clock.now + 60_000, stepMs };
  return (store) => store.trend(query);
});
