// What a handler says by `done`, `transient` and `permanent` counts wherever it says it; everything else is a result.
import { describe, expect, expectTypeOf, it } from "vitest";
import {
  defineJob,
  done,
  fixed,
  type ItemOutcome,
  type JobDefinition,
  type Middleware,
  permanent,
  type Redrive,
  retryable,
  type RunOutcome,
  transient,
} from "../../src/index.ts";
import { retryableOn } from "../../src/retryable/retryable.ts";
import { createTestRedrive, perform } from "../../src/testing/index.ts";
import { caught } from "../support/failing-function.ts";
import { onVirtualTime } from "../support/virtual-time.ts";
import { createBench } from "../support/worker-bench.ts";

const missing = Object.assign(new Error("no such customer"), { status: 404 });
const LOOKS = [
  { status: "permanent", error: "a column of the CRM" },
  { status: "transient", error: "x", delayMs: null },
  { status: "done", result: 5 },
];

describe("an outcome that run returns", () => {
  it("kills the job at once where it is permanent, with the error it names", async () => {
    const bench = createBench();
    const job = defineJob("enrich", {
      run: (input) => permanent(input === "text" ? "no such customer" : new RangeError("out of range")),
    });
    const ids = [await bench.add(job, { payload: '"text"' }), await bench.add(job, { payload: '"error"' })];
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.dead === 2);
    const [text, error] = await Promise.all(ids.map((id) => bench.read(id)));
    const failure = { class: "permanent", message: "no such customer" };
    expect(text).toMatchObject({ state: "dead", attempts: 1, result: null, failure });
    expect(error).toMatchObject({ state: "dead", failure: { class: "permanent", name: "RangeError" } });
    expect(worker.counts).toMatchObject({ completed: 0, retried: 0, dead: 2 });
  });

  it("charges an attempt and waits where it is transient: its own delay, or that of the type", async () => {
    const bench = createBench();
    const job = defineJob("enrich", {
      backoff: fixed("5s"),
      run: async (_input, { attempt }) => {
        if (attempt === 1) return transient(missing, { delay: "30s" });
        return attempt === 2 ? transient("still busy") : done({ attempt });
      },
    });
    const id = await bench.add(job);
    const { worker } = await bench.employ([job]);
    expect(await bench.until(() => worker.counts.completed === 1)).toBe(35_000);
    expect(await bench.read(id)).toMatchObject({ state: "completed", attempts: 2, result: '{"attempt":3}' });
    const history = await bench.store.history(id);
    expect(history.map(({ failure }) => failure.message)).toEqual(["no such customer", "still busy"]);
  });

  it("means the same where it is thrown", async () => {
    const job = defineJob("enrich", {
      run: () => {
        throw permanent("no such customer");
      },
    });
    expect(await perform(job, {})).toMatchObject({
      state: "dead",
      failure: { class: "permanent", message: "no such customer" },
    });
  });

  it("waits for a promise in done, and means what that gives", async () => {
    const later: Readonly<Record<string, () => unknown>> = {
      good: async () => 5,
      bad: async () => permanent("no such customer"),
      nested: async () => done(Promise.resolve(7)),
      lost: () => Promise.reject(Object.assign(new Error("gone"), { status: 404 })),
    };
    const job = defineJob("enrich", { run: (name: string) => done(later[name]?.()) });
    expect(await perform(job, "good")).toMatchObject({ state: "completed", result: 5 });
    expect(await perform(job, "nested")).toMatchObject({ state: "completed", result: 7 });
    expect(await perform(job, "bad")).toMatchObject({ state: "dead", failure: { message: "no such customer" } });
    expect(await perform(job, "lost")).toMatchObject({ state: "dead", failure: { message: "gone", code: "404" } });
  });

  it.each(LOOKS)("is told by its mark: %j is a result", async (looks) => {
    const job = defineJob("enrich", { run: () => looks });
    expect(await perform(job, {})).toMatchObject({ state: "completed", result: looks });
  });

  it("comes from any copy of the library", async () => {
    const copy = { [Symbol.for("redrive.outcome")]: true, status: "permanent", error: "elsewhere" };
    const job = defineJob("enrich", { run: () => copy });
    expect(await perform(job, {})).toMatchObject({ state: "dead", failure: { message: "elsewhere" } });
  });

  it("is a rejection to middleware, which may say an outcome itself", async () => {
    const seen: unknown[] = [];
    const watch: Middleware = async ({ input }, next) => {
      if (input === "refused") return permanent("not today");
      try {
        const result = await next();
        seen.push(result);
        return result;
      } catch (error) {
        seen.push((error as Error).message, (error as Error).cause);
        throw error;
      }
    };
    const job = defineJob("enrich", { run: (input: string) => (input === "bad" ? permanent(missing) : done(input)) });
    await using test = await createTestRedrive({ jobs: [job], middleware: [watch] });
    const ids = [];
    for (const input of ["bad", "good", "refused"]) ids.push((await test.enqueue(job, input)).id);
    await test.drain();
    const ended = await Promise.all(ids.map(async (id) => test.jobs.get(id)));
    expect(ended.map((each) => each?.failure?.message ?? each?.result)).toEqual([
      "no such customer",
      '"good"',
      "not today",
    ]);
    expect(ended[0]).toMatchObject({ state: "dead", attempts: 1, failure: { class: "permanent", code: "404" } });
    expect(seen).toEqual(["no such customer", missing, "good"]);
  });

  it("is the answer to redrive.run", async () => {
    const job = defineJob("enrich", { run: (n: number) => (n < 0 ? permanent("negative") : n * 2) });
    await using test = await createTestRedrive({ jobs: [job] });
    expect(await test.run(job, -1)).toMatchObject({ success: false, error: { message: "negative" } });
    expect(await test.run(job, 4)).toMatchObject({ success: true, result: 8 });
  });
});

describe("an outcome in a batch", () => {
  it("waits for promises in done, and one that rejects is the failure of its item alone", async () => {
    const bench = createBench();
    const job = defineJob("label", {
      maxAttempts: 1,
      runBatch: (items) =>
        items.map(({ input }) =>
          done(input === "bad" ? Promise.reject(new Error("no such code")) : Promise.resolve(input)),
        ),
    });
    const ids = await Promise.all(["a", "bad", "c"].map((input) => bench.add(job, { payload: JSON.stringify(input) })));
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.completed + worker.counts.dead === 3);
    const ended = await Promise.all(ids.map((id) => bench.read(id)));
    expect(ended.map((each) => each?.failure?.message ?? each?.result)).toEqual(['"a"', "no such code", '"c"']);
  });

  it("is refused as a promise on the way, and in the place of an outcome", async () => {
    const job = defineJob("label", {
      maxAttempts: 1,
      runBatch: (items, context) => {
        const late = Promise.reject(new Error("never heard of"));
        if (items[0]?.input === "returned") return [late] as never;
        context.done(items[0]?.id as string, late);
      },
    });
    const message = expect.stringMatching(/got a Promise/) as string;
    for (const input of ["returned", "said"])
      expect(await perform(job, input)).toMatchObject({ state: "dead", failure: { class: "validation", message } });
  });

  it("counts where done was put around it", async () => {
    const bench = createBench();
    const step = (input: unknown) => (input === "bad" ? permanent("no such code") : String(input));
    const job = defineJob("label", {
      runBatch: (items, context) => {
        for (const { id, input } of items) if (input === "bad") context.done(id, step(input));
        return items.map(({ input }) => done(step(input)));
      },
    });
    const ids = [await bench.add(job, { payload: '"bad"' }), await bench.add(job, { payload: '"good"' })];
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.dead + worker.counts.completed === 2);
    expect(await bench.read(ids[0] as string)).toMatchObject({ state: "dead", failure: { message: "no such code" } });
    expect(await bench.read(ids[1] as string)).toMatchObject({ state: "completed", result: '"good"' });
  });

  it("has the mark: what only looks like one is refused, and charged where it is alone", async () => {
    const job = defineJob("label", { maxAttempts: 1, runBatch: () => [{ status: "done", result: 1 }] as never });
    expect(await perform(job, {})).toMatchObject({
      state: "dead",
      failure: { class: "validation", message: expect.stringContaining("return done(), transient() or permanent()") },
    });
  });
});

describe("an outcome that a retryable function returns", () => {
  it("is tried again where it is transient, not before its delay", () =>
    onVirtualTime(async (system) => {
      const calledAt: number[] = [];
      const fn = async () => {
        calledAt.push(system.now());
        if (calledAt.length === 1) return transient("busy", { delay: "20s" });
        return calledAt.length === 2 ? transient(missing) : done("there");
      };
      expect(await retryableOn(system)(fn, { backoff: fixed("1s") })()).toBe("there");
      expect(calledAt.map((at) => at - (calledAt[0] ?? 0))).toEqual([0, 20_000, 21_000]);
    }));

  it("is tried again where a promise in done rejects", () =>
    onVirtualTime(async (system) => {
      for (const options of [{}, { timeout: "1m" }]) {
        let calls = 0;
        const fn = () => done(++calls < 3 ? Promise.reject(reset()) : Promise.resolve("there"));
        expect(await retryableOn(system)(fn, { ...options, backoff: fixed("1s") })()).toBe("there");
        expect(calls).toBe(3);
      }
      const hangs = retryableOn(system)(() => done(new Promise(() => undefined)), { timeout: "1s", maxAttempts: 1 });
      expect(await caught(hangs())).toMatchObject({ code: "timeout" });
    }));

  it("ends the call at once where it is permanent, also with a timeout around it", () =>
    onVirtualTime(async (system) => {
      for (const options of [{}, { timeout: "1m" }]) {
        let calls = 0;
        const fn = () => (++calls > 0 ? permanent(reset()) : 1);
        const error = await caught(retryableOn(system)(fn, options)());
        expect(error).toMatchObject({ message: "read ECONNRESET", cause: { code: "ECONNRESET" } });
        expect(calls).toBe(1);
      }
    }));

  it("keeps its meaning in the handler of a job, also as the cause of another error", async () => {
    const look = retryable(() => permanent(reset()));
    const plain = defineJob("plain", { run: () => look() });
    const around = defineJob("around", {
      run: () => look().catch((cause: unknown) => Promise.reject(new Error("the look failed", { cause }))),
    });
    const failure = { class: "permanent", name: "Error", message: "read ECONNRESET" };
    expect(await perform(plain, {})).toMatchObject({ state: "dead", failure });
    expect(await perform(around, {})).toMatchObject({
      state: "dead",
      failure: { class: "permanent", message: "the look failed" },
    });
  });

  it.each(LOOKS)("is told by its mark: %j is a result", async (looks) => {
    expect(await retryable(() => looks)()).toBe(looks);
  });
});

describe("the type of a result", () => {
  it("leaves outcomes out", () => {
    const redrive = {} as Redrive;
    const job = defineJob("typed", {
      run: async ({ n }: { n: number }) => {
        if (n < 0) return permanent("negative");
        return n > 9 ? transient("later") : n > 5 ? done("large" as const) : n;
      },
    });
    expectTypeOf(job).toExtend<JobDefinition<{ n: number }, number | "large">>();
    expectTypeOf(() => redrive.run(job, { n: 1 })).returns.resolves.toEqualTypeOf<RunOutcome<number | "large">>();
    const safe = retryable((n: number) => (n < 0 ? permanent("negative") : String(n)));
    expectTypeOf(safe).returns.toEqualTypeOf<Promise<string>>();
    const wrapped = done(Math.random() < 2 ? permanent("no") : 5);
    expectTypeOf(wrapped).toEqualTypeOf<ItemOutcome<number>>();
    expectTypeOf(done(Promise.resolve(wrapped))).toEqualTypeOf<ItemOutcome<number>>();
  });
});

function reset(): Error {
  return Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
}
