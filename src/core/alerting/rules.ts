// The alert rules: what each watches, from when on it holds, and its settings. Each looks at facts that were read once and
// says for which subjects it holds now; `alert-book.ts` decides what is told.
//
//   rule           holds while                                              subject      limit   for    repeat  severity
//   errorRate      a larger share of runs fails (5 minutes, or the hour)    –            0.1     5m     4h      error
//   score          the health score is below                                –            0.5     1m     1h      critical
//   deadLetters    more dead letters wait                                   –            100     0      1d      warning
//   backlog        more due jobs wait, and one of them is late              –            1,000   0      4h      warning
//   newCause       a cause of the last day has dead letters                 cause:…      –       0      1d      warning
//   causeBack      a cause that was fixed came back                         cause:…      –       0      1d      error
//   letterAge      the oldest letter of a type is older than its objective  type:…       –       0      1d      warning
//   breakerOpen    the breaker of a service is not closed                   service:…    –       10m    4h      error
//   noWorker       work is due that no living worker takes                  type:… or –  –       1m     1h      critical
//   scheduleLate   a schedule is late                                       schedule:…   –       1m     4h      warning
//   staleWrites    more verdicts a minute are refused, their lease lost     –            0       0      4h      warning
//   storeAway      the store does not answer (each process by itself)       –            –       1m     1h      critical
//
// `for` counts from when the trouble began, where the store knows that, else from the look that saw it first.
import { formatDuration, parseDuration, type Duration } from "../duration.ts";
import { errorRateOf, HEALTH_LIMITS, type HealthFacts, type HealthLimits } from "../health.ts";
import type { Severity } from "../job.ts";
import { invalid, namesOf, parseNumber, parseOptions } from "../options.ts";

/** The names of the rules. */
export const ALERT_RULES = [
  "errorRate",
  "score",
  "deadLetters",
  "backlog",
  "newCause",
  "causeBack",
  "letterAge",
  "breakerOpen",
  "noWorker",
  "scheduleLate",
  "staleWrites",
  "storeAway",
] as const;
/** One of them. */
export type AlertRule = (typeof ALERT_RULES)[number];

/** The severities, the mildest first. */
export const SEVERITIES = ["info", "warning", "error", "critical"] as const satisfies readonly Severity[];

/** What may be set of a rule. */
export interface AlertRuleOptions {
  /** The figure beyond which it holds; only of `errorRate`, `score`, `deadLetters`, `backlog` and `staleWrites`; default that of the rule. */
  readonly limit?: number;
  /** How long it must hold before it is told, 0 to 30 days; default that of the rule. */
  readonly for?: Duration;
  /** When it is told again while it holds, 1 minute to 30 days; `"never"` for only once; default that of the rule. */
  readonly repeat?: Duration;
  /** How grave it is: `info`, `warning`, `error` or `critical`; default that of the rule. */
  readonly severity?: Severity;
}

/** Settings of rules by name; false switches one off. Default: the table in docs/guides/monitoring.md. */
export type AlertRulesOptions = { readonly [Rule in AlertRule]?: AlertRuleOptions | false };

/** A rule, checked. */
export interface RuleSettings {
  /** Null for a rule without a limit. */
  readonly limit: number | null;
  readonly forMs: number;
  /** Null for only once. */
  readonly repeatMs: number | null;
  readonly severity: Severity;
}

/** The rules in force; one that is switched off is missing. */
export type Rules = ReadonlyMap<AlertRule, RuleSettings>;

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MOST = 1_000_000_000;

type Row = readonly [limit: number | null, forMs: number, repeatMs: number, severity: Severity];
/** `limit` null: the rule has none. Those that `health` has as well begin with the limit that is set there. */
const DEFAULTS: Readonly<Record<AlertRule, Row>> = {
  errorRate: [0.1, 5 * MINUTE, 4 * HOUR, "error"],
  score: [0.5, MINUTE, HOUR, "critical"],
  deadLetters: [100, 0, DAY, "warning"],
  backlog: [1_000, 0, 4 * HOUR, "warning"],
  newCause: [null, 0, DAY, "warning"],
  causeBack: [null, 0, DAY, "error"],
  letterAge: [null, 0, DAY, "warning"],
  breakerOpen: [null, 10 * MINUTE, 4 * HOUR, "error"],
  noWorker: [null, MINUTE, HOUR, "critical"],
  scheduleLate: [null, MINUTE, 4 * HOUR, "warning"],
  staleWrites: [0, 0, 4 * HOUR, "warning"],
  storeAway: [null, MINUTE, HOUR, "critical"],
};
/** Rules whose limit is a share. */
const SHARES: ReadonlySet<AlertRule> = new Set(["errorRate", "score"]);

const FIELDS = namesOf<AlertRuleOptions>()(["limit", "for", "repeat", "severity"]);
const UNLIMITED = ["for", "repeat", "severity"] as const;

/** Checks and completes the rules; a limit that is not set is that of `health`, where it has one of this name. */
export function resolveRules(options: unknown, health: HealthLimits = HEALTH_LIMITS, name = "alerts.rules"): Rules {
  const given = parseOptions(options ?? {}, ALERT_RULES, name);
  const rules = ALERT_RULES.flatMap((rule): [AlertRule, RuleSettings][] => {
    const own = given[rule];
    return own === false ? [] : [[rule, resolveRule(rule, own ?? {}, health, `${name}.${rule}`)]];
  });
  return new Map(rules);
}

function resolveRule(rule: AlertRule, options: unknown, health: HealthLimits, name: string): RuleSettings {
  const [usual, usualForMs, usualRepeatMs, usualSeverity] = DEFAULTS[rule];
  const fields = usual === null ? UNLIMITED : FIELDS;
  const given: { readonly [Field in keyof AlertRuleOptions]?: unknown } = parseOptions(options, fields, name);
  const span = (value: unknown, field: string, minMs: number): number =>
    parseDuration(value, `${name}.${field}`, { minMs, maxMs: 30 * DAY });
  const said = Object.hasOwn(health, rule) ? (health[rule as keyof HealthLimits] as number) : usual;
  const range = SHARES.has(rule) ? { min: 0, max: 1 } : { min: 0, max: MOST, integer: true };
  return {
    limit: usual === null ? null : parseNumber(given.limit ?? said, `${name}.limit`, range),
    forMs: given.for === undefined ? usualForMs : span(given.for, "for", 0),
    repeatMs:
      given.repeat === undefined
        ? usualRepeatMs
        : given.repeat === "never"
          ? null
          : span(given.repeat, "repeat", MINUTE),
    severity: given.severity === undefined ? usualSeverity : parseSeverity(given.severity, `${name}.severity`),
  };
}

/** Checks a severity. */
export function parseSeverity(value: unknown, name: string): Severity {
  const found = SEVERITIES.find((severity) => severity === value);
  if (found !== undefined) return found;
  throw invalid(name, SEVERITIES.join(", "), value, "use one of these");
}

/** A cause with live dead letters, as a rule needs it. */
export interface CauseFact {
  readonly fingerprint: string;
  readonly name: string;
  readonly message: string;
  readonly live: number;
  /** Since when it is what the rule looks for. */
  readonly since: number;
}

/** What the rules look at, besides health. Times are those of the store. */
export interface AlertFacts {
  readonly health: HealthFacts;
  readonly score: number;
  readonly newCauses: readonly CauseFact[];
  readonly backCauses: readonly CauseFact[];
  /** Types with an objective, and when the oldest of their live letters died. */
  readonly objectives: readonly { readonly type: string; readonly objectiveMs: number; readonly oldestAt: number }[];
  /** Types with due work that no living worker takes, and when the first of it fell due. */
  readonly unserved: readonly { readonly type: string; readonly since: number }[];
  /** Verdicts that the store refused within the last minute. */
  readonly staleWrites: number;
}

/** A rule that holds now, for one subject. */
export interface Condition {
  readonly rule: AlertRule;
  /** Such as `service:pricing`; null for the whole queue. */
  readonly subject: string | null;
  /** Since when; null where the facts do not tell. */
  readonly since: number | null;
  /** What is wrong, as a sentence. */
  readonly text: string;
  /** The command that shows more, or mends it. */
  readonly help: string;
  /** The figure, for rules with a limit; else null. */
  readonly value: number | null;
  readonly limit: number | null;
}

/** Most subjects of one rule; the others share one without a subject. */
export const SUBJECTS_MOST = 10;

/** What holds now, by the rules in force. */
export function conditionsIn(facts: AlertFacts, rules: Rules): Condition[] {
  return ALERT_RULES.flatMap((rule) => {
    const settings = rules.get(rule);
    const found = settings && WATCH[rule](facts, settings.limit ?? 0);
    if (!found || found.length === 0) return [];
    const limit = settings.limit;
    return bounded(found.map((each) => ({ subject: null, value: null, ...each, rule, limit })));
  });
}

/** The first subjects by age, and the rest as one. */
function bounded(found: readonly Condition[]): readonly Condition[] {
  if (found.length <= SUBJECTS_MOST) return found;
  const order = (a: Condition, b: Condition): number =>
    (a.since ?? 0) - (b.since ?? 0) || ((a.subject ?? "") < (b.subject ?? "") ? -1 : 1);
  const sorted = found.toSorted(order);
  const [next] = sorted.slice(SUBJECTS_MOST) as [Condition];
  const count = found.length - SUBJECTS_MOST;
  const text = `${count} more, the first of them: ${next.text}`;
  return [...sorted.slice(0, SUBJECTS_MOST), { ...next, subject: null, text, value: count }];
}

type Found = Pick<Condition, "since" | "text" | "help"> & Partial<Pick<Condition, "subject" | "value">>;

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
const causeText = (what: string, { name, message, live }: CauseFact): string =>
  `${what}, with ${live === 1 ? "1 dead letter" : `${live} dead letters`}: ${name}: ${message}`;
const causes = (what: string, all: readonly CauseFact[]): Found[] =>
  all.map((cause) => ({
    subject: `cause:${cause.fingerprint}`,
    since: cause.since,
    text: causeText(what, cause),
    help: `redrive dlq triage --cause ${cause.fingerprint}`,
  }));

const WATCH: Readonly<Record<AlertRule, (facts: AlertFacts, limit: number) => readonly Found[]>> = {
  errorRate({ health: { ended } }, limit) {
    const rate = ended === null ? 0 : errorRateOf(ended);
    if (ended === null || rate <= limit) return [];
    const text = `${percent(rate)} of the runs of the last ${ended.minutes} minutes failed`;
    return [{ since: ended.badSince, text, help: "redrive dlq causes", value: rate }];
  },
  score({ score }, limit) {
    return score < limit
      ? [{ since: null, text: `the health score is ${score}`, help: "redrive health", value: score }]
      : [];
  },
  deadLetters({ health: { deadLetters: value, deadLettersSince } }, limit) {
    if (value <= limit) return [];
    return [{ since: deadLettersSince, text: `${value} dead letters wait`, help: "redrive dlq causes", value }];
  },
  backlog({ health: { backlog: value, oldestDueMs, now } }, limit) {
    if (value <= limit || oldestDueMs === null) return [];
    const text = `${value} due jobs wait, the oldest for ${formatDuration(oldestDueMs)}`;
    return [{ since: now - oldestDueMs, text, help: "redrive doctor", value }];
  },
  newCause: ({ newCauses }) => causes("a new cause of failures", newCauses),
  causeBack: ({ backCauses }) => causes("a cause that was fixed came back", backCauses),
  letterAge({ objectives, health: { now } }) {
    return objectives.flatMap(({ type, objectiveMs, oldestAt }) => {
      if (now - oldestAt <= objectiveMs) return [];
      const age = formatDuration(now - oldestAt);
      const text = `the oldest dead letter of ${type} is ${age} old; its objective is ${formatDuration(objectiveMs)}`;
      const help = `redrive dlq list --type ${type}`;
      return [{ subject: `type:${type}`, since: oldestAt + objectiveMs, text, help }];
    });
  },
  breakerOpen({ health: { breakers } }) {
    return breakers.map(({ service, since }) => ({
      subject: `service:${service}`,
      since,
      text: `the breaker of ${service} is not closed`,
      help: "redrive breakers list",
    }));
  },
  noWorker({ unserved, health: { workers, now, oldestDueMs } }) {
    const help = "redrive worker --jobs FILE";
    if (workers === 0 && oldestDueMs !== null)
      return [{ since: now - oldestDueMs, text: "work is due, and no worker is alive", help }];
    return unserved.map(({ type, since }) => {
      return { subject: `type:${type}`, since, text: `work of ${type} is due, and no living worker takes it`, help };
    });
  },
  scheduleLate({ health: { upkeep, now } }) {
    return upkeep.late.map(({ name, lateMs }) => ({
      subject: `schedule:${name}`,
      since: now - lateMs,
      text: `the schedule ${name} is ${formatDuration(lateMs)} late`,
      help: "redrive schedules list",
    }));
  },
  staleWrites({ staleWrites: value }, limit) {
    if (value <= limit) return [];
    const text = `the store refused ${value} verdicts of runs that had lost their lease within a minute`;
    return [{ since: null, text, help: "redrive stuck list", value }];
  },
  // Nothing can be read from a store that is away: each process judges it by its own calls.
  storeAway: () => [],
};
