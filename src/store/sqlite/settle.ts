// Applies verdicts on SQLite, each only under its current lease. Writes the given charge, delay and reason; it computes
// none of them.
import { plainText } from "../../core/failure.ts";
import { keepsPlace } from "../../core/group.ts";
import type { Failure, Lease, Terms } from "../../core/job.ts";
import { laneOfKind } from "../../core/lane.ts";
import { failedBy } from "../../core/recovery/outcome.ts";
import { CauseChanges, NO_WORKER } from "../causes.ts";
import { RedriveChanges } from "../dead-letters.ts";
import type { SettleAnswer } from "../store.ts";
import { HISTORY_TAIL, isLease } from "../verbs.ts";
import { ticker } from "./causes.ts";
import type { SqliteDatabase } from "./driver.ts";
import { SET_TERMS, termValues, type Value } from "../columns.ts";
import { BROKEN, mender, unlessBroken } from "./quarantine.ts";
import { failureText, UNREADABLE } from "../rows.ts";
import { letterTeller, runCounter } from "./redrives.ts";
import type { SqliteLaneNumbers } from "./lane-numbers.ts";
import type { OtherVerdict, SettleWire } from "./wire.ts";

/** Applies verdicts. */
export function settler(
  db: SqliteDatabase,
  lanes: SqliteLaneNumbers,
  clock: () => number,
  progress: (worker: string, through: number) => void,
): (request: SettleWire) => SettleAnswer {
  const mend = mender(db);
  const completed = oneCompleted(db, mend);
  const other = otherVerdicts(db, lanes, mend);
  const allCompleted = manyCompleted(db);
  const tick = ticker(db);
  const findRelease = db.prepare("select release from worker where id = ?");
  const releaseOfWorker = (id: string | null): string =>
    (findRelease.all(id)[0]?.[0] as string | null | undefined) ?? "";
  const { letterOf, tell } = letterTeller(db);
  const countRuns = runCounter(db);
  return ({ flat, others, worker, startedThrough, redriven }) => {
    const now = clock();
    const changes = new CauseChanges();
    const runs = new RedriveChanges();
    const releases = new Map<string | null, string>();
    const blamed: Blamed = (row, { kind, failure }) => {
      const release = releases.get(row.worker) ?? releaseOfWorker(row.worker);
      releases.set(row.worker, release);
      const place = { fingerprint: failure.fingerprint, type: lanes.belonging(row.lane)?.type ?? "", release };
      changes.add(place, { failures: 1, deaths: kind === "dead" ? 1 : 0 });
    };
    if (worker !== null) progress(worker, startedThrough);
    const stale: Lease[] = [];
    for (let from = 0; from < flat.length; from += TOGETHER * 4) {
      const some = flat.slice(from, from + TOGETHER * 4);
      if (!redriven && allCompleted(some, now)) continue;
      for (let at = 0; at < some.length; at += 4) {
        const lease = leaseAt(some, at);
        const result = some[at + 3] as Value;
        const letter = redriven?.has((from + at) / 4) && isLease(lease) ? letterOf(lease.id) : null;
        const current =
          isLease(lease) &&
          (typeof result === "number"
            ? other(lease, others[result] as OtherVerdict, now, blamed)
            : completed(result, now, lease));
        if (!current) stale.push(lease);
        else if (letter)
          tell(letter, typeof result === "number" ? failedBy(others[result] as OtherVerdict) : null, now, runs);
      }
    }
    tick(changes, worker ?? NO_WORKER, now);
    countRuns(runs, worker ?? NO_WORKER, now);
    return { stale, now };
  };
}

/** Writes one completion; false if its lease is no longer current. */
function oneCompleted(
  db: SqliteDatabase,
  mend: (id: string) => void,
): (result: Value, now: number, lease: Lease) => boolean {
  const complete = db.prepare(
    `update job set state = 'completed', nonce = null, placed = null, result = ?, finished_at = ?, expires_at = ? + keep_ms,
     updated_at = ? where id = ? and epoch = ? and nonce = ?`,
  );
  return (result, now, { id, epoch, nonce }) => {
    let changed = 0;
    const write = (): void => {
      changed = complete.run(result, now, now, now, id, epoch, nonce);
    };
    if (!unlessBroken(write)) {
      mend(id);
      write();
    }
    return changed === 1;
  };
}

/** Counts a failed run of a job. */
type Blamed = (row: Row, verdict: BadVerdict) => void;

/** Completions written by one statement, which costs half of one statement for each. */
const TOGETHER = 50;

/** Writes completions together; false, with nothing written, unless all are completions under a current lease. */
function manyCompleted(db: SqliteDatabase): (flat: readonly Value[], now: number) => boolean {
  const complete = db.prepare(
    `update job set state = 'completed', nonce = null, placed = null, result = done.column4, finished_at = ?,
       expires_at = ? + keep_ms, updated_at = ?
     from (values ${Array(TOGETHER).fill("(?, ?, ?, ?)").join(", ")}) as done
     where job.id = done.column1 and job.epoch = done.column2 and job.nonce = done.column3`,
  );
  return (flat, now) => {
    if (flat.length < TOGETHER * 4) return false;
    for (let at = 0; at < flat.length; at += 4) {
      if (typeof flat[at + 3] === "number" || !isLease(leaseAt(flat, at))) return false;
    }
    let changed = 0;
    db.exec("savepoint completions");
    const legal = unlessBroken(() => {
      changed = complete.run(now, now, now, ...flat);
    });
    const whole = legal && changed === TOGETHER;
    if (!whole) db.exec("rollback to completions");
    db.exec("release completions");
    return whole;
  };
}

function leaseAt(flat: readonly Value[], at: number): Lease {
  return { id: flat[at] as string, epoch: flat[at + 1] as number, nonce: flat[at + 2] as string };
}

/** The part of a running job's row that a verdict needs. */
interface Row {
  readonly seq: number;
  readonly lane: number;
  readonly worker: string | null;
  readonly cancelRequested: boolean;
  readonly attempts: number;
  readonly crashes: number;
}

type Completion = Extract<OtherVerdict, { readonly kind: "complete" }>;
type Other = (lease: Lease, verdict: OtherVerdict, now: number, blamed: Blamed) => boolean;

/** Every verdict except a plain completion; these are rare enough to read the row first. */
function otherVerdicts(db: SqliteDatabase, lanes: SqliteLaneNumbers, mend: (id: string) => void): Other {
  /** 1 if a job of this lane keeps its place in its group while it waits. */
  const keeps = (lane: number): number => Number(keepsPlace(lanes.belonging(lane) ?? UNREADABLE));
  const note = db.prepare("update job set progress = ?, updated_at = ? where seq = ?");
  const requeue = db.prepare(
    `update job set state = 'queued', nonce = null, placed = case ? when 1 then placed end, run_at = ?,
     updated_at = ?, releases = releases + 1, batch_most = coalesce(?, batch_most) where seq = ?`,
  );
  const end = ender(db);
  const say = teller(db);
  const forget = db.prepare("delete from job where seq = ?");
  const complete = completer(db);
  const again = retrier(db, keeps);
  const find = finder(db, mend);
  const blame = blamer(db);
  return (lease, verdict, now, blamed) => {
    const isKept = verdict.kind === "complete" && verdict.keep !== false;
    let isCurrent = false;
    if (isKept && unlessBroken(() => (isCurrent = complete(lease, verdict, now)))) return isCurrent;
    const row = find(lease);
    if (!row) return false;
    const { seq, lane } = row;
    if (isKept) return complete(lease, verdict, now);
    if (verdict.kind === "progress") return note.run(verdict.value, now, seq) === 1;
    if (verdict.kind === "complete") return forget.run(seq) === 1;
    if (verdict.kind !== "release" && verdict.said) say(verdict.said, seq);
    const released = verdict.kind === "release" ? 1 : 0;
    if (verdict.kind === "retry" || verdict.kind === "dead") blamed(row, verdict);
    if (verdict.kind === "retry" && !row.cancelRequested) return again(row, lease.epoch, verdict, now);
    if (verdict.kind === "retry" || verdict.kind === "dead") blame(row, lease.epoch, verdict, now);
    if (verdict.kind === "dead") end("dead", now, released, seq);
    // A job with a requested cancel does not go back to the queue, whatever its run reported.
    else if (verdict.kind === "cancel" || row.cancelRequested) end("cancelled", now, released, seq);
    else requeue.run(keeps(lane), now + verdict.delayMs, now, verdict.batchMost ?? null, seq);
    return true;
  };
}

/** Ends jobs as dead or cancelled. */
function ender(db: SqliteDatabase): (state: "dead" | "cancelled", now: number, released: number, seq: number) => void {
  const end = db.prepare(
    `update job set state = ?, nonce = null, placed = null, finished_at = ?, updated_at = ?, releases = releases + ?,
     expires_at = ? + case ? when 'dead' then keep_dead_ms else keep_ms end where seq = ?`,
  );
  return (state, now, released, seq) => void end.run(state, now, now, released, now, state, seq);
}

/** Writes the terms by which a run was judged. */
function teller(db: SqliteDatabase): (said: Terms, seq: number) => void {
  const say = db.prepare(`update job set ${SET_TERMS} where seq = ?`);
  return (said, seq) => void say.run(...termValues(said), seq);
}

/** Writes a completion with the terms by which its run was judged; false if the lease is not current. */
function completer(db: SqliteDatabase): (lease: Lease, verdict: Completion, now: number) => boolean {
  const complete = db.prepare(
    `update job set state = 'completed', nonce = null, placed = null, result = ?, finished_at = ?, expires_at = ? + ?,
     updated_at = ?, ${SET_TERMS} where id = ? and epoch = ? and nonce = ?`,
  );
  return ({ id, epoch, nonce }, { result, said }, now) => {
    const terms = said as Terms;
    const times = [now, now, terms.keepFinishedMs, now];
    return complete.run(result, ...times, ...termValues(terms), id, epoch, nonce) === 1;
  };
}

/** Finds the row for which a lease is current, and repairs it where damage would refuse a verdict. */
function finder(db: SqliteDatabase, mend: (id: string) => void): (lease: Lease) => Row | null {
  const find = db.prepare(
    `select seq, lane, worker, cancel_requested, attempts, crashes, ${BROKEN} from job where id = ? and epoch = ? and nonce = ?`,
  );
  return ({ id, epoch, nonce }) => {
    const [row] = find.all(id, epoch, nonce) as [number, number, string | null, number, number, number, number][];
    if (!row) return null;
    const [seq, lane, worker, cancel, attempts, crashes, broken] = row;
    if (broken === 1) mend(id);
    return { seq, lane, worker, cancelRequested: cancel === 1, attempts: bounded(attempts), crashes: bounded(crashes) };
  };
}

/** A counter as in the repaired row. */
function bounded(count: number): number {
  return Math.min(Math.max(0, count), 900_000);
}

/** Charges a failed run and sends the job back to the queue with one write of its row. */
function retrier(
  db: SqliteDatabase,
  keeps: (lane: number) => number,
): (row: Row, epoch: number, verdict: Retry, now: number) => true {
  const retry = db.prepare(
    `update job set state = 'queued', nonce = null, placed = case ? when 1 then placed end, run_at = ?, lane = ?, updated_at = ?,
     last_delay_ms = ?, attempts = ?, crashes = ?, failure = ?, error_message = ?, batch_most = coalesce(?, batch_most)
     where seq = ?`,
  );
  const record = historian(db);
  return ({ seq, lane, attempts, crashes }, epoch, verdict, now) => {
    const { failure, delayMs, charge, batchMost = null } = verdict;
    const to = laneOfKind(lane, verdict.lane);
    const text = failureText(failure);
    const message = plainText(failure.message);
    const [tried, crashed] = [attempts + charge.attempts, crashes + charge.crashes];
    const bad = [tried, crashed, text, message] as const;
    retry.run(keeps(lane), now + delayMs, to, now, delayMs, ...bad, batchMost, seq);
    record(seq, epoch, delayMs, failure, text, now);
    return true;
  };
}

type Retry = Extract<OtherVerdict, { readonly kind: "retry" }>;
type BadVerdict = Extract<OtherVerdict, { readonly failure: Failure }>;

/** The release of the worker that runs a job; a worker stays in its table as long as it holds a job. */
const releaseOf = (job: string): string => `(select release from worker where id = ${job}.worker)`;

/** Charges a failed run, writes its record of history and, where the job dies, its dead letter. */
function blamer(db: SqliteDatabase): (row: Row, epoch: number, verdict: BadVerdict, now: number) => void {
  const charge = db.prepare("update job set attempts = ?, crashes = ?, failure = ?, error_message = ? where seq = ?");
  const bury = db.prepare(
    `insert into dead_letter (job_seq, generation, type, reason, error_class, error_name, error_message, error_stack,
       fingerprint, attempts, crashes, max_attempts, died_at, failure, release)
     select j.seq, j.generation, coalesce(l.type, ''), ?, ?, ?, ?, ?, ?, j.attempts, j.crashes, j.max_attempts, ?, ?,
       ${releaseOf("j")}
     from job j left join lane l on l.base = j.lane - j.lane % 4 where j.seq = ?
     on conflict (job_seq, generation) do update set reason = excluded.reason, error_class = excluded.error_class,
       error_name = excluded.error_name, error_message = excluded.error_message, error_stack = excluded.error_stack,
       fingerprint = excluded.fingerprint, attempts = excluded.attempts, crashes = excluded.crashes,
       died_at = excluded.died_at, redriven_at = null, failure = excluded.failure, release = excluded.release`,
  );
  const record = historian(db);
  return ({ seq, attempts, crashes }, epoch, verdict, now) => {
    const { failure, charge: by } = verdict;
    const text = failureText(failure);
    charge.run(attempts + by.attempts, crashes + by.crashes, text, plainText(failure.message), seq);
    record(seq, epoch, verdict.kind === "retry" ? verdict.delayMs : null, failure, text, now);
    if (verdict.kind !== "dead") return;
    bury.run(verdict.reason, failure.class, ...peopleText(failure), failure.fingerprint, now, text, seq);
  };
}

/** Name, message and stack for the readable columns. */
function peopleText({ name, message, stack }: Failure): [string, string, string | null] {
  return [plainText(name), plainText(message), stack === null ? null : plainText(stack)];
}

type Historian = (
  seq: number,
  epoch: number,
  delayMs: number | null,
  failure: Failure,
  text: string,
  now: number,
) => void;

/** Writes one record of history and keeps the first and the last nine of each generation. */
function historian(db: SqliteDatabase): Historian {
  const insert = db.prepare(
    `insert into attempt (job_seq, generation, epoch, attempt, worker, started_at, ended_at, delay_ms, error_class, error_name,
       error_message, error_stack, failure, release)
     select seq, generation, epoch, attempts, worker, started_at, ?, ?, ?, ?, ?, ?, ?, ${releaseOf("job")} from job where seq = ?`,
  );
  const kept = db.prepare(
    "select epoch from attempt where job_seq = ? and generation = (select generation from job where seq = ?) order by epoch",
  );
  const trim = db.prepare("delete from attempt where job_seq = ? and epoch between ? and ?");
  return (seq, epoch, delayMs, failure, text, now) => {
    insert.run(now, delayMs, failure.class, ...peopleText(failure), text, seq);
    // A job never has more records than epochs.
    if (epoch <= HISTORY_TAIL + 1) return;
    const epochs = kept.all(seq, seq).map(([epoch]) => epoch as number);
    const surplus = epochs.slice(1, -HISTORY_TAIL);
    if (surplus.length > 0) trim.run(seq, surplus[0] as number, surplus.at(-1) as number);
  };
}
