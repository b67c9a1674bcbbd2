// Random redrives, by hand and by runs, with and without a fence, recalls, and repairs of payloads.
import fc from "fast-check";
import { payloadHash } from "../../src/store/payloads.ts";
import type { CellChange, RecallTarget } from "../../src/store/store.ts";
import { anyPick, command, jobAt, pick, type Shared } from "./model-command.ts";
import { REDRIVES } from "./model-dump.ts";
import { anyDelay } from "./model-verdicts.ts";

const some = fc.array(anyPick, { minLength: 1, maxLength: 3 });
const redriveSpec = fc.record({
  some,
  off: fc.constantFrom(0, 0, 0, 0, 1, -1),
  delayMs: anyDelay,
  redrive: fc.constantFrom(null, ...REDRIVES, ...REDRIVES),
  payload: fc.constantFrom(null, null, null, "1", "3"),
  fence: fc.constantFrom(null, null, "current", "current", "old", "any", "gone"),
});

/** The change of a run's cell: one that fits, one that does not, one that always fits, one that deletes. */
function fenceOf({ latest }: Shared, kind: string, name: string): CellChange {
  const version = latest.cells.find((cell) => cell.kind === "redrive" && cell.name === name)?.version ?? 0;
  const key = { kind: "redrive", name, holder: "" };
  if (kind === "any") return { ...key, version: null, value: "1" };
  return { ...key, version: kind === "old" ? version + 1 : version, value: kind === "gone" ? null : "2" };
}

/** Sends dead jobs back. */
export const redrive = command("redrive", redriveSpec, (shared, given) => {
  const dead = given.some.map((choice) => jobAt(shared, choice, ["dead"]));
  const extra = {
    ...(given.redrive !== null && { redrive: given.redrive }),
    ...(given.payload !== null && { payload: given.payload }),
  };
  const requests = dead.map(({ id, generation }) => {
    return { id, generation: generation + given.off, delayMs: given.delayMs, ...extra };
  });
  const fence = given.fence === null ? undefined : fenceOf(shared, given.fence, given.redrive ?? "r1");
  return (store) => store.redrive(requests, fence);
});

const recallSpec = fc.record({
  some,
  off: fc.constantFrom(0, 0, 0, 0, 1, -1),
  payload: fc.constantFrom(null, null, "1", "3"),
  seen: fc.constantFrom(true, true, true, false),
});

/** Takes jobs back, some with another payload: mostly such as wait in a later generation than their first. */
export const recall = command("recall", recallSpec, (shared, { some: choices, off, payload, seen }) => {
  const waiting = shared.latest.jobs.filter(({ state, generation }) => state === "queued" && generation > 1);
  const targets = choices.map((choice): RecallTarget => {
    const { id, generation } =
      (choice.aimed ? pick(waiting, choice.n) : undefined) ?? jobAt(shared, choice, ["queued"]);
    const target = { id, generation: Math.max(0, generation - 1 + off) };
    if (payload === null) return target;
    const before = shared.latest.jobs.find((job) => job.id === id)?.payload ?? "";
    const was = payloadHash(seen ? before : `${before} `);
    return { ...target, repair: { was, payload, actor: "ada", why: null } };
  });
  return (store) => store.recall(targets);
});

const repairSpec = fc.record({
  some,
  off: fc.constantFrom(0, 0, 0, 0, 1, -1),
  seen: fc.constantFrom(true, true, true, false),
  payload: fc.constantFrom("1", '{"a":9007199254740993}', '"\\ud800"'),
  why: fc.constantFrom(null, "why"),
  redrive: fc.constantFrom(null, ...REDRIVES),
});

/** Gives dead jobs another payload, mostly where it is the one that was seen. */
export const repair = command(
  "repair",
  repairSpec,
  (shared, { some: choices, off, seen, payload, why, redrive: run }) => {
    const changes = choices.map((choice) => {
      const { id, generation } = jobAt(shared, choice, ["dead"]);
      const before = shared.latest.jobs.find((job) => job.id === id)?.payload ?? "";
      const was = payloadHash(seen ? before : `${before} `);
      const extra = run === null ? {} : { redrive: run };
      return { id, generation: Math.max(0, generation + off), was, payload, actor: "ada", why, ...extra };
    });
    return (store) => store.repair(changes);
  },
);
