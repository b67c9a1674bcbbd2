// Combines claimed jobs into batches: how many of the first fetched jobs go into one, and which of them wait in their
// slot for more. A batch consists of adjacent jobs, so that jobs still start in the order of their tickets.
import type { Job } from "../core/job.ts";
import type { BatchSettings } from "../jobs/batch-handler.ts";
import type { ClaimedJob } from "../store/store.ts";
import type { System } from "../system/system.ts";

/** A held job that has not started, with the time of its claim. */
export interface Fetched {
  readonly job: ClaimedJob;
  readonly claimedMs: number;
}

/** True for a job that failed before, or was in a batch of unknown outcome; a redriven job counts as failed. */
export function isAgain({
  attempts,
  batchMost,
  generation,
}: Pick<Job, "attempts" | "batchMost" | "generation">): boolean {
  return attempts > 0 || batchMost !== null || generation > 1;
}

/** The largest batch that this job may be in. */
export function mostWith(
  job: Pick<Job, "attempts" | "batchMost" | "generation">,
  { size, retrySize }: BatchSettings,
): number {
  return Math.min(isAgain(job) ? retrySize : size, job.batchMost ?? size);
}

/**
 * How many of the first of these jobs make one batch: one type and service, never two of one group, and no more than
 * any of them allows.
 */
export function headBatch(fetched: readonly Fetched[], batch: BatchSettings): number {
  const jobs: Job[] = [];
  let most = batch.size;
  const groups = new Set<string>();
  for (const { job } of fetched) {
    const [first = job] = jobs;
    most = Math.min(most, mostWith(job, batch));
    const fits = jobs.length < most && job.type === first.type && job.service === first.service;
    if (jobs.length > 0 && (!fits || (job.group !== null && groups.has(job.group)))) break;
    if (job.group !== null) groups.add(job.group);
    jobs.push(job);
  }
  return jobs.length;
}

interface Gathered {
  readonly fetched: Fetched[];
  readonly batch: BatchSettings;
  readonly cancel: () => void;
}

/** Batches that wait for more jobs, each in a slot. */
export class BatchForming {
  readonly #system: System;
  readonly #begin: (fetched: Fetched[]) => void;
  #waiting: Gathered[] = [];

  /** `begin` gets each batch when it is full or has waited long enough; its slot is free by then. */
  constructor(system: System, begin: (fetched: Fetched[]) => void) {
    this.#system = system;
    this.#begin = begin;
  }

  /** Slots in which batches wait. */
  get slots(): number {
    return this.#waiting.length;
  }

  /** All jobs that wait here. */
  get fetched(): readonly Fetched[] {
    return this.#waiting.flatMap(({ fetched }) => fetched);
  }

  /** Batches of a type that wait here. */
  slotsOf(type: string): number {
    return this.#waiting.filter(({ fetched }) => fetched[0]?.job.type === type).length;
  }

  /** True if these jobs, which make one batch, must wait for more; then they are kept here. */
  keeps(fetched: Fetched[], batch: BatchSettings): boolean {
    const isOpen = fetched.every(({ job }) => mostWith(job, batch) === batch.size);
    if (batch.waitMs === 0 || !isOpen || fetched.length >= batch.size) return false;
    const cancel = this.#system.after(batch.waitMs, () => this.#start(gathered));
    const gathered: Gathered = { fetched, batch, cancel };
    this.#waiting.push(gathered);
    return true;
  }

  /** True if a waiting batch took this job. */
  joins(next: Fetched): boolean {
    for (const gathered of this.#waiting) {
      const { fetched, batch } = gathered;
      if (headBatch([...fetched, next], batch) === fetched.length) continue;
      fetched.push(next);
      if (fetched.length >= batch.size) this.#start(gathered);
      return true;
    }
    return false;
  }

  /** Gives up all jobs that wait here, or those of one service. */
  takeBack(service?: string): Fetched[] {
    const taken = this.#waiting.filter(({ fetched }) => service === undefined || fetched[0]?.job.service === service);
    this.#waiting = this.#waiting.filter((gathered) => !taken.includes(gathered));
    for (const { cancel } of taken) cancel();
    return taken.flatMap(({ fetched }) => fetched);
  }

  #start(gathered: Gathered): void {
    this.#waiting = this.#waiting.filter((other) => other !== gathered);
    gathered.cancel();
    this.#begin(gathered.fetched);
  }
}
