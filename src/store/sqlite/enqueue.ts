// Writes new jobs on SQLite. A job that is already there, by its id or by its key, is answered and not written again.
import type { State } from "../../core/job.ts";
import type { NewJob } from "../../core/new-job.ts";
import type { EnqueueAnswer } from "../store.ts";
import type { Database, Value } from "./driver.ts";
import type { Lanes } from "./lanes.ts";
import { NEW_JOB_WIDTH, newJobAt } from "./wire.ts";

/** Writes jobs from their flat form. */
export function enqueuer(db: Database, lanes: Lanes, clock: () => number): (flat: readonly Value[]) => EnqueueAnswer[] {
  const insert = db.prepare(
    `insert into job (id, lane, state, run_at, due_at, created_at, updated_at, max_attempts, max_crashes, deadline_ms, stuck_ms, key, payload)
     values (?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (id) do nothing`,
  );
  const stateOf = db.prepare("select state from job where id = ?");
  const takenBy = db.prepare(
    "select k.job_id, k.digest, j.state from job_key k left join job j on j.id = k.job_id where k.type = ? and k.key = ?",
  );
  const takeKey = db.prepare("insert into job_key (type, key, job_id, digest, created_at) values (?, ?, ?, ?, ?)");

  const byId = (id: string): EnqueueAnswer | null => {
    const [same] = stateOf.all(id);
    return same ? { kind: "duplicate", id, state: same[0] as State } : null;
  };
  const byKey = (type: string, key: string, digest: string | null): EnqueueAnswer | null => {
    const [owner] = takenBy.all(type, key) as [string, string, State | null][];
    if (!owner) return null;
    const [id, taken, state] = owner;
    return taken === digest ? { kind: "duplicate", id, state } : { kind: "conflict", id };
  };
  const one = (job: NewJob, now: number): EnqueueAnswer => {
    const { id, type, key, digest } = job;
    const known = key === null ? null : (byId(id) ?? byKey(type, key, digest));
    if (known) return known;
    const due = (job.runAt ?? now) + job.delayMs;
    const { maxAttempts, maxCrashes, deadlineMs, stuckMs, payload } = job;
    const lane = lanes.intern(job);
    const written = insert.run(
      id,
      lane,
      due,
      due,
      now,
      now,
      maxAttempts,
      maxCrashes,
      deadlineMs,
      stuckMs,
      key,
      payload,
    );
    if (written === 0) return byId(id) as EnqueueAnswer;
    if (key !== null) takeKey.run(type, key, id, digest, now);
    return { kind: "created", id };
  };
  return (flat) => {
    const now = clock();
    const answers: EnqueueAnswer[] = [];
    for (let at = 0; at < flat.length; at += NEW_JOB_WIDTH) answers.push(one(newJobAt(flat, at), now));
    return answers;
  };
}
