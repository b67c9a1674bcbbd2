// Random commands for the model test, drawn so that most of them do something.
import fc from "fast-check";
import { type NewJob, UNIQUE_MODES } from "../../src/core/new-job.ts";
import { STATES, USUAL_TERMS } from "../../src/core/job.ts";
import { laneKind } from "../../src/core/lane.ts";
import type { Beat, BeatAnswer, ClaimAnswer, PauseTarget, Store } from "../../src/store/store.ts";
import { digestOf } from "../support/new-job.ts";
import { anyPick, type Command, command, jobAt, leaseAt, pick, type Shared, workerAt } from "./model-command.ts";
import { allLanes, CELL_KINDS, GROUPS } from "./model-dump.ts";
import { events, record } from "./model-events.ts";
import { deadLetters, prune, retain, setFingerprints, tally } from "./model-letters.ts";
import { changeRun, drive, edit, startRun } from "./model-driven.ts";
import { addFlow, fold, recount, trend } from "./model-counts.ts";
import { recall, redrive, repair } from "./model-redrives.ts";
import { note, setRecord } from "./model-notes.ts";
import { anyDelay, anyVerdict } from "./model-verdicts.ts";

type ValueOf<A> = A extends fc.Arbitrary<infer T> ? T : never;

/** Null so many times as often as a value. */
const rarely = <T>(values: fc.Arbitrary<T>, nulls: number): fc.Arbitrary<T | null> =>
  fc.oneof({ weight: nulls, arbitrary: fc.constant(null) }, values);

const spec = fc.record({
  again: rarely(fc.nat(9), 12),
  type: fc.constantFrom("a", "a", "a", "b"),
  key: rarely(fc.constantFrom("k1", "k2"), 3),
  body: fc.constantFrom("1", "1", "2"),
  tenant: rarely(fc.constantFrom("t1", "t2"), 3),
  group: rarely(fc.constantFrom(...GROUPS), 1),
  service: rarely(fc.constant("s"), 1),
  priority: fc.constantFrom(0, 0, 0, 9, 10),
  delayMs: fc.constantFrom(0, 0, 0, 0, 1_000, 60_000),
  runAt: rarely(fc.constantFrom(0, -500, 500), 5),
  version: fc.constantFrom(1, 1, 2),
  unique: fc.constantFrom(...UNIQUE_MODES),
  maxAttempts: fc.constantFrom(3, 3, 2),
  together: fc.constantFrom(1, 1, 1, 2),
  trace: rarely(fc.constant("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), 3),
  stuck: rarely(fc.constantFrom(1, 10_000), 2),
});

function jobFrom(
  shared: Shared,
  { again, body, key, runAt, priority, together, stuck, ...rest }: ValueOf<typeof spec>,
): NewJob {
  shared.made += 1;
  // Ids fall, so that their order is not that of enqueue. One job in fifty has a priority out of range.
  const id = (again === null ? undefined : pick(shared.ids, again)) ?? `j${9_999 - shared.made}`;
  const legal = priority === 10 && shared.made % 10 > 0 ? 5 : priority;
  const limits = {
    ...USUAL_TERMS,
    maxCrashes: 2,
    stuckMs: stuck,
    limited: shared.made % 3 > 0,
    keepFinishedMs: shared.made % 4 > 0 ? 1_000 * (shared.made % 4) : null,
    keepDeadMs: shared.made % 5 > 0 ? 1_000 * (shared.made % 5) : null,
  };
  const due = runAt === null ? null : shared.clock.now + runAt;
  const digest = key === null ? null : digestOf(body);
  const group = shared.grouped ? rest.group : null;
  const groupConcurrency = group === null ? null : together;
  const belonging = { queue: "default", priority: legal, groupConcurrency };
  return { id, payload: body, key, digest, runAt: due, ...limits, ...rest, ...belonging, group };
}

function enqueueAll(shared: Shared, specs: readonly ValueOf<typeof spec>[]) {
  const jobs = specs.map((each) => jobFrom(shared, each));
  shared.ids.push(...jobs.map(({ id }) => id).filter((id) => !shared.ids.includes(id)));
  return (store: Store) => store.enqueue(jobs);
}

/** New jobs. */
export const enqueue = command("enqueue", fc.array(spec, { minLength: 1, maxLength: 4 }), enqueueAll);

const dueSpec = spec.map(
  (each): ValueOf<typeof spec> => ({
    ...each,
    again: null,
    key: null,
    delayMs: 0,
    runAt: null,
    type: "a",
    priority: 0,
  }),
);

/** New jobs of one type that are due at once. */
export const enqueueDue = command("enqueue", fc.array(dueSpec, { minLength: 2, maxLength: 5 }), enqueueAll);

const registration = fc.record({
  leaseMs: fc.constantFrom(10_000, 60_000, 600_000),
  release: fc.constantFrom(null, "1.4.1", "1.5.0"),
});

const register = command("register", registration, (shared, { leaseMs, release }) => {
  shared.made += 1;
  const id = `w${shared.made}`;
  shared.workers.push(id);
  return (store) => store.register({ id, leaseMs, pid: 1, host: "h", release });
});

const everyLane = fc.constant(Array.from({ length: 9 }, (_, lane) => ({ lane, limit: 5 })));
const someLanes = fc.array(fc.record({ lane: fc.nat(5), limit: fc.nat(3) }), { minLength: 1, maxLength: 4 });
const claimSpec = fc.record({
  worker: anyPick,
  quotas: fc.oneof(someLanes, everyLane),
  limit: fc.integer({ min: 0, max: 5 }),
  started: fc.nat(3),
  old: fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 1),
});

type Claiming = ValueOf<typeof claimSpec>;

function claimBy(
  shared: Shared,
  { worker, quotas, limit, started, old }: Claiming,
): (store: Store) => Promise<ClaimAnswer> {
  shared.made += 1;
  const ticket = shared.ticket;
  shared.ticket += limit;
  const progress = { ticket, startedThrough: Math.max(0, ticket + started - 2) };
  const request = { worker: workerAt(shared, worker), limit, nonce: `n${shared.made}`, ...progress };
  return async (store): Promise<ClaimAnswer> => {
    // Lanes by what they hold: their numbers are each store's own affair.
    const lanes = await allLanes(store, 100);
    const control = (await store.control()).version - old;
    const own = quotas.flatMap((quota) => {
      const found = lanes[quota.lane];
      return found ? [{ lane: found.lane, limit: quota.limit }] : [];
    });
    return store.claim({ ...request, control, quotas: own });
  };
}

const claim = command("claim", claimSpec, claimBy);

/** Takes what is due in any lane. */
export const claimAll = command("claimAll", anyPick, (shared, worker) => {
  const quotas = Array.from({ length: 30 }, (_, lane) => ({ lane, limit: 20 }));
  return claimBy(shared, { worker, quotas, limit: 20, started: 20, old: 0 });
});

const word = fc.oneof({ weight: 9, arbitrary: anyVerdict }, fc.constant({ kind: "progress" as const, value: "5" }));
const forgeries = ["", "", "", "", "", "", "", "", "epoch-1", "epoch+1", "nonce", "id"] as const;
const isOld = fc.constantFrom(false, false, false, false, false, false, false, true);
const run = fc.record({ lease: anyPick, forgery: fc.constantFrom(...forgeries), verdict: word, old: isOld });
const settleSpec = fc.record({
  runs: fc.array(run, { minLength: 1, maxLength: 3 }),
  worker: rarely(anyPick, 1),
  started: fc.nat(20),
});

/** A retry goes to the lane that core chooses by what is then on the record of the job. */
function inItsLane({ latest }: Shared, id: string, verdict: ValueOf<typeof word>): ValueOf<typeof word> {
  const job = latest.jobs.find((each) => each.id === id);
  if (verdict.kind !== "retry" || !job) return verdict;
  const { attempts, crashes } = verdict.charge;
  return { ...verdict, lane: laneKind(job.attempts + attempts, job.crashes + crashes, job.maxCrashes) };
}

const settle = command("settle", settleSpec, (shared, { runs, worker, started }) => {
  const settlements = runs.map(({ lease: choice, forgery, verdict, old }) => {
    const lease = leaseAt(shared, choice);
    const epoch = lease.epoch + (forgery === "epoch-1" ? -1 : forgery === "epoch+1" ? 1 : 0);
    const id = forgery === "id" ? (pick(shared.ids, choice.n) ?? "nobody") : lease.id;
    const nonce = forgery === "nonce" ? "forged" : lease.nonce;
    // As a worker does it, but also for jobs that were never sent back; now and then as a program of version 1 does it.
    return { id, epoch, nonce, verdict: inItsLane(shared, id, verdict), redriven: !old };
  });
  const by = worker === null ? {} : { worker: workerAt(shared, worker), startedThrough: started };
  return (store) => store.settle({ settlements, ...by });
});

const anyWait = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom(1, 10, 1_000, 1_000, 10_000, 60_000) },
  fc.constant(86_400_000),
);
const pass = (shared: Shared, ms: number) => {
  shared.clock.now += ms;
  return async () => null;
};
const advance = command("advance", anyWait, pass);

/** The time in which drivers look again, send again, or lose their lease. */
export const waitBriefly = command("advance", fc.constantFrom(100, 500, 1_000, 2_000, 10_000), pass);

// The contract gives the leases to cancel no order.
async function askBeat(store: Store, beat: Beat): Promise<BeatAnswer> {
  const { cancel, ...answer } = await store.beat(beat);
  return { ...answer, cancel: cancel.toSorted((a, b) => (a.id < b.id ? -1 : 1)) };
}

const beat = command("beat", fc.record({ worker: anyPick, startedThrough: fc.nat(20) }), (shared, given) => {
  const worker = workerAt(shared, given.worker);
  return (store) => askBeat(store, { worker, leaseMs: 60_000, startedThrough: given.startedThrough });
});

const expiredSpec = fc.record({
  gone: fc.array(anyPick, { maxLength: 1 }),
  limit: fc.integer({ min: 1, max: 4 }),
  lapsedBy: fc.constantFrom(Number.MAX_SAFE_INTEGER, 0),
  late: fc.option(fc.array(anyPick, { maxLength: 2 })),
});
const expired = command("expired", expiredSpec, (shared, { gone, late, ...rest }) => {
  const named = (choices: readonly (typeof gone)[number][]) => choices.map((choice) => workerAt(shared, choice));
  const request = { gone: named(gone), ...(late && { late: named(late) }), ...rest };
  return async (store) => (await store.expired(request)).map(({ position: _own, ...run }) => run);
});

const overdueSpec = fc.record(
  {
    limit: fc.integer({ min: 1, max: 4 }),
    byMs: fc.constantFrom(0, 1_000),
    ranMs: fc.constantFrom(0, 1_000),
    named: fc.constantFrom([{ type: "a", stuckMs: 1_000 }], []),
  },
  { requiredKeys: ["limit"] },
);
const overdue = command("overdue", overdueSpec, (_, request) => {
  return async (store) => (await store.overdue(request)).map(({ position: _own, ...run }) => run);
});

const leave = command("leave", anyPick, (shared, choice) => {
  const worker = workerAt(shared, choice);
  return (store) => store.leave(worker);
});

const some = fc.array(anyPick, { minLength: 1, maxLength: 3 });

const cancel = command("cancel", some, (shared, choices) => {
  const ids = choices.map((choice) => jobAt(shared, choice, ["queued", "running"]).id);
  return (store) => store.cancel(ids);
});

const change = fc.record({ delayMs: anyDelay, priority: fc.constantFrom(0, 9) }, { requiredKeys: [] });
const reschedule = command("reschedule", fc.record({ some, change }), (shared, given) => {
  const ids = given.some.map((choice) => jobAt(shared, choice, ["queued"]).id);
  return (store) => store.reschedule(ids.map((id) => ({ id, ...given.change })));
});

const remove = command("remove", some, (shared, choices) => {
  const ids = choices.map((choice) => jobAt(shared, choice, ["completed", "dead", "cancelled"]).id);
  return (store) => store.remove(ids);
});

const target: fc.Arbitrary<PauseTarget> = fc.record({
  kind: fc.constantFrom("queue", "tenant"),
  name: fc.constantFrom("default", "t1"),
});
const pauseSpec = fc.record({ target, forMs: rarely(fc.constantFrom(1, 1_000, 60_000), 1) });
const pause = command("pause", pauseSpec, (_, { target: what, forMs }) => {
  return (store) => store.pause(what, { forMs, reason: "r" });
});
const resume = command("resume", target, (_, what) => (store) => store.resume(what));

const serviceSpec = fc.record({ version: fc.nat(2), value: fc.constantFrom("1", "2") });
const setService = command("setService", serviceSpec, (_, { version, value }) => {
  return (store) => store.setService("s", version, value);
});

const cellKind = fc.constantFrom(...CELL_KINDS);
const cellName = fc.constantFrom("", "\uffff", "😀");
const cellChange = fc.record({
  kind: cellKind,
  name: cellName,
  holder: fc.constantFrom("", "w0"),
  version: rarely(fc.nat(2), 1),
  value: fc.constantFrom("1", "2", '{"a":"\\u0000"}', null),
});
const setCells = command("setCells", fc.array(cellChange, { maxLength: 4 }), (_, changes) => {
  return (store) => store.setCells(changes);
});
const cellQuery = fc.record({ kind: cellKind, name: cellName }, { requiredKeys: ["kind"] });
const cells = command("cells", fc.array(cellQuery, { maxLength: 3 }), (_, queries) => {
  return (store) => store.cells(queries);
});

const listFields = {
  limit: fc.constantFrom(0, 1, 2, 200),
  state: fc.constantFrom(...STATES),
  type: fc.constantFrom("a", "b"),
  tenant: fc.constant("t1"),
  key: fc.constant("k1"),
  due: fc.boolean(),
  tried: fc.boolean(),
  sort: fc.constant("due" as const),
};
const list = command("list", fc.record(listFields, { requiredKeys: ["limit"] }), (_, query) => {
  return async (store) => (await store.list(query)).items;
});

const weighted = (weight: number, arbitrary: fc.Arbitrary<Command>) => ({ weight, arbitrary });

/** Any command, the busy ones more often. */
export const anyCommand: fc.Arbitrary<Command> = fc.oneof(
  weighted(6, enqueue),
  weighted(1, register),
  weighted(9, claim),
  weighted(9, settle),
  weighted(3, advance),
  weighted(2, expired),
  weighted(2, overdue),
  weighted(3, cancel),
  weighted(5, redrive),
  startRun,
  weighted(2, drive),
  changeRun,
  edit,
  weighted(3, recall),
  weighted(3, repair),
  weighted(2, reschedule),
  beat,
  leave,
  remove,
  weighted(2, prune),
  retain,
  setFingerprints,
  pause,
  resume,
  setService,
  weighted(2, setRecord),
  weighted(6, note),
  weighted(3, setCells),
  cells,
  weighted(2, record),
  events,
  list,
  deadLetters,
  tally,
  addFlow,
  weighted(2, fold),
  recount,
  trend,
);
