// The options of a schedule and their checks: every refusal happens before anything is written.
import { type Duration, parseDuration } from "../core/duration.ts";
import { checkOneOf, JOB_BOUNDS } from "../core/new-job.ts";
import { invalid, parseNumber, namesOf, parseOptions } from "../core/options.ts";
import { JOB_LIMIT_FIELDS, type JobLimitOptions } from "../core/policy.ts";
import { CATCH_UP_MOST, type CatchUp, type Overlap, OVERLAPS, type ScheduleDefinition } from "../core/schedule.ts";
import { isJobDefinition, type JobDefinition } from "../jobs/define-job.ts";
import { checkJobOf, type EnqueueOptions, payloadOf } from "../enqueue/new-jobs.ts";
import type { KnownTypes } from "./schedule-jobs.ts";

/** Options of a schedule; durations as `"5s"` or milliseconds. */
export interface ScheduleOptions<Input = unknown>
  extends JobLimitOptions,
    Pick<EnqueueOptions, "priority" | "tenant" | "queue" | "service"> {
  /** A cron expression: five fields, or six with seconds first. Give this or `every`. */
  readonly cron?: string | undefined;
  /** The IANA name of the time zone of `cron`; default `UTC`. */
  readonly timezone?: string | undefined;
  /** An interval, counted from when the schedule is first set, 1 s to 10 years. */
  readonly every?: Duration | undefined;
  /** The job type: what `defineJob` returned, or its name. */
  readonly job: JobDefinition<Input> | string;
  /** The input of every job, at most 64 KiB; default `{}`. */
  readonly input?: NoInfer<Input> | undefined;
  /**
   * Ticks that passed while no worker ran: `none` of them makes a job (except one up to a minute late), the latest
   * `one` does, or with `{ all: n }` the latest n do, oldest first, 1 to 1,000; default `one`.
   */
  readonly catchUp?: CatchUp | undefined;
  /**
   * If the job of the last tick has not ended: the next one waits for it (`queue`), is left out (`skip`), or replaces
   * it (`replace`: a waiting job is cancelled, a running one is asked to stop); default `queue`.
   */
  readonly overlap?: Overlap | undefined;
  /** Each job is due a random time after its tick, up to this long; default 0, at most 10 years. */
  readonly jitter?: Duration | undefined;
}

const JOB_FIELDS = ["priority", "tenant", "queue", "service", ...JOB_LIMIT_FIELDS] as const;
const OWN_FIELDS = ["cron", "timezone", "every", "job", "input", "catchUp", "overlap", "jitter"] as const;
const FIELDS = namesOf<ScheduleOptions>()([...OWN_FIELDS, ...JOB_FIELDS]);
const EVERY_LEAST_MS = 1_000;
/** Limited, because every worker reads its schedules often. */
const PAYLOAD_BYTES_MOST = 65_536;

/** The definition that the options describe; the cron expression is not parsed here. */
export async function definitionFrom(options: ScheduleOptions, known: KnownTypes): Promise<ScheduleDefinition> {
  const given = parseOptions(options, FIELDS, "schedule");
  const own = known(jobOf(given.job));
  const said = Object.fromEntries(JOB_FIELDS.filter((field) => given[field] !== undefined).map((f) => [f, given[f]]));
  const payload = await payloadOf(own, given.input ?? {}, PAYLOAD_BYTES_MOST);
  checkJobOf(own, payload, said as EnqueueOptions);
  const { overlap = "queue", jitter = 0 } = given;
  checkOneOf("overlap", overlap, OVERLAPS);
  return {
    ...timesOf(given),
    catchUp: catchUpOf(given.catchUp ?? "one"),
    overlap: overlap as Overlap,
    jitterMs: parseDuration(jitter, "jitter", { maxMs: JOB_BOUNDS.delayMs }),
    job: own.type,
    payload,
    options: said,
  };
}

function jobOf(job: unknown): JobDefinition | string {
  if (typeof job === "string" || isJobDefinition(job)) return job;
  throw invalid("job", "what defineJob returned, or the name of a type", job, "pass one of these");
}

type Times = Pick<ScheduleDefinition, "cron" | "timezone" | "everyMs">;

function timesOf({ cron, every, timezone }: { readonly [K in (typeof FIELDS)[number]]?: unknown }): Times {
  if ((cron === undefined) === (every === undefined)) {
    const came = cron === undefined ? "neither" : "both";
    throw invalid("schedule", 'cron or every, such as { cron: "0 8 * * *" } or { every: "5m" }', came, "give one");
  }
  if (cron === undefined) {
    if (timezone !== undefined) throw invalid("timezone", "cron too", timezone, "leave it out for an interval");
    const range = { minMs: EVERY_LEAST_MS, maxMs: JOB_BOUNDS.delayMs };
    return { cron: null, timezone: null, everyMs: parseDuration(every, "every", range) };
  }
  if (typeof cron !== "string") throw invalid("cron", 'text such as "*/5 * * * *"', cron, "write an expression");
  if (timezone !== undefined && typeof timezone !== "string")
    throw invalid("timezone", 'the IANA name of a time zone, such as "Europe/Berlin"', timezone, "use one");
  return { cron: cron.trim().replace(/\s+/g, " "), timezone: timezone ?? "UTC", everyMs: null };
}

function catchUpOf(value: unknown): CatchUp {
  if (value === "none" || value === "one") return value;
  if (typeof value !== "object" || value === null)
    throw invalid("catchUp", '"none", "one" or { all: n }', value, "use one of these");
  const { all } = parseOptions(value, ["all"], "catchUp");
  return { all: parseNumber(all, "catchUp.all", { min: 1, max: CATCH_UP_MOST, integer: true }) };
}
