// Opening and closing, middleware, events, pauses and the health port: the life of a Redrive as its users see it.
import { describe, expect, it } from "vitest";
import { defineJob, immediate, type Job, type Middleware, type RedriveEvent } from "../../src/index.ts";
import type { RedriveOptions, RedriveWorkerOptions } from "../../src/index.ts";
import { collectLog } from "../../src/testing/index.ts";
import { testPath } from "../support/database-file.ts";
import { beside, codeOf, drain, KINDS, libraryFor, openRedrive } from "./kinds.ts";

const double = defineJob("double", { run: ({ n }: { n: number }) => n * 2 });
const failing = defineJob("failing", {
  maxAttempts: 2,
  backoff: immediate(),
  run: (_input: object): void => {
    throw new Error("no luck");
  },
});

describe("opening", () => {
  const refused: [string, Record<string, unknown>][] = [
    ["no store", {}],
    ["a store that does not exist", { store: "mysql:jobs" }],
    ["sqlite without a path", { store: "sqlite:" }],
    ["something that is no store", { store: {} }],
    ["jobs that are no definitions", { store: "memory:", jobs: [{ type: "a" }] }],
    ["two definitions of one type", { store: "memory:", jobs: [double, defineJob("double", { run: () => 1 })] }],
    ["middleware that is no function", { store: "memory:", middleware: [{}] }],
    ["defaults that cannot be", { store: "memory:", defaults: { maxAttempts: 0 } }],
    ["a log that is none", { store: "memory:", log: "loud" }],
    ["a payload limit over 16 MiB", { store: "memory:", maxPayloadBytes: 2 ** 24 + 1 }],
    ["an option that does not exist", { store: "memory:", job: [] }],
  ];
  it.each(refused)("refuses %s", async (_what, options) => {
    const { createRedrive } = await libraryFor("memory");
    expect(await codeOf(() => createRedrive(options as unknown as RedriveOptions))).toBe("invalid_argument");
  });

  it.each<[string, Record<string, unknown>]>([
    ["no slots", { concurrency: 0 }],
    ["a heartbeat too slow for its lease", { lease: "3s", heartbeat: "2s" }],
    ["an option that does not exist", { concurency: 5 }],
    ["queues that are no list", { queues: "default" }],
    ["a health port without a number", { health: { prot: 1 } }],
  ])("a worker refuses %s", async (_what, options) => {
    const redrive = await openRedrive("memory");
    expect(() => redrive.worker(options as RedriveWorkerOptions)).toThrow(/expected/);
  });

  it("keeps what a SQLite file holds", async () => {
    const { createRedrive } = await libraryFor("sqlite");
    const store = `sqlite:${testPath()}`;
    const first = await createRedrive({ store });
    const { id } = await first.enqueue("double", { n: 1 });
    await first.close();
    const second = await createRedrive({ store, jobs: [double] });
    expect(await drain(second)).toMatchObject({ completed: 1 });
    expect((await second.jobs.get(id))?.result).toBe("2");
    await second.close();
  });
});

describe.each(KINDS)("closing on %s", (kind) => {
  it("may happen twice, stops workers, and nothing goes after it", async () => {
    const redrive = await openRedrive(kind, { jobs: [double] });
    const worker = redrive.worker();
    await worker.start();
    expect(worker.isReady || (await redrive.enqueue(double, { n: 1 })).duplicate === false).toBe(true);
    await Promise.all([redrive.close(), redrive.close()]);
    await redrive.close();
    expect(worker.isReady).toBe(false);
    expect(() => redrive.worker()).toThrow(/closed/);
    const calls = [
      () => redrive.enqueue(double, { n: 1 }),
      () => redrive.enqueueText(double, "{}"),
      () => redrive.enqueueMany(double, [{ n: 1 }]),
      () => redrive.run(double, { n: 1 }),
      () => redrive.jobs.count(),
      () => redrive.deadLetters.stats(),
      () => redrive.pause({ kind: "queue", name: "default" }),
    ];
    for (const call of calls) expect(await codeOf(call)).toBe("closed");
  });

  it("leaves a store of the caller's open", async () => {
    const owner = await openRedrive(kind, { jobs: [double] });
    const guest = await beside(owner, kind, { jobs: [double] });
    await guest.close();
    expect(await codeOf(() => guest.enqueue(double, { n: 1 }))).toBe("closed");
    expect((await owner.enqueue(double, { n: 1 })).duplicate).toBe(false);
  });

  it("ends the waiting of whoever waits for a job", async () => {
    const owner = await openRedrive(kind);
    const guest = await beside(owner, kind, { jobs: [double] });
    const controller = new AbortController();
    const outcome = guest.run(double, { n: 1 }, { signal: controller.signal }).catch((error: unknown) => error);
    await expect.poll(async () => (await owner.jobs.count()).queued).toBe(1);
    await guest.close();
    const late = new Promise((resolve) => setTimeout(resolve, 30_000, "still waiting").unref());
    const end = await Promise.race([outcome, late]);
    controller.abort();
    expect(end).toMatchObject({ code: "closed" });
  });
});

describe.each(KINDS)("middleware on %s", (kind) => {
  it("is called around every run, the first one outermost, and may change input's result", async () => {
    const order: string[] = [];
    const layer =
      (name: string): Middleware =>
      async ({ type, input, context }, next) => {
        order.push(`${name} before ${type} ${JSON.stringify(input)} ${context.attempt}`);
        const result = (await next()) as number;
        order.push(`${name} after ${result}`);
        return result + 1;
      };
    const redrive = await openRedrive(kind, { jobs: [double], middleware: [layer("a"), layer("b")] });
    const { id } = await redrive.enqueue(double, { n: 4 });
    await drain(redrive);
    expect(order).toEqual(['a before double {"n":4} 1', 'b before double {"n":4} 1', "b after 8", "a after 9"]);
    expect((await redrive.jobs.get(id))?.result).toBe("10");
  });

  it("may answer in place of the handler, fail, and see failures", async () => {
    const seen: string[] = [];
    const watch: Middleware = async (_run, next) => {
      try {
        return await next();
      } catch (error) {
        seen.push((error as Error).message);
        throw error;
      }
    };
    const guard: Middleware = async ({ input }, next) => {
      const { n } = input as { n: number };
      if (n === 1) return "instead";
      if (n === 2) throw new Error("not allowed");
      return next();
    };
    const redrive = await openRedrive(kind, {
      jobs: [double],
      defaults: { maxAttempts: 1 },
      middleware: [watch, guard],
    });
    const jobs = [];
    for (const n of [1, 2, 3]) jobs.push(await redrive.enqueue(double, { n }));
    await drain(redrive);
    const states = await Promise.all(jobs.map(async ({ id }) => redrive.jobs.get(id)));
    expect(states.map((job) => job?.result ?? job?.failure?.message)).toEqual(['"instead"', "not allowed", "6"]);
    expect(seen).toEqual(["not allowed"]);
  });

  it("gives every failure behind it as a rejection of next", async () => {
    const seen: string[] = [];
    const watch: Middleware = (_run, next) => next().catch((error: Error) => void seen.push(error.message));
    const careless: Middleware = () => {
      throw new Error("at once");
    };
    const redrive = await openRedrive(kind, {
      jobs: [double],
      defaults: { maxAttempts: 1 },
      middleware: [watch, careless],
    });
    await redrive.enqueue(double, { n: 1 });
    await drain(redrive);
    expect(seen).toEqual(["at once"]);
  });
});

describe.each(KINDS)("events on %s", (kind) => {
  it("tell the life of jobs and workers, to whoever listens to a kind or to all", async () => {
    const redrive = await openRedrive(kind, { jobs: [double, failing] });
    const all: RedriveEvent[] = [];
    const completed: Job[] = [];
    redrive.on("*", (event) => void all.push(event));
    const stop = redrive.on("job.completed", ({ job }) => void completed.push(job));
    await redrive.enqueue(double, { n: 1 });
    await drain(redrive);
    stop();
    await redrive.enqueue(double, { n: 2 });
    await redrive.enqueue(failing, {});
    await drain(redrive);
    expect(completed).toHaveLength(1);
    const kinds = new Map<string, number>();
    for (const { kind: name } of all) kinds.set(name, (kinds.get(name) ?? 0) + 1);
    expect(Object.fromEntries(kinds)).toEqual({
      "job.enqueued": 3,
      "worker.started": 2,
      "worker.stopped": 2,
      "job.completed": 2,
      "job.retried": 1,
      "job.dead": 1,
    });
  });

  it("go on when a listener throws, which the log says", async () => {
    const log = collectLog();
    const redrive = await openRedrive(kind, { jobs: [double], log });
    let heard = 0;
    redrive.on("job.enqueued", () => {
      throw new Error("bad listener");
    });
    redrive.on("job.enqueued", () => void (heard += 1));
    await redrive.enqueue(double, { n: 1 });
    expect(heard).toBe(1);
    expect(log.said("listener")[0]?.level).toBe("error");
    expect(() => redrive.on("job.born" as "job.dead", () => undefined)).toThrow(/job\.dead/);
  });

  it("carry the job as it is after what they tell", async () => {
    const dead: Job[] = [];
    const job = defineJob("failing", { ...failing.options, onDead: (each) => void dead.push(each), run: failing.run });
    const redrive = await openRedrive(kind, { jobs: [job] });
    const events: Job[] = [];
    redrive.on("job.dead", ({ job: each }) => void events.push(each));
    await redrive.enqueue(job, {});
    await drain(redrive);
    for (const each of [dead[0], events[0]])
      expect(each).toMatchObject({ state: "dead", attempts: 2, failure: { message: "no luck" } });
  });
});

describe.each(KINDS)("pauses on %s", (kind) => {
  it.each([
    { kind: "queue", name: "default" },
    { kind: "type", name: "double" },
    { kind: "service", name: "s3" },
    { kind: "tenant", name: "acme" },
  ] as const)("hold $kind $name back until it is resumed", async (target) => {
    const redrive = await openRedrive(kind, { jobs: [double] });
    await redrive.enqueue(double, { n: 1 }, { service: "s3", tenant: "acme" });
    await redrive.pause(target, { reason: "incident" });
    expect(await drain(redrive)).toMatchObject({ completed: 0 });
    expect(await redrive.resume(target)).toBe(true);
    expect(await redrive.resume(target)).toBe(false);
    expect(await drain(redrive)).toMatchObject({ completed: 1 });
  });

  it("end by themselves when they were given a time", async () => {
    const redrive = await openRedrive(kind, { jobs: [double] });
    await redrive.worker({ poll: 20 }).start();
    await redrive.pause({ kind: "type", name: "double" }, { for: "2s" });
    const { id } = await redrive.enqueue(double, { n: 1 });
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect((await redrive.jobs.get(id))?.state).toBe("queued");
    await expect.poll(async () => (await redrive.jobs.get(id))?.state, { timeout: 20_000 }).toBe("completed");
  });

  it("refuse targets and times that cannot be", async () => {
    const redrive = await openRedrive(kind);
    const bad = { kind: "colour", name: "red" } as unknown as { kind: "queue"; name: string };
    expect(await codeOf(() => redrive.pause(bad))).toBe("invalid_argument");
    expect(await codeOf(() => redrive.pause({ kind: "queue", name: "" }))).toBe("invalid_argument");
    for (const span of [0, -1, "soon"])
      expect(await codeOf(() => redrive.pause({ kind: "queue", name: "q" }, { for: span }))).toBe("invalid_argument");
  });
});

describe("the health port", () => {
  it("answers while the worker is there, and goes with it", async () => {
    const redrive = await openRedrive("memory", { jobs: [double] });
    const worker = redrive.worker({ health: { port: 0 } });
    expect(worker.healthPort).toBeNull();
    await worker.start();
    const url = `http://127.0.0.1:${worker.healthPort}`;
    await expect.poll(async () => (await fetch(`${url}/ready`)).status).toBe(200);
    expect((await fetch(`${url}/live`)).status).toBe(200);
    expect((await fetch(`${url}/else`)).status).toBe(404);
    await worker.stop();
    await worker.stop();
    expect(worker.healthPort).toBeNull();
    await expect(fetch(`${url}/live`)).rejects.toThrow();
  });

  it("that cannot be opened fails the start, and nothing after it", async () => {
    const { createRedrive } = await libraryFor("memory");
    const redrive = await createRedrive({ store: "memory:", jobs: [double], log: "silent" });
    const first = redrive.worker({ health: { port: 0 } });
    await first.start();
    const second = redrive.worker({ health: { port: first.healthPort ?? 0 } });
    await expect(second.start()).rejects.toThrow(/health port .* cannot be opened/);
    await first.stop();
    await redrive.close();
  });
});
