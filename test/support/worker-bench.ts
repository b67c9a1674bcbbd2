// A bench for workers: the real worker code on virtual time over a memory store, or another one that is given. Time passes only when a test lets it,
// so "at once" and "at its due time" are exact, and nothing here ever sleeps.
import { resolveLimits, type ServiceOptions, type TenantOptions } from "../../src/core/service.ts";
import { RedriveError } from "../../src/core/errors.ts";
import type { Job } from "../../src/core/job.ts";
import type { NewJob } from "../../src/core/new-job.ts";
import type { JobDefinition } from "../../src/jobs/define-job.ts";
import { createInlineSqliteStore } from "../../src/store/sqlite/inline.ts";
import { createMemoryStore } from "../../src/store/memory/index.ts";
import type { Store } from "../../src/store/store.ts";
import type { Verb } from "../../src/store/verb-facts.ts";
import type { Log, LogLevel } from "../../src/system/log.ts";
import type { Isolation } from "../../src/worker/isolation.ts";
import type { WorkerEvent } from "../../src/report/reporter.ts";
import { resolveWorker, type WorkerOptions } from "../../src/worker/settings.ts";
import { createWorker, type QueueWorker as Worker } from "../../src/worker/worker.ts";
import { type Actor, createWorld, type World } from "../simulation/world.ts";
import { newJob } from "./new-job.ts";

/** A line of a log, with the virtual time at which it was written. */
export interface Line {
  readonly at: number;
  readonly level: Exclude<LogLevel, "silent">;
  readonly message: string;
  readonly fields: object;
}

/** A worker on the bench, and everything it said. */
export interface Hired {
  readonly worker: Worker;
  readonly actor: Actor;
  readonly lines: Line[];
  readonly events: WorkerEvent[];
  /** Lines whose message has this text in it. */
  said(text: string): Line[];
  /** Events of this kind. */
  heard(kind: WorkerEvent["kind"]): WorkerEvent[];
}

/** How a worker is hired; every one has a host of its own unless it is named. */
export interface Hiring extends WorkerOptions {
  readonly host?: string;
  readonly isolation?: Isolation;
  readonly through?: Store;
  readonly onEvent?: (event: WorkerEvent) => void;
  readonly services?: Readonly<Record<string, ServiceOptions>>;
  readonly tenants?: Readonly<Record<string, TenantOptions>>;
}

/** What is different about a job; where there are many, by its number. */
type Overrides = Partial<NewJob> | ((n: number) => Partial<NewJob>);

/** The bench. */
export interface Bench {
  readonly world: World;
  readonly store: Store;
  /** Puts a worker on the bench without starting it. */
  hire(jobs: readonly JobDefinition[], hiring?: Hiring): Hired;
  /** Hires and starts. */
  employ(jobs: readonly JobDefinition[], hiring?: Hiring): Promise<Hired>;
  /** Enqueues a job with the limits of its definition; answers its id. */
  add(definition: JobDefinition | string, overrides?: Partial<NewJob>): Promise<string>;
  /** Enqueues many; answers their ids. */
  addMany(count: number, definition: JobDefinition | string, overrides?: Overrides): Promise<string[]>;
  read(id: string): Promise<Job>;
  /** A wait on the world's clock, cut short by the signal. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  advance(ms: number): Promise<void>;
  /** Lets time pass until the condition holds; fails if it does not within the time. Answers how long it took. */
  until(condition: () => boolean, withinMs?: number): Promise<number>;
  /** Lets time pass until the promise settles; fails if it does not within the time. */
  finish<T>(promise: Promise<T>, withinMs?: number): Promise<T>;
}

/** A bench of its own for each test; a store that is given has the clock of the world that comes with it. */
export function createBench(seed = 1, kind: "memory" | "sqlite" | Store = "memory", world = createWorld(seed)): Bench {
  const store = typeof kind === "string" ? openStore(kind, () => world.now) : kind;
  const staff: Hired[] = [];
  const isAlive = (pid: number): boolean => staff[pid - 1]?.actor.alive ?? false;

  const bench: Bench = {
    world,
    store,
    hire(jobs, { host, isolation, through, onEvent, services, tenants, ...options } = {}) {
      const pid = staff.length + 1;
      const actor = world.spawn(`worker-${pid}`, async () => undefined);
      const lines: Line[] = [];
      const events: WorkerEvent[] = [];
      const emit = (event: WorkerEvent): void => {
        events.push(event);
        onEvent?.(event);
      };
      const worker = createWorker({
        store: through ?? store,
        system: actor.system,
        jobs,
        settings: resolveWorker(options),
        limits: resolveLimits({ services, tenants, types: jobs }),
        log: recorder(lines, () => world.now),
        events: { emit },
        process: { pid, host: host ?? `host-${pid}`, isAlive },
        isolation: isolation ?? null,
      });
      const said = (text: string): Line[] => lines.filter(({ message }) => message.includes(text));
      const heard = (kind: WorkerEvent["kind"]): WorkerEvent[] => events.filter((event) => event.kind === kind);
      const hired = { worker, actor, lines, events, said, heard };
      staff.push(hired);
      return hired;
    },
    async employ(jobs, hiring) {
      const hired = bench.hire(jobs, hiring);
      await bench.finish(hired.worker.start());
      return hired;
    },
    add: async (definition, overrides) => (await bench.addMany(1, definition, overrides))[0] as string,
    async addMany(count, definition, overrides = {}) {
      const own = typeof definition === "string" ? { type: definition } : limitsOf(definition);
      const other = typeof overrides === "function" ? overrides : () => overrides;
      const jobs = Array.from({ length: count }, (_, n) => newJob({ ...own, ...other(n) }));
      await store.enqueue(jobs);
      return jobs.map(({ id }) => id);
    },
    async read(id) {
      const [job] = await store.get([id]);
      if (!job) throw new Error(`There is no job ${id}.`);
      return job;
    },
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        world.later(ms, resolve);
        signal?.addEventListener("abort", () => resolve());
      }),
    advance: (ms) => world.run(world.now + ms),
    async until(condition, withinMs = 60_000) {
      const from = world.now;
      await world.run(from + withinMs, condition);
      if (!condition()) throw new Error(`The condition did not hold within ${withinMs} ms: ${String(condition)}`);
      return world.now - from;
    },
    async finish(promise, withinMs = 120_000) {
      let settled = false;
      const note = (): void => void (settled = true);
      promise.then(note, note);
      await world.run(world.now + withinMs, () => settled);
      if (!settled) throw new Error(`Still waiting after ${withinMs} ms of virtual time.`);
      return promise;
    },
  };
  return bench;
}

function openStore(kind: "memory" | "sqlite", clock: () => number): Store {
  return kind === "memory" ? createMemoryStore({ clock }) : createInlineSqliteStore({ path: ":memory:", clock });
}

function limitsOf({ type, queue, service, policy }: JobDefinition): Partial<NewJob> {
  const { maxAttempts, maxCrashes, deadlineMs, stuckMs, stuckRetryMs, stuckLimit } = policy;
  return { type, queue, service, maxAttempts, maxCrashes, deadlineMs, stuckMs, stuckRetryMs, stuckLimit };
}

/** A log that keeps its lines. */
export function recorder(lines: Line[], now: () => number): Log {
  const at = (level: Line["level"]) => (fields: object, message: string) =>
    void lines.push({ at: now(), level, message, fields });
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** What stands between a worker and its store: sees each call and may answer in its place. */
export type Around = (verb: Verb, next: () => Promise<unknown>, args: readonly unknown[]) => Promise<unknown>;

const NOT_CALLS: readonly PropertyKey[] = ["name", "onWake", "close", "pulse"];

/** A store whose calls go through a function of the test's. */
export function around(store: Store, act: Around): Store {
  return new Proxy(store, {
    get(target, key) {
      const value = Reflect.get(target, key) as unknown;
      if (NOT_CALLS.includes(key) || typeof value !== "function") return value;
      return (...args: unknown[]) => act(key as Verb, () => value(...args) as Promise<unknown>, args);
    },
  });
}

/** The error of a store that cannot answer now. */
export function unavailable(): RedriveError {
  return new RedriveError("store_unavailable", "The store is away. Nothing was written; try again.");
}

/** A way to the store that can be cut. */
export function cuttable(store: Store): { readonly store: Store; away: boolean } {
  const line = {
    away: false,
    store: around(store, async (_verb, next) => {
      if (line.away) throw unavailable();
      return next();
    }),
  };
  return line;
}

/** A promise that never settles: the handler of a job that is in somebody's hands for good. */
export function forever(): Promise<never> {
  return new Promise(() => undefined);
}
