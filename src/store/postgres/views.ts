// Views for people. Their names and columns are stable, the same on SQLite and on Postgres.
import { ofGeneration } from "../columns.ts";
import { postgresDialect } from "../dialect.ts";
import { endedViews, isSettled, type RunPlace, runOf, sameBefore, type ViewWords } from "../view-parts.ts";
import { heldRuns } from "./columns.ts";
import { time } from "./time.ts";

interface StatusColumns {
  readonly state: string;
  /** The last error, for a schema of this name. */
  readonly error: (s: string) => string;
  readonly worker: string;
  readonly startedAt: string;
  readonly updatedAt: string;
}

const OWN: StatusColumns = {
  state: "j.state",
  error: () => "j.error_message",
  worker: "j.worker",
  startedAt: "j.started_at",
  updatedAt: "j.updated_at",
};
/** Of a job that may not have failed since its last redrive. */
const presentError = (s: string): string => ofGeneration("j", `${s}.attempt`, "error_message");
const UNSURE: StatusColumns = { ...OWN, error: presentError };
/** What the claim says of a running job. */
const RUN: StatusColumns = {
  state: "'running'::text",
  error: presentError,
  worker: "h.worker",
  startedAt: "h.at",
  updatedAt: "greatest(j.updated_at, h.at)",
};

/** The jobs of one status; each has a separate query, so that a query for one status reads no job of another. */
const withStatus = (s: string, status: string, from: string, where: string, own: StatusColumns = OWN): string => `
select j.id, l.type, l.queue, '${status}'::text as status,
  ${own.state} as state, l.priority, j.attempts, j.max_attempts, j.crashes, j.generation, l.service, l.tenant, j.key,
  ${own.worker} as worker, ${own.error(s)} as last_error, j.payload, j.progress, j.result,
  ${time("j.run_at")} as run_at, ${time("j.created_at")} as created_at, ${time(own.updatedAt)} as updated_at,
  ${time(own.startedAt)} as started_at, ${time("j.finished_at")} as finished_at
from ${from} left join ${s}.lane l on l.base = j.lane - j.lane % 4 where ${where}`;

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
  time,
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

/** The views, for a schema of this name. */
export const views = (s: string): string => `
${create(s, "jobs")} as ${[
  withStatus(
    s,
    "failed",
    `${s}.dead_letter d join ${s}.job j on j.seq = d.job_seq`,
    "d.redriven_at is null and j.state = 'dead'",
  ),
  withStatus(s, "retrying", queued(s), "j.attempts > 0"),
  withStatus(s, "queued", queued(s), "j.attempts <= 0", UNSURE),
  withStatus(s, "running", heldRuns(s), "true", RUN),
  ...["completed", "cancelled"].map((state) => withStatus(s, state, `${s}.job j`, `j.state = '${state}'`, UNSURE)),
].join("\nunion all")};
${endedViews(wordsOf(s), PRESENT.run)}
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

${runs(s)}`;
