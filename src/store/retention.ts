// How long ended jobs are kept, and what a prune does with expired ones. The same for every store, so that all of them
// delete the same jobs.
import { type Job, LATEST_INSTANT, type State } from "../core/job.ts";
import { EVENT_MS } from "./event-log.ts";

/** How long the ended jobs of a type are kept. */
export interface Keep {
  /** Completed and cancelled ones. */
  readonly finishedMs: number;
  /** Dead ones; null where no prune deletes them. */
  readonly deadMs: number | null;
}

/** A type and how long its jobs are kept. */
export interface TypeKeep extends Keep {
  readonly type: string;
}

/** The settings of one prune step. */
export interface Retention {
  /** For jobs that ended without an expiry, of types that are not named. */
  readonly keep: Keep;
  /** For those of named types, each at most once. Where `deadMs` is null, expired dead jobs are set aside. */
  readonly types: readonly TypeKeep[];
  /** The least time that a key stays taken, counted from its enqueue; it is never free while its job exists. */
  readonly keyMs: number;
  /** How long a lane stays without a job; default a day. */
  readonly laneMs?: number;
  /** How many jobs to delete, how many to give an expiry, and how many keys and lanes to free. */
  readonly limit: number;
  /** The first step of several, which also deletes old rows besides jobs and keys. */
  readonly isFirst: boolean;
  /** True while dead letters are being sent back to work: this step neither deletes dead jobs nor sets them aside. */
  readonly holdDead?: boolean;
}

/** What was deleted, and whether there may be more to do. */
export interface PruneAnswer {
  /** Completed jobs deleted. */
  readonly completed: number;
  /** Cancelled jobs deleted. */
  readonly cancelled: number;
  /** Dead jobs deleted. */
  readonly dead: number;
  readonly more: boolean;
}

/** A new expiry for ended jobs of these types, each named once. */
export interface Retain {
  readonly types: readonly (TypeKeep & { readonly deadMs: number })[];
  /** The `next` of the step before; 0 to begin. */
  readonly after: number;
  /** How many jobs to read, whatever their type. */
  readonly limit: number;
}

/** How many got a new expiry, and where to continue; null when all were read. */
export interface RetainAnswer {
  readonly moved: number;
  readonly next: number | null;
}

/** An ended state. */
export type EndState = Exclude<State, "queued" | "running">;
/** All of them. */
export const END_STATES = ["completed", "cancelled", "dead"] as const satisfies readonly EndState[];

/** An expired job, and its position in the order of a prune. */
export interface Over {
  readonly seq: number;
  readonly expiresAt: number;
  readonly type: string;
  readonly state: EndState;
}

/** A retention at one moment. */
export interface Pruning {
  /** Jobs that expire at this time or before are deleted. */
  readonly now: number;
  /** Keys as old as this are free once their job is deleted. */
  readonly keysUntil: number;
  /** Given-up workers and ended pauses as old as this are deleted. */
  readonly debrisUntil: number;
  /** Cells with a holder as old as this are deleted. */
  readonly cellsUntil: number;
  /** Cells of `BUCKET_KINDS` as old as this are deleted. */
  readonly bucketsUntil: number;
  /** Lanes that were not in use since then are deleted. */
  readonly lanesUntil: number;
  /** Events as old as this are deleted. */
  readonly eventsUntil: number;
  /** The expiry of a job that ended without one. */
  expiryOf(type: string, state: EndState, finishedAt: number): number;
  /** True for an expired job that is not deleted, because its letters must go through an archive. */
  isAside(over: Pick<Over, "type" | "state">): boolean;
}

/** How long old workers and pauses stay where the dead stay forever. */
const DEBRIS_MS = 30 * 86_400_000;

/** How long the cell of a holder stays after its last write. */
const CELL_MS = 86_400_000;

/**
 * Shared cells that new names may add every day: what is left of a rate limit or a retry budget; and which types have
 * an archive and how long each is kept, which workers of the type rewrite regularly.
 */
export const BUCKET_KINDS = ["rate", "budget", "archive", "keep"] as const;

/** How long one of them stays after its last write: by then all but the slowest limits are full again. */
const BUCKET_MS = 30 * 86_400_000;

/** How long a lane stays without a job: a program with many groups must not keep them all. */
const LANE_MS = 86_400_000;

/** The thresholds of a prune at this moment. */
export function pruning({ keep, types, keyMs, laneMs = LANE_MS }: Retention, now: number): Pruning {
  const byType = new Map<string, Keep>(types.map((each) => [each.type, each]));
  const keepOf = (type: string): Keep => byType.get(type) ?? keep;
  return {
    now,
    keysUntil: now - keyMs,
    debrisUntil: now - (keep.deadMs ?? DEBRIS_MS),
    cellsUntil: now - CELL_MS,
    bucketsUntil: now - BUCKET_MS,
    lanesUntil: now - laneMs,
    eventsUntil: now - EVENT_MS,
    expiryOf(type, state, finishedAt) {
      const { finishedMs, deadMs } = keepOf(type);
      const keepMs = state === "dead" ? deadMs : finishedMs;
      return keepMs === null ? LATEST_INSTANT : finishedAt + keepMs;
    },
    isAside: ({ type, state }) => state === "dead" && keepOf(type).deadMs === null,
  };
}

/** The order in which a prune treats expired jobs. */
export function inPruneOrder(a: Over, b: Over): number {
  return a.expiresAt - b.expiresAt || a.seq - b.seq;
}

/** What a new expiry changes of an ended job; null for one that has it, or is not an ended job of these types. */
export function retained(
  job: Pick<Job, "type" | "state" | "finishedAt" | "expiresAt" | "keepFinishedMs" | "keepDeadMs">,
  keepOf: ReadonlyMap<string, Retain["types"][number]>,
): Pick<Job, "expiresAt" | "keepFinishedMs" | "keepDeadMs"> | null {
  const keep = keepOf.get(job.type);
  if (!keep || job.finishedAt === null) return null;
  const { finishedMs: keepFinishedMs, deadMs: keepDeadMs } = keep;
  const over = job.finishedAt + (job.state === "dead" ? keepDeadMs : keepFinishedMs);
  // Only a worker with the archive deletes it, when it has expired by the new time.
  const expiresAt = job.expiresAt === LATEST_INSTANT ? LATEST_INSTANT : over;
  const isSame = job.keepFinishedMs === keepFinishedMs && job.keepDeadMs === keepDeadMs && job.expiresAt === expiresAt;
  return isSame ? null : { expiresAt, keepFinishedMs, keepDeadMs };
}
