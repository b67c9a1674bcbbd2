// Random commands that write what explanations go by: records of services, and what workers say about themselves and their
// limits. Times are near the clock, so that some hold work back and some are over.
import fc from "fast-check";
import { noEvidence } from "../../src/core/evidence.ts";
import { initialRecord, type ServiceRecord } from "../../src/core/service-record.ts";
import type { CellChange } from "../../src/store/store.ts";
import { anyPick, command, workerAt } from "./model-command.ts";

const anyTime = fc.constantFrom(-1_000, 0, 1, 1_000, 60_000);

const breakers = {
  closed: (now: number, until: number) => ({ state: "closed", since: now, rampUntil: until }) as const,
  open: (now: number, until: number) => ({ state: "open", since: now, until, reason: "r" }) as const,
  half_open: (now: number) => ({ state: "half_open", since: now, probes: [], successes: 0 }) as const,
  isolated: (now: number) => ({ state: "isolated", since: now, until: null, reason: "r" }) as const,
};
const recordSpec = fc.record({
  state: fc.constantFrom("closed", "closed", "open", "open", "half_open", "isolated"),
  until: anyTime,
  hold: fc.constantFrom(0, 0, 0, 1_000, -1_000),
});

/** Changes the record of the service. */
export const setRecord = command("setRecord", recordSpec, (shared, { state, until, hold }) => {
  const { now } = shared.clock;
  const version = shared.latest.control.services.find(({ name }) => name === "s")?.version ?? 0;
  const breaker = breakers[state](now, now + until);
  const record: ServiceRecord = { ...initialRecord, breaker, holdUntil: hold === 0 ? 0 : now + hold };
  return (store) => store.setService("s", version, JSON.stringify(record));
});

const budget = { share: 0, floorPerSecond: 0, capacity: 5 };
const rate = { limit: 1, perMs: 1_000, burst: 1 };
const noteSpec = fc.oneof(
  fc.record({
    kind: fc.constant("load" as const),
    worker: anyPick,
    types: fc.constantFrom(["a", "b"], ["a", "b"], ["a"], ["b"], []),
    own: fc.constantFrom(null, null, 0, 1),
    batch: fc.constantFrom({}, {}, { batch: 2 }, { batch: 10 }),
    queues: fc.constantFrom(null, null, ["default"], ["other"]),
    concurrency: fc.constantFrom(0, 1, 3, 50),
  }),
  fc.record({
    kind: fc.constant("settings" as const),
    worker: anyPick,
    name: fc.constantFrom("service:s", "service:*", "tenant:t1", "tenant:*", "type:a"),
    whenOpen: fc.constantFrom("park", "park", "fail", "dead-letter"),
    rate: fc.constantFrom(null, rate, rate),
    budget: fc.constantFrom(null, budget, budget),
  }),
  fc.record({
    kind: fc.constant("buckets" as const),
    names: fc.subarray(["service:s", "tenant:t1", "tenant:t2", "type:a"]),
    at: anyTime,
    tokens: fc.constantFrom(0, 0.5, 1, 3),
  }),
  fc.record({ kind: fc.constant("evidence" as const), worker: anyPick, sick: anyTime }),
  // What a program wrote that speaks otherwise says nothing.
  fc.record({ kind: fc.constant("odd" as const), worker: anyPick }),
);

/** Writes something that explanations go by. */
export const note = command("note", noteSpec, (shared, given) => {
  const { now } = shared.clock;
  const cell = (kind: string, name: string, holder: string, value: unknown): CellChange => {
    return { kind, name, holder, version: null, value: JSON.stringify(value) };
  };
  const changesOf = (): CellChange[] => {
    switch (given.kind) {
      case "load": {
        const types = given.types.map((type) => ({ type, queue: "default", concurrency: given.own, ...given.batch }));
        const { queues, concurrency } = given;
        return [cell("load", "", workerAt(shared, given.worker), { types, queues, concurrency })];
      }
      case "settings": {
        const { whenOpen, rate: limit, name } = given;
        const service = { breaker: {}, whenOpen, rampMs: 0, budget: given.budget, rate: limit };
        const tenant = { weight: 1, rate: limit };
        const said = name.startsWith("service:") ? service : name.startsWith("tenant:") ? tenant : { rate };
        return [cell("settings", name, workerAt(shared, given.worker), said)];
      }
      case "buckets":
        return [
          ...given.names.map((name) => cell("rate", name, "", { nextAt: now + given.at })),
          cell("budget", "s", "", { tokens: given.tokens, countedAt: now }),
        ];
      case "evidence": {
        const evidence = { ...noEvidence(0), sickUntil: now + given.sick };
        return [cell("evidence", "s", workerAt(shared, given.worker), evidence)];
      }
      default:
        return [cell("load", "", workerAt(shared, given.worker), [5])];
    }
  };
  const changes = changesOf();
  return (store) => store.setCells(changes);
});
