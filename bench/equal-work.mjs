// The equal-work limit: the rows, columns, indexes and fence of Redrive in a bare loop, one thread, no handlers. It is
// what a run could reach if nothing but SQLite cost anything, and is always measured in the same run as what it limits.
import { openDatabase } from "../dist/store/sqlite/driver.js";
import { realSystem } from "../dist/system/real.js";

/** Jobs claimed and settled together. */
export const SET = 500;
/** What every completed job leaves behind. */
export const RESULT = '{"ok":true,"bytes":12345}';

/** Completions written by one statement, as the store does. */
const TOGETHER = 50;

const DUE = `select seq, id, epoch, payload, run_at, due_at, created_at, max_attempts, max_crashes from job
  where state = 'queued' and lane = ? and run_at <= ? order by run_at, seq limit ?`;
const TAKE = `update job set state = 'running', epoch = epoch + 1, nonce = ?, worker = ?, ticket = ? + place.key,
  started_at = ?, updated_at = ? from json_each(?) as place where job.seq = place.value`;
const COMPLETE = `update job set state = 'completed', nonce = null, result = done.column4, finished_at = ?,
    expires_at = ? + keep_ms, updated_at = ?
  from (values ${Array(TOGETHER).fill("(?, ?, ?, ?)").join(", ")}) as done
  where job.id = done.column1 and job.epoch = done.column2 and job.nonce = done.column3`;

/** Claims and completes every waiting job of a filled database; returns jobs per second. */
export function equalWork(path, jobs) {
  const db = openDatabase(path);
  db.exec("pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on; pragma cache_size = -65536");
  db.exec("pragma wal_autocheckpoint = 4000");
  const lane = db.prepare("select lane from job where state = 'queued' limit 1").all()[0][0];
  const [due, take, complete] = [DUE, TAKE, COMPLETE].map((sql) => db.prepare(sql));
  let completed = 0;
  const began = performance.now();
  for (;;) {
    const now = realSystem.now();
    const nonce = realSystem.nonce();
    db.exec("begin immediate");
    const rows = due.all(lane, now, SET);
    if (rows.length > 0) take.run(nonce, "aabbccddeeff", 1, now, now, JSON.stringify(rows.map(([seq]) => seq)));
    db.exec("commit");
    if (rows.length === 0) break;
    db.exec("begin immediate");
    for (let from = 0; from < rows.length; from += TOGETHER) {
      const some = rows.slice(from, from + TOGETHER).flatMap(([, id, epoch]) => [id, epoch + 1, nonce, RESULT]);
      completed += complete.run(now, now, now, ...some);
    }
    db.exec("commit");
  }
  const seconds = (performance.now() - began) / 1000;
  db.close();
  if (completed !== jobs) throw new Error(`completed ${completed} of ${jobs}`);
  return jobs / seconds;
}

/** Rows written by one statement of the bare insert. */
const INSERTED = 100;
/** Rows of the bare insert in one commit, which is synced before the next. */
const COMMITTED = 1_000;

/**
 * Writes the rows of a filled database into an empty one of the same schema; returns rows per second. With `sharing`, what
 * all rows of a statement have in common is bound once for all of them, as the store does, instead of with every row.
 */
export function bareInsert(filled, empty, { sharing }) {
  const from = openDatabase(filled);
  const columns = from
    .prepare("select name from pragma_table_info('job') where name <> 'seq'")
    .all()
    .map(([name]) => name);
  const rows = from.prepare(`select ${columns.join(", ")} from job order by seq`).all();
  const lanes = from.prepare("select * from lane").all();
  from.close();
  const db = openDatabase(empty);
  db.exec("pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on; pragma cache_size = -16384");
  db.exec("pragma wal_autocheckpoint = 4000");
  for (const lane of lanes) db.prepare(`insert into lane values (${lane.map(() => "?").join(", ")})`).run(...lane);
  const used = columns.map((_, at) => at).filter((at) => rows.some((row) => row[at] !== null));
  const isShared = (place) => sharing && rows.every((row, at) => row[place] === rows[at - (at % INSERTED)][place]);
  const shared = used.filter(isShared);
  const own = used.filter((place) => !shared.includes(place));
  const names = [...shared, ...own].map((at) => columns[at]).join(", ");
  const result = [...shared.map(() => "?"), ...own.map((_, at) => `column${at + 1}`)].join(", ");
  const one = `(${own.map(() => "?").join(", ")})`;
  const insert = db.prepare(
    `insert into job (${names}) select ${result} from (values ${Array(INSERTED).fill(one).join(", ")})`,
  );
  const values = rows.map((row) => own.map((at) => row[at]));
  const bound = (at) => [...shared.map((place) => rows[at][place]), ...values.slice(at, at + INSERTED).flat()];
  const began = performance.now();
  for (let done = 0; done < values.length; done += COMMITTED) {
    db.exec("begin immediate");
    for (let at = done; at < done + COMMITTED; at += INSERTED) insert.run(...bound(at));
    db.exec("commit");
  }
  const seconds = (performance.now() - began) / 1000;
  const [[written]] = db.prepare("select count(*) from job").all();
  db.close();
  if (written !== rows.length) throw new Error(`wrote ${written} of ${rows.length}`);
  return rows.length / seconds;
}
