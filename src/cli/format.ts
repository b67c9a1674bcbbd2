// Times, counts and bars in human-readable form.
import { formatDuration } from "../core/duration.ts";
import type { Failure, Job } from "../core/job.ts";
import { isoTime } from "../operate/json-form.ts";
import { masked } from "../core/safe-text.ts";

/** `5s ago`, `in 3m`, `now`. */
export function relativeTime(ms: number | null, now: number): string {
  if (ms === null) return "-";
  const away = ms - now;
  if (Math.abs(away) < 1_000) return "now";
  return away > 0 ? `in ${formatDuration(wholeSeconds(away))}` : `${formatDuration(wholeSeconds(-away))} ago`;
}

function wholeSeconds(ms: number): number {
  return ms < 60_000 ? Math.round(ms / 1_000) * 1_000 : ms;
}

/** A time with its distance: `2027-01-31 08:00:00Z (5s ago)`. */
export function fullTime(ms: number | null, now: number): string {
  if (ms === null) return "-";
  return `${shortTime(ms)} (${relativeTime(ms, now)})`;
}

/** `2027-01-31 08:00:00Z`. */
export function shortTime(ms: number): string {
  return isoTime(ms).replace("T", " ").replace(/\.\d+/, "");
}

/** `1,234`. */
export function grouped(count: number): string {
  return count.toLocaleString("en-US");
}

/** `1,234 jobs`, `1 job`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/** A bar of blocks, `width` columns for the whole. */
export function bar(share: number, width: number): string {
  const eighths = Math.round(Math.min(1, Math.max(0, share)) * width * 8);
  return "█".repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] as string);
}

const HEIGHTS = "▂▃▄▅▆▇█";

/** A line of bars, one for each count; the lowest bar is none at all. */
export function sparkline(counts: readonly number[]): string {
  const most = Math.max(1, ...counts);
  return counts.map((n) => (n <= 0 ? "▁" : HEIGHTS[Math.ceil((n / most) * HEIGHTS.length) - 1])).join("");
}

/** An error in one table cell, without the name where it is only `Error`. */
export function errorLine({ name, message }: Pick<Failure, "name" | "message">): string {
  return masked(name === "Error" && message !== "" ? message : `${name}: ${message}`);
}

/** Tries as people count them: including the run under way and the run that succeeded. */
export function triesOf({ attempts, state }: Pick<Job, "attempts" | "state">): number {
  return attempts + (state === "running" || state === "completed" ? 1 : 0);
}

/** `2/10`, `2 of 10`; only the count where the limit belongs to the type, which only workers know. */
export function ofLimit({ limited }: Pick<Job, "limited">, count: number, between: "/" | " of ", most: number): string {
  return limited ? `${count}${between}${most}` : String(count);
}
