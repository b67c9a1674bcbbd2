// How a sink tells the messages of the book once: a record per sink, kept by the store, that processes change by
// compare-and-set. A process that tells writes its intent before and a mark after.
//
//   free ── intent (by, until) ──► telling ──┬─ told: mark ─────────────► free
//     ▲                                      ├─ failed: tries + 1 ──────► free, not before `next`
//     └──────── `until` has passed ◄─────────┴─ the process was killed
//
// So a message is told once; after a kill between the telling and its mark it is told a second time by the process that
// follows, and it is never left out.
import { fieldsFrom } from "../options.ts";
import type { Severity } from "../job.ts";
import { alertKey, type AlertBook, type AlertRecord } from "./book.ts";
import { type Rules, SEVERITIES } from "./rules.ts";

/** What is known of a sink. Times are those of the store. */
export interface SinkRecord {
  /** The sink as people know it, such as `webhook hooks.example.com`. */
  readonly name: string;
  /** The number of the last message that was told, by alert. */
  readonly told: Readonly<Record<string, number>>;
  /** The process that tells now; null for none. */
  readonly by: string | null;
  /** Until when no other process takes over. */
  readonly until: number;
  /** Failures in a row. */
  readonly tries: number;
  /** No try before this time. */
  readonly next: number;
  /** Since when it fails, and how it failed last; null while it does not. */
  readonly failing: { readonly since: number; readonly error: string } | null;
  /** When it last told a message; null for never. */
  readonly lastAt: number | null;
}

/** Reads a record from its stored text. */
export function sinkFrom(text: string, name: string): SinkRecord {
  const { told, by, until, tries, next, failing, lastAt, name: noted } = fieldsFrom(text);
  const number = (value: unknown): number => (Number.isSafeInteger(value) ? (value as number) : 0);
  const { since, error } = (typeof failing === "object" && failing !== null ? failing : {}) as Record<string, unknown>;
  const numbers = Object.entries(typeof told === "object" && told !== null ? told : {});
  return {
    name: typeof noted === "string" ? noted : name,
    told: Object.fromEntries(numbers.filter(([, n]) => Number.isSafeInteger(n))) as Record<string, number>,
    by: typeof by === "string" ? by : null,
    until: number(until),
    tries: number(tries),
    next: number(next),
    failing: typeof error === "string" ? { since: number(since), error } : null,
    lastAt: Number.isSafeInteger(lastAt) ? (lastAt as number) : null,
  };
}

/** A sink that sees the book for the first time: what was over before is not its business. */
export function newSink(name: string, { alerts }: AlertBook): SinkRecord {
  const over = alerts.filter(({ state }) => state === "cleared");
  const told = Object.fromEntries(over.map((alert) => [alertKey(alert), alert.message?.n ?? 0]));
  return { name, told, by: null, until: 0, tries: 0, next: 0, failing: null, lastAt: null };
}

/** The alerts whose last message the sink has not told, the oldest message first. */
export function untoldOf({ told }: SinkRecord, { alerts }: AlertBook, rules: Rules, least: Severity): AlertRecord[] {
  return alerts
    .filter((alert) => alert.message !== null && alert.message.n > (told[alertKey(alert)] ?? 0))
    .filter(({ rule }) => isAtLeast(rules.get(rule)?.severity ?? "warning", least))
    .toSorted((a, b) => (a.message?.n ?? 0) - (b.message?.n ?? 0));
}

function isAtLeast(severity: Severity, least: Severity): boolean {
  return SEVERITIES.indexOf(severity) >= SEVERITIES.indexOf(least);
}

/** True if the process may tell now. */
export function mayTell({ by, until, next }: SinkRecord, process: string, now: number): boolean {
  return (by === null || by === process || until <= now) && next <= now;
}

/** The record with the intent to tell. */
export function withIntent(sink: SinkRecord, process: string, until: number): SinkRecord {
  return { ...sink, by: process, until };
}

/** The record after a message was told; what the book has forgotten, it forgets, too. */
export function withMark(sink: SinkRecord, alert: AlertRecord, { alerts }: AlertBook, now: number): SinkRecord {
  const kept = new Set(alerts.map(alertKey));
  const told = Object.fromEntries(Object.entries(sink.told).filter(([key]) => kept.has(key)));
  if (alert.message) told[alertKey(alert)] = alert.message.n;
  return { ...sink, told, tries: 0, next: 0, failing: null, lastAt: now };
}

/** The record while no process tells. */
export function withoutIntent(sink: SinkRecord): SinkRecord {
  return { ...sink, by: null, until: 0 };
}

const FIRST_WAIT_MS = 30_000;
const LONGEST_WAIT_MS = 3_600_000;
const ERROR_LENGTH = 300;

/** The record after a failure: the next try is twice as far away as the one before, an hour at most. */
export function withFailure(sink: SinkRecord, error: string, now: number): SinkRecord {
  const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(sink.tries, 20));
  const failing = { since: sink.failing?.since ?? now, error: error.slice(0, ERROR_LENGTH) };
  return { ...withoutIntent(sink), tries: sink.tries + 1, next: now + wait, failing };
}
