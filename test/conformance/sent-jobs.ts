// Dead jobs that a redrive run has sent back to work, for the tests of runs.
import { expect } from "vitest";
import type { DeadLetter, Job } from "../../src/core/job.ts";
import { REDRIVE_SUMS, type RedriveSums } from "../../src/core/recovery/outcome.ts";
import type { CellChange, Settlement, Store } from "../../src/store/store.ts";
import { finish, leaseOf, read, takeOne } from "../support/runs.ts";
import { dead, failure } from "../support/verdicts.ts";

/** The run of the tests. */
export const RUN = "r_1";
/** The failure of the letters. */
export const SAME = dead().failure;
/** A failure of another cause. */
export const OTHER = failure({ fingerprint: "f9" });
/** Nothing is kept. */
export const KEEP = { finishedMs: 0, deadMs: 0 };

/** The record of the run. */
export const cell = (change: Partial<CellChange> = {}): CellChange => {
  return { kind: "redrive", name: RUN, holder: "", version: null, value: "1", ...change };
};

/** A dead job that the run has sent back to work. */
export async function sent(store: Store, redrive: string | null = RUN, overrides = {}): Promise<Job> {
  const job = await finish(store, dead(), overrides);
  const request = { id: job.id, generation: 1, delayMs: 0, ...(redrive !== null && { redrive }) };
  expect(await store.redrive([request])).toEqual(["redriven"]);
  return read(store, job.id);
}

/** So many dead jobs of one type that the run has sent back to work together. */
export async function sendMany(store: Store, count: number): Promise<Job[]> {
  const jobs: Job[] = [];
  for (let n = 0; n < count; n++) jobs.push(await finish(store, dead(), { type: "many" }));
  await store.redrive(jobs.map(({ id }) => ({ id, generation: 1, delayMs: 0, redrive: RUN })));
  return jobs;
}

/** Settles as a worker does, which knows that the job was sent back. */
export async function settle(
  store: Store,
  { id }: Job,
  verdict: Settlement["verdict"],
  worker?: string,
): Promise<void> {
  const run = await takeOne(store, id, worker);
  const settlement = { ...leaseOf(run), verdict, redriven: run.generation > 1 };
  const { stale } = await store.settle({ settlements: [settlement], ...(worker !== undefined && { worker }) });
  expect(stale).toEqual([]);
}

/** A letter of a job. */
export async function letterOf(store: Store, id: string, generation = 1): Promise<DeadLetter> {
  const { items } = await store.deadLetters({ jobId: id, redriven: true, limit: 10 });
  return items.find((letter) => letter.generation === generation) as DeadLetter;
}

/** The counts of a run that are not 0. */
export async function countsOf(store: Store, redrive = RUN): Promise<Partial<RedriveSums>> {
  const [counts] = await store.redriveCounts([redrive]);
  const some = REDRIVE_SUMS.filter((count) => counts?.[count] !== 0);
  return Object.fromEntries(some.map((count) => [count, counts?.[count]]));
}
