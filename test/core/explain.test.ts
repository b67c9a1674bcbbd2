// Why a job is not running: each reason alone, their order, and what is said of jobs that do not wait.
import { describe, expect, it } from "vitest";
import { explain, type LivingWorker, type Snapshot } from "../../src/core/explain.ts";
import { type Failure, type Job, USUAL_TERMS } from "../../src/core/job.ts";
import type { ActiveLane } from "../../src/core/lane.ts";
import { initialRecord, type ServiceRecord } from "../../src/core/service-record.ts";

const NOW = 1_000_000;

const JOB: Job = {
  id: "j",
  type: "mail",
  queue: "default",
  service: "pricing",
  tenant: "acme",
  group: null,
  groupConcurrency: null,
  priority: 0,
  ...USUAL_TERMS,
  maxAttempts: 5,
  limited: true,
  expiresAt: null,
  key: null,
  state: "queued",
  payload: "{}",
  version: 1,
  runAt: NOW - 5,
  dueAt: NOW - 5,
  createdAt: NOW - 5,
  updatedAt: NOW - 5,
  startedAt: null,
  finishedAt: null,
  attempts: 0,
  crashes: 0,
  releases: 0,
  generation: 1,
  epoch: 0,
  worker: null,
  cancelRequested: false,
  lastDelayMs: 0,
  batchMost: null,
  trace: null,
  progress: null,
  result: null,
  failure: null,
};
const FAILURE: Failure = {
  class: "network",
  severity: "warning",
  name: "FetchError",
  message: "no",
  stack: null,
  fingerprint: "f",
};

function worker(overrides: Partial<LivingWorker> = {}): LivingWorker {
  const types = [{ type: "mail", queue: "default", concurrency: null }];
  const load = { types, queues: null, concurrency: 10 };
  return { id: "w", taken: 0, takenByType: 0, load, sickUntil: 0, ...overrides };
}

const FREE: Snapshot = {
  now: NOW,
  pauses: [],
  services: new Map(),
  whenOpen: () => "park",
  rates: [],
  budget: null,
  workers: [worker()],
  holders: [],
  lanes: [],
  leaseEnd: null,
};

const record = (breaker: ServiceRecord["breaker"], holdUntil = 0): Partial<Snapshot> => ({
  services: new Map([["pricing", { ...initialRecord, breaker, holdUntil }]]),
});
const open = record({ state: "open", since: NOW - 60_000, until: NOW + 5_000, reason: "10 failures in a row" });
const lane = (overrides: Partial<ActiveLane> = {}): ActiveLane => ({
  type: "mail",
  queue: "default",
  service: "pricing",
  tenant: "acme",
  priority: 0,
  group: null,
  groupConcurrency: null,
  room: null,
  lane: 1,
  kind: "first",
  headRunAt: NOW - 5,
  ...overrides,
});
const pause = { kind: "queue", name: "default", from: NOW - 10, until: null, reason: "deploy" } as const;
const budget = { share: 0.2, floorPerSecond: 10, capacity: 100 };
const rate = { limit: 5, perMs: 1_000, burst: 1 };
const served = (concurrency: number | null, queues: string[] | null = null) => ({
  load: { types: [{ type: "mail", queue: "default", concurrency }], queues, concurrency: 10 },
});

const why = (job: Partial<Job>, snapshot: Partial<Snapshot> = {}) =>
  explain({ ...JOB, ...job }, { ...FREE, ...snapshot });
const kinds = (job: Partial<Job>, snapshot: Partial<Snapshot> = {}) =>
  why(job, snapshot).reasons.map(({ kind }) => kind);

describe("a job that waits", () => {
  it("is not behind older jobs of its group that have another concurrency: they wait in another lane", () => {
    const older = { headRunAt: NOW - 6, group: "g", groupConcurrency: 1, room: 1 };
    const job = { group: "g", groupConcurrency: 2 };
    expect(kinds(job, { lanes: [lane(older)] })).toEqual([]);
    expect(kinds(job, { lanes: [lane({ ...older, groupConcurrency: 2 })] })).toEqual(["behind"]);
  });

  it("is taken by the next free slot where nothing holds it", () => {
    expect(why({})).toEqual({ id: "j", state: "queued", summary: "due: the next free slot takes it", reasons: [] });
  });

  it.each<[string, Partial<Job>, Partial<Snapshot>, object]>([
    [
      "scheduled",
      { runAt: NOW + 5_000 },
      {},
      { message: "scheduled for later", next: "it falls due in 5s", at: NOW + 5_000 },
    ],
    [
      "retrying",
      { runAt: NOW + 1, attempts: 2, failure: FAILURE, lastDelayMs: 4_000 },
      {},
      { message: "attempt 2 failed with FetchError; it waits 4s before the next", at: NOW + 1 },
    ],
    [
      "group",
      { group: "g", groupConcurrency: 1 },
      { holders: [{ ...JOB, id: "first", state: "running" }] },
      { message: "job first of its group g is before it", next: "it starts when one has ended", at: null },
    ],
    [
      "group",
      { group: "g", groupConcurrency: 1 },
      { holders: [{ ...JOB, id: "first", runAt: NOW + 7 }] },
      { next: "first is retried, and keeps its place until it has ended", at: NOW + 7 },
    ],
    [
      "group",
      { group: "g", groupConcurrency: 2 },
      { holders: ["a", "b"].map((id) => ({ ...JOB, id, state: "running" as const })) },
      { message: "all 2 places of its group g are taken", at: null },
    ],
    ["paused", {}, { pauses: [pause] }, { message: "the queue default is paused: deploy", at: null }],
    [
      "paused",
      {},
      { pauses: [{ ...pause, until: NOW + 9 }] },
      { next: "it continues when the pause ends", at: NOW + 9 },
    ],
    [
      "breaker",
      {},
      open,
      {
        message: "the breaker of pricing was opened 1m ago: 10 failures in a row",
        next: "a probe tries the service",
        at: NOW + 5_000,
      },
    ],
    [
      "breaker",
      {},
      record({ state: "isolated", since: NOW - 1_000, until: null, reason: "maintenance" }),
      {
        message: "the breaker of pricing was opened by hand 1s ago: maintenance",
        next: /closes the breaker/,
        at: null,
      },
    ],
    [
      "breaker",
      {},
      record({ state: "half_open", since: NOW, probes: [], successes: 0 }),
      { message: /only probes/, at: null },
    ],
    [
      "hold",
      {},
      record(initialRecord.breaker, NOW + 2_000),
      { message: "pricing asked to wait 2s more (Retry-After)", at: NOW + 2_000 },
    ],
    ["no_worker", {}, { workers: [] }, { message: "no worker is alive", at: null }],
    ["no_worker", { type: "other" }, {}, { message: "no living worker serves the type other; 1 serves other work" }],
    ["no_worker", {}, { workers: [worker(served(null, ["slow"]))] }, { message: /serves the queue default/ }],
    ["no_worker", {}, { workers: [worker({ sickUntil: NOW + 7 })] }, { message: /fail with pricing/, at: NOW + 7 }],
    [
      "budget",
      { attempts: 1 },
      { budget: { settings: budget, budget: { tokens: 0.5, countedAt: NOW } } },
      { message: "the retry budget of pricing is used up: 20 % of successes and 10 a second", at: NOW + 50 },
    ],
    ["budget", { attempts: 1 }, { budget: { settings: { ...budget, floorPerSecond: 0 }, budget: null } }, { at: null }],
    [
      "rate_limit",
      {},
      { rates: [{ name: "type:mail", rate, bucket: { nextAt: NOW + 1.5 } }] },
      { message: "the rate limit of type mail is used up: 5 per 1s", at: NOW + 2 },
    ],
    [
      "rate_limit",
      {},
      { rates: [{ name: "service:pricing", rate: null, bucket: { nextAt: NOW + 1 } }] },
      { message: /rises slowly/ },
    ],
    [
      "workers_full",
      {},
      { workers: [worker({ taken: 10 })] },
      { message: "every slot is taken on the worker that serves it" },
    ],
    [
      "workers_full",
      {},
      { workers: [worker({ ...served(2), taken: 2, takenByType: 2 })] },
      { message: /slot for mail/ },
    ],
    ["behind", {}, { lanes: [lane({ priority: 5 })] }, { message: "due: work of higher priority is due" }],
    [
      "behind",
      {},
      { lanes: [lane({ tenant: "b" }), lane({ tenant: null })] },
      { message: "due: 2 other tenants take their turns" },
    ],
    ["behind", {}, { lanes: [lane({ headRunAt: NOW - 6 })] }, { message: "due: older jobs of its kind are due" }],
    [
      "suspect",
      { crashes: 1 },
      {},
      { message: "a worker died while it ran", next: "it is taken singly, beside others" },
    ],
    ["suspect", { crashes: 2 }, {}, { message: "2 workers died while it ran", next: /child process/ }],
  ])("says why: %s", (kind, job, snapshot, expected) => {
    const { summary, reasons } = why(job, snapshot);
    const texts = Object.entries(expected).map(([key, value]) => [
      key,
      value instanceof RegExp ? expect.stringMatching(value) : (value as unknown),
    ]);
    expect(reasons).toEqual([expect.objectContaining({ kind, ...Object.fromEntries(texts) })]);
    expect(summary).toBe(reasons[0]?.message);
  });

  it("names the next round of a batch run, not how long it may take at most", () => {
    const wait = 7 * 86_400_000;
    const job = { type: "batch:tonight", runAt: NOW + wait, attempts: 1, failure: FAILURE, lastDelayMs: wait };
    const { summary, reasons } = why(job, {});
    expect(summary).toBe("waits for the next round of its batch run");
    expect(JSON.stringify(reasons)).not.toContain("7d");
  });

  it("says every reason, the decisive one first", () => {
    const snapshot = {
      ...record({ state: "open", since: 0, until: NOW, reason: "r" }, NOW + 1),
      pauses: [pause],
      workers: [],
      budget: { settings: budget, budget: null },
      rates: [{ name: "type:mail", rate, bucket: { nextAt: NOW + 1 } }],
    };
    const late = ["paused", "breaker", "hold", "no_worker", "budget", "rate_limit"];
    expect(kinds({ runAt: NOW + 1, attempts: 1 }, snapshot)).toEqual(["retrying", ...late]);
    expect(kinds({ attempts: 1 }, snapshot)).toEqual(late);
    expect(kinds({ crashes: 1 }, { workers: [worker({ taken: 10 })], lanes: [lane({ priority: 1 })] })).toEqual([
      "workers_full",
      "behind",
      "suspect",
    ]);
  });

  it("is not held by what does not concern it, or is over", () => {
    expect(
      kinds(
        {},
        {
          pauses: [
            { ...pause, name: "other" },
            { ...pause, until: NOW },
          ],
        },
      ),
    ).toEqual([]);
    expect(kinds({ service: null }, open)).toEqual([]);
    expect(kinds({}, { ...open, whenOpen: () => "fail" })).toEqual([]);
    expect(kinds({}, record(initialRecord.breaker, NOW))).toEqual([]);
    expect(kinds({}, { budget: { settings: budget, budget: null } })).toEqual([]);
    expect(kinds({ attempts: 1 }, { budget: { settings: budget, budget: { tokens: 1, countedAt: NOW } } })).toEqual([]);
    expect(kinds({}, { rates: [{ name: "type:mail", rate, bucket: { nextAt: NOW } }] })).toEqual([]);
    expect(kinds({}, { workers: [worker({ taken: 10 }), worker()] })).toEqual([]);
    expect(kinds({}, { workers: [worker({ load: null, taken: 99 })] })).toEqual([]);
    expect(
      kinds({}, { lanes: [lane(), lane({ priority: 9, type: "foreign" }), lane({ kind: "retry", headRunAt: 1 })] }),
    ).toEqual([]);
  });

  it("does not stand behind work that is held back itself", () => {
    const lanes = [lane({ priority: 5, queue: "other" }), lane({ tenant: "b", queue: "other" })];
    expect(kinds({}, { lanes })).toEqual(["behind"]);
    expect(kinds({}, { lanes, pauses: [{ ...pause, name: "other" }] })).toEqual([]);
  });

  it.each<[string, Partial<Job>, Partial<Snapshot>]>([
    ["scheduled", { runAt: NOW + 1 }, { ...open, pauses: [pause] }],
    ["retrying", { runAt: NOW + 1, attempts: 1 }, open],
    ["paused", {}, { ...open, pauses: [pause] }],
    ["parked", {}, open],
    ["queued", {}, record(initialRecord.breaker, NOW + 1)],
    ["queued", {}, { ...open, whenOpen: () => "dead-letter" }],
  ])("is shown as %s", (state, job, snapshot) => expect(why(job, snapshot).state).toBe(state));
});

describe("a job of a group", () => {
  const grouped = { group: "g", groupConcurrency: 1 };

  it("is not held by itself, nor while there is room", () => {
    expect(kinds(grouped, { holders: [{ ...JOB, ...grouped }] })).toEqual([]);
    expect(kinds({ ...grouped, groupConcurrency: 2 }, { holders: [{ ...JOB, id: "a" }] })).toEqual([]);
  });
});

describe("a job that does not wait", () => {
  it.each<[Partial<Job>, Partial<Snapshot>, object]>([
    [
      { state: "running", worker: "w", startedAt: NOW - 2_000 },
      { leaseEnd: NOW + 1 },
      { kind: "running", message: "it has been running for 2s on w", next: "it ends, or its timeout ends it" },
    ],
    [{ state: "running", worker: "w", cancelRequested: true }, { leaseEnd: NOW + 1 }, { next: "it was asked to stop" }],
    [{ state: "running", worker: "w" }, {}, { kind: "running", message: "it ran on w, which no longer responds" }],
    [{ state: "completed", finishedAt: 5 }, {}, { kind: "finished", message: "it completed", next: "nothing", at: 5 }],
    [{ state: "cancelled", finishedAt: 5 }, {}, { kind: "finished", message: "it was cancelled" }],
    [
      { state: "dead", finishedAt: 5, failure: FAILURE },
      {},
      { kind: "finished", message: "it died of FetchError", next: "nothing, unless an operator retries it" },
    ],
  ])("says so: %o", (job, snapshot, expected) => {
    const { state, reasons } = why(job, { ...open, pauses: [pause], workers: [], ...snapshot });
    expect(state).toBe(job.state);
    expect(reasons).toEqual([expect.objectContaining(expected)]);
  });
});
