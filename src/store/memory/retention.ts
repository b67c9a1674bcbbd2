// How finished jobs go from memory: removed by hand, or pruned when their time is over.
import { BUCKET_KINDS, inPruneOrder, type Place, placeCursor, type Pruning, pruning } from "../retention.ts";
import type { PruneAnswer, Retention } from "../store.ts";
import type { Verbs } from "../verbs.ts";
import type { KeyRow, Row, Tables } from "./tables.ts";

/** The verbs that delete. */
export function retentionVerbs(tables: Tables): Pick<Verbs, "remove" | "prune"> {
  return {
    remove: (targets) =>
      targets.filter((target) => {
        const row = tables.jobs.get(typeof target === "string" ? target : target.id);
        const other = typeof target !== "string" && (row?.state !== "dead" || row.generation !== target.generation);
        return !other && forget(tables, row);
      }).length,
    prune: (retention) => prune(tables, retention),
  };
}

type Finished = Row & Place & { readonly state: "completed" | "cancelled" | "dead" };

function isFinished(row: Row): row is Finished {
  return row.finishedAt !== null;
}

/** Deletes a finished job with everything that belongs to it. */
export function forget(tables: Tables, row: Row | undefined): boolean {
  if (!row || !isFinished(row)) return false;
  tables.jobs.delete(row.id);
  tables.attempts.delete(row.id);
  for (let i = tables.deaths.length - 1; i >= 0; i--)
    if (tables.deaths[i]?.jobId === row.id) tables.deaths.splice(i, 1);
  return true;
}

function prune(tables: Tables, retention: Retention): PruneAnswer {
  const by = pruning(retention, tables.clock());
  const pruned = { completed: 0, cancelled: 0, dead: 0 };
  const mayBeOver = (row: Finished): boolean => {
    const until = row.state === "dead" ? by.deadUntil : by.finishedUntil;
    return until !== null && row.finishedAt <= until && inPruneOrder(by.after, row) < 0;
  };
  const old = [...tables.jobs.values()].filter(isFinished).filter(mayBeOver).sort(inPruneOrder);
  const seen = old.slice(0, retention.limit);
  for (const row of seen) {
    if (by.isOver(row.type, row.state, row.finishedAt) && forget(tables, row)) pruned[row.state] += 1;
  }
  freeOldKeys(tables, by, retention.limit);
  if (retention.cursor === null) clean(tables, by);
  return { ...pruned, next: old.length > seen.length ? placeCursor(seen.at(-1) as Finished) : null };
}

/** Deletes keys of jobs that are gone, with every step as many as it may: there are as many as jobs. */
function freeOldKeys(tables: Tables, { keysUntil }: Pruning, limit: number): void {
  const isFree = ({ jobId, createdAt }: KeyRow): boolean => !tables.jobs.has(jobId) && createdAt <= keysUntil;
  const free = [...tables.keys].filter(([, key]) => isFree(key));
  free.sort(([a, { createdAt: first }], [b, { createdAt: second }]) => first - second || (a < b ? -1 : 1));
  for (const [name] of free.slice(0, limit)) tables.keys.delete(name);
}

/** Deletes what nobody needs any more beside jobs and their keys. */
function clean(tables: Tables, { debrisUntil, cellsUntil, bucketsUntil }: Pruning): void {
  for (const [id, worker] of tables.workers) {
    const holds = [...tables.running].some((row) => row.worker === id);
    if (worker.givenUp && worker.beatAt <= debrisUntil && !holds) tables.workers.delete(id);
  }
  const past = (until: number | null): boolean => until !== null && until <= debrisUntil;
  const kept = tables.pauses.filter(({ until }) => !past(until));
  if (kept.length < tables.pauses.length) tables.controlVersion += 1;
  tables.pauses.splice(0, tables.pauses.length, ...kept);
  for (const [id, { kind, holder, at }] of tables.cells) {
    const isBucket = BUCKET_KINDS.some((each) => each === kind);
    if ((holder !== "" && at <= cellsUntil) || (isBucket && at <= bucketsUntil)) tables.cells.delete(id);
  }
}
