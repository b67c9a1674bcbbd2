// Deletes ended jobs that have expired, in small steps. A job carries its expiry, so that the deleting process need not
// know its type. Listeners learn how many were deleted, and where an archive is set, the dead letters of the types
// defined here are on disk before they are deleted.
import { retentionPruned } from "../core/event-log.ts";
import type { DeadLetter } from "../core/job.ts";
import type { Policy } from "../core/policy.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import type { PruneAnswer, Store } from "../store/store.ts";
import type { System } from "../system/system.ts";
import { holdsDead } from "./run-cells.ts";
import { applyKeeps, noteArchive, readKeeps, refreshKeeps, retentionBy, typeKeep } from "./keeps.ts";
import type { Service } from "./upkeep.ts";

/** What retention needs. */
export interface RetentionOptions {
  readonly store: Store;
  readonly system: System;
  readonly jobs: readonly JobDefinition[];
  /** For jobs that ended without an expiry, of types without a note, unless another type keeps jobs longer. */
  readonly policy: Policy;
  /** Archives dead letters that are about to be deleted; null where there is no archive. */
  readonly archive: ((letters: readonly DeadLetter[]) => Promise<void>) | null;
  readonly onPruned: (pruned: Pruned) => void;
}

/** What was deleted. */
export type Pruned = Omit<PruneAnswer, "more">;

/** The least time that a key stays taken. */
const KEY_MS = 86_400_000;
const STEP = 1_000;
const PAGE = 200;
const EVERY_MS = 600_000;
/** A worker whose store refuses this step reports it within this time. */
const SAY_AFTER_MS = 1_000;
/** A one-shot cleans up for at most this long; the next one continues. */
const BRIEF_MS = 2_000;

/**
 * The service. At its start it applies the keep times of its types to their jobs. It deletes expired jobs every ten
 * minutes, the first time a moment after the start, so that the workers of a fleet do not act in step.
 */
export function retentionService(options: RetentionOptions): Service {
  const waitMs = (): number => EVERY_MS * (0.1 + 0.9 * options.system.random());
  let isSaid = false;
  return {
    name: "retention",
    firstMs: SAY_AFTER_MS,
    async step(signal) {
      if (isSaid) await applyRetention(options, signal);
      else isSaid = await sayKeeps(options, signal);
      return waitMs();
    },
  };
}

/** Notes for every program on the store how long the types defined here are kept, and applies it to ended jobs. */
async function sayKeeps({ store, jobs, archive }: RetentionOptions, signal?: AbortSignal): Promise<boolean> {
  if (archive) await noteArchive(store, jobs);
  return applyKeeps(store, jobs, signal);
}

/** The cleanup of a one-shot before it ends: no other process may come to do it. */
export async function applyBriefly(options: RetentionOptions): Promise<void> {
  const enough = new AbortController();
  const forget = options.system.after(BRIEF_MS, () => enough.abort());
  const both = async (): Promise<void> => {
    await sayKeeps(options, enough.signal);
    await applyRetention(options, enough.signal);
  };
  await both().finally(forget);
}

/** Deletes everything that has expired, and reports it. */
export async function applyRetention(options: RetentionOptions, signal?: AbortSignal): Promise<Pruned> {
  const { store, jobs, policy, archive, onPruned } = options;
  if (archive) await noteArchive(store, jobs);
  // A redrive run may still send letters that have expired.
  const isHeld = await holdsDead(store);
  const dead = archive && !isHeld ? await archiveDead(options, archive, signal) : 0;
  const sum = { completed: 0, cancelled: 0, dead };
  const usual = { finishedMs: policy.keepFinishedMs, deadMs: policy.keepDeadMs };
  const known = await readKeeps(store);
  await refreshKeeps(store, jobs, known);
  const retention = {
    ...retentionBy(known, jobs, usual),
    keyMs: KEY_MS,
    limit: STEP,
    ...(isHeld && { holdDead: true as const }),
  };
  for (let [isFirst, more] = [true, true]; more && !signal?.aborted; isFirst = false) {
    const answer = await store.prune({ ...retention, isFirst });
    sum.completed += answer.completed;
    sum.cancelled += answer.cancelled;
    sum.dead += answer.dead;
    more = answer.more;
  }
  if (sum.completed + sum.cancelled + sum.dead > 0) {
    onPruned(sum);
    await store.record([retentionPruned(sum)]);
  }
  return sum;
}

/**
 * Archives the letters of expired jobs of our types, and deletes the jobs; other types have another archive, or none.
 */
async function archiveDead(
  { store, jobs }: RetentionOptions,
  archive: (letters: readonly DeadLetter[]) => Promise<void>,
  signal?: AbortSignal,
): Promise<number> {
  const { now } = await store.control();
  let removed = 0;
  for (const { type, deadMs } of jobs.map(typeKeep)) {
    for (let cursor: string | null = null; !signal?.aborted; ) {
      const page = await store.deadLetters({ type, limit: PAGE, cursor, oldest: true });
      const over = page.items.filter(({ job, diedAt }) => job.state === "dead" && diedAt <= now - deadMs);
      if (over.length > 0) {
        // The letters of earlier deaths are deleted with the job, so they are archived with it.
        const all = { redriven: true, oldest: true, limit: PAGE };
        const pages = await Promise.all(over.map(({ job }) => store.deadLetters({ ...all, jobId: job.id })));
        await archive(pages.flatMap(({ items }) => items));
        removed += await store.remove(over.map(({ job, generation }) => ({ id: job.id, generation })));
      }
      // Letters are in the order of their deaths: after one that has not expired there is none that has.
      if (page.next === null || over.length < page.items.length) break;
      cursor = page.next;
    }
  }
  return removed;
}
