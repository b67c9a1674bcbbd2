// What people look at besides jobs, as JSON for callers: the command line and the HTTP API answer in the same forms.
// Scripts rely on them.
import type { LoggedEvent } from "../core/event-log.ts";
import type { Health } from "../core/health.ts";
import type { Explanation } from "../core/explain.ts";
import type { RedrivePlan } from "../core/recovery/plan.ts";
import type { RunRecord } from "../core/run-record.ts";
import type { AnyScheduleView } from "../schedules/schedule-views.ts";
import type { Page, Pause, Tally } from "../store/store.ts";
import type { BreakerView } from "./breakers.ts";
import { isoTime, rawJson } from "./json-form.ts";
import type { LimitView } from "./limit-views.ts";
import type { QueueView } from "./queue-views.ts";
import type { RedriveRunView } from "./redrive-views.ts";
import type { StuckRun } from "./stuck.ts";
import type { TriagedCause } from "./triage.ts";

/** The cursor of a page and how far it has looked. */
export function pageForm({ next, seenTo }: Page<unknown>): object {
  return { next, ...(seenTo !== undefined && { seenTo: isoTime(seenTo) }) };
}

/** An event of the log. */
export function eventForm({ at, value, ...event }: LoggedEvent): object {
  const { seq, ...rest } = event;
  return { seq, at: isoTime(at), ...rest, value: rawJson(value) };
}

/** The health of the queue. */
export function healthForm({ reasons, ...health }: Health): object {
  return {
    ...health,
    reasons: reasons.map(({ text, since, subject, help }) => ({ text, since: isoTime(since), subject, help })),
  };
}

/** Why a job is not running. */
export function explanationForm({ reasons, ...explanation }: Explanation): object {
  return { ...explanation, reasons: reasons.map((reason) => ({ ...reason, at: isoTime(reason.at) })) };
}

/** One run of a job. */
export function runRecordForm(run: RunRecord): object {
  const { nextRetryAt, startedAt, completedAt } = run;
  return {
    ...run,
    nextRetryAt: isoTime(nextRetryAt),
    startedAt: isoTime(startedAt),
    completedAt: isoTime(completedAt),
  };
}

/** The plan of a redrive. */
export function planForm(plan: RedrivePlan): object {
  const { id, count, toSend, warnings, rate, durationMs, facts, proves, by } = plan;
  const { looked, types, services, tenants, groups } = facts;
  return {
    id,
    count,
    toSend,
    warnings,
    expiresAt: isoTime(plan.expiresAt),
    rate,
    rateBecause: plan.rateBecause,
    durationMs,
    looked,
    types,
    services,
    tenants,
    groups,
    proves,
    by,
  };
}

/** The figures of a redrive run. */
export function runForm({ id, state, counts, reason }: RedriveRunView): object {
  const { sent, completed, failed, recalled, left } = counts;
  return { id, state, sent, completed, failed, recalled, left, reason };
}

/** A redrive run with all that is known about it. */
export function wholeRunForm(run: RedriveRunView): object {
  const { counts, plan, selection, count, toSend, by, why, steps, step, rate, tolerate, superseded, waits, newDeaths } =
    run;
  const { cancelled, gone, pending, byOthers } = counts;
  return {
    ...runForm(run),
    cancelled,
    gone,
    pending,
    byOthers,
    newDeaths,
    waits,
    waitsUntil: isoTime(run.waitsUntil),
    plan,
    count,
    toSend,
    selection,
    steps,
    step,
    rate,
    judgeWithinMs: run.judgeWithinMs,
    tolerate,
    superseded,
    by,
    why,
    startedAt: isoTime(run.startedAt),
    endedAt: isoTime(run.endedAt),
  };
}

/** The breaker of a service. */
export function breakerForm(view: BreakerView): object {
  return {
    ...view,
    since: view.since === 0 ? null : isoTime(view.since),
    until: isoTime(view.until),
    holdUntil: isoTime(view.holdUntil),
    rampUntil: isoTime(view.rampUntil),
    sick: view.sick.map(({ worker, until }) => ({ worker, until: isoTime(until) })),
  };
}

/** A queue. */
export function queueForm({ name, paused, types }: QueueView): object {
  return { name, paused: paused && { ...paused, until: isoTime(paused.until) }, types };
}

/** A pause in force. */
export function pauseForm({ kind, name, from, until, reason }: Pause): object {
  return { kind, name, since: isoTime(from), until: isoTime(until), reason };
}

/** The limits of a service, tenant or type. */
export function limitForm({ rate, ...view }: LimitView): object {
  return { ...view, rate: rate && { ...rate, nextAt: isoTime(rate.nextAt) } };
}

/** A schedule, or an upkeep service. */
export function scheduleForm(view: AnyScheduleView): object {
  const times = { lastAt: isoTime(view.lastAt), nextAt: isoTime(view.nextAt) };
  return view.kind === "schedule" ? { ...view, ...times, input: rawJson(view.input) } : { ...view, ...times };
}

/** A stuck run. */
export function stuckForm(run: StuckRun): object {
  return { ...run, startedAt: isoTime(run.startedAt), retryAt: isoTime(run.retryAt) };
}

/** Counts of dead letters. */
export function tallyForm(tally: Tally): object {
  const causes = tally.causes.map((cause) => ({
    ...cause,
    firstAt: isoTime(cause.firstAt),
    lastAt: isoTime(cause.lastAt),
  }));
  return { ...tally, causes, ...(tally.seenTo !== undefined && { seenTo: isoTime(tally.seenTo) }) };
}

/** The advice about a cause, and the facts that it rests on. */
export function triageForm({ cause, advice, reason, facts }: TriagedCause): object {
  const { firstAt, lastAt, boutAt, now } = facts;
  const times = { firstAt: isoTime(firstAt), lastAt: isoTime(lastAt), boutAt: isoTime(boutAt), now: isoTime(now) };
  const service = facts.service && { ...facts.service, closedAt: isoTime(facts.service.closedAt) };
  return {
    fingerprint: cause.fingerprint,
    advice,
    reason,
    dead: cause.dead,
    types: cause.types,
    facts: { ...facts, ...times, service },
  };
}
