// Reads, cancels and reschedules jobs in memory.
import { type Job, STATES, type State } from "../../core/job.ts";
import { laneOfKind, kindOfLane } from "../../core/lane.ts";
import { dueCursor, readCursor, readDueCursor } from "../cursor.ts";
import { NO_WORKER } from "../causes.ts";
import { RedriveChanges } from "../dead-letters.ts";
import { withoutPayload } from "../rows.ts";
import type { JobQuery, Page } from "../store.ts";
import type { Verbs } from "../verbs.ts";
import { enqueueOne } from "./enqueue.ts";
import { countRuns, tellLetter } from "./outcomes.ts";
import { lookThrough } from "./look.ts";
import { internLane, jobOf, type Row, startWaiting, stopWaiting, type Tables } from "./tables.ts";
import { finish } from "./work.ts";

/** The verbs about jobs. */
export function jobVerbs(tables: Tables): Pick<Verbs, "enqueue" | "get" | "list" | "count" | "cancel" | "reschedule"> {
  return {
    enqueue: (jobs) => jobs.map((job) => enqueueOne(tables, job)),
    get: (ids) => ids.map((id) => tables.jobs.get(id)).map((row) => (row ? jobOf(row) : null)),
    list(query) {
      if (query.sort === "due") return listDue(tables, query);
      const below = readCursor(query.cursor);
      const walked = [...tables.jobs.values()].reverse().filter(({ seq }) => seq < below);
      const { items, ...page } = lookThrough(walked, query, (row) => matches(row, query, tables.clock()));
      const seen = page.seen && { seenTo: page.seen.createdAt };
      return { items: items.map((row) => shown(row, query)), next: page.next, ...seen };
    },
    count(atMost = Number.POSITIVE_INFINITY) {
      const counts = Object.fromEntries(STATES.map((state) => [state, 0])) as Record<State, number>;
      for (const { state } of tables.jobs.values()) counts[state] = Math.min(counts[state] + 1, atMost);
      return counts;
    },
    cancel: (ids) => {
      const runs = new RedriveChanges();
      const answers = ids.map((id) => {
        const row = tables.jobs.get(id);
        if (!row) return "missing";
        if (row.state !== "queued" && row.state !== "running") return "finished";
        row.updatedAt = tables.clock();
        row.cancelRequested = true;
        if (row.state === "running") return "requested";
        stopWaiting(tables, row);
        finish(tables, row, "cancelled", row.updatedAt);
        tellLetter(tables, row, null, runs);
        return "cancelled";
      });
      countRuns(tables, runs, NO_WORKER);
      return answers;
    },
    reschedule: (changes) =>
      changes.map(({ id, delayMs, priority }) => {
        const row = tables.jobs.get(id);
        if (!row) return "missing";
        if (row.state !== "queued") return "refused";
        stopWaiting(tables, row);
        row.updatedAt = tables.clock();
        if (delayMs !== undefined) row.runAt = row.updatedAt + delayMs;
        if (delayMs !== undefined && row.attempts + row.crashes === 0) row.dueAt = row.runAt;
        if (priority !== undefined) {
          row.priority = priority;
          row.lane = laneOfKind(internLane(tables, row), kindOfLane(row.lane));
        }
        startWaiting(tables, row);
        return "changed";
      }),
  };
}

/** Waiting jobs by due time, the earliest first. */
function listDue(tables: Tables, query: JobQuery): Page<Job> {
  const from = readDueCursor(query.cursor);
  const waiting = [...tables.jobs.values()]
    .filter((row) => row.state === "queued" && matches(row, query, tables.clock()))
    .filter(({ runAt, seq }) => from === null || runAt > from.runAt || (runAt === from.runAt && seq > from.seq))
    .sort((a, b) => a.runAt - b.runAt || a.seq - b.seq);
  const items = waiting.slice(0, query.limit);
  const last = items.at(-1);
  return {
    items: items.map((row) => shown(row, query)),
    next: last && waiting.length > items.length ? dueCursor(last) : null,
  };
}

function shown(row: Row, { payloads }: JobQuery): Job {
  return payloads === false ? withoutPayload(jobOf(row)) : jobOf(row);
}

function matches(row: Row, query: JobQuery, now: number): boolean {
  for (const field of ["state", "type", "queue", "service", "tenant", "key"] as const) {
    if (query[field] !== undefined && row[field] !== query[field]) return false;
  }
  if (query.due !== undefined && (row.state !== "queued" || row.runAt <= now !== query.due)) return false;
  return query.tried === undefined || row.attempts > 0 === query.tried;
}
