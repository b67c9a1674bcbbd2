// The beginning and the end of a store.
import { expect } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { newJob } from "../support/new-job.ts";
import { add, finish } from "../support/runs.ts";
import { complete } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

const TARGET = { kind: "queue", name: "q" } as const;

/** Every verb with arguments that an open store accepts. */
const VERBS: {
  readonly [K in Exclude<keyof Store, "name" | "remote" | "describe" | "onWake" | "pulse" | "within" | "close">]: (
    store: Store,
  ) => Promise<unknown>;
} = {
  migrate: (store) => store.migrate(),
  enqueue: (store) => store.enqueue([newJob()]),
  get: (store) => store.get(["a"]),
  list: (store) => store.list({ limit: 1 }),
  count: (store) => store.count(),
  cancel: (store) => store.cancel(["a"]),
  reschedule: (store) => store.reschedule([{ id: "a", delayMs: 1 }]),
  lanes: (store) => store.lanes(null, 1),
  claim: (store) =>
    store.claim({ worker: "w", quotas: [], limit: 1, nonce: "n", control: 0, ticket: 1, startedThrough: 0 }),
  settle: (store) => store.settle({ settlements: [] }),
  holders: (store) => store.holders({ type: "t", group: "g" }),
  register: (store) => store.register({ id: "w", leaseMs: 1_000, pid: 1, host: "h", release: null }),
  beat: (store) => store.beat({ worker: "w", leaseMs: 1_000, startedThrough: 0 }),
  expired: (store) => store.expired({ gone: [], limit: 1 }),
  overdue: (store) => store.overdue({ limit: 1 }),
  held: (store) => store.held("w"),
  leave: (store) => store.leave("w"),
  workers: (store) => store.workers(),
  deadLetters: (store) => store.deadLetters({ limit: 1 }),
  history: (store) => store.history("a"),
  redrive: (store) => store.redrive([{ id: "a", generation: 0, delayMs: 0 }]),
  recall: (store) => store.recall([{ id: "a", generation: 1 }]),
  redriveCounts: (store) => store.redriveCounts(["r"]),
  repair: (store) => store.repair([]),
  payloads: (store) => store.payloads("a"),
  remove: (store) => store.remove(["a"]),
  control: (store) => store.control(),
  pause: (store) => store.pause(TARGET, { forMs: null, reason: "" }),
  resume: (store) => store.resume(TARGET),
  setService: (store) => store.setService("s", 0, "{}"),
  cells: (store) => store.cells([{ kind: "k" }]),
  setCells: (store) => store.setCells([{ kind: "k", name: "n", holder: "", version: null, value: "1" }]),
  tally: (store) => store.tally({}),
  prune: (store) => store.prune({ keep: { finishedMs: 0, deadMs: 0 }, types: [], keyMs: 0, limit: 1, isFirst: true }),
  failures: (store) => store.failures({ after: 0, limit: 1 }),
  setFingerprints: (store) => store.setFingerprints([{ of: "job", seq: 1, at: 0, was: "a", fingerprint: "b" }]),
  record: (store) => store.record([{ kind: "k", actor: null, why: null, subject: null, value: "{}" }]),
  events: (store) => store.events({ limit: 1 }),
  retain: (store) => store.retain({ types: [], after: 0, limit: 1 }),
  addFlow: (store) => store.addFlow({ holder: "p", counts: [] }),
  causes: (store) => store.causes({ limit: 1 }),
  trend: (store) => store.trend({ from: 0, until: 60_000, stepMs: 60_000 }),
  fold: (store) => store.fold({ limit: 1 }),
  figures: (store) => store.figures({ lanes: 10, jobs: 10, letters: 10, notes: "cause" }),
  recount: (store) => store.recount({ after: "", limit: 1 }),
};

/** Tests of migrate and close. */
export function lifeFacts({ fact }: Suite): void {
  fact("migrates again without a trace", async ({ store, peer }) => {
    const id = await add(store);
    const before = await store.get([id]);
    await Promise.all([store.migrate(), (await peer()).migrate(), store.migrate()]);
    expect(await store.get([id])).toStrictEqual(before);
    await finish(store, complete());
  });

  fact("accepts every verb while open and refuses it after close", async ({ store }) => {
    for (const [name, call] of Object.entries(VERBS)) await expect(call(store), name).resolves.not.toThrow();
    await store.close();
    for (const [name, call] of Object.entries(VERBS))
      await expect(call(store), name).rejects.toMatchObject({ name: "RedriveError", code: "closed" });
  });

  fact("closes twice", async ({ store }) => {
    await store.close();
    await expect(store.close()).resolves.toBeUndefined();
  });

  fact("finishes what is under way when it closes", async ({ store }) => {
    const under = Array.from({ length: 20 }, () => store.enqueue([newJob()]));
    const closing = store.close();
    const answers = await Promise.allSettled(under);
    await closing;
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => "fulfilled"));
  });

  fact("says what it is", async ({ store }) => {
    const { name, shown, file, notice } = store.describe();
    expect(["memory", "sqlite", "postgres", "redis"]).toContain(store.name);
    expect({ name, notice, isFile: file === null || file === shown }).toEqual({
      name: store.name,
      notice: null,
      isFile: true,
    });
    expect(shown).toMatch(/^\S/);
    expect(store.remote && file !== null).toBe(false);
  });
}
