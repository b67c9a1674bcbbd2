// Types that follow from what users write: input and result, from schema and handler, through enqueue, run and perform.
import { describe, expectTypeOf, it } from "vitest";
import {
  defineJob,
  type JobContext,
  type Redrive,
  type RunOutcome,
  snooze,
  type StandardSchema,
} from "../../src/index.ts";
import type { TestRedrive } from "../../src/testing/index.ts";

declare const redrive: Redrive;
declare const test: TestRedrive;
const schema: StandardSchema<{ width: string; note?: string }, { width: number }> = {
  "~standard": { version: 1, vendor: "test", validate: () => ({ value: { width: 1 } }) },
};

const plain = defineJob("plain", { run: (input: { n: number }) => input.n > 1 });
const eventual = defineJob("eventual", {
  run: async (_input: string, _context: JobContext) => ({ ok: true as const }),
});
const sleepy = defineJob("sleepy", { run: (input: { n: number }) => (input.n > 1 ? snooze("5m") : "awake") });
const checked = defineJob("checked", {
  input: schema,
  run(input) {
    expectTypeOf(input).toEqualTypeOf<{ width: number }>();
    return input.width;
  },
});

/** Never called: what matters is that it compiles. */
export const calls = [
  () => redrive.enqueue(plain, { n: 1 }),
  // @ts-expect-error The handler takes a number.
  () => redrive.enqueue(plain, { n: "1" }),
  // @ts-expect-error The handler takes an object.
  () => redrive.enqueue(plain, 1),
  () => redrive.enqueue(eventual, "text", { key: "k", unique: "replace", runAt: new Date(0) }),
  // @ts-expect-error There is no such mode.
  () => redrive.enqueue(eventual, "text", { key: "k", unique: "once" }),
  // The schema's input is what is enqueued, its output what the handler gets.
  () => redrive.enqueue(checked, { width: "5" }),
  // @ts-expect-error A number is what the schema gives, not what it takes.
  () => redrive.enqueue(checked, { width: 5 }),
  () => redrive.enqueue("by-name", Symbol.iterator),
  () => redrive.enqueueMany(plain, [{ n: 1 }], { each: ({ n }, index) => ({ key: `${n}`, priority: index }) }),
  // @ts-expect-error Not a stream of inputs.
  () => redrive.enqueueMany(plain, ["1"]),
  () => redrive.on("job.dead", ({ job, verdict }) => [job.attempts, verdict.kind]),
  () => redrive.on("jobs.pruned", ({ archive, dead }) => [archive, dead + 1]),
  // @ts-expect-error Only events about jobs have one.
  () => redrive.on("worker.started", ({ job }) => job),
];

describe("types", () => {
  it("carry the result from the handler to whoever waits", () => {
    expectTypeOf(() => redrive.run(plain, { n: 1 })).returns.resolves.toEqualTypeOf<RunOutcome<boolean>>();
    expectTypeOf(() => redrive.run(eventual, "a")).returns.resolves.toEqualTypeOf<RunOutcome<{ ok: true }>>();
    expectTypeOf(() => redrive.run(checked, { width: "5" })).returns.resolves.toEqualTypeOf<RunOutcome<number>>();
    expectTypeOf(() => test.run(plain, { n: 1 })).returns.resolves.toEqualTypeOf<RunOutcome<boolean>>();
  });

  it("leave a snooze out of the result", () => {
    expectTypeOf(() => redrive.run(sleepy, { n: 1 })).returns.resolves.toEqualTypeOf<RunOutcome<"awake">>();
  });

  it("tell success and failure apart", () => {
    type Outcome = RunOutcome<number>;
    expectTypeOf<Extract<Outcome, { success: true }>["result"]>().toEqualTypeOf<number>();
    expectTypeOf<Extract<Outcome, { success: false }>["error"]["class"]>().toBeString();
  });
});
