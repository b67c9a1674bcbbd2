// Wake-ups by NOTIFY. A worker that idles hears of new work at once, wherever it was enqueued; nobody is notified while
// nobody idles, and what a transaction takes back is never announced. The workers here poll so rarely that only a
// wake-up can explain that they run anything.
import { EventEmitter } from "node:events";
import pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { createRedrive, defineJob, type Redrive } from "../../../src/index.ts";
import { Listener, wakeNames } from "../../../src/store/postgres/wake.ts";
import type { System } from "../../../src/system/system.ts";
import { employ, idlers, idleWorker, until } from "../../support/idle-workers.ts";
import { newJob } from "../../support/new-job.ts";
import { openQueue, type PostgresQueue } from "../../support/postgres-queue.ts";
import { withPg } from "../../support/transaction-kinds.ts";
import { sql } from "../../support/postgres-world.ts";
import { onVirtualTime } from "../../support/virtual-time.ts";

const SERVER = inject("postgres18");
const other = defineJob("other", { run: () => undefined });

/** Counts the notifications of a schema from now on. */
async function ear({ schema }: PostgresQueue): Promise<() => Promise<number>> {
  const client = new pg.Client({ connectionString: SERVER });
  await client.connect();
  onTestFinished(() => client.end());
  let heard = 0;
  client.on("notification", () => void (heard += 1));
  await client.query(`listen redrive_${schema}`);
  // Whatever was sent before this is answered has come with the answer.
  return async () => client.query("select 1").then(() => heard);
}

/** Enqueues, and waits until the job has run. How soon that is `npm run bench -- postgres --only pick-up` measures. */
async function runs(redrive: Redrive, ran: readonly number[], n: number): Promise<void> {
  await redrive.enqueue("note", { n });
  await until(() => ran.includes(n), `job ${n} ran`);
}

describe("an idle worker", () => {
  it("is woken by an enqueue elsewhere", async () => {
    const queue = await openQueue(SERVER);
    const { ran } = await idleWorker(queue);
    for (let n = 0; n < 5; n++) await runs(queue.redrive, ran, n);
  });

  it("is woken although jobs that it does not serve are due", async () => {
    const queue = await openQueue(SERVER);
    await queue.redrive.enqueue(other, null);
    const { ran } = await idleWorker(queue);
    await runs(queue.redrive, ran, 1);
  });

  it("is woken by the end of a pause", async () => {
    const queue = await openQueue(SERVER);
    await queue.redrive.pause({ kind: "type", name: "note" });
    await queue.redrive.enqueue("note", { n: 1 });
    const { ran } = await idleWorker(queue);
    expect(ran).toEqual([]);
    await queue.redrive.resume({ kind: "type", name: "note" });
    await until(() => ran.includes(1), "the job ran after the pause");
  });

  it("is woken with the commit of a transaction, and not before or without it", async () => {
    const queue = await openQueue(SERVER);
    const { ran } = await idleWorker(queue);
    const heard = await ear(queue);
    await withPg(queue.pool, async (tx) => {
      await queue.redrive.enqueue("note", { n: 1 }, { tx });
      await new Promise((resolve) => setTimeout(resolve, 150));
      expect(await heard()).toBe(0);
    });
    await until(() => ran.includes(1), "the job ran");
    expect(await heard()).toBe(1);
    await until(async () => (await idlers(queue)) === 1, "the worker idles again");
    const undo = withPg(queue.pool, async (tx) => {
      await queue.redrive.enqueue("note", { n: 2 }, { tx });
      throw new Error("undo");
    });
    await expect(undo).rejects.toThrow("undo");
    expect(await heard()).toBe(1);
  });

  it("costs one notification for a group of jobs", async () => {
    const queue = await openQueue(SERVER);
    const { ran } = await idleWorker(queue);
    const heard = await ear(queue);
    const jobs = Array.from({ length: 100 }, () => newJob({ type: "note", payload: '{"n":1}' }));
    await queue.redrive.store.enqueue(jobs);
    expect(await heard()).toBe(1);
    await until(() => ran.length === 100, "all ran");
  });
});

describe("a worker that begins to idle while a transaction is open", () => {
  it("is woken soon after its commit, although nobody idled when the job was enqueued", async () => {
    const queue = await openQueue(SERVER);
    // Another one that stays open hides nothing from it.
    const bystander = await queue.pool.connect();
    onTestFinished(() => bystander.release(true));
    await bystander.query("begin");
    await queue.redrive.enqueue("note", { n: 0 }, { tx: bystander });
    let ran: readonly number[] = [];
    const heard = await ear(queue);
    await withPg(queue.pool, async (tx) => {
      await queue.redrive.enqueue("note", { n: 1 }, { tx });
      ({ ran } = await idleWorker(queue));
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(ran).toEqual([]);
    });
    await until(() => ran.includes(1), "the job ran");
    expect(await heard()).toBe(0);
  });
});

describe("nobody is notified", () => {
  it("while there is no worker", async () => {
    const queue = await openQueue(SERVER);
    const heard = await ear(queue);
    for (let n = 0; n < 5; n++) await queue.redrive.enqueue("note", { n });
    await queue.redrive.enqueueMany("note", [{ n: 6 }, { n: 7 }]);
    await withPg(queue.pool, (tx) => queue.redrive.enqueue("note", { n: 8 }, { tx }));
    expect(await heard()).toBe(0);
  });

  it("after the last worker has gone", async () => {
    const queue = await openQueue(SERVER);
    const { worker } = await idleWorker(queue);
    await worker.stop();
    await until(async () => (await idlers(queue)) === 0, "nobody idles");
    const heard = await ear(queue);
    await queue.redrive.enqueue("note", { n: 1 });
    expect(await heard()).toBe(0);
  });
});

/** A listener on virtual time, on a connection that answers at once, and what it said there about idling. */
function listenerOn(system: System) {
  const said: string[] = [];
  const client = Object.assign(new EventEmitter(), {
    connect: async () => undefined,
    query: async (text: string) => {
      const [, lock] = /pg_advisory_(\w+)_shared/.exec(text) ?? [];
      if (lock) said.push(lock === "lock" ? "idle" : "busy");
      return { rows: [] };
    },
    end: async () => undefined,
  });
  const connect = () => client as unknown as pg.Client;
  const onPooler = () => void said.push("pooler");
  return { said, listener: new Listener({ names: wakeNames("s"), system, connect, listeners: [], onPooler }) };
}

describe("a busy process", () => {
  it("says that it idles no more once it has found work for a while, and not again while it takes what it sees", () =>
    onVirtualTime(async (system) => {
      const { said, listener } = listenerOn(system);
      await system.sleep(10);
      listener.looked(true);
      await system.sleep(10);
      expect(said).toEqual(["idle"]);
      for (let look = 0; look < 100; look++) {
        listener.looked(false);
        await system.sleep(5);
        listener.took();
        await system.sleep(20);
      }
      expect(said).toEqual(["idle", "busy"]);
      await listener.close();
    }));

  it("waits once to see what its looks led to, not once for each, and then says that it idles", () =>
    onVirtualTime(async (system) => {
      let waits = 0;
      let most = 0;
      const sleep: System["sleep"] = async (...args) => {
        most = Math.max(most, ++waits);
        await system.sleep(...args);
        waits -= 1;
      };
      const { said, listener } = listenerOn({ ...system, sleep });
      await system.sleep(10);
      // Watching the connection is a wait too.
      expect(waits).toBe(1);
      for (let look = 0; look < 30; look++) {
        listener.looked(false);
        if (look % 10 === 0) listener.took();
        await system.sleep(1);
      }
      expect(most).toBeLessThan(5);
      expect(said).toEqual([]);
      await system.sleep(100);
      expect(said).toEqual(["idle"]);
      await listener.close();
    }));
});

describe("a listener that is cut off", () => {
  it("is replaced, and wakes again", async () => {
    const queue = await openQueue(SERVER);
    const { ran } = await idleWorker(queue);
    const cut = await sql(
      SERVER,
      `select pg_terminate_backend(l.pid) as cut, l.pid from pg_locks l where l.locktype = 'advisory' and l.mode = 'ShareLock'
         and l.objid::bigint = hashtext($1)::bigint & 4294967295`,
      [queue.schema],
    );
    expect(cut).toMatchObject([{ cut: true }]);
    await until(async () => (await idlers(queue)) === 1, "it listens and idles again");
    await runs(queue.redrive, ran, 1);
  });

  it("misses nothing that was enqueued meanwhile", async () => {
    const queue = await openQueue(SERVER);
    const { ran } = await idleWorker(queue);
    await sql(
      SERVER,
      `select pg_terminate_backend(l.pid) from pg_locks l where l.locktype = 'advisory' and l.mode = 'ShareLock'
         and l.objid::bigint = hashtext($1)::bigint & 4294967295`,
      [queue.schema],
    );
    await queue.redrive.enqueue("note", { n: 1 });
    await until(() => ran.includes(1), "the job ran");
  });
});

describe("behind a pooler", () => {
  it("nobody listens, and polling finds the work", async () => {
    const queue = await openQueue(SERVER);
    const { ran } = await employ(queue, { pooler: true, poll: "100ms" });
    await runs(queue.redrive, ran, 1);
    const listening = await sql(SERVER, "select count(*)::int as n from pg_stat_activity where query ilike $1", [
      `listen redrive_${queue.schema}%`,
    ]);
    expect(listening).toEqual([{ n: 0 }]);
    expect(await idlers(queue)).toBe(0);
  });

  it("is said in the URL as well", async () => {
    const queue = await openQueue(SERVER);
    const redrive = await createRedrive({ store: `${queue.url}&pooler=true`, log: "silent" });
    onTestFinished(() => redrive.close());
    onTestFinished(redrive.store.onWake(() => undefined));
    await redrive.enqueue("note", { n: 1 });
    await new Promise((resolve) => setTimeout(resolve, 300));
    const prepared = await sql(SERVER, "select count(*)::int as n from pg_stat_activity where query ilike $1", [
      `listen redrive_${queue.schema}%`,
    ]);
    expect(prepared).toEqual([{ n: 0 }]);
  });
});
