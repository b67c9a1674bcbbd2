// Jobs, dead letters and their history as JSON for callers. Scripts rely on these forms.
import { type Holding, shownState } from "../core/holding.ts";
import { type AttemptRecord, type DeadLetter, type Failure, type Job, LIMIT_NAMES } from "../core/job.ts";
import { isoTime, rawJson } from "./json-form.ts";

/** A job as JSON for callers. */
export function jobForm(job: Job, holding: Holding): object {
  return {
    id: job.id,
    type: job.type,
    queue: job.queue,
    state: job.state,
    shown: shownState(job, holding),
    payload: rawJson(job.payload),
    version: job.version,
    priority: job.priority,
    attempts: job.attempts,
    crashes: job.crashes,
    ...Object.fromEntries(LIMIT_NAMES.map((name) => [name, job[name]])),
    releases: job.releases,
    generation: job.generation,
    runAt: isoTime(job.runAt),
    createdAt: isoTime(job.createdAt),
    updatedAt: isoTime(job.updatedAt),
    startedAt: isoTime(job.startedAt),
    finishedAt: isoTime(job.finishedAt),
    tenant: job.tenant,
    group: job.group,
    service: job.service,
    key: job.key,
    worker: job.worker,
    cancelRequested: job.cancelRequested,
    progress: rawJson(job.progress),
    result: rawJson(job.result),
    failure: job.failure && failureForm(job.failure),
  };
}

function failureForm({
  class: found,
  severity,
  name,
  message,
  stack,
  fingerprint,
  code,
  retryAfterMs,
}: Failure): object {
  return { class: found, severity, name, message, stack, fingerprint, code, retryAfterMs };
}

/** A dead letter as JSON for callers. */
export function letterForm(letter: DeadLetter, history: readonly AttemptRecord[], holding: Holding): object {
  return {
    ...jobForm(letter.job, holding),
    attempts: letter.attempts,
    crashes: letter.crashes,
    failure: failureForm(letter.failure),
    release: letter.release,
    reason: letter.reason,
    diedAt: isoTime(letter.diedAt),
    redrivenAt: isoTime(letter.redrivenAt),
    generation: letter.generation,
    history: history.filter(({ generation }) => generation === letter.generation).map(attemptForm),
  };
}

/** A failed run as JSON for callers. */
export function attemptForm(record: AttemptRecord): object {
  return {
    attempt: record.attempt,
    key: record.key,
    generation: record.generation,
    startedAt: isoTime(record.startedAt),
    endedAt: isoTime(record.endedAt),
    worker: record.worker,
    release: record.release,
    class: record.failure.class,
    name: record.failure.name,
    message: record.failure.message,
    delayMs: record.delayMs,
  };
}
