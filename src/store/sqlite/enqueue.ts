// Writes new jobs on SQLite. A job that is already there, by its id or by its key, is answered and not written again.
import type { State } from "../../core/job.ts";
import type { NewJob } from "../../core/new-job.ts";
import type { EnqueueAnswer } from "../store.ts";
import type { Database, Value } from "./driver.ts";
import type { Lanes } from "./lanes.ts";
import { unlessBroken } from "./quarantine.ts";
import { NEW_JOB_WIDTH, newJobAt } from "./wire.ts";

const INSERT = `insert into job (id, lane, state, run_at, due_at, created_at, updated_at, max_attempts, max_crashes,
  deadline_ms, stuck_ms, key, payload) values`;
const ROW = "(?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
/** Jobs written by one statement, which costs not much more than half of one statement for each. */
const TOGETHER = 10;

/** Writes jobs from their flat form. */
export function enqueuer(db: Database, lanes: Lanes, clock: () => number): (flat: readonly Value[]) => EnqueueAnswer[] {
  const insert = db.prepare(`${INSERT} ${ROW} on conflict (id) do nothing`);
  const insertAll = db.prepare(`${INSERT} ${Array(TOGETHER).fill(ROW).join(", ")}`);
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
  const rowOf = (job: NewJob, now: number): Value[] => {
    const { id, maxAttempts, maxCrashes, deadlineMs, stuckMs, key, payload } = job;
    const due = (job.runAt ?? now) + job.delayMs;
    return [id, lanes.intern(job), due, due, now, now, maxAttempts, maxCrashes, deadlineMs, stuckMs, key, payload];
  };
  const one = (job: NewJob, now: number): EnqueueAnswer => {
    const { id, type, key, digest } = job;
    const known = key === null ? null : (byId(id) ?? byKey(type, key, digest));
    if (known) return known;
    const written = insert.run(...rowOf(job, now));
    if (written === 0) return byId(id) as EnqueueAnswer;
    if (key !== null) takeKey.run(type, key, id, digest, now);
    return { kind: "created", id };
  };
  /** A statement that meets a known id leaves nothing behind. */
  const allNew = (jobs: readonly NewJob[], now: number): boolean =>
    jobs.length === TOGETHER &&
    jobs.every(({ key }) => key === null) &&
    unlessBroken(() => insertAll.run(...jobs.flatMap((job) => rowOf(job, now))));
  return (flat) => {
    const now = clock();
    const answers: EnqueueAnswer[] = [];
    for (let from = 0; from < flat.length; from += TOGETHER * NEW_JOB_WIDTH) {
      const jobs: NewJob[] = [];
      const end = Math.min(flat.length, from + TOGETHER * NEW_JOB_WIDTH);
      for (let at = from; at < end; at += NEW_JOB_WIDTH) jobs.push(newJobAt(flat, at));
      if (allNew(jobs, now)) for (const { id } of jobs) answers.push({ kind: "created", id });
      else for (const job of jobs) answers.push(one(job, now));
    }
    return answers;
  };
}
