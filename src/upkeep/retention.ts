// Deletes ended jobs whose time has come, in small steps. A job carries that time itself, so that whoever deletes need not
// know its type. Nothing goes silently: whoever listens hears how many, and where an archive is set, the dead letters of the
// types defined here are on disk before they are deleted.
import type { DeadLetter } from "../core/job.ts";
import type { Policy } from "../core/policy.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import type { PruneAnswer, Store } from "../store/store.ts";
import type { System } from "../system/system.ts";
import { applyKeeps, noteArchive, readKeeps, refreshKeeps, retentionBy, typeKeep } from "./keeps.ts";
import type { Service } from "./upkeep.ts";

/** What retention goes by. */
export interface RetentionOptions {
  readonly store: Store;
  readonly system: System;
  readonly jobs: readonly JobDefinition[];
  /** For jobs that ended without a time, of types that no program has said anything about, unless others say longer. */
  readonly policy: Policy;
  /** Keeps dead letters that are about to be deleted; null where there is no archive. */
  readonly archive: ((letters: readonly DeadLetter[]) => Promise<void>) | null;
  readonly onPruned: (pruned: Pruned) => void;
}

/** What was deleted. */
export type Pruned = Omit<PruneAnswer, "more">;

/** How long a key stays taken at least. */
const KEY_MS = 86_400_000;
const STEP = 1_000;
const PAGE = 200;
const EVERY_MS = 600_000;
/** A worker whose store does not let it work says so before this. */
const SAY_AFTER_MS = 1_000;
/** A one-shot cleans up for this long at most; the next one goes on. */
const BRIEF_MS = 2_000;

/**
 * The service. At its start it has jobs of its types kept as they say here; what is over goes every ten minutes, first a
 * moment after the start, so that a fleet does not do it in step.
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

/** Tells every program on the store how long the types defined here are kept, and has ended jobs of theirs go by that. */
async function sayKeeps({ store, jobs, archive }: RetentionOptions, signal?: AbortSignal): Promise<boolean> {
  if (archive) await noteArchive(store, jobs);
  return applyKeeps(store, jobs, signal);
}

/** What a one-shot does before it ends: nobody else may come to clean up. */
export async function applyBriefly(options: RetentionOptions): Promise<void> {
  const enough = new AbortController();
  const forget = options.system.after(BRIEF_MS, () => enough.abort());
  const both = async (): Promise<void> => {
    await sayKeeps(options, enough.signal);
    await applyRetention(options, enough.signal);
  };
  await both().finally(forget);
}

/** Deletes everything that is over now, and tells what. */
export async function applyRetention(options: RetentionOptions, signal?: AbortSignal): Promise<Pruned> {
  const { store, jobs, policy, archive, onPruned } = options;
  if (archive) await noteArchive(store, jobs);
  const sum = { completed: 0, cancelled: 0, dead: archive ? await archiveDead(options, archive, signal) : 0 };
  const usual = { finishedMs: policy.keepFinishedMs, deadMs: policy.keepDeadMs };
  const known = await readKeeps(store);
  await refreshKeeps(store, jobs, known);
  const retention = { ...retentionBy(known, jobs, usual), keyMs: KEY_MS, limit: STEP };
  for (let [isFirst, more] = [true, true]; more && !signal?.aborted; isFirst = false) {
    const answer = await store.prune({ ...retention, isFirst });
    sum.completed += answer.completed;
    sum.cancelled += answer.cancelled;
    sum.dead += answer.dead;
    more = answer.more;
  }
  if (sum.completed + sum.cancelled + sum.dead > 0) onPruned(sum);
  return sum;
}

/** Archives the letters of jobs of our types that are over, and deletes these; those of others have no archive, or another. */
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
        // The letters of earlier deaths go with the job, so they are kept with it.
        const all = { redriven: true, oldest: true, limit: PAGE };
        const pages = await Promise.all(over.map(({ job }) => store.deadLetters({ ...all, jobId: job.id })));
        await archive(pages.flatMap(({ items }) => items));
        removed += await store.remove(over.map(({ job, generation }) => ({ id: job.id, generation })));
      }
      // Letters lie in the order of their deaths: behind one that is not over there is none that is.
      if (page.next === null || over.length < page.items.length) break;
      cursor = page.next;
    }
  }
  return removed;
}
