// The start of fake clocks.
import { instantOf } from "../enqueue/new-jobs.ts";

/** The same by default for every test, so that ids and times can be compared: 2026-01-01. */
const START = Date.UTC(2026, 0, 1);

/** Epoch milliseconds of a start. */
export function startOf(now: Date | number | string | undefined): number {
  return now === undefined ? START : instantOf(now, "now");
}
