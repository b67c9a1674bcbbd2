// Defects of stores to plant: each wraps an honest store so that it breaks one promise, now and then or always. They
// show that the simulation finds what it is there to find; nothing of the kind exists in the library itself.
import type { Job, Lease } from "../../src/core/job.ts";
import type { ClaimedJob, SettleRequest, Store } from "../../src/store/store.ts";
import type { Rule } from "../support/history/event.ts";
import type { StoreClock } from "./faults.ts";
import type { Settings } from "./scene.ts";
import { BAD_REDRIVES } from "./planted-redrives.ts";
import type { Simulation } from "./simulate.ts";

/** A defect, the rules of which at least one must find it, and within how many seeds. */
export interface Defect {
  readonly name: string;
  readonly rules: readonly Rule[];
  readonly within: number;
  /** The seed that finds it today, played first because the others cost time; the first one unless said. */
  readonly foundBy?: number;
  /** What a simulation with this defect is played with. */
  plant(): Promise<Partial<Simulation>>;
}

/** A store that has a defect. */
export interface BadStore extends Omit<Defect, "plant"> {
  readonly settings?: Partial<Settings>;
  wrap(store: Store, clock: StoreClock): Store;
}

/** A world in which much happens, so that few seeds are needed. */
export const BUSY: Partial<Settings> = {
  producers: 2,
  workers: 3,
  operators: 2,
  concurrency: 3,
  requests: 16,
  stormMs: 15_000,
  runs: false,
};

const BAD_STORES: readonly BadStore[] = [
  {
    name: "settle ignores epoch and nonce",
    rules: ["R5"],
    within: 10,
    foundBy: 2,
    wrap: (store) => withLatest(store, () => true),
  },
  {
    name: "the fence is on the attempt number",
    rules: ["R5"],
    within: 10,
    foundBy: 2,
    wrap: fencedByAttempts,
  },
  {
    name: "a heartbeat renews a worker that was given up",
    rules: ["R9"],
    within: 20,
    foundBy: 12,
    wrap: (store) => ({ ...store, beat: async (beat) => ({ ...(await store.beat(beat)), alive: true }) }),
  },
  {
    name: "a reaper settles without a fence",
    rules: ["R5"],
    within: 10,
    foundBy: 2,
    wrap: (store) => withLatest(store, (request) => request.worker === undefined),
  },
  {
    name: "an enqueue in fifty is lost after it was confirmed",
    rules: ["R1"],
    within: 10,
    wrap(store) {
      let count = 0;
      return {
        ...store,
        async enqueue(jobs) {
          const lost = new Set(jobs.filter(() => ++count % 50 === 0));
          const answers = await store.enqueue(jobs.filter((job) => !lost.has(job)));
          return jobs.map((job) =>
            lost.has(job) ? { kind: "created", id: job.id } : (answers.shift() as (typeof answers)[0]),
          );
        },
      };
    },
  },
  {
    name: "every third dead letter is dropped",
    rules: ["R8"],
    within: 10,
    wrap: (store) => ({
      ...store,
      async deadLetters(query) {
        const page = await store.deadLetters(query);
        return { ...page, items: page.items.filter(({ job }) => job.id.charCodeAt(35) % 3 !== 0) };
      },
    }),
  },
  {
    name: "a release hands an attempt back",
    rules: ["R7"],
    within: 10,
    wrap: (store) =>
      withJobs(store, (job) => (job.releases > 0 ? { ...job, attempts: Math.max(0, job.attempts - 1) } : job)),
  },
  {
    name: "a claim takes jobs that are not due yet",
    rules: ["R11"],
    within: 10,
    wrap(store, clock) {
      const early = async <T extends object>(call: () => Promise<T>): Promise<T> => {
        clock.ahead += 200;
        const answer = call();
        clock.ahead -= 200;
        return answer;
      };
      return {
        ...store,
        lanes: (after, limit) => early(() => store.lanes(after, limit)),
        async claim(request) {
          const answer = await early(() => store.claim(request));
          return { ...answer, now: answer.now - 200 };
        },
      };
    },
  },
  {
    name: "keys are ignored",
    rules: ["R13", "R2"],
    within: 10,
    wrap: (store) => ({ ...store, enqueue: (jobs) => store.enqueue(jobs.map((job) => ({ ...job, key: null }))) }),
  },
  {
    name: "a waiting job keeps its old body when it is replaced",
    rules: ["R3"],
    within: 20,
    foundBy: 3,
    settings: { modes: 0.6 },
    wrap: (store) => ({
      ...store,
      enqueue: (jobs) =>
        store
          .enqueue(jobs.map((job) => (job.unique === "replace" ? { ...job, unique: "queued" } : job)))
          .then((all) =>
            all.map((answer, i) =>
              jobs[i]?.unique === "replace" && answer.kind === "duplicate" && answer.id !== jobs[i]?.id
                ? { kind: "replaced", id: answer.id }
                : answer,
            ),
          ),
    }),
  },
  {
    name: "a job that runs counts as one that waits",
    rules: ["R13"],
    within: 20,
    foundBy: 2,
    settings: { modes: 0.6 },
    wrap: (store) => ({
      ...store,
      enqueue: (jobs) =>
        store.enqueue(jobs.map((job) => (job.unique === "queued" ? { ...job, unique: "active" } : job))),
    }),
  },
  {
    name: "jobs of one group run at the same time",
    rules: ["R12"],
    within: 10,
    wrap: (store) => ({
      ...store,
      enqueue: (jobs) => store.enqueue(jobs.map((job) => (job.group === null ? job : { ...job, groupConcurrency: 2 }))),
    }),
  },
  {
    name: "the body behind a key is not compared",
    rules: ["R13"],
    within: 10,
    wrap: (store) => ({ ...store, enqueue: (jobs) => store.enqueue(jobs.map((job) => ({ ...job, digest: "same" }))) }),
  },
  {
    name: "one generation is redriven twice",
    rules: ["R14"],
    within: 60,
    foundBy: 11,
    wrap(store) {
      return {
        ...store,
        async redrive(requests) {
          const jobs = await store.get(requests.map(({ id }) => id));
          const current = requests.map((request, i) => ({
            ...request,
            generation: jobs[i]?.generation ?? request.generation,
          }));
          return store.redrive(current);
        },
      };
    },
  },
  {
    name: "a recall says of a job that runs that it was taken back",
    rules: ["R4", "R9"],
    within: 60,
    wrap: (store) => ({
      ...store,
      recall: async (targets) =>
        (await store.recall(targets)).map((answer) => (answer === "refused" ? "recalled" : answer)),
    }),
  },
  {
    name: "what was recalled is counted twice for its run",
    rules: ["R21"],
    within: 60,
    wrap: (store) => ({
      ...store,
      redriveCounts: async (ids) =>
        (await store.redriveCounts(ids)).map((all) => ({ ...all, recalled: 2 * all.recalled })),
    }),
  },
  {
    name: "payloads are cut",
    rules: ["R3"],
    within: 10,
    wrap: (store) => withJobs(store, (job) => ({ ...job, payload: job.payload.slice(0, 20) })),
  },
  {
    name: "living workers are given up",
    rules: ["R6"],
    within: 10,
    wrap: (store) => ({
      ...store,
      async expired(request) {
        const workers = await store.workers();
        return store.expired({ ...request, gone: workers.map((worker) => worker.id) });
      },
    }),
  },
  {
    name: "every lost run counts as started",
    rules: ["R7"],
    within: 10,
    wrap: (store) => ({
      ...store,
      expired: async (request) => (await store.expired(request)).map((run) => ({ ...run, started: true })),
    }),
  },
  {
    name: "a completed run goes back to the queue",
    rules: ["R9", "R4"],
    within: 10,
    wrap(store) {
      let count = 0;
      const settle: Store["settle"] = (request) =>
        store.settle({
          ...request,
          settlements: request.settlements.map((settlement) => {
            if (settlement.verdict.kind !== "complete" || ++count % 20 !== 0) return settlement;
            return { ...settlement, verdict: { kind: "release", delayMs: 0, reason: "snooze" } };
          }),
        });
      return { ...store, settle };
    },
  },
  {
    name: "the last page of lost runs is never listed",
    rules: ["R15"],
    within: 10,
    wrap: (store) => ({ ...store, expired: async (request) => (await store.expired(request)).slice(0, -1) }),
  },
  {
    name: "prune takes jobs before their time",
    rules: ["R1"],
    within: 10,
    wrap: (store) => ({
      ...store,
      prune: (retention) => store.prune({ ...retention, keep: { finishedMs: 0, deadMs: 0 } }),
    }),
  },
  {
    name: "a prune goes by the word of whoever prunes, not by that of the job",
    rules: ["R1"],
    within: 10,
    wrap: (store) => ({
      ...store,
      enqueue: (jobs) => store.enqueue(jobs.map((job) => ({ ...job, keepFinishedMs: null, keepDeadMs: null }))),
    }),
  },
];

/** Keys of each mode of their own: the second of two callers does not see the job of the first. */
const BAD_MODES: readonly BadStore[] = (["queued", "active", "replace", "debounce"] as const).map((mode) => ({
  name: `two callers may each get a job for a key that is ${mode}`,
  rules: ["R13"],
  within: 10,
  settings: { modes: 0.6 },
  wrap: (store) => ({
    ...store,
    enqueue: (jobs) => store.enqueue(jobs.map((job) => (job.unique === mode ? { ...job, key: null } : job))),
  }),
}));

/** Every defect of a store that is planted. */
export const STORE_DEFECTS: readonly Defect[] = [...BAD_STORES, ...BAD_MODES, ...BAD_REDRIVES].map(
  ({ wrap, settings = {}, ...defect }) => ({ ...defect, plant: async () => ({ wrap, settings }) }),
);

/** Settles under whatever lease is current. The latest lease of every job is learned from the claims. */
function withLatest(store: Store, applies: (request: SettleRequest) => boolean): Store {
  const latest = new Map<string, Lease>();
  return {
    ...store,
    async claim(request) {
      const answer = await store.claim(request);
      for (const { id, epoch, nonce } of answer.jobs) latest.set(id, { id, epoch, nonce });
      return answer;
    },
    async settle(request) {
      if (!applies(request)) return store.settle(request);
      const settlements = request.settlements.map((settlement) => ({ ...settlement, ...latest.get(settlement.id) }));
      const { stale, now } = await store.settle({ ...request, settlements });
      const refused = new Set(stale.map((lease) => lease.id));
      return { stale: request.settlements.filter(({ id }) => refused.has(id)), now };
    },
  };
}

/** Takes a verdict for current as long as the job has as many attempts as when its run was claimed. */
function fencedByAttempts(store: Store): Store {
  const attempts = new Map<string, number>();
  const latest = new Map<string, Lease>();
  return {
    ...store,
    async claim(request) {
      const answer = await store.claim(request);
      for (const job of answer.jobs) {
        attempts.set(`${job.id} ${job.epoch}`, job.attempts);
        latest.set(job.id, { id: job.id, epoch: job.epoch, nonce: job.nonce });
      }
      return answer;
    },
    async settle(request) {
      const jobs = await store.get(request.settlements.map(({ id }) => id));
      const settlements = request.settlements.map((settlement, i) => {
        const same = jobs[i]?.attempts === attempts.get(`${settlement.id} ${settlement.epoch}`);
        return same ? { ...settlement, ...latest.get(settlement.id) } : settlement;
      });
      const { stale, now } = await store.settle({ ...request, settlements });
      const refused = new Set(stale.map(({ id }) => id));
      return { stale: request.settlements.filter(({ id }) => refused.has(id)), now };
    },
  };
}

/** Shows every job as the defect would. */
function withJobs(store: Store, change: (job: Job) => Job): Store {
  const claimed = (job: ClaimedJob): ClaimedJob => ({ ...job, ...change(job) });
  return {
    ...store,
    async claim(request) {
      const answer = await store.claim(request);
      return { ...answer, jobs: answer.jobs.map(claimed) };
    },
    get: async (ids) => (await store.get(ids)).map((job) => (job === null ? null : change(job))),
    async list(query) {
      const page = await store.list(query);
      return { ...page, items: page.items.map(change) };
    },
  };
}
