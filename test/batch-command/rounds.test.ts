// Rounds of a run that two processes share: each is counted once, however long the process takes that opens it.
import { expect, it, onTestFinished } from "vitest";
import { batchJob } from "../../src/batch-command/batch-run.ts";
import { beginRun, changeRun } from "../../src/batch-command/batch-state.ts";
import { workThrough } from "../../src/batch-command/rounds.ts";
import { transient } from "../../src/index.ts";
import { assemble } from "../../src/redrive.ts";
import { createMemoryStore } from "../../src/store/memory/index.ts";
import type { Store } from "../../src/store/store.ts";
import { realSystem } from "../../src/system/real.ts";

const plan = {
  name: "shared",
  items: [JSON.stringify("bad")],
  isExact: true,
  size: 1,
  retrySize: 1,
  maxRetries: 2,
  parallel: 1,
};

/** A process of the run whose items always fail. */
async function processOn(store: Store, pid: number) {
  const tries: number[] = [];
  const run = (batch: readonly unknown[]) => {
    tries.push(batch.length);
    return batch.map(() => transient("bad"));
  };
  const { state } = await beginRun(store, plan);
  const job = batchJob({ ...plan, run }, state);
  const process = { pid, host: "here", isAlive: () => true };
  const redrive = await assemble({ store, jobs: [job], log: "silent" }, { system: realSystem, process });
  onTestFinished(() => redrive.close());
  const ignore = (): void => undefined;
  const caller = { signal: new AbortController().signal, onWorker: ignore, onRound: ignore, onWait: ignore };
  return { tries, work: () => workThrough({ redrive, job, plan: { ...plan, run }, state }, caller) };
}

const roundsOf = async (store: Store) => (await changeRun(store, { name: "shared", run: 1 }, (now) => now))?.rounds;

it("counts a round once where another process looks before its items are due", async () => {
  const memory = createMemoryStore({ clock: realSystem.now });
  const slow: Store = {
    ...memory,
    async reschedule(changes) {
      await realSystem.sleep(1_500, new AbortController().signal);
      return memory.reschedule(changes);
    },
  };
  const [a, b] = [await processOn(slow, 1), await processOn(slow, 2)];
  await Promise.all([a.work(), b.work()]);
  expect([...a.tries, ...b.tries]).toHaveLength(3);
  expect(await roundsOf(memory)).toBe(2);
});

it("opens a round whose process died before its items were due, and does not count it again", async () => {
  const memory = createMemoryStore({ clock: realSystem.now });
  const one = await processOn(memory, 1);
  const dies: Store = {
    ...memory,
    async reschedule() {
      throw new Error("killed");
    },
  };
  const dying = await processOn(dies, 2);
  await expect(dying.work()).rejects.toThrow("killed");
  await one.work();
  expect([...dying.tries, ...one.tries]).toHaveLength(3);
  expect(await roundsOf(memory)).toBe(2);
});
