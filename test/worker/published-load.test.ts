// What a worker writes down about itself: what it was configured with, what it serves, how much at a time; and nothing twice.
import { describe, expect, it, onTestFinished } from "vitest";
import { loadFrom } from "../../src/core/load.ts";
import { resolveLimits } from "../../src/core/service.ts";
import { createRedrive, defineJob, type Redrive, type RedriveOptions } from "../../src/index.ts";
import { NO_LIMITS } from "../../src/services/holding.ts";
import { createMemoryStore } from "../../src/store/memory/index.ts";
import type { CellChange, Store } from "../../src/store/store.ts";
import { realSystem } from "../../src/system/real.ts";
import type { Contact } from "../../src/store/store-contact.ts";
import { PublishedLoad } from "../../src/worker/published-load.ts";

const FAST = { poll: 20, lease: "30s", heartbeat: 20 } as const;

/** A queue on a memory store that notes every write of cells, but for the records of upkeep. */
async function noted(options: Omit<RedriveOptions, "store">) {
  const store = createMemoryStore({ clock: () => Date.now() });
  const writes: (readonly CellChange[])[] = [];
  const watched: Store = {
    ...store,
    setCells(changes) {
      if (changes.some(({ kind }) => kind !== "upkeep")) writes.push(changes);
      return store.setCells(changes);
    },
  };
  const redrive = await createRedrive({ store: watched, log: "silent", ...options });
  onTestFinished(() => redrive.close());
  return { redrive, store, writes };
}

async function loads({ store }: Pick<Redrive, "store">) {
  const { cells } = await store.cells([{ kind: "load" }]);
  return cells.map(({ name, holder, value }) => ({ name, holder, load: loadFrom(value) }));
}

/** A job that runs until it is let go. */
function gated() {
  let open = (): void => undefined;
  const gate = new Promise<void>((resolve) => (open = resolve));
  return { job: defineJob("gated", { queue: "slow", concurrency: 3, run: (_input: object) => gate }), open };
}

describe("the notice of a worker", () => {
  it("says what it serves and how much at a time, and goes with the worker", async () => {
    const { job } = gated();
    const plain = defineJob("plain", { stuck: { after: "1h", retryAfter: "4h" }, run: (_input: object) => null });
    const { redrive, store } = await noted({ jobs: [job, plain] });
    const worker = redrive.worker({ ...FAST, concurrency: 7, queues: ["slow", "default"] });
    await worker.start();
    const limits = { stuckMs: 3_600_000, stuckRetryMs: 14_400_000, stuckLimit: null };
    const types = [
      { type: "gated", queue: "slow", concurrency: 3 },
      { type: "plain", queue: "default", concurrency: null, limits },
    ];
    const load = { types, queues: ["slow", "default"], concurrency: 7 };
    expect(await loads({ store })).toEqual([{ name: "", holder: worker.id, load }]);
    await worker.stop();
    expect(await loads({ store })).toEqual([]);
  });

  it("is written only when something changed", async () => {
    const { job, open } = gated();
    const { redrive, writes } = await noted({ jobs: [job] });
    const worker = redrive.worker(FAST);
    await worker.start();
    await redrive.enqueue(job, {});
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(writes).toHaveLength(1);
    open();
  });

  it("outlasts a quiet day, after which a store forgets what nobody writes", async () => {
    const writes: number[] = [];
    let hour = 0;
    const system = { ...realSystem, monotonic: () => hour * 3_600_000 };
    const notice = new PublishedLoad("worker", {
      store: { setCells: async () => (writes.push(hour), []) },
      system,
      contact: { attempt: (_cause: string, call: () => unknown) => call() } as unknown as Contact,
      settings: { queues: null, heartbeatMs: 5 },
      jobs: [],
      limits: NO_LIMITS,
      inFlight: { slots: 1 },
    });
    await notice.begin();
    onTestFinished(() => notice.end());
    for (hour = 1; hour <= 12; hour += 1) await expect.poll(() => writes.at(-1), { interval: 5 }).toBe(hour);
    expect(writes).toHaveLength(13);
  });

  it("tells once what was configured, and takes it back with the worker", async () => {
    const job = defineJob("mail", { rateLimit: { limit: 5 }, run: (_input: object) => null });
    const services = { "*": { breaker: false }, pricing: { budget: {}, rateLimit: { limit: 10, per: "1m" } } } as const;
    const { redrive, store, writes } = await noted({ jobs: [job], services, tenants: { acme: { weight: 2 } } });
    const worker = redrive.worker(FAST);
    await worker.start();
    const { cells } = await store.cells([{ kind: "settings" }]);
    expect(cells.map(({ name, holder, value }) => [name, holder, JSON.parse(value)])).toMatchObject([
      ["service:*", worker.id, { breaker: null, whenOpen: "park" }],
      ["service:pricing", worker.id, { rate: { limit: 10, perMs: 60_000, burst: 1 }, budget: { share: 0.2 } }],
      ["tenant:acme", worker.id, { weight: 2, rate: null }],
      ["type:mail", worker.id, { rate: { limit: 5, perMs: 1_000 } }],
    ]);
    expect(writes).toHaveLength(1);
    await worker.stop();
    expect((await store.cells([{ kind: "settings" }])).cells).toEqual([]);
  });

  it("tells what was configured again where the first word was lost, and does not repeat it with every change", async () => {
    const writes: string[][] = [];
    const inFlight = { slots: 1 };
    let isDown = true;
    const notice = new PublishedLoad("worker", {
      store: {
        setCells: async (changes) => {
          if (isDown) throw new Error("no store today");
          writes.push(changes.map(({ kind }) => kind));
          return changes.map(() => true);
        },
      },
      system: realSystem,
      contact: {
        attempt: (_cause: string, call: () => unknown) => call(),
        complain: () => undefined,
      } as unknown as Contact,
      settings: { queues: null, heartbeatMs: 5 },
      jobs: [],
      limits: resolveLimits({ tenants: { acme: { weight: 2 } } }),
      inFlight,
    });
    await notice.begin();
    isDown = false;
    await expect.poll(() => writes, { interval: 5 }).toEqual([["settings", "load"]]);
    inFlight.slots = 2;
    await expect.poll(() => writes.slice(1), { interval: 5 }).toEqual([["load"]]);
    await notice.end();
    expect(writes.at(-1)).toEqual(["settings", "load"]);
  });

  it("comes back with a worker that was given up, under its new id", async () => {
    const { redrive, store } = await noted({ jobs: [gated().job] });
    const worker = redrive.worker(FAST);
    await worker.start();
    const before = worker.id;
    await store.expired({ gone: [before], limit: 10 });
    await expect.poll(async () => (await loads({ store })).map(({ holder }) => holder === before)).toEqual([false]);
    expect((await loads({ store }))[0]?.holder).toBe(worker.id);
  });

  it("keeps no worker from working where it cannot be written", async () => {
    const store = createMemoryStore({ clock: () => Date.now() });
    const broken: Store = { ...store, setCells: () => Promise.reject(new Error("no cells today")) };
    const plain = defineJob("plain", { run: (_input: object) => "done" });
    const redrive = await createRedrive({ store: broken, log: "silent", jobs: [plain] });
    onTestFinished(() => redrive.close());
    await redrive.worker(FAST).start();
    expect(await redrive.run(plain, {})).toMatchObject({ success: true });
  });
});
