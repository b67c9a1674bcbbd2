// Workers that poll so rarely that only a wake-up can explain that they run anything, and what the server knows of them.
import { inject, onTestFinished } from "vitest";
import { defineJob } from "../../src/index.ts";
import { importBuilt } from "./built.ts";
import type { PostgresQueue } from "./postgres-queue.ts";
import { sql } from "./postgres-world.ts";

const SERVER = inject("postgres18");
const { createPostgresStore } =
  await importBuilt<typeof import("../../src/store/postgres/index.ts")>("store/postgres/index.js");
const SELDOM = "10m";

/** Long before the next poll, and long after everything that a busy machine is late with. */
const PATIENCE_MS = 60_000;

/** Waits until something holds. */
export async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const until = performance.now() + PATIENCE_MS;
  while (!(await holds())) {
    if (performance.now() > until) throw new Error(`Waited ${PATIENCE_MS} ms in vain: ${what}.`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** How many processes say on the server that they idle. */
export async function idlers({ schema }: PostgresQueue): Promise<number> {
  const rows = await sql(
    SERVER,
    `select count(*)::int as n from pg_locks where locktype = 'advisory' and mode = 'ShareLock' and granted
       and classid::bigint = hashtext('redrive idle')::bigint & 4294967295 and objid::bigint = hashtext($1)::bigint & 4294967295`,
    [schema],
  );
  return rows[0]?.["n"] as number;
}

/** A worker on connections of its own, and the numbers of the jobs that it ran. */
export async function employ(
  queue: PostgresQueue,
  options: { pooler?: boolean; poll?: string; takesMs?: number; concurrency?: number } = {},
) {
  const { pooler = false, poll = SELDOM, takesMs = 0, concurrency = 10 } = options;
  const ran: number[] = [];
  const note = defineJob("note", {
    async run({ n }: { n: number }) {
      if (takesMs > 0) await new Promise((resolve) => setTimeout(resolve, takesMs));
      ran.push(n);
    },
  });
  const store = createPostgresStore({ url: SERVER, schema: queue.schema, pooler });
  const { createRedrive: create } = await importBuilt<typeof import("../../src/index.ts")>("index.js");
  const redrive = await create({ store, jobs: [note], log: "silent" });
  const worker = redrive.worker({ poll, concurrency });
  await worker.start();
  onTestFinished(async () => {
    await redrive.close();
    await store.close();
  });
  return { ran, worker };
}

/** A worker that has said that it idles. */
export async function idleWorker(queue: PostgresQueue) {
  const hired = await employ(queue);
  await until(async () => (await idlers(queue)) === 1, "the worker idles");
  // The look that follows its word is over.
  await new Promise((resolve) => setTimeout(resolve, 100));
  return hired;
}
