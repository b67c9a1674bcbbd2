// Streams of jobs: any iterable, options for each, what a bad item in the middle does, and the counts.
import { describe, expect, it } from "vitest";
import { createRedrive, defineJob, type EnqueuedJob, type RedriveEvent } from "../../src/index.ts";
import { createMemoryStore } from "../../src/store/memory/index.ts";
import type { Store } from "../../src/store/store.ts";
import { codeOf, KINDS, openRedrive } from "../redrive/kinds.ts";

const note = defineJob("note", { run: (_input: { n: number }) => undefined });

function* numbers(count: number): Generator<{ n: number }> {
  for (let n = 0; n < count; n++) yield { n };
}

async function* slowly(count: number): AsyncGenerator<{ n: number }> {
  for (const item of numbers(count)) {
    await Promise.resolve();
    yield item;
  }
}

describe.each(KINDS)("enqueueMany on %s", (kind) => {
  it("takes an array, an iterable and an async iterable", async () => {
    const redrive = await openRedrive(kind, { jobs: [note] });
    const all = { enqueued: 3, duplicates: 0, replaced: 0, conflicts: 0 };
    expect(await redrive.enqueueMany(note, [...numbers(3)])).toEqual(all);
    expect(await redrive.enqueueMany(note, numbers(3))).toEqual(all);
    expect(await redrive.enqueueMany(note, slowly(3))).toEqual(all);
    expect(await redrive.enqueueMany("note", [])).toEqual({ ...all, enqueued: 0 });
    expect((await redrive.jobs.count()).queued).toBe(9);
  });

  it("writes in chunks, keeps the order, and tells of each chunk", async () => {
    const redrive = await openRedrive(kind, { jobs: [note] });
    const chunks: (readonly EnqueuedJob[])[] = [];
    const summary = await redrive.enqueueMany(note, slowly(2_201), { onChunk: (jobs) => void chunks.push(jobs) });
    expect(summary.enqueued).toBe(2_201);
    expect(chunks.map(({ length }) => length)).toEqual(
      redrive.store.remote ? [1_000, 1_000, 201] : [500, 500, 500, 500, 201],
    );
    const ids = chunks.flat().map(({ id }) => id);
    expect(ids.toSorted()).toEqual(ids);
    const payloads: number[] = [];
    for await (const job of redrive.jobs.all({ type: "note" }))
      payloads.push((JSON.parse(job.payload) as { n: number }).n);
    expect(payloads.toReversed()).toEqual([...numbers(2_201)].map(({ n }) => n));
  });

  it("takes options for each, by input and index", async () => {
    const redrive = await openRedrive(kind, { jobs: [note] });
    const each = ({ n }: { n: number }, index: number) => ({ key: `k${n}`, priority: index, tenant: "acme" });
    await redrive.enqueueMany(note, numbers(3), { each });
    const { items } = await redrive.jobs.list({ tenant: "acme" });
    expect(items.map(({ key, priority }) => [key, priority]).toReversed()).toEqual([
      ["k0", 0],
      ["k1", 1],
      ["k2", 2],
    ]);
  });

  it("counts duplicates, replaced ones and conflicts, also within itself, and goes on", async () => {
    const redrive = await openRedrive(kind, { jobs: [note] });
    await redrive.enqueue(note, { n: 0 }, { key: "same" });
    await redrive.enqueue(note, { n: 0 }, { key: "other" });
    await redrive.enqueue(note, { n: 0 }, { key: "replace" });
    const inputs = [
      { n: 0, key: "same" },
      { n: 1, key: "other" },
      { n: 2, key: "replace", unique: "replace" as const },
      { n: 3, key: "new" },
      { n: 3, key: "new" },
      { n: 4, key: "new" },
      { n: 5, key: "last" },
    ];
    const told: EnqueuedJob[] = [];
    const keys = new Map(inputs.map((input, index) => [index, input]));
    const summary = await redrive.enqueueMany(
      note,
      inputs.map(({ n }) => ({ n })),
      {
        each: (_input, index) => ({ key: keys.get(index)?.key, unique: keys.get(index)?.unique }),
        onChunk: (jobs) => void told.push(...jobs),
      },
    );
    expect(summary).toEqual({ enqueued: 2, duplicates: 2, replaced: 1, conflicts: 2 });
    expect(told.map(({ duplicate, replaced }) => [duplicate, replaced])).toEqual([
      [true, false],
      [false, true],
      [false, false],
      [true, false],
      [false, false],
    ]);
  });

  it("names the place of a bad item, and how many before it were written", async () => {
    const redrive = await openRedrive(kind, { jobs: [note] });
    const inputs = [...numbers(1_200), { n: Number.NaN }, ...numbers(10)];
    const error = await redrive.enqueueMany(note, inputs).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "invalid_payload", details: { index: 1_200, written: 1_000 } });
    expect(String(error)).toMatch(/Input 1200: .*1000 before it were enqueued/);
    expect((await redrive.jobs.count()).queued).toBe(1_000);
    const options = await redrive
      .enqueueMany(note, numbers(5), { each: ({ n }) => ({ priority: n === 3 ? 99 : 0 }) })
      .catch((thrown: unknown) => thrown);
    expect(options).toMatchObject({ code: "invalid_argument", details: { index: 3, written: 0 } });
    expect((await redrive.jobs.count()).queued).toBe(1_000);
  });

  it("passes on what the source itself throws, and closes the source when it stops early", async () => {
    const redrive = await openRedrive(kind, { jobs: [note] });
    const broken = async function* (): AsyncGenerator<{ n: number }> {
      yield { n: 1 };
      throw new Error("source failed");
    };
    await expect(redrive.enqueueMany(note, broken())).rejects.toThrow("source failed");
    const cause = new Error("lost the cursor");
    const later = async function* (): AsyncGenerator<{ n: number }> {
      yield* numbers(1_200);
      throw cause;
    };
    const error = await redrive.enqueueMany(note, later()).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "aborted", details: { index: 1_200, written: 1_000 } });
    expect((error as Error).cause).toBe(cause);
    expect(String(error)).toMatch(
      /failed after 1200: Error: lost the cursor \(1000 of them were enqueued, the last 200 were not\)/,
    );
    expect((await redrive.jobs.count()).queued).toBe(1_000);
    let closed = false;
    const watched = (function* (): Generator<{ n: number }> {
      try {
        yield { n: 1 };
        yield { n: Number.NaN };
        yield { n: 2 };
      } finally {
        closed = true;
      }
    })();
    await expect(redrive.enqueueMany(note, watched)).rejects.toMatchObject({ code: "invalid_payload" });
    expect(closed).toBe(true);
  });

  it("tells listeners of every job that was written, and of no duplicate", async () => {
    const redrive = await openRedrive(kind, { jobs: [note] });
    const heard: RedriveEvent[] = [];
    redrive.on("job.enqueued", (event) => void heard.push(event));
    await redrive.enqueueMany(note, [...numbers(3), { n: 0 }], { each: ({ n }) => ({ key: String(n) }) });
    expect(heard).toHaveLength(3);
  });

  it("refuses options that do not exist", async () => {
    const redrive = await openRedrive(kind, { jobs: [note] });
    const options = { key: "k" } as object;
    expect(await codeOf(() => redrive.enqueueMany(note, numbers(1), options))).toBe("invalid_argument");
  });

  it("refuses what is no source or no definition with invalid_argument", async () => {
    const redrive = await openRedrive(kind, { jobs: [note] });
    expect(await codeOf(() => redrive.enqueueMany(note, null as unknown as []))).toBe("invalid_argument");
    expect(await codeOf(() => redrive.enqueueMany(undefined as unknown as string, []))).toBe("invalid_argument");
  });
});

describe("chunks of a stream", () => {
  /** How many writes were under way at once, on a store that takes its time. */
  async function mostAtOnce(each?: (input: { n: number }) => { key?: string; group?: string }): Promise<number> {
    const store = createMemoryStore({ clock: Date.now });
    let [underWay, most] = [0, 0];
    const slow: Store = {
      ...store,
      async enqueue(jobs) {
        most = Math.max(most, ++underWay);
        await new Promise((resolve) => setTimeout(resolve, 5));
        underWay -= 1;
        return store.enqueue(jobs);
      },
    };
    const redrive = await createRedrive({ store: slow, jobs: [note], log: "silent" });
    await redrive.enqueueMany(note, numbers(2_500), each ? { each } : {});
    await redrive.close();
    return most;
  }

  it("are written two at a time where jobs are on their own", async () => {
    expect(await mostAtOnce()).toBe(2);
  });

  it("are written one after the other where jobs have groups or keys", async () => {
    expect(await mostAtOnce(({ n }) => ({ group: `g${n % 7}` }))).toBe(1);
    expect(await mostAtOnce(({ n }) => ({ key: `k${n}` }))).toBe(1);
  });
});
