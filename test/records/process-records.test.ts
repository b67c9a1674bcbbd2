// Records through a job type (R1–R4, R8): new ones and those that are due, each routed once, on every store.
import { describe, expect, inject, it, vi } from "vitest";
import {
  defineJob,
  done,
  fixed,
  permanent,
  PermanentError,
  type RecordResult,
  type Redrive,
  type RedriveOptions,
  transient,
} from "../../src/index.ts";
import { realSystem } from "../../src/system/real.ts";
import { openQueue } from "../support/postgres-queue.ts";
import { beside, codeOf, KINDS, openRedrive } from "../redrive/kinds.ts";

type Open = (options: Omit<RedriveOptions, "store">) => Promise<Redrive>;
type Order = { readonly id: string; readonly fate: "done" | "later" | "never" };

const STORES: readonly (readonly [string, Open])[] = [
  ...KINDS.map((kind) => [kind, (options) => openRedrive(kind, options)] as const satisfies readonly [string, Open]),
  ["postgres 18", async (options) => (await openQueue(inject("postgres18"), { ...options, built: true })).redrive],
];
const WORKER = { poll: 20 } as const;
const FATES = ["done", "later", "never"] as const;

function orders(count: number): Order[] {
  return Array.from({ length: count }, (_, at) => ({ id: `order-${at}`, fate: FATES[at % 3] as Order["fate"] }));
}

/** Fails as its record says; what was there before its time, it did not see. */
function enrichment(delay: number) {
  const seen: string[] = [];
  const job = defineJob("enrich", {
    maxAttempts: 2,
    backoff: fixed(delay),
    run(order: Order, { attempt }) {
      seen.push(order.id);
      if (order.fate === "never") throw new PermanentError("no such customer");
      if (order.fate === "later" && attempt === 1) throw new Error("try again");
      return { length: order.id.length };
    },
  });
  return { job, seen };
}

describe.each(STORES)("processRecords on %s", (_name, open) => {
  it("routes each record once and tells results, figures and what waits", async () => {
    const { job, seen } = enrichment(3_600_000);
    const redrive = await open({ jobs: [job] });
    const results: RecordResult<{ length: number }>[] = [];
    const summary = await redrive.processRecords(job, orders(30), {
      id: ({ id }) => id,
      worker: WORKER,
      grace: 0,
      onResult: (done) => void results.push(done),
    });
    expect(summary).toMatchObject({ records: 30, enqueued: 30, known: 0, conflicts: 0, completed: 10, retried: 10 });
    expect(summary).toMatchObject({ dead: 10, successRate: 0.5, averageRetries: 0, retryQueue: 10, deadLetters: 10 });
    expect(results).toHaveLength(10);
    expect(results.find(({ id }) => id === "order-0")).toEqual({ id: "order-0", result: { length: 7 }, attempts: 1 });
    expect(seen).toHaveLength(30);
  });

  it("skips what it knows, so that the same source can be read again, and tells of what is done already", async () => {
    const { job, seen } = enrichment(3_600_000);
    const redrive = await open({ jobs: [job] });
    const feed = (records: readonly Order[], told: string[] = []) =>
      redrive.processRecords(job, records, {
        id: ({ id }) => id,
        worker: WORKER,
        grace: 0,
        onResult: ({ id }) => void told.push(id),
      });
    await feed(orders(9));
    const told: string[] = [];
    const again = await feed([...orders(12), { id: "order-0", fate: "never" }], told);
    expect(again).toMatchObject({
      records: 13,
      enqueued: 3,
      known: 9,
      conflicts: 1,
      completed: 1,
      dead: 1,
      retried: 1,
    });
    expect(told.toSorted()).toEqual(["order-0", "order-3", "order-6", "order-9"]);
    expect(seen).toHaveLength(12);
  });

  it("runs what is due from before, with its time lock kept", async () => {
    const { job, seen } = enrichment(250);
    const redrive = await open({ jobs: [job] });
    const call = (records: readonly Order[]) =>
      redrive.processRecords(job, records, { id: ({ id }) => id, worker: WORKER, grace: 0 });
    expect(await call([{ id: "a", fate: "later" }])).toMatchObject({ retried: 1, retryQueue: 1 });
    expect(seen).toEqual(["a"]);
    const retried = await redrive.processRecords(job, [], { id: String, worker: WORKER, grace: "5s" });
    expect(retried).toMatchObject({ records: 0, completed: 1, averageRetries: 1, retryQueue: 0 });
  });

  it("tells a result once, also where it is done before its record is read", async () => {
    const { job } = enrichment(1);
    const redrive = await open({ jobs: [job] });
    await redrive.enqueue(job, { id: "a", fate: "done" }, { key: "a" });
    const told: string[] = [];
    async function* late(): AsyncGenerator<Order> {
      await vi.waitFor(() => expect(told).toEqual(["a"]), 10_000);
      yield { id: "a", fate: "done" };
    }
    const onResult = ({ id }: RecordResult) => void told.push(id);
    const summary = await redrive.processRecords(job, late(), {
      id: ({ id }) => id,
      worker: WORKER,
      grace: 0,
      onResult,
    });
    expect([summary.known, summary.completed, told]).toEqual([1, 1, ["a"]]);
  });

  it("tells what another worker of this process did once, and what it did before as well", async () => {
    const { job } = enrichment(1);
    const redrive = await open({ jobs: [job] });
    const other = redrive.worker({ poll: 20 });
    await other.start();
    const before = await redrive.enqueue(job, { id: "before", fate: "done" }, { key: "before" });
    await vi.waitFor(
      async () => expect(await redrive.jobs.get(before.id)).toMatchObject({ state: "completed" }),
      10_000,
    );
    const told: string[] = [];
    async function* late(): AsyncGenerator<Order> {
      await redrive.enqueue(job, { id: "a", fate: "done" }, { key: "a" });
      await vi.waitFor(() => expect(told).toEqual(["a"]), 10_000);
      for (const id of ["a", "before"]) yield { id, fate: "done" };
    }
    const onResult = ({ id }: RecordResult) => void told.push(id);
    await redrive.processRecords(job, late(), { id: ({ id }) => id, worker: WORKER, grace: 0, onResult });
    expect(told).toEqual(["a", "before"]);
    await other.stop();
  });

  it("sends a record that does not fit its schema to the dead letters, and stops no other", async () => {
    const schema = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: (value: unknown) =>
          typeof (value as { n?: unknown }).n === "number"
            ? { value: value as { n: number } }
            : { issues: [{ message: "n must be a number" }] },
      },
    } as const;
    const job = defineJob("sum", { input: schema, run: ({ n }) => n + 1 });
    const redrive = await open({ jobs: [job] });
    const records = [{ n: 1 }, { n: "x" }, { n: 3 }] as { n: number }[];
    const summary = await redrive.processRecords(job, records, { id: (_, at) => `r${at}`, worker: WORKER, grace: 0 });
    expect(summary).toMatchObject({ completed: 2, dead: 1 });
    const { items } = await redrive.deadLetters.list();
    expect(items).toMatchObject([{ failure: { class: "validation" }, reason: "permanent" }]);
  });
});

describe("processRecords", () => {
  it("makes one call for many records where the type has batches, and routes each of them", async () => {
    const sizes: number[] = [];
    const job = defineJob("label", {
      maxAttempts: 2,
      batch: { size: 50 },
      runBatch(items: readonly { id: string; input: Order }[]) {
        sizes.push(items.length);
        return items.map(({ input: { id, fate } }) => {
          if (fate === "never") return permanent("no such customer");
          return fate === "later" ? transient("try again", { delay: "1h" }) : done({ length: id.length });
        });
      },
    });
    const redrive = await openRedrive("memory", { jobs: [job] });
    const results: string[] = [];
    const onResult = ({ id }: RecordResult): void => void results.push(id);
    const summary = await redrive.processRecords(job, orders(300), { id: ({ id }) => id, grace: 0, onResult });
    expect(summary).toMatchObject({ records: 300, completed: 100, retried: 100, dead: 100, retryQueue: 100 });
    expect(new Set(results).size).toBe(100);
    expect(sizes.length).toBeLessThan(30);
  });

  it("reads no further ahead than it can run", async () => {
    let ran = 0;
    let furthest = 0;
    const job = defineJob("count", { run: () => void (ran += 1) });
    const redrive = await openRedrive("memory", { jobs: [job] });
    async function* source(): AsyncGenerator<number> {
      for (let at = 0; at < 15_000; at++) {
        furthest = Math.max(furthest, at - ran);
        yield at;
      }
    }
    const summary = await redrive.processRecords(job, source(), { id: String, worker: WORKER, grace: 0 });
    expect(summary).toMatchObject({ records: 15_000, completed: 15_000 });
    expect(furthest).toBeLessThan(12_000);
  });

  it("does not wait for what it knows already, and reads no further than it has told", async () => {
    const job = defineJob("count", { run: (n: number) => n });
    const redrive = await openRedrive("memory", { jobs: [job] });
    const records = Array.from({ length: 12_000 }, (_, at) => at);
    await redrive.processRecords(job, records, { id: String, grace: 0 });
    const sleeps = vi.spyOn(realSystem, "sleep");
    let [read, told, most] = [0, 0, 0];
    async function* source(): AsyncGenerator<number> {
      for (const record of records) {
        most = Math.max(most, ++read - told);
        yield record;
      }
    }
    const onResult = async (): Promise<void> => {
      if (++told % 100 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    };
    const again = await redrive.processRecords(job, source(), { id: String, grace: 0, onResult });
    expect(again).toMatchObject({ records: 12_000, known: 12_000, completed: 0 });
    expect(told).toBe(12_000);
    // A pause of the reader is 20 ms; there is none.
    expect(sleeps.mock.calls.filter((args) => args.length === 1 && args[0] === 20)).toEqual([]);
    expect(most).toBeLessThan(4_000);
  });

  it("takes records as large as the queue allows, and no larger ones", async () => {
    const job = defineJob("large", { run: ({ text }: { text: string }) => text.length });
    const redrive = await openRedrive("memory", { jobs: [job], maxPayloadBytes: 3_000_000 });
    const call = (size: number) =>
      redrive.processRecords(job, [{ text: "x".repeat(size) }], { id: () => `${size}`, worker: WORKER, grace: 0 });
    expect(await call(2_000_000)).toMatchObject({ completed: 1 });
    await expect(call(4_000_000)).rejects.toThrow(/payload may have at most 3000000 bytes/);
  });

  it("tells a record once that the source has twice, and none for a conflict", async () => {
    const job = defineJob("count", { run: (n: number) => n });
    const redrive = await openRedrive("memory", { jobs: [job] });
    const numbers = Array.from({ length: 1_000 }, (_, at) => at);
    // Twice in one chunk, and again in a later one.
    const records = [0, 0, ...numbers, 0, 999];
    const feed = async (values: readonly number[], id: (n: number) => string = String): Promise<string[]> => {
      const told: string[] = [];
      await redrive.processRecords(job, values, { id, grace: 0, onResult: (done) => void told.push(done.id) });
      return told;
    };
    for (let call = 0; call < 2; call++) {
      const told = await feed(records);
      expect([told.length, new Set(told).size]).toEqual([1_000, 1_000]);
    }
    expect(await feed([7], () => "8")).toEqual([]);
  });

  it("has the records before one that is refused, and names it by its place", async () => {
    const job = defineJob("note", { run: () => 1 });
    const redrive = await openRedrive("memory", { jobs: [job] });
    const deep = JSON.parse(`${"[".repeat(70)}${"]".repeat(70)}`) as unknown;
    const refusals: [id: string, value: unknown, code: string, said: RegExp][] = [
      ["long", "x".repeat(2_000_000), "payload_too_large", /payload may have at most 1048576 bytes/],
      ["deep", deep, "payload_too_large", /payload\S*: expected at most 64 levels/],
      ["x".repeat(300), 1, "invalid_argument", /id: expected well-formed text of 1 to 255 bytes/],
    ];
    for (const [round, [id, value, code, said]] of refusals.entries()) {
      const records = [
        { id: `${round}a`, value: 1 },
        { id: `${round}b`, value: 2 },
        { id, value },
        { id: "after", value: 3 },
      ];
      const call = (options: { place?: (record: { id: string }, index: number) => string } = {}) =>
        redrive.processRecords(job, records, { id: (record) => record.id, worker: WORKER, grace: 0, ...options });
      const error: unknown = await call().catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code, details: { index: 2, written: 2 }, message: expect.stringMatching(said) });
      expect((error as Error).message).toMatch(/^record 3: .* \(2 before it were enqueued\)$/);
      const named = call({ place: (_record, index) => `sheet 2, row ${index + 7}` });
      await expect(named).rejects.toThrow(/^sheet 2, row 9: /);
    }
    const keys = (await redrive.jobs.list({ type: "note" })).items.map(({ key }) => String(key));
    expect(keys.toSorted()).toEqual(["0a", "0b", "1a", "1b", "2a", "2b"]);
  });

  it("does not wait for ever where nothing may start", async () => {
    const job = defineJob("parked", { service: "down", run: () => undefined });
    const redrive = await openRedrive("memory", { jobs: [job] });
    await redrive.breakers.open("down", { reason: "maintenance" });
    const records = Array.from({ length: 10_500 }, (_, at) => at);
    const summary = await redrive.processRecords(job, records, { id: String, worker: WORKER, grace: 0 });
    expect(summary).toMatchObject({ records: 10_500, enqueued: 10_500, completed: 0 });
  });

  it("ends with what a listener for results or the source throws, and says how far it came", async () => {
    const job = defineJob("fine", { run: () => 1 });
    const redrive = await openRedrive("memory", { jobs: [job] });
    const call = (records: Iterable<number> | AsyncIterable<number>, onResult = (): void => undefined) =>
      redrive.processRecords(job, records, { id: String, worker: WORKER, grace: 0, onResult });
    const full = call([1], () => {
      throw new Error("disk full");
    });
    await expect(full).rejects.toThrow("A result could not be passed on: disk full");
    async function* broken(): AsyncGenerator<number> {
      yield 2;
      throw new Error("connection reset");
    }
    await expect(call(broken())).rejects.toThrow(/connection reset \(1 before it were enqueued\)/);
    expect((await redrive.jobs.list({ type: "fine" })).items.map(({ key }) => key)).toContain("2");
  });

  it("stops reading when its signal fires, and lets what runs finish", async () => {
    const job = defineJob("slow", { run: () => 1 });
    const redrive = await openRedrive("memory", { jobs: [job] });
    const stop = new AbortController();
    async function* endless(): AsyncGenerator<number> {
      for (let at = 0; at < 1_000_000; at++) {
        if (at === 700) stop.abort();
        yield at;
      }
    }
    const options = { id: String, worker: WORKER, grace: 0, signal: stop.signal };
    expect(await redrive.processRecords(job, endless(), options)).toMatchObject({ records: 700, completed: 700 });
  });

  it("refuses what makes no sense before anything is read", async () => {
    const job = defineJob("known", { run: () => 1 });
    const redrive = await openRedrive("memory", { jobs: [job] });
    const other = defineJob("other", { run: () => 1 });
    expect(await codeOf(() => redrive.processRecords(other, [1], { id: String }))).toBe("invalid_argument");
    expect(await codeOf(() => redrive.processRecords("known" as never, [1], { id: String }))).toBe("invalid_argument");
    for (const options of [{}, { id: String, idd: 1 }, ...["", undefined, null, 7].map((id) => ({ id: () => id }))])
      expect(await codeOf(() => redrive.processRecords(job, [1], options as never))).toBe("invalid_argument");
    for (const source of [undefined, null, 7, "text", {}])
      expect(await codeOf(() => redrive.processRecords(job, source as never, { id: String }))).toBe("invalid_argument");
    expect(await redrive.jobs.count()).toMatchObject({ queued: 0, completed: 0 });
  });
});

describe.each(KINDS)("processRecords beside a worker of another process, on %s", (kind) => {
  /** Record `a` is in the hands of a worker that this call does not hear. */
  async function taken(keep: { readonly finished?: number } = {}) {
    let finish: (result: string) => void = () => undefined;
    const finished = new Promise<string>((resolve) => (finish = resolve));
    const elsewhere = defineJob("enrich", { keep, run: () => finished });
    const here = defineJob("enrich", { keep, run: () => "here" });
    const redrive = await openRedrive(kind, { jobs: [here] });
    const other = (await beside(redrive, kind, { jobs: [elsewhere] })).worker({ ...WORKER, concurrency: 1 });
    await other.start();
    const { id } = await redrive.enqueue(here, { id: "a" }, { key: "a" });
    await vi.waitFor(async () => expect(await redrive.jobs.get(id)).toMatchObject({ state: "running" }), 10_000);
    const told: (readonly [string, unknown])[] = [];
    const feed = (onTold: () => void) =>
      redrive.processRecords(here, [{ id: "a" }, { id: "b" }], {
        id: (record) => record.id,
        worker: WORKER,
        grace: 0,
        onResult: ({ id: record, result }) => {
          told.push([record, result]);
          onTold();
        },
      });
    return { finish, other, told, feed };
  }

  it("waits for a record that runs there, and tells its result", async () => {
    const { finish, other, told, feed } = await taken();
    // Long after the worker of the call has nothing left to do.
    const summary = await feed(() => void setTimeout(() => finish("elsewhere"), 500));
    expect(told).toEqual([
      ["b", "here"],
      ["a", "elsewhere"],
    ]);
    expect(summary).toMatchObject({ records: 2, enqueued: 1, known: 1, completed: 1, missing: 0 });
    await other.stop();
  });

  it("says how many results are missing, because they are deleted at once", async () => {
    const { finish, other, told, feed } = await taken({ finished: 0 });
    const summary = await feed(() => void setTimeout(() => finish("elsewhere"), 500));
    expect(told).toEqual([["b", "here"]]);
    expect(summary).toMatchObject({ records: 2, completed: 1, missing: 1 });
    await other.stop();
  });

  it("has no hole where both work on all of it", async () => {
    const run = (by: string) => defineJob("enrich", { run: () => new Promise((go) => setTimeout(() => go(by), 1)) });
    const here = run("here");
    const redrive = await openRedrive(kind, { jobs: [here] });
    const other = (await beside(redrive, kind, { jobs: [run("elsewhere")] })).worker({ ...WORKER, concurrency: 20 });
    await other.start();
    const told: RecordResult[] = [];
    const records = Array.from({ length: 500 }, (_, at) => ({ id: `r${at}` }));
    const summary = await redrive.processRecords(here, records, {
      id: ({ id }) => id,
      worker: { ...WORKER, concurrency: 20 },
      grace: 0,
      onResult: (done) => void told.push(done),
    });
    await other.stop();
    expect(new Set(told.map(({ id }) => id)).size).toBe(500);
    expect([told.length, summary.missing]).toEqual([500, 0]);
    expect(new Set(told.map(({ result }) => result)).size).toBe(2);
  });
});
