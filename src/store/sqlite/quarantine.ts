// Sets rows that cannot be used as jobs (damaged by hand, written by another version) aside as dead letters with all
// their data, so that one of them never blocks the claim of others. A damaged row that already ran is repaired just
// enough for its verdict to be written.
import { unreadableVerdict } from "../../core/verdict.ts";
import { CauseChanges, NO_WORKER } from "../causes.ts";
import { RedriveChanges } from "../dead-letters.ts";
import { UNREADABLE } from "../rows.ts";
import { ticker } from "./causes.ts";
import { type SqliteDatabase, sqliteCode } from "./driver.ts";
import { letterTeller, runCounter } from "./redrives.ts";
import type { SqliteLaneNumbers } from "./lane-numbers.ts";

/** Sets rows aside. */
export interface Quarantine {
  /** Every waiting job whose lane does not exist. */
  strays(): void;
  /** One waiting job that breaks a rule of its table. */
  row(seq: number): void;
}

const CONSTRAINT = 19;
const STRAY = "state = 'queued' and not exists (select 1 from lane where base = job.lane - job.lane % 4)";

/** The smallest change that makes a row valid again. */
const LEGAL = `attempts = min(max(attempts, 0), 900000), max_attempts = max(max_attempts, 1),
  crashes = min(max(crashes, 0), 900000), max_crashes = max(max_crashes, 1), releases = min(max(releases, 0), 900000000000),
  generation = min(max(generation, 1), 900000000), epoch = min(max(epoch, 0), 900000000000),
  cancel_requested = cancel_requested <> 0, limited = limited <> 0`;

/** A quarantine for one database. */
export function quarantine(db: SqliteDatabase, lanes: SqliteLaneNumbers, clock: () => number): Quarantine {
  const strays = db.prepare(`select seq from job where ${STRAY}`);
  const end = db.prepare(
    `update job set ${LEGAL}, state = 'dead', lane = ?, nonce = null, placed = null, finished_at = ?, expires_at = null, updated_at = ?, failure = ?, error_message = ?
     where seq = ?`,
  );
  const bury = db.prepare(
    `insert or ignore into dead_letter (job_seq, generation, type, reason, error_class, error_name, error_message, fingerprint, attempts,
       crashes, max_attempts, died_at, failure)
     select seq, generation, ?, ?, ?, ?, ?, ?, attempts, crashes, max_attempts, ?, ? from job where seq = ?`,
  );
  const tick = ticker(db);
  const idOf = db.prepare("select id from job where seq = ?");
  const { letterOf, tell } = letterTeller(db);
  const countRuns = runCounter(db);
  const setAside = (seq: number, why: string): void => {
    const now = clock();
    const { reason, failure } = unreadableVerdict(why);
    const { name, message } = failure;
    const text = JSON.stringify(failure);
    lanes.refresh();
    end.run(lanes.intern(UNREADABLE), now, now, text, message, seq);
    const { fingerprint } = failure;
    const buried = bury.run(UNREADABLE.type, reason, failure.class, name, message, fingerprint, now, text, seq);
    const changes = new CauseChanges();
    if (buried > 0) changes.add({ fingerprint, type: UNREADABLE.type, release: "" }, { failures: 1, deaths: 1 });
    tick(changes, NO_WORKER, now);
    const runs = new RedriveChanges();
    const letter = letterOf(idOf.all(seq)[0]?.[0] as string);
    if (letter) tell(letter, fingerprint, now, runs);
    countRuns(runs, NO_WORKER, now);
  };
  return {
    strays: () => strays.all().forEach(([seq]) => setAside(seq as number, "names a lane that does not exist")),
    row: (seq) => setAside(seq, "breaks the rules of its table"),
  };
}

/** Runs a write; false if the row it touches breaks a rule of its table. */
export function unlessBroken(write: () => unknown): boolean {
  try {
    write();
    return true;
  } catch (error) {
    if (sqliteCode(error) !== CONSTRAINT) throw error;
    return false;
  }
}

/** True for a row that breaks a rule which would refuse a verdict. */
export const BROKEN = `(attempts not between 0 and 900000 or max_attempts < 1 or crashes not between 0 and 900000
  or max_crashes < 1 or releases not between 0 and 900000000000 or generation not between 1 and 900000000
  or cancel_requested not in (0, 1) or limited not in (0, 1) or finished_at is not null
  or expires_at is not null)`;

/** Makes the row of a running job valid again. */
export function mender(db: SqliteDatabase): (id: string) => void {
  const mend = db.prepare(
    `update job set ${LEGAL}, finished_at = null, expires_at = null where id = ? and state = 'running'`,
  );
  return (id) => void mend.run(id);
}
