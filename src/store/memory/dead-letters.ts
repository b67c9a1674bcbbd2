// Dead letters in memory: list them, send them back, remove and prune what is finished.
import { laneOfKind } from "../../core/lane.ts";
import type { DeadLetter } from "../../core/job.ts";
import type { Retention } from "../store.ts";
import { readCursor, type Verbs } from "../verbs.ts";
import { type DeathRow, jobOf, type KeyRow, type Row, startWaiting, type Tables } from "./tables.ts";

/** The verbs about what has ended. */
export function deadLetterVerbs(
  tables: Tables,
): Pick<Verbs, "deadLetters" | "history" | "redrive" | "remove" | "prune"> {
  return {
    deadLetters(query) {
      const below = readCursor(query.cursor);
      const found = tables.deaths
        .filter((death) => death.seq < below && (query.redriven || death.redrivenAt === null))
        .filter((death) => query.jobId === undefined || death.jobId === query.jobId)
        .filter((death) => query.type === undefined || tables.jobs.get(death.jobId)?.type === query.type)
        .filter((death) => query.reason === undefined || death.reason === query.reason)
        .filter((death) => query.class === undefined || death.failure.class === query.class)
        .filter((death) => query.fingerprint === undefined || death.failure.fingerprint === query.fingerprint)
        .reverse();
      const items = found.slice(0, query.limit);
      return {
        items: items.map((death) => letterOf(tables, death)),
        next: found.length > items.length ? String(items.at(-1)?.seq) : null,
      };
    },
    history: (id) => (tables.attempts.get(id) ?? []).map((record) => ({ ...record })),
    redrive: (requests) =>
      requests.map(({ id, generation, delayMs }) => {
        const row = tables.jobs.get(id);
        if (!row) return "missing";
        if (row.state !== "dead" || row.generation !== generation) return "refused";
        const now = tables.clock();
        const death = tables.deaths.find((other) => other.jobId === id && other.generation === generation);
        if (death) death.redrivenAt = now;
        const fresh = {
          attempts: 0,
          crashes: 0,
          releases: 0,
          lastDelayMs: 0,
          finishedAt: null,
          cancelRequested: false,
        };
        const runAt = now + delayMs;
        Object.assign(row, fresh, { state: "queued", generation: generation + 1, runAt, dueAt: runAt, updatedAt: now });
        row.lane = laneOfKind(row.lane, "first");
        startWaiting(tables, row);
        return "redriven";
      }),
    remove: (ids) => ids.filter((id) => forget(tables, tables.jobs.get(id))).length,
    prune: (retention) => prune(tables, retention),
  };
}

function letterOf(tables: Tables, { seq: _seq, jobId, ...death }: DeathRow): DeadLetter {
  return { ...death, job: jobOf(tables.jobs.get(jobId) as Row) };
}

function forget(tables: Tables, row: Row | undefined): boolean {
  if (!row || row.state === "queued" || row.state === "running") return false;
  tables.jobs.delete(row.id);
  tables.attempts.delete(row.id);
  for (let i = tables.deaths.length - 1; i >= 0; i--)
    if (tables.deaths[i]?.jobId === row.id) tables.deaths.splice(i, 1);
  return true;
}

function prune(tables: Tables, retention: Retention): { completed: number; cancelled: number; dead: number } {
  const now = tables.clock();
  const pruned = { completed: 0, cancelled: 0, dead: 0 };
  let left = retention.limit;
  for (const state of ["completed", "cancelled", "dead"] as const) {
    const before = now - retention[`${state}Ms`];
    const old = [...tables.jobs.values()].filter((row) => row.state === state && (row.finishedAt ?? now) <= before);
    old.sort((a, b) => (a.finishedAt ?? 0) - (b.finishedAt ?? 0) || a.seq - b.seq);
    for (const row of old.slice(0, left)) if (forget(tables, row)) pruned[state] += 1;
    left -= pruned[state];
  }
  const isFree = ({ jobId, createdAt }: KeyRow): boolean =>
    !tables.jobs.has(jobId) && createdAt <= now - retention.keyMs;
  const free = [...tables.keys].filter(([, key]) => isFree(key)).slice(0, retention.limit);
  for (const [name] of free) tables.keys.delete(name);
  const longAgo = now - retention.deadMs;
  for (const [id, worker] of tables.workers) {
    const holds = [...tables.running].some((row) => row.worker === id);
    if (worker.givenUp && worker.beatAt <= longAgo && !holds) tables.workers.delete(id);
  }
  const past = (until: number | null): boolean => until !== null && until <= longAgo;
  tables.pauses.splice(0, tables.pauses.length, ...tables.pauses.filter(({ until }) => !past(until)));
  return pruned;
}
