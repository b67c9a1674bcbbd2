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
import { heldRuns } from "./columns.ts";
import { postgresDialect, time } from "./dialect.ts";

/** Of a job that may not have failed since its last redrive. */
const presentError = (s: string): string => ofGeneration("j", `${s}.attempt`, "error_message");
/** What the claim says of a running job. */
const RUN = {
  state: "'running'::text",
  worker: "h.worker",
  startedAt: "h.at",
  updatedAt: "greatest(j.updated_at, h.at)",
};

/** Waiting jobs with their places in the queue; all columns of the place, so that an index leads from a job to it. */
const queued = (s: string): string =>
  `${s}.waiting w join ${s}.job j on j.seq = w.seq and j.lane = w.lane and j.run_at = w.run_at`;

/**
 * The same for retries, by due time. Postgres passes neither the order nor the limit of a union on to its parts, and
 * plans each as if it were read to the end. So this part sets its own order, and looks up the job of every place in
 * turn (the limit of one asks for that): then the index by time is the cheapest plan, and a query for the first few
 * rows reads no more than these. Joined to a row that always exists, the lookup is left out where its columns are not
 * selected.
 */
const retrying = (s: string, columns: string): string => `(${columns} from ${s}.waiting w
  cross join lateral (select j.*, l.type from (select) one left join ${s}.job j on j.seq = w.seq
    left join ${s}.lane l on l.base = w.lane - w.lane % 4 limit 1) j
where w.job_id is not null order by ${time("w.run_at")})`;

/** Replaced, not dropped: rights that were granted on it stay, and so do views that others have made of it. */
const create = (s: string, view: string): string => `create or replace view ${s}.${view}`;

const wordsOf = (s: string): ViewWords => ({
  ...postgresDialect(s),
  create: (view) => create(s, view),
  noText: "null::text",
  word: (text) => `'${text}'::text`,
  isLimited: "j.limited",
  some: "select",
});
const PRESENT: RunPlace = {
  id: "j.id",
  type: "l.type as type",
  generation: "j.generation",
  run: "(least(j.attempts, 2147483646) + 1)",
};
const PENDING: RunPlace = { ...PRESENT, id: "w.job_id", type: "j.type as type" };
const BAD: RunPlace = { ...PRESENT, generation: "a.generation", run: "a.attempt" };

const NONE = { next: "null::timestamptz", error: "null::text", from: "null::timestamptz", to: "null::timestamptz" };
const ENDED = { from: time("j.started_at"), to: time("j.finished_at") };

const runs = (s: string): string => {
  const words = wordsOf(s);
  const lane = `left join ${s}.lane l on l.base = j.lane - j.lane % 4`;
  const ofState = (state: string): string => `from ${s}.job j ${lane} where j.state = '${state}'`;
  return `${words.create("runs")} as ${[
    `${runOf(words, BAD, "failed", {
      next: time("(a.ended_at::numeric + a.delay_ms)"),
      error: "a.error_message",
      from: time("a.started_at"),
      to: time("a.ended_at"),
    })} from ${s}.attempt a join ${s}.job j on j.seq = a.job_seq ${lane}
    where a.attempt > 0 and not ${sameBefore(words, "a")}`,
    retrying(s, runOf(words, PENDING, "pending_retry", { ...NONE, next: time("w.run_at"), error: "j.error_message" })),
    `${runOf(words, PRESENT, "queued", NONE)} from ${queued(s)} ${lane} where j.attempts <= 0`,
    `${runOf(words, PRESENT, "running", { ...NONE, from: time("h.at") })} from ${heldRuns(s)} ${lane}`,
    `${runOf(words, PRESENT, "completed", { ...NONE, ...ENDED })} ${ofState("completed")}`,
    `${runOf(words, PRESENT, "cancelled", { ...NONE, ...ENDED, from: `case when not ${isSettled(words)} then ${ENDED.from} end` })}
    ${ofState("cancelled")}`,
    // A job that died without being charged did not fail in a run; it is shown anyway.
    `${runOf(words, PRESENT, "failed", { ...NONE, error: "j.error_message", to: ENDED.to })}
    from ${s}.dead_letter d join ${s}.job j on j.seq = d.job_seq ${lane}
    where d.redriven_at is null and j.state = 'dead' and (j.attempts = 0 or ${sameBefore(words, "j")})`,
  ].join("\nunion all")};
`;
};

/** The view `jobs`. Each status has a separate query, so that a query for one status reads no job of another. */
function jobsView(s: string, added: readonly string[]): string {
  const words = wordsOf(s);
  const withStatus = (status: string, from: string, where: string, of = OF_ROW): string =>
    `${jobsColumns(words, words.word(status), added, of)}
from ${from} left join ${s}.lane l on l.base = j.lane - j.lane % 4 where ${where}`;
  const unsure = { ...OF_ROW, error: presentError(s) };
  const dead = `${s}.dead_letter d join ${s}.job j on j.seq = d.job_seq`;
  return `${words.create("jobs")} as ${[
    withStatus("failed", dead, "d.redriven_at is null and j.state = 'dead'"),
    withStatus("retrying", queued(s), "j.attempts > 0"),
    withStatus("queued", queued(s), "j.attempts <= 0", unsure),
    withStatus("running", heldRuns(s), "true", { ...RUN, error: presentError(s) }),
    ...["completed", "cancelled"].map((state) => withStatus(state, `${s}.job j`, `j.state = '${state}'`, unsure)),
  ].join("\nunion all")};
`;
}

/** The views, for a schema of this name; `added` are columns that versions have added to `jobs`. */
export const views = (s: string, added: readonly string[]): string => `
${jobsView(s, added)}${endedViews(wordsOf(s), PRESENT.run)}
${create(s, "item_errors")} as
select j.id as item_id, substr(l.type, 7) as run_name, j.payload as item, a.attempt, a.worker, a.error_class, a.error_name,
  a.error_message, a.error_stack, ${time("a.ended_at")} as created_at
from ${s}.attempt a join ${s}.job j on j.seq = a.job_seq join ${s}.lane l on l.base = j.lane - j.lane % 4
where l.type like 'batch:%';

${create(s, "retry_queue")} as
select coalesce(j.key, j.id) as record_id, w.job_id, l.type as job_type, j.payload,
  j.error_message as error_msg, j.attempts as retry_count, ${time("w.run_at")} as process_after
from ${s}.waiting w join ${s}.job j on j.seq = w.seq left join ${s}.lane l on l.base = j.lane - j.lane % 4
where w.job_id is not null;

${eventsView(wordsOf(s))}${runs(s)}`;
