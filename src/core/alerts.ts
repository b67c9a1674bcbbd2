// Limits on the figures of a call that processes records, and a sentence for each figure beyond its limit.
import { type Duration, formatDuration, parseDuration } from "./duration.ts";
import { parseNumber, namesOf, parseOptions } from "./options.ts";

/** Limits on the figures of a call that processes records. */
export interface AlertOptions {
  /** Alerts if a smaller share of the records that ended succeeded, 0 to 1; default no limit. */
  readonly minSuccessRate?: number;
  /** Alerts if more jobs wait for a retry, 0 to 9,999; default no limit. */
  readonly maxRetryQueue?: number;
  /** Alerts if there are more dead letters, 0 to 1,000,000,000; default no limit. */
  readonly maxDeadLetters?: number;
  /** Alerts if the records that ended took more retries on average, 0 to 1,000,000,000; default no limit. */
  readonly maxAverageRetries?: number;
  /** Alerts if the call took longer; default no limit. */
  readonly maxTime?: Duration;
}

/** The figures that have limits; null where nothing ended. */
export interface Figures {
  readonly successRate: number | null;
  readonly retryQueue: number;
  readonly deadLetters: number;
  readonly averageRetries: number | null;
  readonly ms: number;
}

/** A figure beyond its limit. */
export interface Alert {
  /** Which figure is beyond its limit: `successRate`, `retryQueue`, `deadLetters`, `averageRetries` or `ms`. */
  readonly figure: keyof Figures;
  /** Its value. */
  readonly value: number;
  /** The limit. */
  readonly limit: number;
  /** Value and limit as a sentence. */
  readonly message: string;
}

/** Limits, checked. */
export type AlertLimits = { readonly [Figure in keyof Figures]?: number };

/** The retry queue is counted no further than this. */
export const RETRIES_COUNTED = 10_000;

/** Their names. */
export const ALERT_FIELDS = namesOf<AlertOptions>()([
  "minSuccessRate",
  "maxRetryQueue",
  "maxDeadLetters",
  "maxAverageRetries",
  "maxTime",
]);
const MOST = 1_000_000_000;

/** Checks the options. */
export function resolveAlerts(options: unknown, name = "alerts"): AlertLimits {
  const given = parseOptions(options ?? {}, ALERT_FIELDS, name);
  const number = (field: (typeof ALERT_FIELDS)[number], max: number, integer: boolean): number | undefined =>
    given[field] === undefined ? undefined : parseNumber(given[field], `${name}.${field}`, { min: 0, max, integer });
  const limits = {
    successRate: number("minSuccessRate", 1, false),
    retryQueue: number("maxRetryQueue", RETRIES_COUNTED - 1, true),
    deadLetters: number("maxDeadLetters", MOST, true),
    averageRetries: number("maxAverageRetries", MOST, false),
    ms: given.maxTime === undefined ? undefined : parseDuration(given.maxTime, `${name}.maxTime`),
  };
  return Object.fromEntries(Object.entries(limits).filter(([, limit]) => limit !== undefined));
}

const WORDS: { readonly [Figure in keyof Figures]: readonly [what: string, show: (value: number) => string] } = {
  successRate: ["the success rate", (value) => `${(Math.floor(value * 1_000) / 10).toFixed(1)} %`],
  retryQueue: ["the retry queue", (value) => value.toLocaleString("en-US")],
  deadLetters: ["the number of dead letters", (value) => value.toLocaleString("en-US")],
  averageRetries: ["the average number of retries", (value) => value.toFixed(2)],
  ms: ["the time of the call", (value) => formatDuration(value)],
};

/** The figures that are beyond their limits. An unknown figure raises no alert. */
export function alertsFrom(figures: Figures, limits: AlertLimits): Alert[] {
  return (Object.keys(WORDS) as (keyof Figures)[]).flatMap((figure) => {
    const [value, limit] = [figures[figure], limits[figure]];
    if (value === null || limit === undefined) return [];
    const isUnder = figure === "successRate";
    if (isUnder ? value >= limit : value <= limit) return [];
    const [what, show] = WORDS[figure];
    return [
      { figure, value, limit, message: `${what} is ${show(value)}, ${isUnder ? "under" : "over"} ${show(limit)}` },
    ];
  });
}
