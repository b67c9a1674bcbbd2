// The documents of jobs and dead letters.
import * as v from "valibot";
import { REASON_KINDS } from "../../core/explain.ts";
import { LETTER_OUTCOMES } from "../../core/job.ts";
import { RUN_STATUSES } from "../../core/run-record.ts";
import {
  count,
  counts,
  deathReason,
  failureClass,
  flag,
  jobLimits,
  json,
  number,
  numberOrNull,
  shownState,
  state,
  text,
  textOrNull,
  time,
  timeOrNull,
} from "../fields.ts";

const failure = v.strictObject({
  class: failureClass,
  severity: v.picklist(["info", "warning", "error", "critical"]),
  name: text,
  message: text,
  stack: textOrNull,
  fingerprint: text,
  code: v.optional(text),
  retryAfterMs: v.optional(number),
});

/** The fields of a job; payload, progress and result only with the right to see payloads. */
const jobFields = {
  id: text,
  type: text,
  queue: text,
  state,
  shown: shownState,
  payload: v.optional(json),
  version: count,
  priority: count,
  attempts: count,
  crashes: count,
  ...jobLimits,
  releases: count,
  generation: count,
  runAt: time,
  createdAt: time,
  updatedAt: time,
  startedAt: timeOrNull,
  finishedAt: timeOrNull,
  tenant: textOrNull,
  group: textOrNull,
  service: textOrNull,
  key: textOrNull,
  worker: textOrNull,
  cancelRequested: flag,
  progress: v.optional(json),
  result: v.optional(json),
  failure: v.nullable(failure),
};

/** A failed run. */
export const attempt = v.strictObject({
  attempt: count,
  key: textOrNull,
  generation: count,
  startedAt: timeOrNull,
  endedAt: time,
  worker: textOrNull,
  release: textOrNull,
  class: failureClass,
  name: text,
  message: text,
  delayMs: numberOrNull,
});

/** A job. */
export const job = v.strictObject(jobFields);
/** A job with its failed runs. */
export const jobWithHistory = v.strictObject({ ...jobFields, history: v.array(attempt) });
/** A dead letter. */
export const letter = v.strictObject({
  ...jobFields,
  failure,
  release: textOrNull,
  reason: deathReason,
  diedAt: time,
  redrivenAt: timeOrNull,
  history: v.array(attempt),
});

/** One run of a job. */
export const runRecord = v.strictObject({
  id: text,
  jobId: text,
  key: textOrNull,
  type: text,
  generation: count,
  retryCount: count,
  maxRetries: count,
  isRetry: flag,
  originalRunId: textOrNull,
  status: v.picklist(RUN_STATUSES),
  nextRetryAt: timeOrNull,
  errorMessage: textOrNull,
  startedAt: timeOrNull,
  completedAt: timeOrNull,
  label: textOrNull,
});

/** Why a job is not running. */
export const explanation = v.strictObject({
  id: text,
  state: shownState,
  summary: text,
  reasons: v.array(v.strictObject({ kind: v.picklist(REASON_KINDS), message: text, next: text, at: timeOrNull })),
});

/** The result of an enqueue. */
export const enqueued = v.strictObject({
  id: text,
  type: text,
  duplicate: flag,
  replaced: flag,
  state: v.nullable(state),
  known: v.pipe(flag, v.description("False where this server does not define the type: a worker may.")),
});

/** A payload that a job has had. */
export const payloadVersion = v.strictObject({
  n: v.pipe(count, v.description("0 for the first payload, 1 for the first change.")),
  at: time,
  actor: textOrNull,
  redrive: textOrNull,
  why: textOrNull,
  generation: numberOrNull,
  payload: json,
});

/** What a change of one payload did. */
export const edited = v.strictObject({ id: text, version: count, changed: flag, recalled: flag });

/** Counts of dead letters. */
export const tally = v.strictObject({
  total: count,
  byClass: counts,
  byType: counts,
  byReason: counts,
  causes: v.array(
    v.strictObject({
      fingerprint: text,
      count,
      name: text,
      message: text,
      class: failureClass,
      firstAt: time,
      lastAt: time,
    }),
  ),
  otherCauses: count,
  seenTo: v.optional(time),
});

/** Numbers of what a change did. */
export const changed = v.record(v.string(), count);

/** The outcomes of a redrive that letters can be listed by. */
export const letterOutcome = v.picklist(LETTER_OUTCOMES);
