// Where there is no child process for them, jobs with their last crash left run alone in a worker. One worker of the fleet
// at a time reserves itself for that: it takes no other work, and all others go on. What it does next:
//
//   the job runs          keeps the reservation, for a minute at most; then other work may join the job
//   none is due           lets go
//   its hands are empty   runs the next one
//   it waits for its runs waits, for a minute at most; then
//     due for ≥ 150 s       runs the job beside the runs that are left, once: each of these has two crashes left at least;
//                           lets go where no slot comes free for it within ten seconds: another worker may have one
//     due for less          hands over: another worker may be empty sooner
//
// A worker takes other work for as long as its reservation took before it reserves again. So a job starts within five
// minutes of being due, beside whatever work; but never beside another one with its last crash left.
import { fieldsFrom, hasNumbers } from "./options.ts";

/** Who has reserved itself, and until when unless it says so again. */
export interface Reservation {
  readonly worker: string;
  readonly until: number;
  /** It waits for its own runs to end; a worker with empty hands need not, and may take over. */
  readonly isWaiting: boolean;
}

/** The cell of the store that says which worker has reserved itself. */
export const RESERVATION_CELL = { kind: "alone", name: "", holder: "" } as const;
/** How long a reservation is good that is not renewed. */
export const RESERVED_MS = 10_000;
/** How long a worker waits for its runs to end, and how long it keeps a run company with nothing but time. */
const ALONE_MOST_MS = 60_000;
/** How long it waits for a free slot, where nothing else is missing. */
const SLOT_MOST_MS = 10_000;
/** A job that has been due for so long has no time left for another worker to wait. */
const LATE_MS = 150_000;

/** The reservation of a text from the store; null for a text that is none. */
export function reservationFrom(text: string): Reservation | null {
  const value = fieldsFrom(text);
  const isWhole = hasNumbers(value, ["until"]) && typeof value.worker === "string";
  return isWhole
    ? { worker: value.worker as string, until: Number(value.until), isWaiting: value.isWaiting === true }
    : null;
}

/** True if a worker may reserve itself now that this is what others said. */
export function mayReserve(
  current: Reservation | null,
  { worker, isIdle }: { readonly worker: string; readonly isIdle: boolean },
  now: number,
): boolean {
  // One that ends later than any that is written now was written before the store's clock stepped back.
  const isGood = current !== null && current.until > now && current.until <= now + RESERVED_MS;
  if (!isGood || current.worker === worker) return true;
  return current.isWaiting && isIdle;
}

/** What a worker that has reserved itself knows. */
export interface Reserved {
  /** Since it reserved itself. */
  readonly heldMs: number;
  /** How long the job has been running here; null where none does. */
  readonly aloneMs: number | null;
  /** It holds nothing at all. */
  readonly isIdle: boolean;
  /** How long the next job has been due; null where none is. */
  readonly dueMs: number | null;
  /** It has run one beside others. */
  readonly hasRunBeside: boolean;
}

/** What it does next. */
export type ReservedStep = "keep" | "run beside" | "let go";

/** What a worker that has reserved itself does next. */
export function reservedStep({ heldMs, aloneMs, isIdle, dueMs, hasRunBeside }: Reserved): ReservedStep {
  if (aloneMs !== null) return aloneMs < ALONE_MOST_MS ? "keep" : "let go";
  if (dueMs === null || hasRunBeside) return "let go";
  if (heldMs < ALONE_MOST_MS) return "keep";
  if (isIdle || dueMs < LATE_MS) return "let go";
  return heldMs < ALONE_MOST_MS + SLOT_MOST_MS ? "run beside" : "let go";
}

/** True while a run is to have its worker for itself. */
export function isToBeAlone(aloneMs: number | null): boolean {
  return aloneMs !== null && aloneMs < ALONE_MOST_MS;
}

/** How long a worker takes other work before it reserves itself again. */
export function pauseAfter(heldMs: number): number {
  return Math.min(heldMs, ALONE_MOST_MS);
}
