// Where there is no child process for them, jobs with one crash left run alone in a worker. One worker of the fleet at
// a time reserves itself for that: it takes no other work, and all others continue. What it does next:
//
//   the job runs          keeps the reservation, for a minute at most; then other work may join the job
//   none is due           gives the reservation up
//   it holds no job       runs the next one
//   it waits for its runs waits, for a minute at most; then
//     due for ≥ 150 s       runs the job beside the runs that are left, once: each of these has two crashes left at least;
//                           gives up where no slot comes free for it within ten seconds: another worker may have one
//     due for less          hands over: another worker may be empty sooner
//
// After a reservation a worker takes other work for as long as the reservation took before it reserves itself again. So
// a job starts within five minutes of being due, whatever other work there is, but never beside another job with one
// crash left.
import { fieldsFrom, hasNumbers } from "./options.ts";

/** Which worker has reserved itself, and until when unless it renews the reservation. */
export interface Reservation {
  readonly worker: string;
  readonly until: number;
  /** It waits for its own runs to end; an empty worker may take the reservation over. */
  readonly isWaiting: boolean;
}

/** The cell of the store that holds the reservation. */
export const RESERVATION_CELL = { kind: "alone", name: "", holder: "" } as const;
/** How long a reservation lasts without renewal. */
export const RESERVED_MS = 10_000;
/** How long a reserved worker waits for its runs to end, and how long it leaves a job alone with itself. */
const ALONE_MOST_MS = 60_000;
/** How long it waits for a free slot, where nothing else is missing. */
const SLOT_MOST_MS = 10_000;
/** After this long a due job is too late to be handed to another worker. */
const LATE_MS = 150_000;

/** Reads a reservation from a stored text; null for an invalid text. */
export function reservationFrom(text: string): Reservation | null {
  const value = fieldsFrom(text);
  const isWhole = hasNumbers(value, ["until"]) && typeof value.worker === "string";
  return isWhole
    ? { worker: value.worker as string, until: Number(value.until), isWaiting: value.isWaiting === true }
    : null;
}

/** True if a worker may reserve itself, given the current reservation. */
export function mayReserve(
  current: Reservation | null,
  { worker, isIdle }: { readonly worker: string; readonly isIdle: boolean },
  now: number,
): boolean {
  // One that ends later than any written now was written before the store's clock stepped back.
  const isGood = current !== null && current.until > now && current.until <= now + RESERVED_MS;
  if (!isGood || current.worker === worker) return true;
  return current.isWaiting && isIdle;
}

/** What a reserved worker knows. */
export interface Reserved {
  /** How long ago it reserved itself. */
  readonly heldMs: number;
  /** How long the job has been running here; null where it does not run. */
  readonly aloneMs: number | null;
  /** It holds no job at all. */
  readonly isIdle: boolean;
  /** How long the next such job has been due; null where none is. */
  readonly dueMs: number | null;
  /** It has already run one beside others. */
  readonly hasRunBeside: boolean;
}

/** What a reserved worker does next. */
export type ReservedStep = "keep" | "run beside" | "let go";

/** Decides what a reserved worker does next. */
export function reservedStep({ heldMs, aloneMs, isIdle, dueMs, hasRunBeside }: Reserved): ReservedStep {
  if (aloneMs !== null) return aloneMs < ALONE_MOST_MS ? "keep" : "let go";
  if (dueMs === null || hasRunBeside) return "let go";
  if (heldMs < ALONE_MOST_MS) return "keep";
  if (isIdle || dueMs < LATE_MS) return "let go";
  return heldMs < ALONE_MOST_MS + SLOT_MOST_MS ? "run beside" : "let go";
}

/** True while a run must have the worker to itself. */
export function isToBeAlone(aloneMs: number | null): boolean {
  return aloneMs !== null && aloneMs < ALONE_MOST_MS;
}

/** How long a worker takes other work before it reserves itself again. */
export function pauseAfter(heldMs: number): number {
  return Math.min(heldMs, ALONE_MOST_MS);
}
