// Writes new jobs in memory. A job that exists already, by its id or by its key, is answered and not written again.
import { keepsPlace } from "../../core/group.ts";
import { TERM_NAMES, type Terms } from "../../core/job.ts";
import { kindOfLane, laneOfKind } from "../../core/lane.ts";
import { meetHolder, type NewJob } from "../../core/new-job.ts";
import type { EnqueueAnswer } from "../store.ts";
import { leavePlace } from "./groups.ts";
import { addPayload } from "./redrives.ts";
import { internLane, keyName, type Row, startWaiting, stopWaiting, type Tables } from "./tables.ts";

/** Writes one new job, or answers why not. */
export function enqueueOne(tables: Tables, job: NewJob): EnqueueAnswer {
  const same = tables.jobs.get(job.id);
  if (same) return { kind: "duplicate", id: same.id, state: same.state };
  const now = tables.clock();
  const known = job.key === null ? null : takeKey(tables, job, now);
  if (known) return known;
  const row = newRow(tables, job, now);
  tables.jobs.set(row.id, row);
  startWaiting(tables, row);
  return { kind: "created", id: row.id };
}

/** Gives the new job its key; where the key stays taken, answers what happened to the new job instead. */
function takeKey(tables: Tables, job: NewJob, now: number): EnqueueAnswer | null {
  const name = keyName(job.type, job.key);
  const taken = tables.keys.get(name);
  const digest = job.digest ?? "";
  if (taken) {
    const { jobId: id } = taken;
    const holder = tables.jobs.get(id);
    const state = holder?.state ?? null;
    const met = meetHolder(job, { id, digest: taken.digest, state });
    if (met === "duplicate") return { kind: "duplicate", id, state };
    if (met === "conflict") return { kind: "conflict", id };
    if (met === "replace") {
      replace(tables, holder as Row, job, now);
      tables.keys.set(name, { jobId: id, digest, createdAt: now });
      return { kind: "replaced", id };
    }
  }
  tables.keys.set(name, { jobId: job.id, digest, createdAt: now });
  return null;
}

/** Gives a waiting job the fields of the new one; its history stays, and so does its due time unless debounced. */
function replace(tables: Tables, row: Row, job: NewJob, now: number): void {
  stopWaiting(tables, row);
  const { queue, service, tenant, group, groupConcurrency, priority, payload, version, trace } = job;
  if (tables.payloads.has(row.id)) addPayload(tables, row, { payload, at: now, actor: null, redrive: null, why: null });
  if (row.group !== group || !keepsPlace(job)) leavePlace(tables, row);
  const terms = Object.fromEntries(TERM_NAMES.map((name) => [name, job[name]])) as unknown as Terms;
  const belonging = { queue, service, tenant, group, groupConcurrency, priority };
  Object.assign(row, { ...belonging, payload, version, trace, limited: job.limited, ...terms, updatedAt: now });
  if (job.unique === "debounce") row.runAt = row.dueAt = dueAt(job, now);
  row.lane = laneOfKind(internLane(tables, job), kindOfLane(row.lane));
  startWaiting(tables, row);
}

function dueAt(job: NewJob, now: number): number {
  return (job.runAt ?? now) + job.delayMs;
}

function newRow(tables: Tables, job: NewJob, now: number): Row {
  const { digest: _digest, delayMs: _delay, unique: _unique, ...fields } = job;
  const runAt = dueAt(job, now);
  return {
    ...fields,
    seq: ++tables.sequence,
    lane: internLane(tables, job),
    state: "queued",
    runAt,
    dueAt: runAt,
    createdAt: now,
    updatedAt: now,
    startedAt: null,
    finishedAt: null,
    expiresAt: null,
    attempts: 0,
    crashes: 0,
    releases: 0,
    generation: 1,
    epoch: 0,
    worker: null,
    nonce: null,
    ticket: 0,
    cancelRequested: false,
    lastDelayMs: 0,
    batchMost: null,
    progress: null,
    result: null,
    failure: null,
  };
}
