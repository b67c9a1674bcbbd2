// How long finished jobs are kept, and the way of a prune through them: which ones it looks at, and which of those are
// over. The same for every store, so that all of them delete the same jobs.
import { cursorError } from "./cursor.ts";

/** How long the finished jobs of a type are kept. */
export interface Keep {
  /** Completed and cancelled ones. */
  readonly finishedMs: number;
  /** Dead ones; null for ever. */
  readonly deadMs: number | null;
}

/** What one step of a prune goes by. */
export interface Retention {
  /** For types that are not named. */
  readonly keep: Keep;
  /** For types that are; each at most once. */
  readonly types: readonly (Keep & { readonly type: string })[];
  /** How long a key stays taken at least, counted from its enqueue; it is never free while its job exists. */
  readonly keyMs: number;
  /** How many finished jobs to look at, and how many keys to free. */
  readonly limit: number;
  /** The `next` of the step before; null to begin with the oldest. */
  readonly cursor: string | null;
}

/** What was deleted, and where to go on; null when nothing further on can be over. */
export interface PruneAnswer {
  readonly completed: number;
  readonly cancelled: number;
  readonly dead: number;
  readonly next: string | null;
}

/** A finished job's place in the order in which a prune looks at them. */
export interface Place {
  readonly finishedAt: number;
  readonly seq: number;
}

/** A retention at one moment. */
export interface Pruning {
  /** Where to begin: behind this place. */
  readonly after: Place;
  /** No completed or cancelled job that finished later can be over. */
  readonly finishedUntil: number;
  /** No dead job that died later can be over; null if none ever is. */
  readonly deadUntil: number | null;
  /** Keys as old as this are free once their job is gone. */
  readonly keysUntil: number;
  /** What else nobody needs goes once it is as old as this. */
  readonly debrisUntil: number;
  /** Cells with a holder go once they are as old as this. */
  readonly cellsUntil: number;
  /** Cells of `BUCKET_KINDS` go once they are as old as this. */
  readonly bucketsUntil: number;
  /** True if a job of this type is not kept any longer. */
  isOver(type: string, state: string, finishedAt: number): boolean;
}

/** How long old workers and pauses stay where the dead stay for ever. */
const DEBRIS_MS = 30 * 86_400_000;

/** How long the cell of a holder stays after its last write. */
const CELL_MS = 86_400_000;

/** Cells that all share and that somebody new may have every day: what is left of a rate limit or a retry budget. */
export const BUCKET_KINDS = ["rate", "budget"] as const;

/** How long one of them stays after its last write: full again by then, whatever may be saved up, but for the slowest. */
const BUCKET_MS = 30 * 86_400_000;

/** Works out what a prune at this moment goes by. */
export function pruning({ keep, types, keyMs, cursor }: Retention, now: number): Pruning {
  const all = [keep, ...types];
  const byType = new Map<string, Keep>(types.map((each) => [each.type, each]));
  const deadMs = all.map((each) => each.deadMs).filter((ms) => ms !== null);
  return {
    after: readPlace(cursor),
    finishedUntil: now - Math.min(...all.map(({ finishedMs }) => finishedMs)),
    deadUntil: deadMs.length === 0 ? null : now - Math.min(...deadMs),
    keysUntil: now - keyMs,
    debrisUntil: now - (keep.deadMs ?? DEBRIS_MS),
    cellsUntil: now - CELL_MS,
    bucketsUntil: now - BUCKET_MS,
    isOver(type, state, finishedAt) {
      const own = byType.get(type) ?? keep;
      const keepMs = state === "dead" ? own.deadMs : own.finishedMs;
      return keepMs !== null && finishedAt <= now - keepMs;
    },
  };
}

/** The order in which a prune looks at finished jobs: oldest first. */
export function inPruneOrder(a: Place, b: Place): number {
  return a.finishedAt - b.finishedAt || a.seq - b.seq;
}

/** The cursor that goes on behind this place. */
export function placeCursor({ finishedAt, seq }: Place): string {
  return `${finishedAt}-${seq}`;
}

/** The place that a cursor of a prune names. */
export function readPlace(cursor: string | null): Place {
  if (cursor === null) return { finishedAt: Number.MIN_SAFE_INTEGER, seq: 0 };
  const [, finishedAt, seq] = /^(-?[0-9]{1,15})-([0-9]{1,15})$/.exec(cursor) ?? [];
  if (finishedAt === undefined || seq === undefined) throw cursorError(cursor);
  return { finishedAt: Number(finishedAt), seq: Number(seq) };
}
