// Sends dead letters back to work, takes back those that no worker has taken, and counts what became of them, on SQLite.
import type { LetterOutcome, State } from "../../core/job.ts";
import { LANE_KINDS } from "../../core/lane.ts";
import { mayRecall, outcomeAfter, REDRIVE_SUMS, type RedrivenEnd } from "../../core/recovery/outcome.ts";
import { CauseChanges, NO_WORKER } from "../causes.ts";
import { RedriveChanges, redriveTickOf } from "../dead-letters.ts";
import { type NewPayload, payloadHash } from "../payloads.ts";
import { countsFromRows, redriveCountsText } from "../redrive-queries.ts";
import type { RecallAnswer, RecallTarget, RedriveAnswer, RedriveRequest } from "../store.ts";
import { REDRIVE_TICKS } from "../tick-tables.ts";
import type { Verbs } from "../verbs.ts";
import { addTick, ticker } from "./causes.ts";
import { cellVerbs } from "./cells.ts";
import { SQLITE } from "./dialect.ts";
import type { SqliteDatabase } from "./driver.ts";

/** The verbs that send dead letters back, and take them back. */
export function redriveVerbs(
  db: SqliteDatabase,
  clock: () => number,
): Pick<Verbs, "redrive" | "recall" | "redriveCounts"> {
  const send = sender(db);
  const takeBack = recaller(db);
  const tick = ticker(db);
  const count = runCounter(db);
  const { setCells } = cellVerbs(db, clock);
  const counts = db.prepare(redriveCountsText(SQLITE, "redrive in (select value from json_each(?))"));
  /** Carries out each, and counts what all of them have changed. */
  const all = <T, A>(
    items: readonly T[],
    one: (item: T, now: number, causes: CauseChanges, runs: RedriveChanges) => A,
  ) => {
    const now = clock();
    const [causes, runs] = [new CauseChanges(), new RedriveChanges()];
    const answers = items.map((item) => one(item, now, causes, runs));
    tick(causes, NO_WORKER, now);
    count(runs, NO_WORKER, now);
    return answers;
  };
  return {
    redrive(requests, fence) {
      if (fence && !setCells([fence])[0]) return requests.map(() => "fenced");
      return all(requests, send);
    },
    recall: (targets) => all(targets, takeBack),
    redriveCounts: (ids) => countsFromRows(ids, counts.all(JSON.stringify(ids))),
  };
}

type One<T, A> = (item: T, now: number, causes: CauseChanges, runs: RedriveChanges) => A;

function sender(db: SqliteDatabase): One<RedriveRequest, RedriveAnswer> {
  const exists = db.prepare("select 1 from job where id = ?");
  const revive = db.prepare(
    `update job set state = 'queued', generation = generation + 1, attempts = 0, crashes = 0, releases = 0, last_delay_ms = 0,
       batch_most = null, cancel_requested = 0, finished_at = null, expires_at = null, run_at = ?, due_at = ?, updated_at = ?, lane = lane - lane % 4 + ${LANE_KINDS.indexOf("first")}
     where id = ? and state = 'dead' and generation = ?`,
  );
  const mark = db.prepare(
    `update dead_letter set redriven_at = ?, redrive = ? where job_seq = (select seq from job where id = ?) and generation = ?
       and redriven_at is null returning fingerprint, type, coalesce(release, '')`,
  );
  const addPayload = payloadWriter(db);
  return ({ id, generation, delayMs, redrive = null, payload }, now, causes, runs) => {
    if (revive.run(now + delayMs, now + delayMs, now, id, generation) === 0)
      return exists.all(id).length > 0 ? "refused" : "missing";
    for (const [fingerprint, type, release] of mark.all(now, redrive, id, generation) as [string, string, string][]) {
      causes.add({ fingerprint, type, release }, { redriven: 1 });
      runs.add(redrive, { sent: 1 });
    }
    if (payload !== undefined) addPayload(id, { payload, at: now, actor: null, redrive, why: null });
    return "redriven";
  };
}

/** Gives jobs another payload and keeps the one before; a payload that is the present one changes nothing. */
export function payloadWriter(db: SqliteDatabase): (id: string, version: NewPayload) => void {
  const first = db.prepare(
    `insert into payload_version (job_seq, n, payload, at, generation) select seq, 0, payload, created_at, 1 from job
     where id = ? and payload <> ? on conflict do nothing`,
  );
  const next = db.prepare(
    `insert into payload_version (job_seq, n, payload, at, generation, actor, redrive, why)
     select seq, (select max(n) + 1 from payload_version where job_seq = job.seq), ?, ?,
       case state when 'dead' then generation + 1 else generation end, ?, ?, ? from job
     where id = ? and payload <> ?`,
  );
  const write = db.prepare("update job set payload = ? where id = ?");
  return (id, { payload, at, actor, redrive, why }) => {
    first.run(id, payload);
    if (next.run(payload, at, actor, redrive, why, id, payload) > 0) write.run(payload, id);
  };
}

const COPIED = `type, reason, error_class, fingerprint, attempts, crashes, max_attempts, died_at, error_name, error_message,
  error_stack, failure, release`;

function recaller(db: SqliteDatabase): One<RecallTarget, RecallAnswer> {
  const find = db.prepare(
    `select j.state, j.generation, j.releases, exists (select 1 from attempt a where a.job_seq = j.seq and a.generation = j.generation),
       d.fingerprint, d.type, coalesce(d.release, ''), d.redrive
     from job j left join dead_letter d on d.job_seq = j.seq and d.generation = ? where j.id = ?`,
  );
  const payloadOf = db.prepare("select payload from job where id = ?");
  const addPayload = payloadWriter(db);
  const end = db.prepare(
    `update job set state = 'dead', placed = null, finished_at = ?, expires_at = ? + keep_dead_ms, updated_at = ? where id = ?`,
  );
  const bury = db.prepare(
    `insert into dead_letter (job_seq, generation, ${COPIED}) select job_seq, generation + 1, ${COPIED} from dead_letter
     where job_seq = (select seq from job where id = ?) and generation = ?`,
  );
  const mark = db.prepare(
    `update dead_letter set outcome = 'recalled', outcome_at = ? where job_seq = (select seq from job where id = ?)
       and generation = ?`,
  );
  return ({ id, generation, repair }, now, causes, runs) => {
    const [row] = find.all(generation, id) as [
      State,
      number,
      number,
      number,
      string | null,
      string,
      string,
      string | null,
    ][];
    if (!row) return "missing";
    const [state, present, releases, hasRun, fingerprint, type, release, redrive] = row;
    const job = { state, generation: present, releases };
    if (fingerprint === null || !mayRecall(job, generation, hasRun === 1)) return "refused";
    if (repair && payloadHash(payloadOf.all(id)[0]?.[0] as string) !== repair.was) return "refused";
    end.run(now, now, now, id);
    if (repair) addPayload(id, { ...repair, at: now, redrive: null });
    bury.run(id, generation);
    mark.run(now, id, generation);
    causes.add({ fingerprint, type, release }, { redriven: -1 });
    runs.add(redrive, { recalled: 1 });
    return "recalled";
  };
}

/** Writes what one write has counted of redrive runs. */
export function runCounter(db: SqliteDatabase): (runs: RedriveChanges, holder: string, now: number) => void {
  const add = db.prepare(addTick(REDRIVE_TICKS));
  return (runs, holder, now) => {
    for (const [redrive, sums] of runs.all())
      add.run(redrive, redriveTickOf(now), holder, ...REDRIVE_SUMS.map((count) => sums[count]));
  };
}

/** Tells the letter of the generation before what became of a job; reads the letter first, because a job may be deleted. */
export interface LetterTeller {
  /** The letter that waits for the outcome of this job; null for a job that was never sent back. */
  letterOf(id: string): SentLetter | null;
  tell(letter: SentLetter, failed: RedrivenEnd["failed"], now: number, runs: RedriveChanges): void;
}

/** A letter whose job was sent back to work. */
export interface SentLetter {
  readonly seq: number;
  readonly job: number;
  readonly redrive: string | null;
  readonly outcome: LetterOutcome | null;
  readonly fingerprint: string;
}

/** Tells letters what became of their jobs. */
export function letterTeller(db: SqliteDatabase): LetterTeller {
  const find = db.prepare(
    `select d.seq, d.job_seq, d.redrive, d.outcome, d.fingerprint from job j
     join dead_letter d on d.job_seq = j.seq and d.generation = j.generation - 1 where j.id = ?`,
  );
  const stateOf = db.prepare("select state from job where seq = ?");
  const write = db.prepare("update dead_letter set outcome = ?, outcome_at = ? where seq = ?");
  return {
    letterOf(id) {
      const [row] = find.all(id) as [number, number, string | null, LetterOutcome | null, string][];
      if (!row) return null;
      const [seq, job, redrive, outcome, fingerprint] = row;
      return { seq, job, redrive, outcome, fingerprint };
    },
    tell(letter, failed, now, runs) {
      // A job that is not kept is deleted when it completes.
      const state = (stateOf.all(letter.job)[0]?.[0] ?? "completed") as State;
      const change = outcomeAfter(letter, { state, failed });
      if (!change) return;
      write.run(change.outcome, now, letter.seq);
      runs.add(letter.redrive, change.counts);
    },
  };
}

/** Adds the jobs that are about to be deleted before an outcome was known; completed ones are not gone. */
export function goneCounter(db: SqliteDatabase): (seqs: readonly number[], runs: RedriveChanges) => void {
  const lost = db.prepare(
    `select d.redrive from json_each(?) as gone cross join job j on j.seq = gone.value and j.state <> 'completed'
     cross join dead_letter d on d.job_seq = j.seq and d.redrive is not null and d.outcome is null`,
  );
  return (seqs, runs) => {
    if (seqs.length === 0) return;
    for (const [redrive] of lost.all(JSON.stringify(seqs)) as [string][]) runs.add(redrive, { gone: 1 });
  };
}
