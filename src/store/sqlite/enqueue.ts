// Writes new jobs on SQLite. A job that exists already, by its id or by its key, is answered and not written again.
import { keepsPlace } from "../../core/group.ts";
import type { State } from "../../core/job.ts";
import { meetHolder, type NewJob } from "../../core/new-job.ts";
import type { EnqueueAnswer } from "../store.ts";
import type { SqliteDatabase, SqliteStatement } from "./driver.ts";
import { SET_TERMS, TERM_COLUMNS, termValues, type Value } from "../columns.ts";
import type { SqliteLaneNumbers } from "./lane-numbers.ts";
import { unlessBroken } from "./quarantine.ts";
import { NEW_JOB, NEW_JOB_WIDTH, newJobAt } from "./wire.ts";

const COLUMNS = [
  "id",
  "lane",
  "run_at",
  "due_at",
  "created_at",
  "updated_at",
  "limited",
  "version",
  "key",
  "payload",
  "trace",
];
const INSERT = `insert into job (state, ${[...COLUMNS, ...TERM_COLUMNS].join(", ")}) values`;
const ROW = `('queued', ${[...COLUMNS, ...TERM_COLUMNS].map(() => "?").join(", ")})`;
/**
 * Jobs written by one statement, which costs little more than half of one statement for each; the largest that fits is
 * used.
 */
const TOGETHER = [50, 10] as const;

/** Writes jobs from their flat form. */
export function enqueuer(
  db: SqliteDatabase,
  lanes: SqliteLaneNumbers,
  clock: () => number,
): (flat: readonly Value[]) => EnqueueAnswer[] {
  const insert = db.prepare(`${INSERT} ${ROW} on conflict (id) do nothing`);
  const insertAll = TOGETHER.map((size) => ({
    size,
    write: db.prepare(`${INSERT} ${Array(size).fill(ROW).join(", ")}`),
  }));
  const stateOf = db.prepare("select state from job where id = ?");
  const keys = keyKeeper(db, lanes);

  const byId = (id: string): EnqueueAnswer | null => {
    const [same] = stateOf.all(id);
    return same ? { kind: "duplicate", id, state: same[0] as State } : null;
  };
  const rowOf = (job: NewJob, now: number): Value[] => {
    const { id, version, key, payload, trace } = job;
    const [lane, due] = [lanes.intern(job), dueAt(job, now)];
    return [id, lane, due, due, now, now, Number(job.limited), version, key, payload, trace, ...termValues(job)];
  };
  const one = (job: NewJob, now: number): EnqueueAnswer => {
    const { id, key } = job;
    const known = key === null ? null : (byId(id) ?? keys.meet(job, now));
    if (known) return known;
    const written = insert.run(...rowOf(job, now));
    if (written === 0) return byId(id) as EnqueueAnswer;
    if (key !== null) keys.take(job, id, now);
    return { kind: "created", id };
  };
  /** Writes jobs without keys together; false, with nothing written, if one of them has a key or exists. */
  const allNew = (write: SqliteStatement, flat: readonly Value[], from: number, end: number, now: number): boolean => {
    const values: Value[] = [];
    for (let at = from; at < end; at += NEW_JOB_WIDTH) {
      if (flat[at + NEW_JOB.key] !== null) return false;
      pushRow(values, flat, at, lanes.internAt(flat, at + NEW_JOB.type), now);
    }
    return unlessBroken(() => write.run(...values));
  };
  return (flat) => {
    const now = clock();
    lanes.refresh();
    const answers: EnqueueAnswer[] = [];
    for (let from = 0; from < flat.length; ) {
      const fits = insertAll.find(({ size }) => from + size * NEW_JOB_WIDTH <= flat.length);
      const end = fits ? from + fits.size * NEW_JOB_WIDTH : flat.length;
      const together = fits !== undefined && allNew(fits.write, flat, from, end, now);
      for (let at = from; at < end; at += NEW_JOB_WIDTH)
        answers.push(together ? { kind: "created", id: flat[at] as string } : one(newJobAt(flat, at), now));
      from = end;
    }
    return answers;
  };
}

/** The row of a job without a key, from its flat form; intermediate objects would cost as much as the insert. */
function pushRow(values: Value[], flat: readonly Value[], at: number, lane: number, now: number): void {
  const of = (field: keyof typeof NEW_JOB): Value => flat[at + NEW_JOB[field]] as Value;
  const due = ((of("runAt") as number | null) ?? now) + (of("delayMs") as number);
  values.push(of("id"), lane, due, due, now, now, of("limited"), of("version"), null, of("payload"), of("trace"));
  for (let place = at + NEW_JOB.terms; place < at + NEW_JOB_WIDTH; place++) values.push(flat[place] as Value);
}

function dueAt(job: NewJob, now: number): number {
  return (job.runAt ?? now) + job.delayMs;
}

/** Reads and moves keys. */
interface KeyKeeper {
  /** The answer for a new job whose key is taken; null if it must be created. */
  meet(job: NewJob, now: number): EnqueueAnswer | null;
  /** Makes the job of this id the holder of the new job's key. */
  take(job: NewJob, id: string, now: number): void;
}

function keyKeeper(db: SqliteDatabase, lanes: SqliteLaneNumbers): KeyKeeper {
  const takenBy = db.prepare(
    "select k.job_id, k.digest, j.state from job_key k left join job j on j.id = k.job_id where k.type = ? and k.key = ?",
  );
  const write = db.prepare(
    `insert into job_key (type, key, job_id, digest, created_at) values (?, ?, ?, ?, ?) on conflict (type, key)
     do update set job_id = excluded.job_id, digest = excluded.digest, created_at = excluded.created_at, gone = 0`,
  );
  // The lanes of one belonging are four adjacent numbers; the job keeps its kind.
  const replace = db.prepare(
    `update job set lane = ? + abs(lane % 4), payload = ?, version = ?, limited = ?, trace = ?, ${SET_TERMS},
       run_at = coalesce(?, run_at), due_at = coalesce(?, due_at), updated_at = ?, placed = case when placed = ? then placed end where id = ?`,
  );
  // Only jobs that were repaired have versions.
  const note = db.prepare(
    `insert into payload_version (job_seq, n, payload, at, generation)
     select j.seq, max(v.n) + 1, j.payload, ?, j.generation from job j join payload_version v on v.job_seq = j.seq
     where j.id = ? group by j.seq`,
  );
  const take: KeyKeeper["take"] = ({ type, key, digest }, id, now) => void write.run(type, key, id, digest, now);
  return {
    take,
    meet(job, now) {
      const [row] = takenBy.all(job.type, job.key) as [string, string, State | null][];
      if (!row) return null;
      const [id, digest, state] = row;
      const met = meetHolder(job, { id, digest, state });
      if (met === "duplicate") return { kind: "duplicate", id, state };
      if (met === "conflict") return { kind: "conflict", id };
      if (met === "create") return null;
      const due = job.unique === "debounce" ? dueAt(job, now) : null;
      const lane = lanes.intern(job);
      const placed = keepsPlace(job) ? lanes.groupOf(lane) : null;
      const body = [job.payload, job.version, Number(job.limited), job.trace, ...termValues(job)];
      replace.run(lane, ...body, due, due, now, placed, id);
      note.run(now, id);
      take(job, id, now);
      return { kind: "replaced", id };
    },
  };
}
