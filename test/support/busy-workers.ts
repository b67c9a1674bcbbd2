// Workers on a Postgres server in the middle of their work, for tests about outages: what they say, how soon they go on,
// and whether everything ended well without anybody being charged.
import pg from "pg";
import { expect, type TestContext } from "vitest";
import type { Store } from "../../src/store/store.ts";
import type { Log } from "../../src/system/log.ts";
import { importBuilt } from "./built.ts";
import { freshSchema, sql } from "./postgres-world.ts";

type Library = typeof import("../../src/index.ts");

interface Line {
  readonly at: number;
  readonly text: string;
}

/** Waits on the clock, where an outage itself is what takes time. */
export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Ten times what the longest of them takes on a quiet machine. */
const PATIENCE_MS = 60_000;

async function until(done: () => boolean, what: string, said: Line[] = [], withinMs = PATIENCE_MS): Promise<void> {
  const began = performance.now();
  while (!done()) {
    if (performance.now() - began > withinMs) {
      const lines = said.slice(-30).map(({ at, text }) => `${Math.round(at - began)} ms: ${text}`);
      throw new Error(`Waited ${withinMs} ms in vain for ${what}; it said:\n${lines.join("\n")}`);
    }
    await pause(10);
  }
}

/** A log that keeps what it is told of trouble and of its end, with the time. */
function recorder(lines: Line[]): Log {
  const note = (_fields: object, text: string): void => void lines.push({ at: performance.now(), text });
  const info = (fields: object, text: string): void => void (text.includes("the store") && note(fields, text));
  return { debug: () => undefined, info, warn: note, error: note };
}

/** The most lines of one cause within any second; who asked is no part of the cause. */
function mostOfOneCause(lines: readonly Line[]): number {
  const cause = ({ text }: Line): string => text.replace(/ \([a-z ]+\):/, "");
  const within = (from: Line): number =>
    lines.filter((line) => cause(line) === cause(from) && line.at >= from.at && line.at < from.at + 990).length;
  return Math.max(0, ...lines.map(within));
}

/** Workers and their jobs. */
export interface Busy {
  readonly lines: Line[];
  readonly ids: readonly string[];
  readonly completed: () => number;
  /** Makes the pool open as many connections as it may, which then idle. */
  fillPool(): Promise<void>;
  /** Waits for the next job that is completed. */
  resumes(): Promise<void>;
  /** All jobs are completed, and nobody was charged. */
  endsWell(): Promise<void>;
  /** New jobs are taken by a worker that idles. */
  picksUp(): Promise<void>;
}

/** How many workers, and how long they are trusted. */
interface Staff {
  /** Of the test's own context, because tests may run side by side. */
  readonly onTestFinished: TestContext["onTestFinished"];
  readonly workers?: number;
  /** The server itself, where the URL leads through a network that fails. */
  readonly server?: string;
  /** The store works with a pool of the user's own. */
  readonly ownPool?: boolean;
  readonly lease?: string;
  readonly heartbeat?: string;
}

/** A store over a pool as the docs make one. */
async function storeOfPool(url: string, schema: string, onTestFinished: Staff["onTestFinished"]): Promise<Store> {
  const { postgres } = await importBuilt<typeof import("../../src/store/postgres/index.ts")>("store/postgres/index.js");
  const pool = new pg.Pool({ connectionString: url, max: 5 });
  const store = postgres({ pool, schema });
  onTestFinished(async () => {
    await store.close();
    await pool.end();
  });
  return store;
}

/** Workers in the middle of their work: a long job runs, ten run at a time, many wait, one is scheduled. */
export async function busy(
  url: string,
  { onTestFinished, workers = 1, server = url, ownPool = false, ...options }: Staff,
): Promise<Busy> {
  const { createRedrive, defineJob } = await importBuilt<Library>("index.js");
  const lines: Line[] = [];
  let completed = 0;
  const started = new Set<string>();
  const sleeper = defineJob("sleeper", {
    maxAttempts: 1,
    run: async ({ ms }: { ms: number }, { job, signal }) => {
      started.add(job.id);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        signal.addEventListener("abort", () => (clearTimeout(timer), resolve()));
      });
      signal.throwIfAborted();
    },
  });
  const schema = freshSchema();
  const redrive = await createRedrive({
    store: ownPool ? await storeOfPool(url, schema, onTestFinished) : `${url}?schema=${schema}`,
    jobs: [sleeper],
    log: recorder(lines),
  });
  onTestFinished(() => redrive.close());
  redrive.on("job.completed", () => (completed += 1));
  const add = async (ms: number, delay = 0): Promise<string> => (await redrive.enqueue(sleeper, { ms }, { delay })).id;
  const ids = [await add(2_500), await add(50, 2_000)];
  for (let n = 0; n < 120; n++) ids.push(await add(200));
  for (let n = 0; n < workers; n++) await redrive.worker({ concurrency: 10, poll: "2s", ...options }).start();
  await until(() => completed >= 10, "the first jobs");
  return {
    lines,
    ids,
    completed: () => completed,
    async fillPool() {
      await Promise.all(ids.slice(0, 50).map((id) => redrive.jobs.get(id)));
    },
    async resumes() {
      const before = completed;
      await until(() => completed > before, "another completed job", lines);
    },
    async endsWell() {
      // What workers say is one thing, what the server has is the other.
      let open = ids;
      const look = async (): Promise<void> => {
        const jobs = await sql(server, `select id, state, attempts, crashes from ${schema}.job where id = any($1)`, [
          open,
        ]);
        expect(jobs).toHaveLength(open.length);
        for (const job of jobs) expect(job).toMatchObject({ attempts: 0, crashes: 0 });
        open = jobs.filter(({ state }) => state !== "completed").map(({ id }) => String(id));
      };
      const began = performance.now();
      while (open.length > 0 && performance.now() - began < PATIENCE_MS) await look().then(() => pause(100));
      if (open.length > 0) await until(() => false, `the end of ${open.length} jobs`, lines, 0);
      expect(mostOfOneCause(lines.filter(({ text }) => text.includes("the store")))).toBeLessThanOrEqual(workers);
    },
    async picksUp() {
      for (let n = 0; n < 5; n++) {
        const id = await add(0);
        await until(() => started.has(id), "a job that was just enqueued", lines);
      }
    },
  };
}
