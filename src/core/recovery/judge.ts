// Judges the present step of a redrive run by the first runs of its jobs, so that a backoff of hours does not delay it.
//
//   step     | stops                                                  | passes
//   canary   | more failed the same way than tolerated (default none),| every job of the step has run once
//            | or more than 20 % failed otherwise                     |
//   the rest | of the newest 100 first runs at least five and 10 %    | everything was sent and has run once
//            | failed the same way, or five and 20 % at all           |
//
// Shares are shares of the whole step, so that one failure among the first two decides nothing. Cancelled, deleted and
// recalled jobs count neither way; others are sent for them. Time in which the jobs are held back stops the clock. When
// the clock is over without a verdict, the step is undecided: a run never goes on without evidence.
import { formatDuration } from "../duration.ts";
import type { RedriveSums } from "./outcome.ts";
import type { RedriveRun } from "./run.ts";

/** The judgement of a step. */
export type Judgement =
  | { readonly kind: "wait" }
  | { readonly kind: "pass" }
  | { readonly kind: "stop"; readonly why: string }
  | { readonly kind: "undecided"; readonly why: string };

/** What was counted of a run, and of its newest first runs. */
export interface CountedRun extends RedriveSums {
  readonly recent: RedriveSums;
}

/** The share of a canary step that may fail otherwise. */
const OTHERS = 0.2;
/** The shares of the newest first runs that stop the rest, and the fewest failures that do. */
const REST = { same: 0.1, any: 0.2, fewest: 5 } as const;
/** The bounds of what an operator may tolerate, as a share. */
export const TOLERATE_BOUNDS = { min: 0, max: 0.9 } as const;

type Judged = Pick<
  RedriveRun,
  "steps" | "step" | "tolerate" | "walked" | "stepSince" | "heldMs" | "heldSince" | "judgeWithinMs"
>;

/** Jobs that were sent and whose first run has not ended. */
export function pendingOf(sums: RedriveSums): number {
  return sums.sent - ranOf(sums) - outOf(sums);
}

/** Jobs whose first run has ended. */
export function ranOf({ good, same, other }: RedriveSums): number {
  return good + same + other;
}

/** Jobs that will have no first run. */
function outOf({ cancelled, gone, recalled }: RedriveSums): number {
  return cancelled + gone + recalled;
}

/** True for a run whose present step is followed by another. */
export function isCanary({ step, steps }: Pick<RedriveRun, "step" | "steps">): boolean {
  return step < steps.length;
}

/** How many jobs the canary steps up to the present one want, in all. */
export function wantedOf({ steps, step }: Pick<RedriveRun, "steps" | "step">): number {
  return steps.slice(0, step + 1).reduce((sum, size) => sum + size, 0);
}

/** How many jobs the present canary step still lacks; those without a first run are replaced. */
export function lackingOf(run: Pick<RedriveRun, "steps" | "step" | "walked">, sums: RedriveSums): number {
  return run.walked ? 0 : Math.max(0, wantedOf(run) - (sums.sent - outOf(sums)));
}

/** The judgement of the present step. */
export function judgeStep(run: Judged, counts: CountedRun, now: number): Judgement {
  const why = isCanary(run) ? whyStopCanary(run, counts) : whyStopRest(run, counts.recent);
  if (why !== null) return { kind: "stop", why };
  const pending = pendingOf(counts);
  const isSent = isCanary(run) ? lackingOf(run, counts) === 0 : run.walked;
  if (isSent && pending === 0) return { kind: "pass" };
  // Timed from the last send: a slow rate is no missing verdict.
  if (pending === 0 || clockOf(run, now) < run.judgeWithinMs) return { kind: "wait" };
  const undecided = `undecided: ${pending} of ${counts.sent} sent had no first run within ${formatDuration(run.judgeWithinMs)}`;
  return { kind: "undecided", why: undecided };
}

/** How long the present step has lasted, without the time in which its jobs were held back. */
export function clockOf({ stepSince, heldMs, heldSince }: Omit<Judged, "steps">, now: number): number {
  return Math.max(0, (heldSince ?? now) - stepSince - heldMs);
}

function whyStopCanary(run: Judged, counts: CountedRun): string | null {
  const { same, other } = counts;
  const size = Math.max(1, run.walked ? counts.sent - outOf(counts) : wantedOf(run));
  if (same > run.tolerate * size) return `${same} of ${ranOf(counts)} that ran failed the same way`;
  if (other > Math.max(OTHERS, run.tolerate) * size)
    return `${other} of ${ranOf(counts)} that ran failed in another way`;
  return null;
}

function whyStopRest({ tolerate }: Judged, recent: RedriveSums): string | null {
  const { same, other } = recent;
  const ran = ranOf(recent);
  if (same >= REST.fewest && same >= REST.same * ran && same > tolerate * ran)
    return `${same} of the newest ${ran} that ran failed the same way`;
  const failed = same + other;
  if (failed >= REST.fewest && failed >= REST.any * ran && failed > tolerate * ran)
    return `${failed} of the newest ${ran} that ran failed`;
  return null;
}
