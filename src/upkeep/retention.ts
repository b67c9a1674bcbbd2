// Deletes finished jobs that are older than what their type keeps, in small steps. Nothing goes silently: whoever listens
// hears how many, and where an archive is set, dead letters are on disk before they are deleted.
import type { DeadLetter } from "../core/job.ts";
import type { Policy } from "../core/policy.ts";
import type { JobDefinition } from "../queue/define-job.ts";
import type { Keep, PruneAnswer, Store } from "../store/store.ts";
import type { System } from "../system/system.ts";
import type { Service } from "./upkeep.ts";

/** What retention goes by. */
export interface RetentionOptions {
  readonly store: Store;
  readonly system: System;
  readonly jobs: readonly JobDefinition[];
  /** For types that are not defined here. */
  readonly policy: Policy;
  /** Keeps dead letters that are about to be deleted; null where there is no archive. */
  readonly archive: ((letters: readonly DeadLetter[]) => Promise<void>) | null;
  readonly onPruned: (pruned: Pruned) => void;
}

/** What was deleted. */
export type Pruned = Omit<PruneAnswer, "next">;

/** How long a key stays taken at least. */
const KEY_MS = 86_400_000;
const STEP = 1_000;
const PAGE = 200;
const EVERY_MS = 600_000;
/** A one-shot cleans up for this long at most; the next one goes on. */
const BRIEF_MS = 2_000;

/** The service: every ten minutes, first a moment after the start, so that a fleet does not do it in step. */
export function retentionService(options: RetentionOptions): Service {
  const waitMs = (): number => EVERY_MS * (0.1 + 0.9 * options.system.random());
  return {
    name: "retention",
    firstMs: waitMs(),
    async step(signal) {
      await applyRetention(options, signal);
      return waitMs();
    },
  };
}

/** What a one-shot does before it ends: nobody else may come to clean up. */
export async function applyBriefly(options: RetentionOptions): Promise<void> {
  const enough = new AbortController();
  const forget = options.system.after(BRIEF_MS, () => enough.abort());
  await applyRetention(options, enough.signal).finally(forget);
}

/** Deletes everything that is over now, and tells what. */
export async function applyRetention(options: RetentionOptions, signal?: AbortSignal): Promise<Pruned> {
  const { store, archive, onPruned } = options;
  const sum = { completed: 0, cancelled: 0, dead: archive ? await archiveDead(options, archive, signal) : 0 };
  const retention = { ...keeps(options), keyMs: KEY_MS, limit: STEP };
  for (let cursor: string | null = null; !signal?.aborted; ) {
    const answer: PruneAnswer = await store.prune({ ...retention, cursor });
    sum.completed += answer.completed;
    sum.cancelled += answer.cancelled;
    sum.dead += answer.dead;
    if (answer.next === null) break;
    cursor = answer.next;
  }
  if (sum.completed + sum.cancelled + sum.dead > 0) onPruned(sum);
  return sum;
}

function keepOf({ keepFinishedMs, keepDeadMs }: Policy): Keep {
  return { finishedMs: keepFinishedMs, deadMs: keepDeadMs };
}

/** With an archive, the dead are not left to the store: they go only after they were kept. */
function keeps({ jobs, policy, archive }: RetentionOptions): { keep: Keep; types: (Keep & { type: string })[] } {
  const left = (keep: Keep): Keep => (archive ? { ...keep, deadMs: null } : keep);
  return {
    keep: left(keepOf(policy)),
    types: jobs.map(({ type, policy: own }) => ({ type, ...left(keepOf(own)) })),
  };
}

async function archiveDead(
  { store, jobs, policy }: RetentionOptions,
  archive: (letters: readonly DeadLetter[]) => Promise<void>,
  signal?: AbortSignal,
): Promise<number> {
  const { now } = await store.control();
  const byType = new Map(jobs.map(({ type, policy: own }) => [type, own.keepDeadMs]));
  const keepMs = (type: string): number => byType.get(type) ?? policy.keepDeadMs;
  const until = now - Math.min(policy.keepDeadMs, ...byType.values()) + 1;
  let removed = 0;
  for (let cursor: string | null = null; !signal?.aborted; ) {
    const page = await store.deadLetters({ limit: PAGE, cursor, oldest: true, until: Math.max(0, until) });
    const over = page.items.filter(({ job, diedAt }) => job.state === "dead" && diedAt <= now - keepMs(job.type));
    if (over.length > 0) {
      // The letters of earlier deaths go with the job, so they are kept with it.
      const all = { redriven: true, oldest: true, limit: PAGE };
      const pages = await Promise.all(over.map(({ job }) => store.deadLetters({ ...all, jobId: job.id })));
      await archive(pages.flatMap(({ items }) => items));
      removed += await store.remove(over.map(({ job, generation }) => ({ id: job.id, generation })));
    }
    if (page.next === null) break;
    cursor = page.next;
  }
  return removed;
}
