// The evidence about a service. Each worker writes what it saw to its own row; the rows of all workers together tell
// whether the service is down, so that its breaker opens, or only one worker is sick. A breaker of one process is a
// fleet with one worker.
import type { BreakerSettings } from "./breaker.ts";
import { fieldsFrom, hasNumbers } from "./options.ts";

/** Calls in a part of the window. */
interface Slice {
  readonly startedAt: number;
  readonly successes: number;
  readonly failures: number;
}

/** What one worker saw of a service since the breaker was last closed. */
export interface Evidence {
  /** The closing of the breaker since when this was seen; older evidence does not count. */
  readonly since: number;
  /** Calls by slices of the window. */
  readonly slices: readonly Slice[];
  /** Failures since the last success, and when the first and the last of them were. */
  readonly streak: number;
  readonly streakFrom: number;
  readonly streakTo: number;
  readonly lastSuccessAt: number;
  /** Until when this worker avoids the service, because it fails where others succeed; 0 for not at all. */
  readonly sickUntil: number;
}

/** The evidence of one worker. */
export interface Witness {
  readonly worker: string;
  readonly evidence: Evidence;
}

/** Slices per window. */
const SLICES = 6;

/** A worker without a call for this long is not heard. */
const RECENT_MS = 10_000;

/** Prefix of the names of callers that give evidence and are not workers. */
export const CALLER = "call-";

/**
 * How long other workers are waited for before a single one is believed: time for a poll of idle workers, a call, and
 * its report.
 */
export const CONFIRMATION_MS = 2_000;

/** What the callers together report about a service that is down. */
export interface Outage {
  readonly reason: string;
  /** False where only one worker reports it: the others must be heard first. */
  readonly isSure: boolean;
}

/** Evidence without any call. */
export function noEvidence(since: number): Evidence {
  return { since, slices: [], streak: 0, streakFrom: 0, streakTo: 0, lastSuccessAt: 0, sickUntil: 0 };
}

const NUMBERS = ["since", "streak", "streakFrom", "streakTo", "lastSuccessAt", "sickUntil"] as const;
const SLICE_NUMBERS = ["startedAt", "successes", "failures"] as const;

/** Reads evidence from a stored text; null for an invalid text. */
export function evidenceFrom(text: string): Evidence | null {
  const value = fieldsFrom(text);
  const { slices } = value;
  const isWhole = Array.isArray(slices) && slices.every((slice) => hasNumbers(slice, SLICE_NUMBERS));
  return isWhole && hasNumbers(value, NUMBERS) ? (value as unknown as Evidence) : null;
}

/** The evidence in a cell; none for a cell that another version wrote in another form. */
export function witnessFrom(worker: string, value: string): Witness[] {
  const evidence = evidenceFrom(value);
  return evidence ? [{ worker, evidence }] : [];
}

/** The evidence with calls added; in a set with both, the successes count as earlier. */
export function observe(
  evidence: Evidence,
  { successes, failures }: { readonly successes: number; readonly failures: number },
  settings: BreakerSettings,
  now: number,
): Evidence {
  const isAnswered = successes > 0;
  const lastSuccessAt = isAnswered ? now : evidence.lastSuccessAt;
  const streak = isAnswered ? 0 : evidence.streak;
  // After the clock was set back, a failure must not seem older than the success before it.
  const failedAt = failures > 0 ? Math.max(now, lastSuccessAt) : 0;
  // Written field by field for speed, because failing calls wait for it.
  return {
    since: evidence.since,
    slices: addToWindow(evidence.slices, successes, failures, settings, now),
    streak: streak + failures,
    streakFrom: streak > 0 ? evidence.streakFrom : failedAt,
    streakTo: failedAt || (streak > 0 ? evidence.streakTo : 0),
    lastSuccessAt,
    sickUntil: isAnswered && failures === 0 ? 0 : evidence.sickUntil,
  };
}

/**
 * The outage that the callers' evidence shows, or null. A single worker is believed only after a time in which other
 * workers could confirm or deny it; `confirmingMs` is how long ago that began, null where it did not.
 */
export function outage(
  witnesses: readonly Witness[],
  settings: BreakerSettings,
  since: number,
  now: number,
  confirmingMs: number | null,
): Outage | null {
  const heard = witnesses.filter(({ evidence }) => evidence.since === since);
  const recent = heard.filter(({ evidence }) => lastCallAt(evidence) > now - Math.min(RECENT_MS, settings.windowMs));
  const needed = recent.length <= 1 && confirmation(confirmingMs) === "over" ? 1 : 2;
  const streaks = failuresInARow(heard);
  const inARow = streaks.reduce((sum, failures) => sum + failures, 0);
  const calls = heard.map(({ evidence }) => callsOf(evidence, settings, now));
  const failing = calls.filter(({ failures, all }) => failures > 0 && failures / all >= settings.failureRate);
  const failed = calls.reduce((sum, { failures }) => sum + failures, 0);
  const all = calls.reduce((sum, own) => sum + own.all, 0);
  const isShare = all >= settings.minimumCalls && failed / all >= settings.failureRate;
  const charges: { readonly reason: string; readonly by: number }[] = [];
  if (inARow >= settings.failures) charges.push({ reason: `${inARow} failures in a row`, by: streaks.length });
  if (isShare && failing.length >= Math.ceil(recent.length / 2))
    charges.push({ reason: `${failed} of ${all} calls failed`, by: failing.length });
  const sure = charges.find(({ by }) => by >= needed);
  const found = sure ?? charges[0];
  return found ? { reason: found.reason, isSure: found === sure } : null;
}

/**
 * The witnesses that count: this worker, callers outside the queue, and living workers. A worker that was given up may
 * have come back under another name and must not count twice.
 */
export function credible(witnesses: readonly Witness[], self: Witness, living: ReadonlySet<string>): Witness[] {
  return witnesses.filter(({ worker }) => worker === self.worker || living.has(worker) || worker.startsWith(CALLER));
}

/** The state of a confirmation that began so long ago; one that ended long ago counts as none. */
export function confirmation(confirmingMs: number | null): "none" | "on" | "over" {
  if (confirmingMs === null || confirmingMs >= CONFIRMATION_MS + RECENT_MS) return "none";
  return confirmingMs < CONFIRMATION_MS ? "on" : "over";
}

/** Failures since the last success of any caller, for each caller that has failures. */
export function failuresInARow(witnesses: readonly Witness[]): number[] {
  const answeredAt = Math.max(0, ...witnesses.map(({ evidence }) => evidence.lastSuccessAt));
  return witnesses.map(({ evidence }) => streakAfter(evidence, answeredAt)).filter((failures) => failures > 0);
}

/** True for a worker that fails again and again while another worker's calls succeed: the fault is its own. */
export function isSick(self: Witness, witnesses: readonly Witness[], settings: BreakerSettings): boolean {
  const { since, streak, streakFrom } = self.evidence;
  if (streak < Math.min(settings.failures, settings.minimumCalls)) return false;
  return witnesses.some(
    ({ worker, evidence }) =>
      worker !== self.worker &&
      evidence.since === since &&
      evidence.lastSuccessAt > streakFrom &&
      evidence.streak === 0,
  );
}

/** The calls of a worker inside the window. */
export function callsOf(
  { slices }: Evidence,
  { windowMs }: Pick<BreakerSettings, "windowMs">,
  now: number,
): { readonly failures: number; readonly all: number } {
  const inside = slices.filter((slice) => slice.startedAt > now - windowMs);
  const failures = inside.reduce((sum, slice) => sum + slice.failures, 0);
  return { failures, all: inside.reduce((sum, slice) => sum + slice.successes, failures) };
}

function lastCallAt({ lastSuccessAt, streakTo }: Evidence): number {
  return Math.max(lastSuccessAt, streakTo);
}

/** The failures of a streak after a time; of a streak that began before it, the share by time. */
function streakAfter({ streak, streakFrom, streakTo }: Evidence, at: number): number {
  if (streak === 0 || streakTo < at) return 0;
  if (streakFrom >= at) return streak;
  return Math.floor((streak * (streakTo - at)) / (streakTo - streakFrom));
}

/** The slices inside the window, with the calls added to the newest one, also after the clock was set back. */
function addToWindow(
  slices: readonly Slice[],
  successes: number,
  failures: number,
  { windowMs }: Pick<BreakerSettings, "windowMs">,
  now: number,
): readonly Slice[] {
  const sliceMs = windowMs / SLICES;
  const startedAt = Math.floor(now / sliceMs) * sliceMs;
  const kept = slices.filter((slice) => slice.startedAt > now - windowMs);
  const newest = kept.at(-1);
  if (newest === undefined || newest.startedAt < startedAt) kept.push({ startedAt, successes, failures });
  else
    kept[kept.length - 1] = {
      startedAt: newest.startedAt,
      successes: newest.successes + successes,
      failures: newest.failures + failures,
    };
  return kept;
}
