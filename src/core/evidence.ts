// What one worker saw of a service, as a plain value that it writes to a row of its own; and what the rows of all workers
// say together: whether the service is down, so that its breaker opens, or only one of the workers is sick. A breaker of
// one process is a fleet of one, in which there are no others to be heard.
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
  /** The closing after which this was seen; older evidence counts no more. */
  readonly since: number;
  /** Calls by slices of the window. */
  readonly slices: readonly Slice[];
  /** Failures since the last success, and when the first and the last of them were. */
  readonly streak: number;
  readonly streakFrom: number;
  readonly streakTo: number;
  readonly lastSuccessAt: number;
  /** Until when this worker leaves the service alone, because it fails where others succeed; 0 for not at all. */
  readonly sickUntil: number;
}

/** The evidence of a worker. */
export interface Witness {
  readonly worker: string;
  readonly evidence: Evidence;
}

/** Slices of a window. */
const SLICES = 6;

/** Workers that made no call for this long are not asked for their word. */
const RECENT_MS = 10_000;

/** How the names of those begin that give evidence and are no workers. */
export const CALLER = "call-";

/** How long the others are heard before one alone is believed: for a poll of the idle, a call, and telling of it. */
export const HEARING_MS = 2_000;

/** What its callers say together of a service that is down. */
export interface Outage {
  readonly reason: string;
  /** False where one alone says so: first the others are to be heard. */
  readonly isSure: boolean;
}

/** Nothing was seen yet. */
export function noEvidence(since: number): Evidence {
  return { since, slices: [], streak: 0, streakFrom: 0, streakTo: 0, lastSuccessAt: 0, sickUntil: 0 };
}

const NUMBERS = ["since", "streak", "streakFrom", "streakTo", "lastSuccessAt", "sickUntil"] as const;
const SLICE_NUMBERS = ["startedAt", "successes", "failures"] as const;

/** The evidence of a text from the store; null for a text that is none. */
export function evidenceFrom(text: string): Evidence | null {
  const value = fieldsFrom(text);
  const { slices } = value;
  const isWhole = Array.isArray(slices) && slices.every((slice) => hasNumbers(slice, SLICE_NUMBERS));
  return isWhole && hasNumbers(value, NUMBERS) ? (value as unknown as Evidence) : null;
}

/** What a cell says; one that was written by a program that speaks otherwise says nothing. */
export function witnessFrom(worker: string, value: string): Witness[] {
  const evidence = evidenceFrom(value);
  return evidence ? [{ worker, evidence }] : [];
}

/** The evidence with calls added; in a set that holds both, the successes count as the earlier ones. */
export function observe(
  evidence: Evidence,
  { successes, failures }: { readonly successes: number; readonly failures: number },
  settings: BreakerSettings,
  now: number,
): Evidence {
  const isAnswered = successes > 0;
  const lastSuccessAt = isAnswered ? now : evidence.lastSuccessAt;
  const streak = isAnswered ? 0 : evidence.streak;
  // By a clock that was set back, a failure must not seem to be older than the success before it.
  const failedAt = failures > 0 ? Math.max(now, lastSuccessAt) : 0;
  // Field by field, because calls that fail wait for this.
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
 * That the service is down by what its callers saw, or null. One alone is believed only after a hearing in which no other
 * spoke; `heardMs` is how long ago that began, null without one.
 */
export function outage(
  witnesses: readonly Witness[],
  settings: BreakerSettings,
  since: number,
  now: number,
  heardMs: number | null,
): Outage | null {
  const heard = witnesses.filter(({ evidence }) => evidence.since === since);
  const recent = heard.filter(({ evidence }) => lastCallAt(evidence) > now - Math.min(RECENT_MS, settings.windowMs));
  const needed = recent.length <= 1 && hearing(heardMs) === "over" ? 1 : 2;
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
 * Those whose word counts: oneself, callers outside the queue, and workers that live. One that was given up may have come
 * back under another name, and must not be believed as two.
 */
export function credible(witnesses: readonly Witness[], self: Witness, living: ReadonlySet<string>): Witness[] {
  return witnesses.filter(({ worker }) => worker === self.worker || living.has(worker) || worker.startsWith(CALLER));
}

/** How a hearing stands that began so long ago; one that is long over is as good as none. */
export function hearing(heardMs: number | null): "none" | "on" | "over" {
  if (heardMs === null || heardMs >= HEARING_MS + RECENT_MS) return "none";
  return heardMs < HEARING_MS ? "on" : "over";
}

/** Failures since anybody's last success, of each caller that has any. */
export function failuresInARow(witnesses: readonly Witness[]): number[] {
  const answeredAt = Math.max(0, ...witnesses.map(({ evidence }) => evidence.lastSuccessAt));
  return witnesses.map(({ evidence }) => streakAfter(evidence, answeredAt)).filter((failures) => failures > 0);
}

/** True for a worker that fails again and again while another one's calls succeed: the fault is its own. */
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

/** Calls of a worker inside the window. */
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

/** Failures of a streak after a time; of one that began before it, its share of the time. */
function streakAfter({ streak, streakFrom, streakTo }: Evidence, at: number): number {
  if (streak === 0 || streakTo < at) return 0;
  if (streakFrom >= at) return streak;
  return Math.floor((streak * (streakTo - at)) / (streakTo - streakFrom));
}

/** The slices still inside the window, the calls added to the newest; a clock that was set back adds to it too. */
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
