// The documents of services, queues, schedules, workers and policies.
import * as v from "valibot";
import {
  count,
  flag,
  jobLimits,
  json,
  number,
  numberOrNull,
  state,
  text,
  textOrNull,
  time,
  timeOrNull,
} from "../fields.ts";

/** The breaker of a service. */
export const service = v.strictObject({
  service: text,
  state: v.picklist(["closed", "open", "half_open", "isolated"]),
  since: timeOrNull,
  until: timeOrNull,
  reason: textOrNull,
  holdUntil: timeOrNull,
  rampUntil: timeOrNull,
  calls: count,
  failures: count,
  consecutive: count,
  probes: count,
  sick: v.array(v.strictObject({ worker: text, until: time })),
});

/** A queue. */
export const queue = v.strictObject({
  name: text,
  paused: v.nullable(v.strictObject({ until: timeOrNull, reason: text })),
  types: v.array(text),
});
/** A pause in force. */
export const pause = v.strictObject({
  kind: v.picklist(["queue", "type", "service", "tenant"]),
  name: text,
  since: time,
  until: timeOrNull,
  reason: text,
});

/** Limits of a service, tenant or type. */
export const limits = v.strictObject({
  kind: v.picklist(["service", "tenant", "type"]),
  name: text,
  rate: v.nullable(v.strictObject({ limit: number, perMs: number, burst: number, nextAt: timeOrNull, left: number })),
  budget: v.nullable(v.strictObject({ share: number, floorPerSecond: number, capacity: number, tokens: number })),
  weight: numberOrNull,
});

const row = { name: text, lastAt: timeOrNull, lastMs: numberOrNull, nextAt: timeOrNull, everyMs: numberOrNull };
/** A schedule. */
export const schedule = v.strictObject({
  ...row,
  kind: v.literal("schedule"),
  cron: textOrNull,
  timezone: textOrNull,
  paused: flag,
  job: text,
  input: v.optional(json),
  catchUp: v.union([v.picklist(["none", "one"]), v.strictObject({ all: count })]),
  overlap: v.picklist(["queue", "skip", "replace"]),
  jitterMs: number,
  options: v.record(v.string(), json),
  lastJob: textOrNull,
  result: v.nullable(state),
  fired: count,
  skipped: count,
});
/** An upkeep service of the workers. */
export const upkeep = v.strictObject({
  ...row,
  kind: v.literal("upkeep"),
  worker: text,
  result: v.nullable(v.picklist(["ok", "failed"])),
  error: textOrNull,
});

/** A worker. */
export const worker = v.strictObject({
  id: text,
  host: text,
  pid: count,
  release: textOrNull,
  startedAt: time,
  beatAt: time,
  leaseEnd: time,
  alive: flag,
  givenUp: flag,
  running: count,
  slots: v.pipe(numberOrNull, v.description("Slots it can use; null where it has not said.")),
  queues: v.nullable(v.array(text)),
  types: v.array(text),
});

/** A run that takes too long. */
export const stuck = v.strictObject({
  id: text,
  type: text,
  key: textOrNull,
  worker: textOrNull,
  startedAt: timeOrNull,
  ranMs: number,
  limitMs: numberOrNull,
  verdict: text,
  retryAt: timeOrNull,
  message: textOrNull,
  fixed: flag,
});

/** The delays of a policy and how long an outage it survives. */
export const policyPreview = v.strictObject({
  attempts: count,
  delays: v.array(v.strictObject({ attempt: count, lowMs: number, midMs: number, highMs: number })),
  deadlineMs: numberOrNull,
  cover: v.nullable(v.strictObject({ p5Ms: number, p50Ms: number, p95Ms: number })),
  custom: v.pipe(
    flag,
    v.description("True where a function of the program makes the delays: they are not known here."),
  ),
});

/** A job type that this server defines. */
export const jobType = v.strictObject({
  type: text,
  queue: text,
  service: textOrNull,
  version: count,
  input: v.pipe(json, v.description("The JSON schema of its payload, where its library can say it; else null.")),
});

/** The policy of a type. */
export const typePolicy = v.strictObject({
  type: text,
  known: v.pipe(flag, v.description("False where this server does not define the type: then these are the defaults.")),
  policy: v.strictObject({
    ...jobLimits,
    backoff: v.record(v.string(), json),
    timeoutMs: numberOrNull,
    keepFinishedMs: number,
    keepDeadMs: number,
  }),
  preview: policyPreview,
});
