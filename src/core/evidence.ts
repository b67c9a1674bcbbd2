// What one worker saw of a service, as a plain value that it writes to a row of its own; and what the rows of all workers
// say together: whether the service is down, or only one of the workers is sick.
import { addToWindow, type BreakerBucket, type BreakerSettings } from "./breaker.ts";
import { fieldsFrom, hasNumbers } from "./options.ts";

/** What one worker saw of a service since the breaker was last closed. */
export interface Evidence {
  /** The closing after which this was seen; older evidence counts no more. */
  readonly since: number;
  /** Calls by slices of the window. */
  readonly slices: readonly BreakerBucket[];
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

/** Workers that made no call for this long are not asked for their word. */
const RECENT_MS = 10_000;

/** Nothing was seen yet. */
export function noEvidence(since: number): Evidence {
  return { since, slices: [], streak: 0, streakFrom: 0, streakTo: 0, lastSuccessAt: 0, sickUntil: 0 };
}

const NUMBERS = ["since", "streak", "streakFrom", "streakTo", "lastSuccessAt", "sickUntil"] as const;
const SLICE = ["startedAt", "successes", "failures"] as const;

/** The evidence of a text from the store; null for a text that is none. */
export function evidenceFrom(text: string): Evidence | null {
  const value = fieldsFrom(text);
  const { slices } = value;
  const isWhole = Array.isArray(slices) && slices.every((slice) => hasNumbers(slice, SLICE));
  return isWhole && hasNumbers(value, NUMBERS) ? (value as unknown as Evidence) : null;
}

/** The evidence with calls added; in a set that holds both, the successes count as the earlier ones. */
export function observe(
  evidence: Evidence,
  { successes, failures }: { readonly successes: number; readonly failures: number },
  settings: BreakerSettings,
  now: number,
): Evidence {
  const before = successes > 0 ? { streak: 0, streakFrom: 0, streakTo: 0, lastSuccessAt: now } : {};
  const seen = { ...evidence, ...before, slices: addToWindow(evidence.slices, successes, failures, settings, now) };
  if (failures === 0) return successes > 0 ? { ...seen, sickUntil: 0 } : seen;
  const streakFrom = seen.streak === 0 ? now : seen.streakFrom;
  return { ...seen, streak: seen.streak + failures, streakFrom, streakTo: now };
}

/** Why the service is down by what its callers saw, or null. Where several call, one alone is not believed. */
export function outage(
  witnesses: readonly Witness[],
  settings: BreakerSettings,
  since: number,
  now: number,
): string | null {
  const heard = witnesses.filter(({ evidence }) => evidence.since === since);
  const recent = heard.filter(({ evidence }) => lastCallAt(evidence) > now - Math.min(RECENT_MS, settings.windowMs));
  const needed = recent.length > 1 ? 2 : 1;
  const streaks = failuresInARow(heard);
  const inARow = streaks.reduce((sum, failures) => sum + failures, 0);
  if (inARow >= settings.failures && streaks.length >= needed) return `${inARow} failures in a row`;
  const calls = heard.map(({ evidence }) => callsOf(evidence, settings, now));
  const failing = calls.filter(({ failures, all }) => failures > 0 && failures / all >= settings.failureRate);
  const failed = calls.reduce((sum, { failures }) => sum + failures, 0);
  const all = calls.reduce((sum, own) => sum + own.all, 0);
  const enough = all >= settings.minimumCalls && failed / all >= settings.failureRate;
  if (enough && failing.length >= Math.max(needed, Math.ceil(recent.length / 2)))
    return `${failed} of ${all} calls failed`;
  return null;
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
