// How long a job could not run because something it belongs to was paused. Deadlines do not count that time.
import type { Belonging } from "./job.ts";

/** A pause of a queue, type, service or tenant, from one time until before another; null for no end. */
export interface PausedSpan {
  readonly kind: "queue" | "type" | "service" | "tenant";
  readonly name: string;
  readonly from: number;
  readonly until: number | null;
}

/** Milliseconds between two times in which at least one pause of the job was in force; overlaps count once. */
export function pausedMs(pauses: readonly PausedSpan[], job: Belonging, from: number, to: number): number {
  const spans = pauses
    .filter(({ kind, name }) => job[kind] === name)
    .map((pause) => ({ from: Math.max(from, pause.from), to: Math.min(to, pause.until ?? to) }))
    .filter((span) => span.to > span.from)
    .sort((a, b) => a.from - b.from);
  let total = 0;
  let covered = from;
  for (const span of spans) {
    total += Math.max(0, span.to - Math.max(span.from, covered));
    covered = Math.max(covered, span.to);
  }
  return total;
}

/** When the first of the pauses in force ends; null where none has an end. */
export function nextPauseEnd(pauses: readonly PausedSpan[], now: number): number | null {
  let next: number | null = null;
  for (const { until } of pauses) if (until !== null && until > now && until < (next ?? Infinity)) next = until;
  return next;
}
