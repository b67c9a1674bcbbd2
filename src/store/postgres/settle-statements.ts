// The statements that apply verdicts. Each takes leases as arrays: the number and the epoch of each, and which of the
// nonces (from 1) it has. It changes a job only where its epoch is the one before and the claim of that nonce exists,
// and answers with its time and the indexes (from 1) of those it applied. That the claim named the job is known before:
// a claim is written as a whole, and never changed. None waits long for a row that another transaction holds, because
// others of its group would wait with it.
import { NO_WORKER } from "../causes.ts";
import { TERM_COLUMNS } from "../columns.ts";
import { HISTORY_TAIL } from "../verbs.ts";
import { tickFailures } from "./causes.ts";
import { noteEnded, PLACE, toQueue } from "./columns.ts";
import { freeKeys, NOW, noteStarted, waitsAtMost } from "./context.ts";
import type { PostgresStatement } from "./driver.ts";
import { freePlaces, freeStatement } from "./groups.ts";
import { tickRuns } from "./redrives.ts";
import type { Waker } from "./wake.ts";

/** Longer than any of our settles or claims holds a row, on a healthy server. */
const WAIT_MS = 500;
const LEASE = "j.seq = u.seq and j.epoch = u.epoch - 1 and (select workers from held)[u.claim] is not null";
/** Moves the run from the claim to the job. */
const RUN = `epoch = u.epoch, worker = (select workers from held)[u.claim], started_at = (select times from held)[u.claim],
  updated_at = ${NOW}`;

/**
 * The leases, and more columns with their types; then the worker that settles, and how far its runs have started. `more`
 * is what else is read of each claim.
 */
function given(s: string, columns: Readonly<Record<string, string>>, more = ""): string {
  const names = Object.keys(columns);
  const types = ["bigint", "bigint", "int", ...Object.values(columns)];
  const arrays = types.map((type, at) => `$${at + 2}::${type}[]`);
  return `held as (select array_agg(c.worker order by k.n) as workers, array_agg(c.at order by k.n) as times${more}
        from unnest($1::text[]) with ordinality as k (nonce, n)
        left join lateral (select worker, at from ${s}.claim where nonce = k.nonce order by at desc limit 1) c on true where ${waitsAtMost(WAIT_MS)}),
      u as (select * from unnest(${arrays.join(", ")}) with ordinality as u (${["seq", "epoch", "claim", ...names, "n"].join(", ")})),
      ${noteStarted(s, `$${types.length + 2}`, `$${types.length + 3}`)}`;
}

const BLAME = {
  attempts: "int",
  crashes: "int",
  failure: "text",
  class: "text",
  name: "text",
  message: "text",
  stack: "text",
  fingerprint: "text",
  // True where failure and stack are those of the first job, and are not sent again: in an outage most are alike.
  alike: "boolean",
};
/** The release of the worker of each claim, looked up once for all its jobs; a worker stays in its table as long as it holds one. */
const releases = (s: string): string =>
  `, array_agg((select w.release from ${s}.worker w where w.id = c.worker) order by k.n) as releases`;

/** A column of the failures, from the first job where this one's is alike. */
function ofFirst(name: "failure" | "stack", columns: Readonly<Record<string, string>>): string {
  const parameter = `$${5 + Object.keys(columns).indexOf(name)}`;
  return `case when u.alike then (${parameter}::text[])[1] else u.${name} end`;
}

/** Whether a statement also writes the terms by which its runs were judged. */
interface Says {
  /** Suffix of its name. */
  readonly name: "" | "_said";
  /** Columns after its others. */
  readonly columns: Readonly<Record<string, string>>;
  /** What it sets besides the rest. */
  readonly set: string;
  /** When a job that ends now expires. */
  readonly finished: string;
  readonly dead: string;
}

const SILENT: Says = {
  name: "",
  columns: {},
  set: "",
  finished: `${NOW} + j.keep_ms`,
  dead: `${NOW} + j.keep_dead_ms`,
};
const SAYING: Says = {
  name: "_said",
  columns: Object.fromEntries(TERM_COLUMNS.map((column) => [`said_${column}`, "bigint"])),
  set: TERM_COLUMNS.map((column) => `, ${column} = u.said_${column}`).join(""),
  finished: `${NOW} + u.said_keep_ms`,
  dead: `${NOW} + u.said_keep_dead_ms`,
};

/** Records which jobs ended together, from a CTE `done`. */
const ended = (s: string, state: string, where = "true"): string => `ended as (${noteEnded(s, state, "done", where)})`;

const waits = (s: string, where: string): string => `wait as (${toQueue(s, "done")} where ${where})`;

const record = (s: string, delay: string): string => `history as (
  insert into ${s}.attempt (job_seq, generation, epoch, attempt, worker, started_at, ended_at, delay_ms, error_class,
    error_name, error_message, error_stack, failure, release)
  select seq, generation, epoch, attempts, worker, started_at, ${NOW}, ${delay}, class, name, message, stack, failure,
    release from done)`;

const doneBy = (columns: Readonly<Record<string, string>>): string =>
  `${PLACE}, j.expires_at, j.generation, j.crashes, j.max_attempts, j.worker, j.started_at, j.cancel_requested, u.n, j.failure,
  u.class, u.name, u.message, ${ofFirst("stack", columns)} as stack, u.fingerprint, (select releases from held)[u.claim] as release`;
const chargedBy = (columns: Readonly<Record<string, string>>): string =>
  `attempts = j.attempts + u.attempts, crashes = j.crashes + u.crashes, failure = ${ofFirst("failure", columns)},
  error_message = u.message, ${RUN}`;
/** Jobs with more records of history than are kept, if they have one for every claim. */
const LONG = `array_agg(seq) filter (where epoch > ${HISTORY_TAIL + 1})`;

/** True for a job that this claim gave a lease of this epoch. */
const isNamed = (epoch: string): string => `c.epochs[pg_catalog.array_position(c.seqs, j.seq)] = ${epoch}`;

const named = (name: string, text: string): PostgresStatement => ({ name: `settle_${name}`, text });

/** Completions that are kept, and cancels. */
function endStatements(s: string, says: Says) {
  return {
    complete: named(
      `complete${says.name}`,
      `with ${given(s, { result: "text", ...says.columns })},
      done as (update ${s}.job j set state = 'completed', result = u.result, finished_at = ${NOW}, expires_at = ${says.finished}${says.set}, ${RUN}
        from u where ${LEASE} returning j.seq, j.expires_at, u.n),
      ${ended(s, "completed")}
      select ${NOW}, array_agg(n) from done`,
    ),
    cancel: named(
      `cancel${says.name}`,
      `with ${given(s, says.columns)},
      done as (update ${s}.job j set state = 'cancelled', finished_at = ${NOW}, expires_at = ${says.finished}${says.set}, ${RUN}
        from u where ${LEASE} returning j.seq, j.expires_at, u.n),
      ${ended(s, "cancelled")}
      select ${NOW}, array_agg(n) from done`,
    ),
  } as const;
}

/** A completion in a caller's transaction; the terms by which its run was judged come after its result. */
function completeOneStatement(s: string, says: "_said" | "" = "") {
  const columns = TERM_COLUMNS.map((column, at) => [column, `$${at + 5}::bigint`] as const);
  const set = says ? columns.map(([column, value]) => `, ${column} = ${value}`).join("") : "";
  const keep = says ? new Map(columns).get("keep_ms") : "j.keep_ms";
  return named(
    `complete_one${says}`,
    `with done as (update ${s}.job j set state = 'completed', result = $4, finished_at = ${NOW}, expires_at = ${NOW} + ${keep}${set},
          updated_at = ${NOW}, epoch = $2::bigint, worker = c.worker, started_at = c.at
        from ${s}.claim c where j.id = $1 and j.epoch = $2::bigint - 1 and c.nonce = $3 and ${isNamed("$2::bigint")}
        returning j.seq, j.expires_at, j.generation),
      ${freePlaces(s, "done")}
      ${noteEnded(s, "completed", "done")} returning (select seq from done), (select generation from done)`,
  );
}

/** The same as `forget` for jobs that were sent back to work: their letters are deleted too, but the run that sent them counts them. */
function forgetRedrivenStatement(s: string) {
  const counts = { good: "outcome is null and is_last", recovered: "outcome is not null and is_last" };
  return named(
    "forget_redriven",
    `with ${given(s, {})},
      gone as (delete from ${s}.job j using u where ${LEASE} returning j.id, j.key, j.seq, j.generation, u.n), ${freeKeys(s)},
      attempts as (delete from ${s}.attempt a using gone where a.job_seq = gone.seq),
      versions as (delete from ${s}.payload_version v using gone where v.job_seq = gone.seq),
      letters as (delete from ${s}.dead_letter d using gone where d.job_seq = gone.seq
        returning d.redrive, d.outcome, d.generation = gone.generation - 1 as is_last),
      ${tickRuns(s, `coalesce($5::text, '${NO_WORKER}')`, counts, "letters")}
      select ${NOW}, array_agg(n) from gone`,
  );
}

/** Verdicts that leave nothing of the job, or let it continue to run; and a completion in a caller's transaction. */
function plainStatements(s: string) {
  return {
    forget: named(
      "forget",
      `with ${given(s, {})},
      gone as (delete from ${s}.job j using u where ${LEASE} returning j.id, j.key, j.seq, j.failure, u.n), ${freeKeys(s)},
      attempts as (delete from ${s}.attempt a using gone where a.job_seq = gone.seq and gone.failure is not null),
      letters as (delete from ${s}.dead_letter d using gone where d.job_seq = gone.seq and gone.failure is not null)
      select ${NOW}, array_agg(n) from gone`,
    ),
    forgetRedriven: forgetRedrivenStatement(s),
    completeOne: completeOneStatement(s),
    progress: named(
      "progress",
      `with ${given(s, { value: "text" })},
      done as (update ${s}.job j set progress = u.value, updated_at = ${NOW} from u where ${LEASE} returning u.n)
      select ${NOW}, array_agg(n) from done`,
    ),
  } as const;
}

const BATCH_MOST =
  "batch_most = case when j.cancel_requested then j.batch_most else coalesce(u.most, j.batch_most) end";

/** A job with a requested cancel does not go back to the queue, whatever its run reported. */
const STOPPED = (says: Says): string => `state = case when j.cancel_requested then 'cancelled' else 'queued' end,
          finished_at = case when j.cancel_requested then ${NOW} end,
          expires_at = case when j.cancel_requested then ${says.finished} end,
          run_at = case when j.cancel_requested then j.run_at else ${NOW} + u.delay end`;

/** The verdict that releases a job. */
function releaseStatement(s: string, wake: string) {
  return named(
    "release",
    `with ${given(s, { delay: "bigint", most: "int" })},
      done as (update ${s}.job j set ${RUN}, releases = j.releases + 1, ${BATCH_MOST}, ${STOPPED(SILENT)}
        from u where ${LEASE} returning ${PLACE}, j.expires_at, j.cancel_requested, u.n),
      ${waits(s, "not cancel_requested")}, ${ended(s, "cancelled", "cancel_requested")}
      select ${NOW}, array_agg(n), null${wake} from done`,
  );
}

/** The parameter after such columns: the worker that settles. */
function settlingWorker(columns: Readonly<Record<string, string>>): string {
  return `$${5 + Object.keys(columns).length}`;
}

/** Verdicts about failed runs. */
function blameStatements(s: string, wake: string, says: Says) {
  const retryColumns = { delay: "bigint", kind: "int", most: "int", ...BLAME, ...says.columns };
  const deadColumns = { place: "int", reason: "text", ...BLAME, ...says.columns };
  return {
    retry: named(
      `retry${says.name}`,
      `with ${given(s, retryColumns, releases(s))},
      done as (update ${s}.job j set ${chargedBy(retryColumns)}, ${BATCH_MOST}, ${STOPPED(says)}${says.set},
          lane = case when j.cancel_requested then j.lane else j.lane - j.lane % 4 + u.kind end,
          last_delay_ms = case when j.cancel_requested then j.last_delay_ms else u.delay end
        from u where ${LEASE} returning ${doneBy(retryColumns)}, u.delay),
      ${tickFailures(s, "retry", settlingWorker(retryColumns))},
      ${record(s, "delay")}, ${waits(s, "not cancel_requested")}, ${ended(s, "cancelled", "cancel_requested")}
      select ${NOW}, array_agg(n), ${LONG}${wake} from done`,
    ),
    dead: named(
      `dead${says.name}`,
      `with ${given(s, deadColumns, releases(s))},
      done as (update ${s}.job j set ${chargedBy(deadColumns)}, state = 'dead', finished_at = ${NOW}, expires_at = ${says.dead}${says.set}
        from u where ${LEASE} returning ${doneBy(deadColumns)}, u.place, u.reason),
      ${tickFailures(s, "dead", settlingWorker(deadColumns))},
      ${record(s, "null::bigint")}, ${ended(s, "dead")},
      buried as (
        insert into ${s}.dead_letter (job_seq, generation, type, reason, error_class, error_name, error_message, error_stack,
          fingerprint, attempts, crashes, max_attempts, died_at, failure, release)
        select d.seq, d.generation, coalesce(l.type, ''), d.reason, d.class, d.name, d.message, d.stack, d.fingerprint,
          d.attempts, d.crashes, d.max_attempts, ${NOW}, d.failure, d.release
        from done d left join lateral (select type from ${s}.lane where base = d.lane - d.lane % 4 limit 1) l on true
        order by d.place
        on conflict (job_seq, generation) do update set reason = excluded.reason, error_class = excluded.error_class,
          error_name = excluded.error_name, error_message = excluded.error_message, error_stack = excluded.error_stack,
          fingerprint = excluded.fingerprint, attempts = excluded.attempts, crashes = excluded.crashes,
          died_at = excluded.died_at, redriven_at = null, failure = excluded.failure, release = excluded.release)
      select ${NOW}, array_agg(n), ${LONG} from done`,
    ),
  } as const;
}

/** The statement of each kind of verdict, and some more. */
export function settleStatements(s: string, waker: Waker | null) {
  const wake = waker ? `, ${waker.notify}` : "";
  return {
    ...plainStatements(s),
    ...endStatements(s, SILENT),
    ...blameStatements(s, wake, SILENT),
    said: {
      ...endStatements(s, SAYING),
      ...blameStatements(s, wake, SAYING),
      completeOne: completeOneStatement(s, "_said"),
    },
    release: releaseStatement(s, wake),
    find: named(
      "find",
      `select u.id, u.epoch, u.nonce, j.seq, exists (select from ${s}.place p where p.seq = j.seq) from unnest($1::text[], $2::bigint[], $3::text[]) as u (id, epoch, nonce)
      join ${s}.job j on j.id = u.id
      where exists (select from ${s}.claim c where c.nonce = u.nonce and ${isNamed("u.epoch")})`,
    ),
    // Takes the rows that no other transaction holds, and answers which the others are. A key is written only where
    // nothing of its job is kept, so only the keys of such jobs ($2) are needed.
    locked: named(
      "locked",
      `with free as materialized (
        select j.seq, j.id, j.key from ${s}.job j where j.seq = any($1::bigint[]) order by j.seq for update skip locked),
      keyed as materialized (select seq, id from free where key is not null and seq = any($2::bigint[])),
      keys as materialized (
        select k.job_id from ${s}.job_key k where k.job_id = any(array(select id from keyed)) for update skip locked)
      select j.seq from ${s}.job j where j.seq = any($1::bigint[]) and j.seq <> all(array(select seq from free))
      union all
      select seq from keyed where id <> all(array(select job_id from keys)) and id = any(array(
        select k.job_id from ${s}.job_key k where k.job_id = any(array(select id from keyed))))`,
    ),
    none: named("none", `with ${noteStarted(s, "$1", "$2")} select ${NOW}`),
    places: freeStatement(s, waker),
    trim: named(
      "trim",
      `delete from ${s}.attempt a using (
        select job_seq, epoch, row_number() over older as from_first, row_number() over newer as from_last
        from ${s}.attempt where job_seq = any($1::bigint[])
        window older as (partition by job_seq, generation order by epoch), newer as (partition by job_seq, generation order by epoch desc)) r
      where a.job_seq = r.job_seq and a.epoch = r.epoch and r.from_first > 1 and r.from_last > ${HISTORY_TAIL}`,
    ),
  } as const;
}
