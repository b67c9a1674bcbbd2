// The circuit breaker: the agreed state of a service, as a plain value. One machine whose record has two places: the
// fleet's is JSON in the store, changed by compare-and-set, and every claim names its version; that of one process is a
// variable. The evidence that opens it is in evidence.ts.
//
//   closed ──enough evidence──► open ──its time is over, a probe is taken──► half_open ──probes succeed──► closed
//                                ▲                                               │         (a fleet's with a ramp)
//                                └──────────────── a probe fails ◄───────────────┘
//   any ──by hand──► isolated ──its time, if any, is over, a probe is taken──► half_open
import { MAX_DELAY_MS } from "./backoff.ts";
import type { BreakerSettings } from "./breaker.ts";
import { fieldsFrom, hasNumbers } from "./options.ts";
import type { PausedSpan } from "./paused.ts";

/** The right to try the service once; a lost probe expires. */
export interface Probe {
  /** The worker that tries; in a breaker of one process the number of the call. */
  readonly worker: string;
  readonly until: number;
}

/** The breaker of a service; `since` is when it entered the state. */
export type Breaker =
  | { readonly state: "closed"; readonly since: number; readonly rampUntil: number }
  | { readonly state: "open"; readonly since: number; readonly until: number; readonly reason: string }
  | {
      readonly state: "half_open";
      readonly since: number;
      readonly probes: readonly Probe[];
      readonly successes: number;
    }
  | { readonly state: "isolated"; readonly since: number; readonly until: number | null; readonly reason: string };

/** The states of a breaker as text for people. */
export const BREAKER_WORDS: Readonly<Record<Breaker["state"], string>> = {
  closed: "closed",
  open: "open",
  half_open: "half-open",
  isolated: "open by hand",
};

/** A span in which the work of a service was held back; null for one that has not ended. */
export interface ParkedSpan {
  readonly from: number;
  readonly until: number | null;
}

/** What is stored about a service. */
export interface ServiceRecord {
  readonly breaker: Breaker;
  /** Until when the service asked to wait (`Retry-After`); 0 for not at all. */
  readonly holdUntil: number;
  /** The last spans in which the breaker held its work back; deadlines do not count them. */
  readonly parked: readonly ParkedSpan[];
  /** The last spans in which it asked to wait; kept separately, because there may be many. */
  readonly held?: readonly ParkedSpan[];
}

/** Most spans that are kept. */
const SPANS_MOST = 50;
/** A hold that is longer by less than this is not written. */
const HOLD_STEP_MS = 250;
/** A probe with more than this share of its time left is not renewed. */
const RENEW_BELOW = 0.75;
/** A ramp doubles its rate this many times. */
const DOUBLINGS = 10;

/** The record of an unknown service. */
export const initialRecord: ServiceRecord = Object.freeze({
  breaker: Object.freeze({ state: "closed", since: 0, rampUntil: 0 }),
  holdUntil: 0,
  parked: Object.freeze([]),
});

/** Reads a record from a stored text; an invalid text counts as an unknown service. */
export function recordFrom(text: string): ServiceRecord {
  const value = fieldsFrom(text);
  const { breaker, parked, held = [] } = value;
  const isWhole = hasNumbers(value, ["holdUntil"]) && areSpans(parked) && areSpans(held) && isBreaker(breaker);
  return isWhole ? (value as unknown as ServiceRecord) : initialRecord;
}

function areSpans(value: unknown): boolean {
  return Array.isArray(value) && value.every((span) => hasNumbers(span, ["from"]) && hasEnd(span));
}

function isBreaker(value: unknown): boolean {
  if (!hasNumbers(value, ["since"])) return false;
  const { state, probes, reason } = value as Readonly<Record<string, unknown>>;
  if (state === "closed") return hasNumbers(value, ["rampUntil"]);
  if (state === "open") return hasNumbers(value, ["until"]) && typeof reason === "string";
  if (state === "isolated") return hasEnd(value) && typeof reason === "string";
  const running = Array.isArray(probes) && probes.every((probe) => hasNumbers(probe, ["until"]));
  return state === "half_open" && running && hasNumbers(value, ["successes"]);
}

function hasEnd(value: unknown): boolean {
  return hasNumbers(value, ["until"]) || (value as { readonly until?: unknown }).until === null;
}

/** True while work of the service is held back. */
export function isHeldBack({ breaker, holdUntil }: ServiceRecord, now: number): boolean {
  return breaker.state !== "closed" || holdUntil > now;
}

/** The breaker as callers see it; while it is open, the reason, and until when (null for no end). */
export interface ShownBreaker {
  readonly state: Breaker["state"];
  readonly reason: string | null;
  readonly untilMs: number | null;
}

/** What callers see: a breaker whose time is over reads as half-open, a service that asked to wait as open. */
export function shownAt({ breaker, holdUntil }: ServiceRecord, now: number): ShownBreaker {
  if ("until" in breaker && (breaker.until === null || now < breaker.until))
    return { state: breaker.state, reason: breaker.reason, untilMs: breaker.until };
  if (breaker.state !== "closed") return { state: "half_open", reason: null, untilMs: null };
  if (now < holdUntil) return { state: "open", reason: "it asked to wait", untilMs: holdUntil };
  return { state: "closed", reason: null, untilMs: null };
}

/** The record after evidence, or a failed probe, has opened the breaker. */
export function opened(record: ServiceRecord, reason: string, { openMs }: BreakerSettings, now: number): ServiceRecord {
  return parkedFrom({ ...record, breaker: { state: "open", since: now, until: now + openMs, reason } }, now);
}

/** True where a probe may be taken now. */
export function mayProbe({ breaker }: ServiceRecord, settings: BreakerSettings, now: number): boolean {
  if (breaker.state === "closed") return false;
  if (breaker.state !== "half_open") return breaker.until !== null && now >= breaker.until;
  const running = breaker.probes.filter(({ until }) => until > now).length;
  // The thresholds may have been higher when these succeeded: one place is always left for the probe that closes it.
  const successes = Math.min(breaker.successes, settings.closeAfter - 1);
  return running + successes < settings.probes;
}

/** The record with a probe of this worker; `forMs` is how long the probe may take. */
export function withProbe(record: ServiceRecord, worker: string, forMs: number, now: number): ServiceRecord {
  const { breaker } = record;
  if (breaker.state === "closed") return record;
  const probe = { worker, until: now + forMs };
  if (breaker.state !== "half_open")
    return { ...record, breaker: { state: "half_open", since: now, probes: [probe], successes: 0 } };
  const running = breaker.probes.filter(({ until }) => until > now);
  return { ...record, breaker: { ...breaker, probes: [...running, probe] } };
}

/** The record with the time of so many of this worker's probes extended, because they still run. */
export function renewed(
  record: ServiceRecord,
  worker: string,
  running: number,
  forMs: number,
  now: number,
): ServiceRecord {
  const { breaker } = record;
  if (breaker.state !== "half_open") return record;
  const own = breaker.probes.filter((probe) => probe.worker === worker && probe.until > now).slice(0, running);
  if (own.every(({ until }) => until - now > forMs * RENEW_BELOW)) return record;
  const probes = breaker.probes.map((probe) => (own.includes(probe) ? { worker, until: now + forMs } : probe));
  return { ...record, breaker: { ...breaker, probes } };
}

/** The record after a probe: `neutral` is one that never called the service, or failed for another reason. */
export function probed(
  record: ServiceRecord,
  worker: string,
  result: "success" | "failure" | "neutral",
  { breaker: settings, rampMs }: { readonly breaker: BreakerSettings; readonly rampMs: number },
  now: number,
): ServiceRecord {
  const { breaker } = record;
  const at = breaker.state === "half_open" ? breaker.probes.findIndex((probe) => probe.worker === worker) : -1;
  // The result of a probe that had expired, or that belongs to an earlier opening.
  if (breaker.state !== "half_open" || at < 0) return record;
  if (result === "failure") return opened(record, "a probe failed", settings, now);
  const successes = breaker.successes + (result === "success" ? 1 : 0);
  if (successes >= settings.closeAfter) return closed(record, rampMs, now);
  return { ...record, breaker: { ...breaker, probes: breaker.probes.toSpliced(at, 1), successes } };
}

/** The record after an operator opened the breaker; without an end it stays open until an operator closes it. */
export function openedByHand(record: ServiceRecord, reason: string, until: number | null, now: number): ServiceRecord {
  return parkedFrom({ ...record, breaker: { state: "isolated", since: now, until, reason } }, now);
}

/** The record after closing; the load rises along a ramp. */
export function closed(record: ServiceRecord, rampMs: number, now: number): ServiceRecord {
  if (record.breaker.state === "closed") return record;
  return parkedUntil({ ...record, breaker: { state: "closed", since: now, rampUntil: now + rampMs } }, now);
}

/** The record where the breaker is switched off: only an opening by hand holds, until its end. */
export function withoutBreaker(record: ServiceRecord, now: number): ServiceRecord {
  const { breaker } = record;
  const holds = breaker.state === "isolated" && (breaker.until === null || now < breaker.until);
  return holds ? record : closed(record, 0, now);
}

/** The record after a reset: closed, no ramp, no hold, and no earlier evidence counts. */
export function resetAt(record: ServiceRecord, now: number): ServiceRecord {
  const held = record.held?.map(({ from, until }) => ({ from, until: Math.min(until ?? now, now) }));
  const breaker = { state: "closed", since: now, rampUntil: 0 } as const;
  return parkedUntil({ ...record, ...(held && { held }), holdUntil: 0, breaker }, now);
}

/**
 * The record after the service asked to wait for a time, bounded like any delay; unchanged where it already waits as
 * long.
 */
export function heldFor(record: ServiceRecord, ms: number, now: number): ServiceRecord {
  const holdUntil = now + Math.min(ms, MAX_DELAY_MS);
  if (holdUntil < record.holdUntil + HOLD_STEP_MS) return record;
  const before = record.held ?? [];
  const last = record.holdUntil > now ? before.at(-1) : undefined;
  const earlier = last ? before.slice(0, -1) : before;
  const held = [...earlier, { from: last?.from ?? now, until: holdUntil }].slice(-SPANS_MOST);
  return { ...record, holdUntil, held };
}

/**
 * The time between starts while the load rises; 0 without a ramp. It begins with as many starts a second as there are
 * probes.
 */
export function rampStepMs({ breaker }: ServiceRecord, { probes }: BreakerSettings, now: number): number {
  if (breaker.state !== "closed" || now >= breaker.rampUntil) return 0;
  const doubleMs = (breaker.rampUntil - breaker.since) / DOUBLINGS;
  return 1000 / (probes * 2 ** (Math.max(0, now - breaker.since) / doubleMs));
}

/** The spans in which the work of the service was held back; deadlines skip them like a pause. */
export function parkedSpans({ parked, held = [] }: ServiceRecord, service: string): PausedSpan[] {
  return [...parked, ...held].map(({ from, until }) => ({ kind: "service", name: service, from, until }));
}

function parkedFrom(record: ServiceRecord, now: number): ServiceRecord {
  if (record.parked.at(-1)?.until === null) return record;
  return { ...record, parked: [...record.parked, { from: now, until: null }].slice(-SPANS_MOST) };
}

function parkedUntil(record: ServiceRecord, now: number): ServiceRecord {
  const last = record.parked.at(-1);
  if (!last || last.until !== null) return record;
  return { ...record, parked: [...record.parked.slice(0, -1), { from: last.from, until: now }] };
}
