// Views for people. Their names and columns are stable, the same on SQLite and on Postgres.
import { ofGeneration } from "../columns.ts";
import {
  endedViews,
  eventsView,
  isSettled,
  jobsColumns,
  OF_ROW,
  type RunPlace,
  runOf,
  sameBefore,
  type ViewWords,
} from "../view-parts.ts";
import { SQLITE, time } from "./dialect.ts";

/** Of a job that may not have failed since its last redrive; as text, so that conditions reach all parts of the union. */
const UNSURE = { ...OF_ROW, error: `cast(${ofGeneration("j", "attempt", "error_message")} as text)` };

const create = (view: string): string => `drop view if exists ${view};\ncreate view ${view}`;

const WORDS: ViewWords = {
  ...SQLITE,
  create,
  noText: "cast(null as text)",
  word: (text) => `'${text}'`,
  isLimited: "j.limited = 1",
  some: "select 1",
};
const PRESENT: RunPlace = { id: "j.id", type: "l.type", generation: "j.generation", run: "(j.attempts + 1)" };
const BAD: RunPlace = { ...PRESENT, generation: "a.generation", run: "a.attempt" };

/**
 * An error is text even where there is none: SQLite pushes conditions into a union only if its parts have the same
 * types.
 */
const NONE = { next: "null", error: "cast(null as text)", from: "null", to: "null" };
const FROM = "from job j left join lane l on l.base = j.lane - j.lane % 4 where";
const ENDED = { from: time("j.started_at"), to: time("j.finished_at") };

const RUNS = `${create("runs")} as ${[
  `${runOf(WORDS, BAD, "failed", {
    next: time("(a.ended_at + a.delay_ms)"),
    error: "a.error_message",
    from: time("a.started_at"),
    to: time("a.ended_at"),
  })} from attempt a join job j on j.seq = a.job_seq left join lane l on l.base = j.lane - j.lane % 4
  where a.attempt > 0 and not ${sameBefore(WORDS, "a")}`,
  `${runOf(WORDS, PRESENT, "pending_retry", { ...NONE, next: time("j.run_at"), error: "j.error_message" })}
  ${FROM} j.state = 'queued' and j.attempts > 0`,
  `${runOf(WORDS, PRESENT, "queued", NONE)} ${FROM} j.state = 'queued' and j.attempts <= 0`,
  `${runOf(WORDS, PRESENT, "running", { ...NONE, from: time("j.started_at") })}
  ${FROM} j.state = 'running' and j.state <> 'queued' and j.expires_at is null`,
  `${runOf(WORDS, PRESENT, "completed", { ...NONE, ...ENDED })} ${FROM} j.state = 'completed' and j.state <> 'queued'`,
  `${runOf(WORDS, PRESENT, "cancelled", { ...NONE, ...ENDED, from: `case when not ${isSettled(WORDS)} then ${ENDED.from} end` })}
  ${FROM} j.state = 'cancelled' and j.state <> 'queued'`,
  // A job that died without being charged did not fail in a run; it is shown anyway.
  `${runOf(WORDS, PRESENT, "failed", { ...NONE, error: "j.error_message", to: ENDED.to })}
  ${FROM} j.state = 'dead' and j.state <> 'queued' and (j.attempts = 0 or ${sameBefore(WORDS, "j")})`,
].join("\nunion all")};
`;

/** The view `jobs`. Each status has a separate query, so that a query for one status reads no job of another. */
function jobsView(added: readonly string[]): string {
  const withStatus = (status: string, where: string, of = OF_ROW): string =>
    `${jobsColumns(WORDS, status, added, of)}\n${FROM} ${where}`;
  return `${create("jobs")} as ${[
    withStatus("'failed'", "j.state = 'dead' and j.state <> 'queued'"),
    withStatus("'retrying'", "j.state = 'queued' and j.attempts > 0"),
    withStatus("'queued'", "j.state = 'queued' and j.attempts <= 0", UNSURE),
    withStatus("j.state", "j.state <> 'queued' and j.state <> 'dead'", UNSURE),
  ].join("\nunion all")};
`;
}

/** The views; `added` are columns that versions have added to `jobs`. */
export const views = (added: readonly string[]): string => `
${jobsView(added)}${endedViews(WORDS, "j.attempts + 1")}
${create("item_errors")} as
select j.id as item_id, substr(l.type, 7) as run_name, j.payload as item, a.attempt, a.worker, a.error_class, a.error_name,
  a.error_message, a.error_stack, ${time("a.ended_at")} as created_at
from attempt a join job j on j.seq = a.job_seq join lane l on l.base = j.lane - j.lane % 4 where l.type like 'batch:%';

${create("retry_queue")} as
select coalesce(j.key, j.id) as record_id, j.id as job_id, l.type as job_type, j.payload,
  j.error_message as error_msg, j.attempts as retry_count, ${time("j.run_at")} as process_after
from job j left join lane l on l.base = j.lane - j.lane % 4
where j.state = 'queued' and j.attempts > 0;

${eventsView(WORDS)}${RUNS}`;
