// The end of a Redrive whose callers do not stop calling, and of a worker whose file is locked: both come to it.
import { describe, expect, it } from "vitest";
import { defineJob } from "../../src/index.ts";
import { codeOf, KINDS, openRedrive } from "../redrive/kinds.ts";
import { importBuilt } from "../support/built.ts";
import { connect, testPath } from "../support/database-file.ts";
import type { SqliteDatabase } from "../../src/store/sqlite/driver.ts";

const double = defineJob("double", { run: ({ n }: { n: number }) => n * 2 });
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** True if the promise settles within the time. */
async function settles(promise: Promise<unknown>, withinMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, withinMs, false);
  });
  const done = await Promise.race([promise.then(() => true), late]);
  clearTimeout(timer);
  return done;
}

describe.each(KINDS)("once close has begun on %s", (kind) => {
  it("enqueue, enqueueText, enqueueMany and run reject with closed, and workers are refused", async () => {
    const redrive = await openRedrive(kind, { jobs: [double] });
    const before = redrive.enqueue(double, { n: 1 });
    const closing = redrive.close();
    const calls = [
      () => redrive.enqueue(double, { n: 1 }),
      () => redrive.enqueueText(double, '{"n":1}'),
      () => redrive.enqueueMany(double, [{ n: 1 }]),
      () => redrive.run(double, { n: 1 }),
    ];
    expect(await Promise.all(calls.map(codeOf))).toEqual(Array(4).fill("closed"));
    expect(() => redrive.worker()).toThrow(/closed/);
    expect((await before).duplicate).toBe(false);
    await closing;
  });

  it("it ends although fifty callers go on in a loop, and every one of them hears closed", async () => {
    const redrive = await openRedrive(kind, { jobs: [double] });
    const stored: string[] = [];
    const caller = async (): Promise<string> => {
      for (let n = 0; n < 2_000; n++) {
        const answer = await redrive.enqueue(double, { n }).then(
          ({ id }) => void stored.push(id),
          (error: { code: string }) => error.code,
        );
        if (answer !== undefined) return answer;
      }
      return "went on for ever";
    };
    const callers = Array.from({ length: 50 }, caller);
    // No timer here: a memory store answers within the turn, so that callers in a loop leave no room for one.
    for (let n = 0; n < 20; n++) await redrive.enqueue(double, { n });
    expect(await settles(redrive.close(), 5_000)).toBe(true);
    const written = stored.length;
    expect(await Promise.all(callers)).toEqual(Array(50).fill("closed"));
    // Nobody was told that a job is stored after the close had ended.
    expect(stored.length).toBe(written);
    expect(written).toBeGreaterThan(0);
  });
});

describe("a stop while another connection holds the file", () => {
  /** Takes the lock, for which it may have to wait. */
  async function lock(db: SqliteDatabase): Promise<void> {
    for (let tries = 0; tries < 2_000; tries++) {
      try {
        db.exec("begin exclusive");
        return;
      } catch {
        await pause(1);
      }
    }
    throw new Error("The lock was not to be had.");
  }

  it.each([
    ["idle", 0, 0],
    ["with runs in its hands", 5, 0],
    ["with runs in its hands and a look under way", 5, 300],
  ])("of a worker that is %s ends all the same", async (_state, count, lockedMs) => {
    const { createRedrive } = await importBuilt<typeof import("../../src/index.ts")>("index.js");
    const path = testPath();
    const sleeper = defineJob("sleeper", {
      run: (_input: object, { signal }) => new Promise((resolve) => signal.addEventListener("abort", () => resolve(1))),
    });
    const redrive = await createRedrive({ store: `sqlite:${path}`, jobs: [sleeper], log: "silent" });
    const worker = redrive.worker({ poll: "100ms" });
    await worker.start();
    for (let n = 0; n < count; n++) await redrive.enqueue(sleeper, {});
    for (let n = 0; n < 500 && worker.counts.claimed < count; n++) await pause(10);
    expect(worker.counts.claimed).toBe(count);
    const locker = connect(path);
    await lock(locker);
    await pause(lockedMs);
    // Seven seconds at most on a quiet machine: twice its time, and five seconds.
    const ended = await settles(worker.stop({ within: 1_000 }), 70_000);
    locker.exec("rollback");
    await redrive.close();
    expect(ended).toBe(true);
  });
});
