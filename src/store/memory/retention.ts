// Deletes finished jobs from memory: by hand, or by a prune when they have expired.
import { LATEST_INSTANT } from "../../core/job.ts";
import {
  BUCKET_KINDS,
  END_STATES,
  type EndState,
  inPruneOrder,
  type Pruning,
  pruning,
  retained,
} from "../retention.ts";
import { CauseChanges, NO_WORKER } from "../causes.ts";
import { RedriveChanges } from "../dead-letters.ts";
import type { PruneAnswer, Retain, RetainAnswer, Retention } from "../store.ts";
import type { Verbs } from "../verbs.ts";
import { laneName, laneOfKind } from "../../core/lane.ts";
import { forgetEvents } from "./event-log.ts";
import { placeOf, tick } from "./causes.ts";
import { countGone, countRuns } from "./outcomes.ts";
import { belongingOf, type KeyRow, type Row, type Tables } from "./tables.ts";

/** The verbs that delete. */
export function retentionVerbs(tables: Tables): Pick<Verbs, "remove" | "prune" | "retain"> {
  return {
    remove: (targets) =>
      targets.filter((target) => {
        const row = tables.jobs.get(typeof target === "string" ? target : target.id);
        const other = typeof target !== "string" && (row?.state !== "dead" || row.generation !== target.generation);
        return !other && forget(tables, row);
      }).length,
    prune: (retention) => prune(tables, retention),
    retain: (request) => retain(tables, request),
  };
}

type Finished = Row & { readonly state: EndState; readonly finishedAt: number };

function isFinished(row: Row): row is Finished {
  return row.finishedAt !== null;
}

/** Deletes a finished job with everything that belongs to it. */
export function forget(tables: Tables, row: Row | undefined): boolean {
  if (!row || !isFinished(row)) return false;
  const changes = new CauseChanges();
  for (const death of tables.deaths)
    if (death.jobId === row.id && death.redrivenAt === null) changes.add(placeOf(tables, death), { removed: 1 });
  tick(tables, changes, NO_WORKER, tables.clock());
  const runs = new RedriveChanges();
  countGone(tables, row, runs);
  countRuns(tables, runs, NO_WORKER);
  tables.jobs.delete(row.id);
  tables.payloads.delete(row.id);
  tables.attempts.delete(row.id);
  for (let i = tables.deaths.length - 1; i >= 0; i--)
    if (tables.deaths[i]?.jobId === row.id) tables.deaths.splice(i, 1);
  return true;
}

function prune(tables: Tables, retention: Retention): PruneAnswer {
  const by = pruning(retention, tables.clock());
  const ended = [...tables.jobs.values()].filter(isFinished);
  const timeless = ended.filter(({ expiresAt }) => expiresAt === null).sort(byState);
  for (const row of timeless.slice(0, retention.limit))
    row.expiresAt = by.expiryOf(row.type, row.state, row.finishedAt);
  const over = ended
    .filter(isOver(by.now))
    .filter(({ state }) => !(retention.holdDead && state === "dead"))
    .sort(inPruneOrder);
  const pruned = { completed: 0, cancelled: 0, dead: 0 };
  for (const row of over.slice(0, retention.limit)) {
    if (by.isAside(row)) row.expiresAt = LATEST_INSTANT;
    else if (forget(tables, row)) pruned[row.state] += 1;
  }
  freeOldKeys(tables, by, retention.limit);
  forgetEvents(tables, by, retention.limit);
  if (retention.isFirst) clean(tables, by);
  if (retention.isFirst) forgetLanes(tables, by, retention.limit);
  return { ...pruned, more: Math.max(timeless.length, over.length) > retention.limit };
}

/** The order in which jobs get an expiry: any order would do; this is that of the SQL stores. */
function byState(a: Finished, b: Finished): number {
  return END_STATES.indexOf(a.state) - END_STATES.indexOf(b.state) || a.seq - b.seq;
}

function isOver(now: number): (row: Finished) => row is Finished & { expiresAt: number } {
  return (row): row is Finished & { expiresAt: number } => row.expiresAt !== null && row.expiresAt <= now;
}

function retain(tables: Tables, { types, after, limit }: Retain): RetainAnswer {
  const byType = new Map(types.map((each) => [each.type, each]));
  const ahead = [...tables.jobs.values()].filter(({ seq }) => seq > after).sort((a, b) => a.seq - b.seq);
  const seen = ahead.slice(0, limit);
  let moved = 0;
  for (const row of seen) {
    const change = retained(row, byType);
    if (change) moved += 1;
    Object.assign(row, change);
  }
  return { moved, next: ahead.length > limit ? (seen.at(-1)?.seq as number) : null };
}

/** Deletes keys of deleted jobs, with every step as many as allowed: there are as many as jobs. */
function freeOldKeys(tables: Tables, { keysUntil }: Pruning, limit: number): void {
  const isFree = ({ jobId, createdAt }: KeyRow): boolean => !tables.jobs.has(jobId) && createdAt <= keysUntil;
  const free = [...tables.keys].filter(([, key]) => isFree(key));
  free.sort(([a, { createdAt: first }], [b, { createdAt: second }]) => first - second || (a < b ? -1 : 1));
  for (const [name] of free.slice(0, limit)) tables.keys.delete(name);
}

/** Deletes lanes that have had no job for long. */
function forgetLanes(tables: Tables, { lanesUntil }: Pruning, limit: number): void {
  const used = new Set([...tables.jobs.values()].map(({ lane }) => laneOfKind(lane, "first")));
  for (const lane of tables.belongings.keys()) {
    if (used.has(lane)) tables.empty.delete(lane);
    else if (!tables.empty.has(lane)) tables.empty.set(lane, tables.clock());
  }
  const old = [...tables.empty].filter(([, since]) => since <= lanesUntil).slice(0, limit);
  for (const [lane] of old) {
    tables.lanes.delete(laneName(belongingOf(tables, lane)));
    tables.belongings.delete(lane);
    tables.empty.delete(lane);
  }
}

/** Deletes other old rows besides jobs and their keys. */
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
