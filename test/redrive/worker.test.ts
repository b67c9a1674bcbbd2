// The one life of a worker: it begins once, ends once, and says so to whoever asks for more.
import { createServer } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { createRedrive, defineJob, type Redrive } from "../../src/index.ts";
import { openRedrive } from "./kinds.ts";

const quick = defineJob("quick", { run: (n: number) => n });

async function opened(): Promise<Redrive> {
  const redrive = await createRedrive({ store: "memory:", jobs: [quick], log: "silent" });
  onTestFinished(() => redrive.close());
  return redrive;
}

describe("a worker that has ended", () => {
  it("refuses to start and to drain, and does not answer with what it did before", async () => {
    const redrive = await opened();
    const [started, drained, never] = [redrive.worker(), redrive.worker(), redrive.worker()];
    await started.start();
    await started.stop();
    await redrive.enqueue(quick, 1);
    expect(await drained.drain({ grace: 0 })).toMatchObject({ completed: 1 });
    await never.stop();
    for (const worker of [started, drained, never])
      for (const again of [worker.start(), worker.drain()])
        await expect(again).rejects.toMatchObject({ code: "closed", message: expect.stringContaining("a new one") });
  });

  it("is refused by processRecords before a record is read", async () => {
    const redrive = await opened();
    const worker = redrive.worker();
    const id = (n: number) => String(n);
    expect(await redrive.processRecords(quick, [1], { id, worker, grace: 0 })).toMatchObject({ completed: 1 });
    await expect(redrive.processRecords(quick, [2], { id, worker })).rejects.toMatchObject({ code: "closed" });
    expect(await redrive.jobs.count()).toMatchObject({ queued: 0, completed: 1 });
  });

  it("says nothing about upkeep where it is closed in the middle of a drain", async () => {
    const lines: string[] = [];
    const note = (_fields: object, message: string): void => void lines.push(message);
    const log = { debug: () => undefined, info: () => undefined, warn: note, error: note };
    let running = (): void => undefined;
    const begun = new Promise<void>((resolve) => (running = resolve));
    let finish = (): void => undefined;
    const slow = defineJob("slow", {
      run: () => {
        running();
        return new Promise<void>((resolve) => (finish = resolve));
      },
    });
    const redrive = await openRedrive("sqlite", { jobs: [slow], log });
    await redrive.enqueue("slow", null);
    const worker = redrive.worker();
    const drained = worker.drain();
    await begun;
    const stopped = worker.stop().then(() => redrive.close());
    finish();
    await Promise.all([stopped, drained]);
    expect(lines).toEqual([]);
  });

  it("does not come to life where it is stopped while it starts or drains", async () => {
    for (const verb of ["start", "drain"] as const) {
      const redrive = await opened();
      const worker = redrive.worker();
      const beginning = worker[verb]();
      await redrive.close();
      await beginning.catch(() => undefined);
      expect(worker.isReady).toBe(false);
    }
  });
});

describe("a worker whose health port is taken", () => {
  it("says so, and starts when the port is free", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => taken.once("listening", resolve));
    const { port } = taken.address() as { port: number };
    const redrive = await opened();
    const worker = redrive.worker({ health: { port } });
    await expect(worker.start()).rejects.toThrow("cannot be opened");
    await new Promise((resolve) => taken.close(resolve));
    await worker.start();
    expect(worker.healthPort).toBe(port);
  });
});
