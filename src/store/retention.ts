// How long ended jobs are kept, and what a prune does with those that are over. The same for every store, so that all of
// them delete the same jobs.
import { type Job, LATEST_INSTANT, type State } from "../core/job.ts";

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

/** What one step of a prune goes by. */
export interface Retention {
  /** For jobs that have ended without a time to go, of types that are not named. */
  readonly keep: Keep;
  /** For those of types that are, each at most once. Where `deadMs` is null, dead ones that are over are set aside. */
  readonly types: readonly TypeKeep[];
  /** How long a key stays taken at least, counted from its enqueue; it is never free while its job exists. */
  readonly keyMs: number;
  /** How long a lane stays without a job; default a day. */
  readonly laneMs?: number;
  /** How many jobs to delete, how many to give a time, and how many keys and lanes to free. */
  readonly limit: number;
  /** The first step of several, which also clears what is old beside jobs and keys. */
  readonly isFirst: boolean;
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

/** A new time for ended jobs of these types, each named once. */
export interface Retain {
  readonly types: readonly (TypeKeep & { readonly deadMs: number })[];
  /** The `next` of the step before; 0 to begin. */
  readonly after: number;
  /** How many jobs to look at, whatever their type. */
  readonly limit: number;
}

/** How many got a new time, and where to go on; null when all were seen. */
export interface RetainAnswer {
  readonly moved: number;
  readonly next: number | null;
}

/** An ended state. */
export type EndState = Exclude<State, "queued" | "running">;
/** All of them. */
export const END_STATES = ["completed", "cancelled", "dead"] as const satisfies readonly EndState[];

/** A job that is over, and its place in the order in which a prune comes to it. */
export interface Over {
  readonly seq: number;
  readonly expiresAt: number;
  readonly type: string;
  readonly state: EndState;
}

/** A retention at one moment. */
export interface Pruning {
  /** Jobs that go at this time or before are over. */
  readonly now: number;
  /** Keys as old as this are free once their job is gone. */
  readonly keysUntil: number;
  /** Given-up workers and ended pauses that are as old as this are of no use to anybody. */
  readonly debrisUntil: number;
  /** Cells with a holder go once they are as old as this. */
  readonly cellsUntil: number;
  /** Cells of `BUCKET_KINDS` go once they are as old as this. */
  readonly bucketsUntil: number;
  /** Lanes that were not in use since then go. */
  readonly lanesUntil: number;
  /** When a job goes that has ended without a time. */
  expiryOf(type: string, state: EndState, finishedAt: number): number;
  /** True for one that is over and still not deleted, because its letters go only through an archive. */
  isAside(over: Pick<Over, "type" | "state">): boolean;
}

/** How long old workers and pauses stay where the dead stay for ever. */
const DEBRIS_MS = 30 * 86_400_000;

/** How long the cell of a holder stays after its last write. */
const CELL_MS = 86_400_000;

/**
 * Cells that all share and that somebody new may have every day: what is left of a rate limit or a retry budget; and which
 * types have an archive and how long each is kept, which workers of the type write again and again.
 */
export const BUCKET_KINDS = ["rate", "budget", "archive", "keep"] as const;

/** How long one of them stays after its last write: full again by then, whatever may be saved up, but for the slowest. */
const BUCKET_MS = 30 * 86_400_000;

/** How long a lane stays without a job: whoever has groups of any number must not keep them all. */
const LANE_MS = 86_400_000;

/** Works out what a prune at this moment goes by. */
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
    expiryOf(type, state, finishedAt) {
      const { finishedMs, deadMs } = keepOf(type);
      const keepMs = state === "dead" ? deadMs : finishedMs;
      return keepMs === null ? LATEST_INSTANT : finishedAt + keepMs;
    },
    isAside: ({ type, state }) => state === "dead" && keepOf(type).deadMs === null,
  };
}

/** The order in which a prune comes to jobs that are over. */
export function inPruneOrder(a: Over, b: Over): number {
  return a.expiresAt - b.expiresAt || a.seq - b.seq;
}

/** What a new time changes of an ended job; null for one that has it, or is no ended job of these types. */
export function retained(
  job: Pick<Job, "type" | "state" | "finishedAt" | "expiresAt" | "keepFinishedMs" | "keepDeadMs">,
  keepOf: ReadonlyMap<string, Retain["types"][number]>,
): Pick<Job, "expiresAt" | "keepFinishedMs" | "keepDeadMs"> | null {
  const keep = keepOf.get(job.type);
  if (!keep || job.finishedAt === null) return null;
  const { finishedMs: keepFinishedMs, deadMs: keepDeadMs } = keep;
  const over = job.finishedAt + (job.state === "dead" ? keepDeadMs : keepFinishedMs);
  // Whoever has the archive deletes it when it is over by the new time; nobody else does before that.
  const expiresAt = job.expiresAt === LATEST_INSTANT ? LATEST_INSTANT : over;
  const isSame = job.keepFinishedMs === keepFinishedMs && job.keepDeadMs === keepDeadMs && job.expiresAt === expiresAt;
  return isSame ? null : { expiresAt, keepFinishedMs, keepDeadMs };
}
