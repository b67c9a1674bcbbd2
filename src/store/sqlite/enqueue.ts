// Writes new jobs on SQLite. A job that exists already, by its id or by its key, is answered and not written again.
import { keepsPlace } from "../../core/group.ts";
import type { State } from "../../core/job.ts";
import { meetHolder, type NewJob } from "../../core/new-job.ts";
import type { EnqueueAnswer } from "../store.ts";
import type { SqliteDatabase } from "./driver.ts";
import { SET_TERMS, TERM_COLUMNS, termValues, type Value } from "../columns.ts";
import type { SqliteLaneNumbers } from "./lane-numbers.ts";
import { unlessBroken } from "./quarantine.ts";
import { NEW_JOB, NEW_JOB_WIDTH, type NewJobsWire, newJobAt } from "./wire.ts";

/** What differs between jobs that are alike, and what they share. */
const OWN = ["id", "payload"];
const SHARED = [
  "lane",
  "run_at",
  "due_at",
  "created_at",
  "updated_at",
  "limited",
  "version",
  "key",
  "trace",
  ...TERM_COLUMNS,
];
const INSERT = `insert into job (state, ${[...SHARED, ...OWN].join(", ")})`;
const places = (columns: readonly string[]): string => columns.map(() => "?").join(", ");
const ROW = `('queued', ${places([...SHARED, ...OWN])})`;
/**
 * Jobs written by one statement, which costs little more than half of one statement for each; the largest that fits is
 * used.
 */
const TOGETHER = [50, 10] as const;
/** The same for jobs that are alike: what they share is bound once, which saves another third. */
const ALIKE = [100, 10, 1] as const;

/** Writes jobs as they stand on the wire; null where all of them were created. */
export function enqueuer(
  db: SqliteDatabase,
  lanes: SqliteLaneNumbers,
  clock: () => number,
): (jobs: NewJobsWire) => EnqueueAnswer[] | null {
  const one = singleWriter(db, lanes);
  const { insertWhole, insertAlike } = manyWriter(db, lanes);
  const created = (id: string): EnqueueAnswer => ({ kind: "created", id });
  /** The answers about jobs that stand whole in the flat array. */
  const whole = (flat: readonly Value[], first: number, last: number, now: number): EnqueueAnswer[] => {
    const answers: EnqueueAnswer[] = [];
    for (let from = first; from < last; ) {
      const written = insertWhole(flat, from, last, now);
      const end = written ?? Math.min(last, from + TOGETHER[0] * NEW_JOB_WIDTH);
      for (; from < end; from += NEW_JOB_WIDTH)
        answers.push(written === null ? one(newJobAt(flat, from), now) : created(flat[from] as string));
    }
    return answers;
  };
  /** The answers about the job at this place and those that are like it, from their ids and payloads. */
  const like = (flat: readonly Value[], at: number, own: readonly string[], now: number): EnqueueAnswer[] => {
    const answers: EnqueueAnswer[] = [];
    const write = insertAlike(flat, at, own, now);
    for (let from = 0; from < own.length; ) {
      const { end, isWritten } = write(from);
      for (; from < end; from += 2) {
        const [id, payload] = [own[from] as string, own[from + 1] as string];
        answers.push(isWritten ? created(id) : one({ ...newJobAt(flat, at), id, payload }, now));
      }
    }
    return answers;
  };
  return ({ flat, alike, own }) => {
    const now = clock();
    lanes.refresh();
    const answers: EnqueueAnswer[][] = [];
    let [written, seen] = [0, 0];
    alike.forEach((count, n) => {
      const at = n * NEW_JOB_WIDTH;
      if (count === 0) return;
      answers.push(whole(flat, written, at, now));
      const first = [flat[at] as string, flat[at + NEW_JOB.payload] as string];
      answers.push(like(flat, at, first.concat(own.slice(seen, (seen += count * 2))), now));
      written = at + NEW_JOB_WIDTH;
    });
    answers.push(whole(flat, written, flat.length, now));
    const all = answers.flat();
    return all.every(({ kind }) => kind === "created") ? null : all;
  };
}

/** Writes one job, unless its id or its key is known. */
function singleWriter(db: SqliteDatabase, lanes: SqliteLaneNumbers): (job: NewJob, now: number) => EnqueueAnswer {
  const insert = db.prepare(`${INSERT} values ${ROW} on conflict (id) do nothing`);
  const stateOf = db.prepare("select state from job where id = ?");
  const keys = keyKeeper(db, lanes);
  const byId = (id: string): EnqueueAnswer | null => {
    const [same] = stateOf.all(id);
    return same ? { kind: "duplicate", id, state: same[0] as State } : null;
  };
  const rowOf = (job: NewJob, now: number): Value[] => {
    const { version, key, trace } = job;
    const [lane, due] = [lanes.intern(job), dueAt(job, now)];
    const shared = [lane, due, due, now, now, Number(job.limited), version, key, trace, ...termValues(job)];
    return [...shared, job.id, job.payload];
  };
  return (job, now) => {
    const { id, key } = job;
    const known = key === null ? null : (byId(id) ?? keys.meet(job, now));
    if (known) return known;
    const written = insert.run(...rowOf(job, now));
    if (written === 0) return byId(id) as EnqueueAnswer;
    if (key !== null) keys.take(job, id, now);
    return { kind: "created", id };
  };
}

/** Writes several jobs by one statement. */
function manyWriter(db: SqliteDatabase, lanes: SqliteLaneNumbers) {
  const sized = (sizes: readonly number[], rows: (size: number) => string) =>
    sizes.map((size) => ({ size, insert: db.prepare(`${INSERT} ${rows(size)}`) }));
  const wholes = sized(TOGETHER, (size) => `values ${Array(size).fill(ROW).join(", ")}`);
  const likes = sized(
    ALIKE,
    (size) =>
      `select 'queued', ${places(SHARED)}, column1, column2 from (values ${Array(size).fill("(?, ?)").join(", ")})`,
  );
  /** Appends what the job at this place, which has no key, shares with those that are like it. */
  const pushShared = (values: Value[], flat: readonly Value[], at: number, now: number): void => {
    const of = (field: keyof typeof NEW_JOB): Value => flat[at + NEW_JOB[field]] as Value;
    const due = ((of("runAt") as number | null) ?? now) + (of("delayMs") as number);
    const lane = lanes.internAt(flat, at + NEW_JOB.type);
    values.push(lane, due, due, now, now, of("limited"), of("version"), null, of("trace"));
    for (let place = at + NEW_JOB.terms; place < at + NEW_JOB_WIDTH; place++) values.push(flat[place] as Value);
  };
  return {
    /** Where the jobs that it wrote end; null, with nothing written, if one of them has a key or exists, or they are few. */
    insertWhole(flat: readonly Value[], from: number, last: number, now: number): number | null {
      const fits = wholes.find(({ size }) => from + size * NEW_JOB_WIDTH <= last);
      if (!fits) return null;
      const end = from + fits.size * NEW_JOB_WIDTH;
      const values: Value[] = [];
      for (let at = from; at < end; at += NEW_JOB_WIDTH) {
        if (flat[at + NEW_JOB.key] !== null) return null;
        pushShared(values, flat, at, now);
        values.push(flat[at] as string, flat[at + NEW_JOB.payload] as string);
      }
      return unlessBroken(() => fits.insert.run(...values)) ? end : null;
    },
    /** Writes the job at this place and those that are like it, some at a time; none of some of which one exists. */
    insertAlike(flat: readonly Value[], at: number, own: readonly string[], now: number) {
      const shared: Value[] = [];
      pushShared(shared, flat, at, now);
      return (from: number): { readonly end: number; readonly isWritten: boolean } => {
        const { size, insert } = likes.find((each) => from + each.size * 2 <= own.length) as (typeof likes)[number];
        const end = from + size * 2;
        return { end, isWritten: unlessBroken(() => insert.run(...shared, ...own.slice(from, end))) };
      };
    },
  };
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
