// The transition table as a table: every verb against every state. What is not a transition changes nothing.
import { expect } from "vitest";
import { type Lease, type State, STATES } from "../../src/core/job.ts";
import type { Verdict } from "../../src/core/verdict.ts";
import type { Store } from "../../src/store/store.ts";
import { inState, read, take } from "../support/runs.ts";
import { cancel, complete, dead, release, retry } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

interface Row {
  readonly name: string;
  /** What the verb answers about a job in each state. */
  act(store: Store, id: string, lease: Lease): Promise<unknown>;
  readonly answers: Record<State, unknown>;
  /** The state afterwards, where it changes; null for gone. */
  readonly becomes: Partial<Record<State, State | null>>;
}

const settleRow = (name: string, verdict: Verdict, becomes: State): Row => ({
  name,
  act: async (store, _id, lease) => (await store.settle({ settlements: [{ ...lease, verdict }] })).stale.length,
  answers: { queued: 1, running: 0, completed: 1, dead: 1, cancelled: 1 },
  becomes: { running: becomes },
});

const everywhere = (answer: unknown): Record<State, unknown> => ({
  queued: answer,
  running: answer,
  completed: answer,
  dead: answer,
  cancelled: answer,
});

const PRUNE = { keep: { finishedMs: 0, deadMs: 0 }, types: [], keyMs: 0, limit: 10, isFirst: true };

const TABLE: readonly Row[] = [
  {
    name: "claim",
    act: async (store) => (await take(store)).length,
    answers: { ...everywhere(0), queued: 1 },
    becomes: { queued: "running" },
  },
  settleRow("complete", complete(), "completed"),
  settleRow("fail with a retry left", retry(), "queued"),
  settleRow("fail for good", dead(), "dead"),
  settleRow("release", release(), "queued"),
  settleRow("cancel by lease", cancel(), "cancelled"),
  {
    name: "cancel",
    act: (store, id) => store.cancel([id]),
    answers: { ...everywhere(["finished"]), queued: ["cancelled"], running: ["requested"] },
    becomes: { queued: "cancelled", running: "running" },
  },
  {
    name: "reschedule",
    act: (store, id) => store.reschedule([{ id, delayMs: 5, priority: 2 }]),
    answers: { ...everywhere(["refused"]), queued: ["changed"] },
    becomes: { queued: "queued" },
  },
  {
    name: "redrive",
    act: async (store, id) => store.redrive([{ id, generation: (await read(store, id)).generation, delayMs: 0 }]),
    answers: { ...everywhere(["refused"]), dead: ["redriven"] },
    becomes: { dead: "queued" },
  },
  {
    name: "remove",
    act: (store, id) => store.remove([id]),
    answers: { ...everywhere(1), queued: 0, running: 0 },
    becomes: { completed: null, dead: null, cancelled: null },
  },
  {
    name: "purge",
    act: async (store) => {
      const { completed, dead, cancelled } = await store.prune(PRUNE);
      return completed + dead + cancelled;
    },
    answers: { ...everywhere(1), queued: 0, running: 0 },
    becomes: { completed: null, dead: null, cancelled: null },
  },
  {
    name: "reap of a living worker",
    act: (store) => store.expired({ gone: [], limit: 10 }),
    answers: everywhere([]),
    becomes: {},
  },
];

/** Tests of every verb in every state. */
export function transitionFacts({ fact }: Suite): void {
  for (const row of TABLE) {
    for (const state of STATES) {
      const becomes = row.becomes[state];
      const outcome =
        becomes === undefined ? "changes nothing" : becomes === null ? "removes it" : `leads to ${becomes}`;
      fact(`${row.name} of a ${state} job ${outcome}`, async ({ store }) => {
        const { id, lease } = await inState(store, state);
        const before = await read(store, id);
        expect(await row.act(store, id, lease)).toEqual(row.answers[state]);
        const [after] = await store.get([id]);
        if (becomes === undefined) expect(after).toStrictEqual(before);
        else expect(after?.state ?? null).toBe(becomes);
      });
    }
  }
}
