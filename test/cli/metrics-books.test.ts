// Figures against the books: two real workers run jobs that fail, retry, die and are sent back. Without kills the counters
// that they serve equal what the store has counted, exactly; with kills they are at most that. The gauges always equal
// what the store says. `npm run prove -- metrics` does it with 10,000 jobs and more kills.
import { once } from "node:events";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import type { Redrive } from "../../src/index.ts";
import { importBuilt } from "../support/built.ts";
import { type Bench, createBench } from "../support/cli.ts";
import { type Running, startCli, until } from "../support/cli-processes.ts";
import { testSchema } from "../support/postgres-queue.ts";

const { createRedrive, defineJob } = await importBuilt<typeof import("../../src/index.ts")>("index.js");

const JOBS = Number(process.env.REDRIVE_PROVE_JOBS ?? 150);
const KILLS = Number(process.env.REDRIVE_PROVE_KILLS ?? 1);
const PATIENCE_MS = 120_000 + JOBS * 60;

const FILE = `
import { existsSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { defineJob, fixed, PermanentError } from "redrive";
export const mail = defineJob("mail", {
  maxAttempts: 3,
  backoff: fixed(1),
  async run(n: number, { attempt }) {
    await setTimeout(n % 7);
    if (n % 10 === 0 && !existsSync("mended")) throw new PermanentError("no such address");
    if (n % 3 === 0 && attempt === 1) throw new Error("busy");
    return n;
  },
});
`;

const STORES: readonly (readonly [string, (bench: Bench) => string])[] = [
  ["sqlite", ({ folder }) => `sqlite:${folder}/redrive.db`],
  ["postgres 18", () => testSchema(inject("postgres18")).url],
];

const OUTCOMES = ["completed", "retried", "dead"] as const;
type Counted = Record<(typeof OUTCOMES)[number], number>;

/** A worker, and what its counters said when they were last asked. */
interface Watched {
  readonly running: Running;
  last: Counted;
  /** Asks once more. */
  ask(): Promise<void>;
}

async function startWorker(bench: Bench, store: string): Promise<Watched> {
  const flags = ["--jobs", "jobs.ts", "--lease", "2s", "--heartbeat", "500ms", "--health-port", "0"];
  const running = startCli(bench, ["worker", "--store", store, ...flags]);
  const port = (): string | undefined => /health=(\d+)/.exec(running.text.err)?.[1];
  await until(
    () => port() !== undefined || running.child.exitCode !== null,
    () => running.text.err,
  );
  const watched: Watched = {
    running,
    last: { completed: 0, retried: 0, dead: 0 },
    async ask() {
      const answer = await fetch(`http://127.0.0.1:${port()}/metrics`, { signal: AbortSignal.timeout(30_000) });
      const text = await answer.text();
      const of = (outcome: string): number =>
        Number(
          new RegExp(`^redrive_runs_total\\{type="mail",outcome="${outcome}"\\} (\\d+)$`, "m").exec(text)?.[1] ?? 0,
        );
      watched.last = { completed: of("completed"), retried: of("retried"), dead: of("dead") };
    },
  };
  return watched;
}

/** What the store says of all runs: jobs that completed, and what it counts by cause in the same transaction as each end. */
async function booked({ store }: Redrive): Promise<Counted> {
  const { completed } = await store.count();
  const { items } = await store.causes({ limit: 100, idle: true });
  const dead = items.reduce((sum, { deaths }) => sum + deaths, 0);
  return { completed, dead, retried: items.reduce((sum, { failures }) => sum + failures, 0) - dead };
}

/** The counts by minute, which workers add up and write every few seconds, so that a killed one leaves some out. */
async function flowed({ store }: Redrive): Promise<Counted> {
  const { now } = await store.control();
  const points = await store.trend({ from: now - 86_400_000, until: now + 60_000, stepMs: 86_400_000 });
  const sum = (name: string): number => points.reduce((total, { counts }) => total + (counts[name] ?? 0), 0);
  return { completed: sum("completed"), dead: sum("dead"), retried: sum("retried") };
}

async function idle({ store }: Redrive): Promise<void> {
  const busy = async (): Promise<number> => {
    const { queued, running } = await store.count();
    return queued + running;
  };
  await expect.poll(busy, { timeout: PATIENCE_MS, interval: 100 }).toBe(0);
}

/** Runs all jobs, kills workers meanwhile, sends the letters back, and returns what every worker counted. */
async function badDay(bench: Bench, url: string, redrive: Redrive, kills: number): Promise<Watched[]> {
  const mail = defineJob("mail", { run: () => null });
  await redrive.enqueueMany(mail, Array.from({ length: JOBS }).keys());
  const all = [await startWorker(bench, url), await startWorker(bench, url)];
  for (let kill = 0; kill < kills; kill += 1) {
    // From a fresh worker on until it has ended some more of the jobs, so that it dies with runs in hand.
    const victim = all[all.length - 1] as Watched;
    for (let asked = 0; asked < 50 && victim.last.completed < JOBS / (4 * kills); asked += 1) await victim.ask();
    const ended = once(victim.running.child, "close");
    victim.running.child.kill("SIGKILL");
    await ended;
    all.push(await startWorker(bench, url));
  }
  await idle(redrive);
  bench.write("mended", "");
  await redrive.deadLetters.retry((await redrive.deadLetters.list({ limit: 20 })).items.map(({ job }) => job.id));
  await idle(redrive);
  for (const each of all) if (each.running.child.signalCode === null) await each.ask();
  return all;
}

describe.each(STORES)("on %s", (_name, addressOf) => {
  it.each([0, KILLS])(
    `${JOBS} jobs and %i kills leave figures that fit the books`,
    { timeout: 2 * PATIENCE_MS },
    async (kills) => {
      const bench = createBench();
      bench.write("jobs.ts", FILE);
      const url = addressOf(bench);
      const redrive = await createRedrive({ store: url, log: "silent" });
      onTestFinished(() => redrive.close());
      const workers = await badDay(bench, url, redrive, kills);
      const books = await booked(redrive);
      const sum = (outcome: (typeof OUTCOMES)[number]): number =>
        workers.reduce((total, { last }) => total + last[outcome], 0);
      const counted = { completed: sum("completed"), retried: sum("retried"), dead: sum("dead") };
      if (kills === 0) {
        expect(counted).toEqual(books);
        await expect.poll(() => flowed(redrive), { timeout: PATIENCE_MS, interval: 100 }).toEqual(books);
      } else
        for (const outcome of OUTCOMES) expect([outcome, counted[outcome] <= books[outcome]]).toEqual([outcome, true]);
      expect(counted.completed).toBeGreaterThan(0);
      const [metrics, jobs] = [await redrive.metrics(), await redrive.store.count()];
      for (const [state, count] of Object.entries(jobs))
        expect([state, metrics.value("redrive_jobs", { state })]).toEqual([state, count]);
      expect(Object.values(jobs).reduce((total, count) => total + count, 0)).toBe(JOBS);
      const letters = await redrive.deadLetters.stats();
      expect(metrics.value("redrive_dead_letters", { type: "mail" }) ?? 0).toBe(letters.total);
      expect(metrics.value("redrive_dead_letters", { type: "mail" }) ?? 0).toBe(jobs.dead);
      expect(metrics.value("redrive_due", { type: "mail" })).toBeUndefined();
      // A worker that got no processor for a lease counts again with its next beat.
      const alive = async (): Promise<number | undefined> =>
        (await redrive.metrics()).value("redrive_workers", { state: "alive" });
      await expect.poll(alive, { timeout: PATIENCE_MS, interval: 100 }).toBe(2);
      expect(metrics.value("redrive_orphans")).toBe(0);
      if (process.env.REDRIVE_PROVE !== undefined)
        process.stdout.write(`${JSON.stringify({ store: _name, kills, counted, books, jobs })}\n`);
    },
  );
});
