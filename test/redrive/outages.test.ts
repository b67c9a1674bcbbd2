// What users ask about an outage: why a job waits, the breakers and how to change them by hand, limits and queues. On each
// store, with real workers.
import { describe, expect, inject, it } from "vitest";
import { recordFrom } from "../../src/core/service-record.ts";
import { type BatchItem, defineJob, done, type Redrive, type RedriveOptions } from "../../src/index.ts";
import { openQueue } from "../support/postgres-queue.ts";
import { beside, codeOf, KINDS, openRedrive } from "./kinds.ts";

type Open = (options: Omit<RedriveOptions, "store">) => Promise<Redrive>;

const STORES: readonly (readonly [string, Open])[] = [
  ...KINDS.map((kind) => [kind, (options) => openRedrive(kind, options)] as const satisfies readonly [string, Open]),
  ["postgres 18", async (options) => (await openQueue(inject("postgres18"), { ...options, built: true })).redrive],
];

const FAST = { poll: 20, lease: "3s", heartbeat: 50 } as const;
const quote = defineJob("quote", { service: "pricing", queue: "outside", run: (_input: object) => "ok" });
const down = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });

const kindsOf = async (redrive: Redrive, id: string): Promise<string[]> =>
  (await redrive.jobs.explain(id)).reasons.map(({ kind }) => kind);

/** A job type that runs until the test lets go. */
function gated(type: string, options: { readonly concurrency?: number } = {}) {
  let open = (): void => undefined;
  const gate = new Promise<void>((resolve) => (open = resolve));
  return { job: defineJob(type, { ...options, run: (_input: object) => gate }), open };
}

describe.each(STORES)("an explanation on %s", (_name, open) => {
  it("follows a job through everything that holds it", async () => {
    const redrive = await open({ jobs: [quote] });
    const { id } = await redrive.enqueue(quote, {}, { delay: "1h" });
    expect(await redrive.jobs.explain(id)).toMatchObject({
      id,
      state: "scheduled",
      reasons: [{ kind: "scheduled" }, { kind: "no_worker" }],
    });
    await redrive.jobs.reschedule(id, { delay: 0 });
    expect(await kindsOf(redrive, id)).toEqual(["no_worker"]);
    await redrive.breakers.open("pricing", { reason: "maintenance", for: "1h" });
    await redrive.pause({ kind: "queue", name: "outside" }, { reason: "deploy" });
    await redrive.worker(FAST).start();
    expect(await redrive.jobs.explain(id)).toMatchObject({
      state: "paused",
      summary: "the queue outside is paused: deploy",
      reasons: [
        { kind: "paused", at: null },
        { kind: "breaker", at: expect.any(Number) },
      ],
    });
    await redrive.resume({ kind: "queue", name: "outside" });
    expect(await redrive.jobs.explain(id)).toMatchObject({ state: "parked", reasons: [{ kind: "breaker" }] });
    expect((await redrive.jobs.get(id))?.state).toBe("queued");
    await redrive.breakers.close("pricing");
    await expect.poll(() => kindsOf(redrive, id)).toEqual(["finished"]);
    expect(await codeOf(() => redrive.jobs.explain("nobody"))).toBe("not_found");
    expect(await codeOf(() => redrive.jobs.explain(""))).toBe("invalid_argument");
  });

  it("counts on workers that have said nothing, but not on the process of a single job", async () => {
    const redrive = await open({});
    const { id } = await redrive.enqueue("quote", {});
    const worker = { leaseMs: 60_000, pid: 1, release: null };
    await redrive.store.register({ ...worker, id: "child", host: "here/isolated" });
    expect(await kindsOf(redrive, id)).toEqual(["no_worker"]);
    await redrive.store.register({ ...worker, id: "old", host: "here" });
    expect(await redrive.jobs.explain(id)).toMatchObject({ summary: "due: the next free slot takes it", reasons: [] });
  });

  it("goes by what living workers were told, and not by what was configured before", async () => {
    const before = { pricing: { whenOpen: "dead-letter", budget: { floorPerSecond: 0 } } } as const;
    const redrive = await open({ jobs: [quote], services: before });
    const worker = redrive.worker(FAST);
    await worker.start();
    const reader = await beside(redrive, "memory", {});
    await expect.poll(() => reader.limits()).toMatchObject([{ name: "pricing", budget: { floorPerSecond: 0 } }]);
    await worker.stop();
    await expect.poll(() => reader.limits()).toEqual([]);
    // One that was killed takes nothing back.
    const said = { kind: "settings", name: "service:pricing", holder: "killed", version: null };
    const value = JSON.stringify({ breaker: {}, whenOpen: "dead-letter", rampMs: 0, budget: null, rate: null });
    await redrive.store.setCells([{ ...said, value }]);
    await redrive.store.register({ id: "killed", leaseMs: 2_000, pid: 1, host: "h", release: null });
    await reader.breakers.open("pricing", { reason: "r" });
    const { id } = await redrive.enqueue(quote, {});
    expect((await reader.jobs.explain(id)).state).toBe("queued");
    await expect.poll(async () => (await reader.jobs.explain(id)).state).toBe("parked");
  });

  it("tells a full worker from one that does not serve, and what is ahead", async () => {
    const slow = gated("slow");
    const single = gated("single", { concurrency: 1 });
    const redrive = await open({ jobs: [slow.job, single.job] });
    const worker = redrive.worker({ ...FAST, concurrency: 2 });
    const [first, second] = [await redrive.enqueue(single.job, {}), await redrive.enqueue(single.job, {})];
    await worker.start();
    await expect.poll(() => kindsOf(redrive, first.id)).toEqual(["running"]);
    expect(await redrive.jobs.explain(second.id)).toMatchObject({
      summary: "every slot for single is taken on the worker that serves it",
    });
    const running = await redrive.enqueue(slow.job, {});
    await expect.poll(() => kindsOf(redrive, running.id)).toEqual(["running"]);
    const urgent = await redrive.enqueue(slow.job, {}, { priority: 9 });
    const waiting = await redrive.enqueue(slow.job, {});
    const foreign = await redrive.enqueue("foreign", {});
    await expect.poll(() => kindsOf(redrive, urgent.id)).toEqual(["workers_full"]);
    expect(await kindsOf(redrive, waiting.id)).toEqual(["workers_full", "behind"]);
    expect(await redrive.jobs.explain(foreign.id)).toMatchObject({
      summary: "no living worker serves the type foreign; 1 serves other work",
    });
    slow.open();
    single.open();
    await expect.poll(() => kindsOf(redrive, second.id)).toEqual(["finished"]);
  });
});

describe.each(STORES)("an explanation beside batches on %s", (_name, open) => {
  it("counts slots and not jobs", async () => {
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => (release = resolve));
    const many = defineJob("many", {
      batch: { size: 10 },
      concurrency: 1,
      async runBatch(items: readonly BatchItem<object>[]) {
        await gate;
        return items.map(() => done(null));
      },
    });
    const slow = gated("slow");
    const redrive = await open({ jobs: [many, slow.job] });
    const ten = await redrive.enqueueMany(
      many,
      Array.from({ length: 10 }, () => ({})),
    );
    expect(ten).toMatchObject({ enqueued: 10 });
    await redrive.worker({ ...FAST, concurrency: 2 }).start();
    await expect.poll(async () => (await redrive.jobs.count()).running).toBe(10);
    await redrive.pause({ kind: "type", name: "slow" });
    const { id } = await redrive.enqueue(slow.job, {});
    expect(await kindsOf(redrive, id)).toEqual(["paused"]);
    const eleventh = await redrive.enqueue(many, {});
    expect(await redrive.jobs.explain(eleventh.id)).toMatchObject({
      summary: "every slot for many is taken on the worker that serves it",
    });
    await redrive.resume({ kind: "type", name: "slow" });
    await expect.poll(() => kindsOf(redrive, id)).toEqual(["running"]);
    const next = await redrive.enqueue(slow.job, {});
    await expect.poll(() => kindsOf(redrive, next.id)).toEqual(["workers_full"]);
    expect((await redrive.jobs.explain(next.id)).summary).toBe("every slot is taken on the worker that serves it");
    slow.open();
    release();
    await expect.poll(async () => (await redrive.jobs.count()).completed).toBe(13);
  });
});

describe.each(STORES)("breakers on %s", (_name, open) => {
  it("are opened, closed and reset by hand, for everybody", async () => {
    const redrive = await open({ services: { pricing: { ramp: "5s" } } });
    expect(await redrive.breakers.list()).toMatchObject([{ service: "pricing", state: "closed", since: 0 }]);
    const opened = await redrive.breakers.open("pricing", { reason: "maintenance" });
    expect(opened).toMatchObject({ state: "isolated", until: null, reason: "maintenance" });
    const other = await beside(redrive, "memory", {});
    expect(await other.breakers.get("pricing")).toEqual(opened);
    const timed = await other.breakers.open("pricing", { reason: "again", for: "1m" });
    expect((timed.until ?? 0) - timed.since).toBe(60_000);
    const closed = await redrive.breakers.close("pricing");
    expect(closed).toMatchObject({ state: "closed", until: null, reason: null });
    expect((closed.rampUntil ?? 0) - closed.since).toBe(5_000);
    expect(await redrive.breakers.reset("pricing")).toMatchObject({ state: "closed", rampUntil: null });
    expect(await redrive.breakers.get("never-heard-of")).toMatchObject({ state: "closed", calls: 0, sick: [] });
    expect((await redrive.breakers.list()).map(({ service }) => service)).toEqual(["pricing"]);
  });

  it("close with the ramp that workers were configured with", async () => {
    const redrive = await open({ jobs: [quote], services: { "*": { ramp: "7s" } } });
    await redrive.worker(FAST).start();
    const other = await beside(redrive, "memory", {});
    await other.breakers.open("pricing", { reason: "r" });
    const { since, rampUntil } = await other.breakers.close("pricing");
    expect((rampUntil ?? 0) - since).toBe(7_000);
  });

  it("are changed one after the other, however many change them at once", async () => {
    const redrive = await open({});
    await Promise.all(Array.from({ length: 5 }, (_, n) => redrive.breakers.open("pricing", { reason: `r${n}` })));
    const { services } = await redrive.store.control();
    expect(services).toMatchObject([{ name: "pricing", version: 5 }]);
    // One outage, however often it was said.
    expect(recordFrom(services[0]?.value ?? "").parked).toHaveLength(1);
  });

  it("show what workers saw, and why they opened", async () => {
    const failing = defineJob("failing", {
      service: "pricing",
      maxAttempts: 50,
      backoff: () => 1,
      run: () => Promise.reject(down),
    });
    const redrive = await open({ jobs: [failing], services: { pricing: { breaker: { failures: 5, openFor: "1h" } } } });
    const { id } = await redrive.enqueue(failing, {});
    const worker = redrive.worker(FAST);
    await worker.start();
    await expect.poll(async () => (await redrive.breakers.get("pricing")).state).toBe("open");
    expect(await redrive.breakers.get("pricing")).toMatchObject({
      reason: "5 failures in a row",
      failures: 5,
      calls: 5,
      consecutive: 5,
    });
    await expect.poll(() => kindsOf(redrive, id)).toEqual(["breaker"]);
    // Else it calls again as soon as the breaker is closed.
    await worker.stop();
    expect(await redrive.breakers.reset("pricing")).toMatchObject({ state: "closed", calls: 0, consecutive: 0 });
  });

  it("refuse what makes no sense, and change nothing", async () => {
    const redrive = await open({});
    const bad: (() => Promise<unknown>)[] = [
      () => redrive.breakers.get("no name"),
      () => redrive.breakers.open("", { reason: "r" }),
      () => redrive.breakers.open("pricing", { reason: "" }),
      () => redrive.breakers.open("pricing", {} as { reason: string }),
      () => redrive.breakers.open("pricing", { reason: "r", for: "5" }),
      () => redrive.breakers.open("pricing", { reason: "r", until: 5 } as { reason: string }),
      () => redrive.breakers.close("no name"),
      () => redrive.breakers.reset(5 as unknown as string),
    ];
    for (const call of bad) expect(await codeOf(call)).toBe("invalid_argument");
    expect((await redrive.store.control()).services).toEqual([]);
  });
});

describe.each(STORES)("limits and queues on %s", (_name, open) => {
  it("are those of workers, also for programs that were told nothing", async () => {
    const mail = defineJob("mail", {
      queue: "post",
      rateLimit: { limit: 1, per: "1h" },
      run: (_input: object) => null,
    });
    const redrive = await open({
      jobs: [mail, quote],
      services: { pricing: { budget: { share: 0.1, floorPerSecond: 0 } }, idle: { whenOpen: "fail" } },
      tenants: { acme: { weight: 2, rateLimit: { limit: 5 } } },
    });
    await redrive.worker(FAST).start();
    const other = await beside(redrive, "memory", {});
    const mine = [await redrive.enqueue(mail, {}), await redrive.enqueue(mail, {})];
    await expect.poll(async () => (await other.jobs.get(mine[0]?.id ?? ""))?.state).toBe("completed");
    const held = mine[1]?.id ?? "";
    await expect.poll(() => kindsOf(other, held)).toEqual(["rate_limit"]);
    const soon = { limit: 1, perMs: 3_600_000, burst: 1, nextAt: expect.any(Number), left: 0 };
    expect(await other.limits()).toEqual([
      {
        kind: "service",
        name: "pricing",
        rate: null,
        budget: { share: 0.1, floorPerSecond: 0, capacity: 100, tokens: 0 },
        weight: null,
      },
      {
        kind: "tenant",
        name: "acme",
        rate: { limit: 5, perMs: 1_000, burst: 1, nextAt: null, left: 1 },
        budget: null,
        weight: 2,
      },
      { kind: "type", name: "mail", rate: soon, budget: null, weight: null },
    ]);
    await other.pause({ kind: "queue", name: "empty" }, { reason: "later" });
    expect(await other.queues()).toEqual([
      { name: "empty", paused: { until: null, reason: "later" }, types: [] },
      { name: "outside", paused: null, types: ["quote"] },
      { name: "post", paused: null, types: ["mail"] },
    ]);
    await other.pause({ kind: "tenant", name: "acme" }, { for: "1h" });
    await other.pause({ kind: "type", name: "mail" });
    await other.resume({ kind: "type", name: "mail" });
    expect(await redrive.pauses()).toEqual([
      { kind: "queue", name: "empty", from: expect.any(Number), until: null, reason: "later" },
      { kind: "tenant", name: "acme", from: expect.any(Number), until: expect.any(Number), reason: "" },
    ]);
  });

  it("are nothing where nobody has said anything", async () => {
    const redrive = await open({});
    expect(await redrive.limits()).toEqual([]);
    expect(await redrive.queues()).toEqual([]);
    expect(await redrive.pauses()).toEqual([]);
  });
});
