// A Redrive for tests: memory store, fake clock, seeded random numbers, and the real worker, which works on request.
import { type Duration, parseDuration } from "../core/duration.ts";
import { invalid, parseNumber, namesOf, parseOptions } from "../core/options.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { type Events, openEvents, type RedriveEvent } from "../report/events.ts";
import { instantOf } from "../enqueue/new-jobs.ts";
import { checkSource } from "../enqueue/producer.ts";
import { assemble } from "../redrive.ts";
import type { Redrive } from "../redrive-api.ts";
import type { RecordsSummary, ProcessRecordsOptions } from "../records/process-records.ts";
import { type RedriveOptions, resolveRedrive } from "../redrive-options.ts";
import type { RedriveWorker } from "../worker/redrive-worker-api.ts";
import { LOG_LEVELS, type LogLevel, lineLog, type Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import { type Assertions, assertionsOn } from "./assertions.ts";
import { collectLog, type CollectedLog } from "./collect-log.ts";
import { Driver, type Goal } from "./driver.ts";
import { fakeSystem, seededDice } from "./fake-system.ts";
import { type FaultOptions, Faults } from "./faults.ts";
import { beginLife, waitsIn, type Wish } from "./life.ts";
import { ObservedStore } from "./observed-store.ts";
import { type RunEnd, openRuns, type RunsOnDemand } from "./runs.ts";
import { startOf } from "./start.ts";
import { Ticks } from "./ticks.ts";
import { Timeline } from "./timeline.ts";

/** Options of a test's Redrive. */
export interface TestRedriveOptions extends Omit<RedriveOptions, "store"> {
  /** The start of the fake clock: a date, epoch milliseconds or an ISO 8601 text; default 2026-01-01T00:00:00Z. */
  readonly now?: Date | number | string;
  /** Ids, jitter and everything else random follows from it; default 1. */
  readonly seed?: number;
  /**
   * How long, in real time, the fake clock stands still for a handler at work; after that the handler counts as waiting
   * for the clock, so that timeouts can end it. Default 1 s, from 1 ms.
   */
  readonly patience?: Duration;
}

/** A clock that stands still until the test moves it. */
export interface TestClock {
  /** Epoch milliseconds. */
  now(): number;
  /** Advances time; jobs that become due on the way run at their due time. */
  advance(duration: Duration): Promise<void>;
  /** Jumps to a later time; jobs that become due on the way wait until they are run. */
  set(time: Date | number | string): void;
}

/** A Redrive on a fake clock; nothing runs until the test asks for it. Close it, or declare it with `await using`. */
export interface TestRedrive extends Redrive, RunsOnDemand, Assertions {
  readonly clock: TestClock;
  /** Everything that was logged. */
  readonly log: CollectedLog;
  /** The next run of the type throws this instead of calling its handler. */
  failNext(job: JobDefinition | string, error: unknown, options?: FaultOptions): void;
  /** The next run of the type takes so long on the fake clock before its handler is called. */
  slowNext(job: JobDefinition | string, duration: Duration, options?: FaultOptions): void;
  /** The worker dies in the next run of the type. */
  crashNext(job: JobDefinition | string, options?: FaultOptions): void;
  /** Every call to the store is refused with `store_unavailable`, for this long or until `storeUp`. */
  storeDown(duration?: Duration): void;
  storeUp(): void;
}

const PASSED_ON = [
  "jobs",
  "defaults",
  "services",
  "tenants",
  "health",
  "alerts",
  "middleware",
  "log",
  "maxPayloadBytes",
  "traces",
  "actor",
] as const;
const FIELDS = namesOf<TestRedriveOptions>()([...PASSED_ON, "now", "seed", "patience"]);

/** The process id of the test itself; those of its workers follow. */
const TEST_PID = 1;

/** Opens a Redrive for one test. */
export async function createTestRedrive(options: TestRedriveOptions = {}): Promise<TestRedrive> {
  const world = openWorld(options);
  const { timeline, observed, faults, driver, hub, log, jobs } = world;
  const { main, waiter } = await openSides(world);
  const runs = openRuns({ driver, observed, timeline, jobs, onEnded: (listener) => onEnded(hub, listener) });
  const test: TestRedrive = {
    ...main,
    ...runs,
    ...assertionsOn(observed.verbs, () => timeline.now),
    log,
    clock: clockOf(timeline, driver),
    on: hub.on,
    redrives: {
      ...main.redrives,
      follow: (id, given) => driven(world, "follow", main.redrives.follow(id, given), { wish: "any" }),
    },
    run: (job, input, given) => driven(world, "run", waiter.run(job, input, given), { wish: "any", needsWork: true }),
    worker: (given) => drivenWorker(world, main.worker(given)),
    async processRecords(job, records, given) {
      checkSource("records", records);
      return drivenRecords(world, main, job, records, given);
    },
    failNext: (job, error, given) => faults.fail(typeOf(job), error, given),
    slowNext: (job, duration, given) => faults.slow(typeOf(job), duration, given),
    crashNext: (job, given) => faults.crash(typeOf(job), given),
    storeDown(duration) {
      const ms = duration === undefined ? Number.POSITIVE_INFINITY : parseDuration(duration, "storeDown", { minMs: 1 });
      observed.downUntil = timeline.now + ms;
    },
    storeUp() {
      observed.downUntil = 0;
      observed.ring();
    },
    async close() {
      if (driver.closed) return;
      driver.dismiss();
      await driven(world, "close", Promise.all([main.close(), waiter.close()]), { wish: "none" });
      driver.closed = true;
      await observed.store.close();
    },
    [Symbol.asyncDispose]: () => test.close(),
  };
  return test;
}

/** Everything that a test consists of. */
interface World {
  readonly timeline: Timeline;
  readonly observed: ObservedStore;
  readonly system: System;
  readonly faults: Faults;
  readonly driver: Driver;
  readonly hub: Events;
  readonly log: CollectedLog;
  readonly jobs: readonly JobDefinition[];
  /** The options of every Redrive of the test. */
  readonly shared: Omit<RedriveOptions, "store">;
}

function openWorld(options: TestRedriveOptions): World {
  parseOptions(options, FIELDS, "createTestRedrive");
  const { now, seed = 1, patience = "1s", ...rest } = options;
  parseNumber(seed, "seed", { min: 0, max: 0xffff_ffff, integer: true });
  const timeline = new Timeline(startOf(now));
  const observed = new ObservedStore(() => timeline.now);
  const log = collectLog(logOf(rest.log));
  const hub = openEvents(log);
  const faults = new Faults();
  const shared = { ...rest, log };
  const jobs = rest.jobs ?? [];
  let lives = TEST_PID;
  // Events of our own worker are not passed on.
  const onEvent = (event: RedriveEvent): void => void (event.kind.startsWith("worker.") || hub.emit(event));
  const system = fakeSystem(timeline, seededDice(seed, "test"));
  const driver: Driver = new Driver({
    timeline,
    observed,
    jobs,
    ticks: new Ticks(observed, { ...resolveRedrive({ ...shared, store: observed.store }), system, events: hub }),
    patienceMs: parseDuration(patience, "patience", { minMs: 1 }),
    beginLife: () =>
      beginLife({
        options: shared,
        observed,
        timeline,
        faults,
        seed,
        onEvent,
        pid: ++lives,
        isAlive: (pid) => pid === TEST_PID || pid === lives,
        wish: () => driver.wish(),
        onTaken: (id) => driver.taken(id),
        onError: (error) => void (driver.failure = { error }),
      }),
  });
  return { timeline, observed, system, faults, driver, hub, log, jobs, shared };
}

/** The Redrive that the test uses, and one that waits for the ends of jobs as soon as they exist. */
async function openSides(world: World): Promise<{ readonly main: Redrive; readonly waiter: Redrive }> {
  const { observed, system, faults, shared, jobs, driver, hub } = world;
  const process = { pid: TEST_PID, host: "test", isAlive: () => true };
  const { store } = observed;
  const faulty = {
    system,
    waits: waitsIn(observed),
    crash() {
      throw new Error("crashNext: a worker that the test started cannot die; use runNext, runJob or drain instead.");
    },
  };
  const own = jobs.map((job) => faults.around(job, faulty));
  const main = await assemble({ ...shared, jobs: own, store }, { system, process });
  main.on("*", (event) => {
    if (event.kind === "worker.started") driver.employed += 1;
    if (event.kind === "worker.stopped") driver.employed -= 1;
    hub.emit(event);
  });
  let ended = new AbortController();
  onEnded(hub, () => {
    ended.abort();
    ended = new AbortController();
  });
  const sleep: System["sleep"] = (ms, signal) =>
    system.sleep(ms, AbortSignal.any([ended.signal, ...(signal ? [signal] : [])]));
  const waiter = await assemble({ ...shared, store }, { system: { ...system, sleep }, process, events: hub });
  return { main, waiter };
}

function clockOf(timeline: Timeline, driver: Driver): TestClock {
  return {
    now: () => timeline.now,
    async advance(duration) {
      const until = timeline.now + parseDuration(duration, "advance");
      await driver.drive({ name: "advance", wish: () => "any", until, done: () => false });
    },
    set(time) {
      const to = instantOf(time, "time");
      if (to < timeline.now)
        throw invalid(
          "time",
          "now or later",
          new Date(to).toISOString(),
          "pass a later time; the clock does not go back",
        );
      timeline.now = to;
    },
  };
}

/** Drives until the promise settles. */
async function driven<T>(
  { driver, observed }: World,
  name: string,
  work: Promise<T>,
  { wish, ...rest }: { readonly wish: Wish } & Pick<Goal, "needsWork" | "isBusy">,
): Promise<T> {
  let over = false;
  const note = (): void => {
    over = true;
    observed.change();
  };
  work.then(note, note);
  await driver.drive({ name, wish: () => wish, done: () => over, ...rest });
  return work;
}

/** Processes records with a worker of the test; time stands still while their source is read. */
function drivenRecords<Input, Result, Item>(
  world: World,
  main: Redrive,
  job: JobDefinition<Input, Result>,
  records: Iterable<Item> | AsyncIterable<Item>,
  given: ProcessRecordsOptions<Item, Result>,
): Promise<RecordsSummary> {
  let reading = false;
  const note = (now: boolean): void => {
    reading = now;
    world.observed.change();
  };
  async function* attended(): AsyncGenerator<Item> {
    try {
      note(true);
      for await (const record of records) {
        note(false);
        yield record;
        note(true);
      }
    } finally {
      note(false);
    }
  }
  // One driver at a time: a driven worker is unwrapped first.
  const own = DRIVEN.get(given?.worker as RedriveWorker);
  const work = main.processRecords(job, attended(), own ? { ...given, worker: own } : given);
  return driven(world, "processRecords", work, { wish: "none", isBusy: () => reading });
}

/** The worker behind each driven worker. */
const DRIVEN = new WeakMap<RedriveWorker, RedriveWorker>();

/** A worker of the test; its calls drive the clock until they are done. */
function drivenWorker(world: World, worker: RedriveWorker): RedriveWorker {
  const stop: RedriveWorker["stop"] = (options) => driven(world, "stop", worker.stop(options), { wish: "none" });
  const api = Object.assign(Object.create(worker) as RedriveWorker, {
    start: () => driven(world, "start", worker.start(), { wish: "none" }),
    drain: (options?: { readonly grace?: Duration }) => driven(world, "drain", worker.drain(options), { wish: "none" }),
    stop,
    [Symbol.asyncDispose]: () => stop(),
  });
  DRIVEN.set(api, worker);
  return api;
}

/** Called for every run that has ended, whatever its verdict. */
function onEnded(hub: Events, listener: (event: RunEnd) => void): () => void {
  return hub.on("*", (event) => {
    if ("verdict" in event && event.kind !== "job.stale") listener(event);
  });
}

function typeOf(job: JobDefinition | string): string {
  return typeof job === "string" ? job : job.type;
}

function logOf(log: Log | LogLevel | undefined): Log | null {
  const level = LOG_LEVELS.find((known) => known === log);
  return level === undefined ? ((log as Log | undefined) ?? null) : lineLog(level);
}
