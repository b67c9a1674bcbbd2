// Parses and formats durations. No value is silently clamped or rounded.

import { invalid } from "./options.ts";

/** A span of time as people write it: `"250ms"`, `"5s"`, `"1h30m"`, `"7d"`, or whole milliseconds. */
export type Duration = string | number;

const UNITS: readonly (readonly [unit: string, ms: number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
  ["ms", 1],
];
const PART = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/y;
/** The longest duration accepted where no narrower range is given: 100 years, so that a date plus it is a date. */
export const MAX_DURATION_MS = 36_500 * 86_400_000;

/** Milliseconds of a duration; throws `invalid_argument` for anything else or outside the range. */
export function parseDuration(value: unknown, name: string, range: { minMs?: number; maxMs?: number } = {}): number {
  const { minMs = 0, maxMs = MAX_DURATION_MS } = range;
  const ms = typeof value === "string" ? millisecondsOf(value) : value;
  if (typeof ms === "number" && Number.isSafeInteger(ms) && ms >= minMs && ms <= maxMs) return ms + 0;
  const bounds = `from ${formatDuration(minMs)} to ${formatDuration(maxMs)}`;
  const hint =
    typeof value === "string" && /^[\d.]+$/.test(value) ? `add a unit, e.g. "${value}s"` : "write one of these";
  throw invalid(name, `a duration such as "250ms", "5s" or "1h30m", or whole milliseconds, ${bounds}`, value, hint);
}

/** The sum of the parts, each unit smaller than the one before it; undefined if the text is not a duration. */
function millisecondsOf(text: string): number | undefined {
  if (text.length === 0 || text.length > 64) return undefined;
  let total = 0;
  let smallest = Number.POSITIVE_INFINITY;
  for (PART.lastIndex = 0; PART.lastIndex < text.length; ) {
    const match = PART.exec(text);
    const unitMs = UNITS.find(([unit]) => unit === match?.[2])?.[1];
    if (!match || unitMs === undefined || unitMs >= smallest) return undefined;
    smallest = unitMs;
    total += Number(match[1]) * unitMs;
  }
  // 1.1 h is 3,960,000.0000000005 in floating point; a true fraction of a millisecond stays one and is refused.
  const tolerance = Math.max(1e-6, total * 1e-15);
  return Math.abs(total - Math.round(total)) < tolerance ? Math.round(total) : total;
}

/** A duration for people, in its largest unit with at most one decimal: `1.2h`, `5s`, `250ms`. */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) return String(ms);
  if (ms < 0) return `-${formatDuration(-ms)}`;
  const index = UNITS.findIndex(([, unitMs]) => ms >= unitMs);
  const [unit, unitMs] = UNITS[index] ?? ["ms", 1];
  const rounded = Math.round((ms / unitMs) * 10) / 10;
  const larger = UNITS[index - 1];
  // 59,999 ms is 60.0 s when rounded, and that is called 1m.
  return larger && rounded * unitMs >= larger[1] ? `1${larger[0]}` : `${rounded}${unit}`;
}
