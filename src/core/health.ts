// The health of a queue: one pure judgement over a few facts. It begins with 1 and loses a cost for each trouble; the
// table is in docs/guides/monitoring.md.
//
//   score = 1 − sum of the costs, never below 0;   healthy from 0.8 on, degraded from 0.5 on, else unhealthy
//
//   no worker alive while work is due: 0.3, once it is late 0.6      runs of workers that do not respond: 0.25
//   else work late: 0.25, five times as late 0.5                     a breaker that is not closed: 0.25
//   failed runs over the limit: 0.25, over half of them 0.6          dead letters over the limit: 0.25
//   a schedule late: 0.1, by a minute 0.25, by five 0.5              letters that wait for an archive: 0.1
//   upkeep that no worker runs: 0.3; that fails: 0.1                 more due jobs than the limit, and late: 0.1
//   alerts that cannot be told to a sink: 0.1
import { type Duration, formatDuration, parseDuration } from "./duration.ts";
import { type FlowCounts, MINUTE, minuteOf } from "./flow.ts";
import type { State } from "./job.ts";
import { namesOf, parseNumber, parseOptions } from "./options.ts";

/** From when on something counts as trouble. */
export interface HealthOptions {
  /** Share of the runs that may fail, 0 to 1; default 0.1. */
  readonly errorRate?: number;
  /** Dead letters that may wait, 0 to 1,000,000,000; default 100. */
  readonly deadLetters?: number;
  /** Due jobs that may wait while one of them is late, 0 to 1,000,000,000; default 1,000. */
  readonly backlog?: number;
  /** How long a due job may wait, from 1 s to 30 days; default 1 minute. */
  readonly late?: Duration;
  /** How often drains run, from 1 s to 30 days; default the median of the last five intervals. */
  readonly drains?: { readonly every: Duration };
}

/** The limits, checked. */
export interface HealthLimits {
  readonly errorRate: number;
  readonly deadLetters: number;
  readonly backlog: number;
  readonly lateMs: number;
  /** Null for the interval that drains note. */
  readonly drainsEveryMs: number | null;
}

const FIELDS = namesOf<HealthOptions>()(["errorRate", "deadLetters", "backlog", "late", "drains"]);
const MOST = 1_000_000_000;
const SPAN = { minMs: 1_000, maxMs: 30 * 86_400_000 } as const;

/** Checks and completes the options. */
export function resolveHealth(options: unknown, name = "health"): HealthLimits {
  const given = parseOptions(options ?? {}, FIELDS, name);
  const { errorRate = 0.1, deadLetters = 100, backlog = 1_000, late = MINUTE, drains } = given;
  const every = drains === undefined ? null : parseOptions(drains, ["every"], `${name}.drains`).every;
  return {
    errorRate: parseNumber(errorRate, `${name}.errorRate`, { min: 0, max: 1 }),
    deadLetters: parseNumber(deadLetters, `${name}.deadLetters`, { min: 0, max: MOST, integer: true }),
    backlog: parseNumber(backlog, `${name}.backlog`, { min: 0, max: MOST, integer: true }),
    lateMs: parseDuration(late, `${name}.late`, SPAN),
    drainsEveryMs: every === null ? null : parseDuration(every, `${name}.drains.every`, SPAN),
  };
}

/** The limits of a program that sets none. */
export const HEALTH_LIMITS: HealthLimits = Object.freeze(resolveHealth({}));

/** The runs that ended within the last minutes. */
export interface EndedRuns {
  /** The length of the time that was looked at: 5 or 60 minutes. */
  readonly minutes: number;
  readonly completed: number;
  readonly retried: number;
  readonly dead: number;
  /** Since when more of them fail than the limit allows, without a minute in between in which fewer did; null if they do not. */
  readonly badSince: number | null;
}

/** Counts of one minute. */
export interface MinuteCounts extends Pick<FlowCounts, "completed" | "retried" | "dead"> {
  /** When it began. */
  readonly at: number;
}

/** Fewer runs say too little. */
const ENDED_LEAST = 20;
const WINDOWS = [5, 60] as const;
/** How far back minutes are needed. */
export const HEALTH_WINDOW_MS = 60 * MINUTE;

/** The runs of the last 5 minutes if at least 20 ended, else of the last 60, else null: unknown. */
export function endedRuns(minutes: readonly MinuteCounts[], limit: number, now: number): EndedRuns | null {
  for (const span of WINDOWS) {
    const some = minutes.filter(({ at }) => at >= minuteOf(now - span * MINUTE));
    const sum = (count: "completed" | "retried" | "dead"): number => some.reduce((all, each) => all + each[count], 0);
    const ended = { completed: sum("completed"), retried: sum("retried"), dead: sum("dead") };
    if (ended.completed + ended.retried + ended.dead >= ENDED_LEAST)
      return { minutes: span, ...ended, badSince: errorRateOf(ended) > limit ? badSince(minutes, limit) : null };
  }
  return null;
}

type Ended = Pick<FlowCounts, "completed" | "retried" | "dead">;

/** The share of runs that failed. */
export function errorRateOf({ completed, retried, dead }: Ended): number {
  return (retried + dead) / Math.max(1, completed + retried + dead);
}

function badSince(minutes: readonly MinuteCounts[], limit: number): number | null {
  let since: number | null = null;
  for (const minute of minutes.toSorted((a, b) => b.at - a.at)) {
    const ended = minute.completed + minute.retried + minute.dead;
    if (ended > 0 && errorRateOf(minute) <= limit) break;
    if (ended > 0) since = minute.at;
  }
  return since;
}

/** The facts about upkeep. */
export interface UpkeepFacts {
  /** How long ago a living worker last published a record; null if none does. */
  readonly toldMs: number | null;
  /** What needs upkeep while no worker runs it. */
  readonly unattended: readonly string[];
  /** Services whose last step failed, with the reason. */
  readonly failing: readonly string[];
  /** Schedules with a tick that is undecided, or whose job is not written, the latest first. */
  readonly late: readonly { readonly name: string; readonly lateMs: number }[];
}

/** The facts that the judgement uses. Times are those of the store. */
export interface HealthFacts {
  readonly now: number;
  /** The only type that was looked at; null for the whole queue. */
  readonly type: string | null;
  /** Jobs by state, counted up to 100 and more. */
  readonly jobs: Readonly<Record<State, number>>;
  /** Workers with a lease in force. */
  readonly workers: number;
  /** Runs of workers whose lease has ended. */
  readonly orphans: number;
  /** When the first of these leases ended; null if there are none. */
  readonly orphansSince: number | null;
  /**
   * How long the oldest job that nothing holds back (rate limits and retry budgets included) and that no drain is about
   * to take has been due; null if none is due.
   */
  readonly oldestDueMs: number | null;
  /** Types with work that is due, not held back, and late. */
  readonly waitingTypes: readonly string[];
  /** Due jobs, counted up to 10,000 and more; read only where one of them is late, else 0. */
  readonly backlog: number;
  /** What is paused now. */
  readonly paused: readonly string[];
  /** Services whose breaker is not closed, those first that have not been for the longest time. */
  readonly breakers: readonly { readonly service: string; readonly since: number }[];
  readonly deadLetters: number;
  /** When the first letter died that is over the limit; null if none is, or the limit is too high to tell. */
  readonly deadLettersSince: number | null;
  /** The dead letters that wait for an archive which no worker has. */
  readonly unarchived: readonly { readonly type: string; readonly count: number }[];
  /** Sinks of alerts that fail, since when and how. */
  readonly failingSinks: readonly { readonly name: string; readonly since: number; readonly error: string }[];
  /** The runs that ended of late; null where too few did. */
  readonly ended: EndedRuns | null;
  /** Whether upkeep runs. */
  readonly upkeep: UpkeepFacts;
}

/** Why the score is not 1. */
export interface HealthReason {
  /** What is wrong, as a sentence. */
  readonly text: string;
  /** Since when, in epoch milliseconds by the store's clock; null where the store does not tell. */
  readonly since: number | null;
  /** What it is about, such as `service:pricing`, `type:mail`, `schedule:nightly`; null for the whole queue. */
  readonly subject: string | null;
  /** The command that shows more, or mends it. */
  readonly help: string;
}

/** The judgement, for people and probes. */
export interface Health {
  /** `healthy` from a score of 0.8 on, `degraded` from 0.5 on, else `unhealthy`. */
  readonly status: "healthy" | "degraded" | "unhealthy";
  /** From 0 to 1. */
  readonly score: number;
  /** Of the jobs that ended within the last 5 minutes, or the last hour where fewer than 20 runs did, the share that completed; null: too few. */
  readonly successRate: number | null;
  /** Why the score is not 1, the worst first. */
  readonly reasons: readonly HealthReason[];
}

/** A reason with its cost. */
export interface Trouble extends HealthReason {
  readonly cost: number;
}

/** The judgement. */
export function judgeHealth(facts: HealthFacts, limits: HealthLimits = HEALTH_LIMITS): Health {
  const troubles = [
    ...workTroubles(facts, limits),
    ...runTroubles(facts, limits),
    ...serviceTroubles(facts),
    ...letterTroubles(facts, limits),
    ...upkeepTroubles(facts.upkeep, facts.now),
    ...sinkTroubles(facts),
  ].toSorted((a, b) => b.cost - a.cost);
  const left = troubles.reduce((score, { cost }) => score - cost, 1);
  const score = Math.round(100 * Math.max(0, left)) / 100;
  return {
    status: score >= 0.8 ? "healthy" : score >= 0.5 ? "degraded" : "unhealthy",
    score,
    successRate: successRateIn(facts.ended),
    reasons: troubles.map(({ cost: _cost, ...reason }) => reason),
  };
}

function successRateIn(ended: EndedRuns | null): number | null {
  if (ended === null || ended.completed + ended.dead === 0) return null;
  return ended.completed / (ended.completed + ended.dead);
}

function workTroubles(facts: HealthFacts, { lateMs, backlog }: HealthLimits): Trouble[] {
  const { oldestDueMs, workers, now, waitingTypes } = facts;
  if (oldestDueMs === null) return [];
  const since = now - oldestDueMs;
  const due = `a job has been due for ${formatDuration(oldestDueMs)}`;
  const isLate = oldestDueMs >= lateMs;
  const subject = waitingTypes.length === 1 ? `type:${waitingTypes[0]}` : subjectOf(facts);
  const troubles: Trouble[] = [];
  if (workers === 0) {
    const text = `no worker is alive and ${due}`;
    troubles.push({ cost: isLate ? 0.6 : 0.3, text, since, subject, help: "redrive worker --jobs FILE" });
  } else if (isLate) {
    const cost = oldestDueMs >= 5 * lateMs ? 0.5 : 0.25;
    troubles.push({ cost, text: due, since, subject, help: "redrive doctor" });
  }
  if (isLate && facts.backlog > backlog)
    troubles.push({ cost: 0.1, text: `${facts.backlog} due jobs wait`, since, subject, help: "redrive doctor" });
  return troubles;
}

function runTroubles(facts: HealthFacts, limits: HealthLimits): Trouble[] {
  const { orphans, ended } = facts;
  const troubles: Trouble[] = [];
  if (orphans > 0) {
    const runs = orphans === 1 ? "1 run belongs" : `${orphans} runs belong`;
    const text = `${runs} to workers that do not respond`;
    troubles.push({ cost: 0.25, text, since: facts.orphansSince, subject: null, help: "redrive doctor" });
  }
  const rate = ended === null ? 0 : errorRateOf(ended);
  if (ended !== null && rate > limits.errorRate) {
    const failed = ended.retried + ended.dead;
    const text = `${(rate * 100).toFixed(1)} % of the runs of the last ${ended.minutes} minutes failed (${failed} of ${failed + ended.completed})`;
    const cost = rate > 0.5 ? 0.6 : 0.25;
    troubles.push({ cost, text, since: ended.badSince, subject: subjectOf(facts), help: "redrive dlq causes" });
  }
  return troubles;
}

function serviceTroubles({ breakers }: HealthFacts): Trouble[] {
  const [first] = breakers;
  if (!first) return [];
  const text = `the breakers of these services are not closed: ${breakers.map(({ service }) => service).join(", ")}`;
  const subject = `service:${first.service}`;
  return [{ cost: 0.25, text, since: first.since, subject, help: "redrive breakers list" }];
}

function letterTroubles(facts: HealthFacts, limits: HealthLimits): Trouble[] {
  const { deadLetters, unarchived } = facts;
  const troubles: Trouble[] = [];
  if (deadLetters > limits.deadLetters) {
    const { deadLettersSince: since } = facts;
    const text = `${deadLetters} dead letters`;
    troubles.push({ cost: 0.25, text, since, subject: subjectOf(facts), help: "redrive dlq causes" });
  }
  if (unarchived.length > 0) {
    const subject = unarchived.length === 1 ? `type:${unarchived[0]?.type}` : null;
    const help = "redrive worker --archive FILE";
    troubles.push({ cost: 0.1, text: unarchivedText(unarchived), since: null, subject, help });
  }
  return troubles;
}

function subjectOf({ type }: HealthFacts): string | null {
  return type === null ? null : `type:${type}`;
}

function sinkTroubles({ failingSinks }: HealthFacts): Trouble[] {
  const [first] = failingSinks;
  if (!first) return [];
  const text = `alerts cannot be told to ${failingSinks.map(({ name }) => name).join(", ")}: ${first.error}`;
  return [{ cost: 0.1, text, since: first.since, subject: null, help: "redrive alerts test" }];
}

/** Most types that are named; of the rest only the number. */
const NAMED = 10;

/** A sentence about letters that wait for their archive. */
export function unarchivedText(letters: HealthFacts["unarchived"]): string {
  const count = letters.reduce((sum, each) => sum + each.count, 0);
  const types = letters.map(({ type }) => type).toSorted();
  const more = types.length > NAMED ? ` and ${types.length - NAMED} more types` : "";
  const what = count === 1 ? "1 dead letter waits" : `${count} dead letters wait`;
  return `${what} for an archive that no worker has opened for an hour: ${types.slice(0, NAMED).join(", ")}${more}`;
}

/** A schedule this late is a trouble that people must see. */
const SCHEDULE_LATE_MS = MINUTE;

/** The troubles of upkeep. */
export function upkeepTroubles({ unattended, failing, late }: UpkeepFacts, now: number): Trouble[] {
  const troubles: Trouble[] = [];
  if (unattended.length > 0) {
    const text = `no worker runs upkeep, which is needed for ${unattended.join(", ")}`;
    troubles.push({ cost: 0.3, text, since: null, subject: null, help: "redrive worker --jobs FILE" });
  }
  const [first] = late;
  if (first) {
    const more = late.length === 1 ? "" : `, and ${late.length - 1} more are late`;
    const cost = first.lateMs >= 5 * SCHEDULE_LATE_MS ? 0.5 : first.lateMs >= SCHEDULE_LATE_MS ? 0.25 : 0.1;
    const text = `the schedule ${first.name} is ${formatDuration(first.lateMs)} late${more}`;
    const subject = `schedule:${first.name}`;
    troubles.push({ cost, text, since: now - first.lateMs, subject, help: "redrive schedules list" });
  }
  if (failing.length > 0) {
    const text = `upkeep fails: ${[...new Set(failing)].slice(0, 3).join("; ")}`;
    troubles.push({ cost: 0.1, text, since: null, subject: null, help: "redrive doctor" });
  }
  return troubles;
}

/** True if a schedule is late by more than is acceptable. */
export function isUpkeepLate({ late }: UpkeepFacts): boolean {
  return late.some(({ lateMs }) => lateMs >= SCHEDULE_LATE_MS);
}
