// What holds work back for the whole fleet, however many slots are free: pauses, open breakers, and services that sent
// a `Retry-After`.
import type { Belonging, Job } from "./job.ts";
import type { PausedSpan } from "./paused.ts";
import { type Breaker, initialRecord, type ServiceRecord } from "./service-record.ts";
import type { WhenOpen } from "./service.ts";

/** A pause with its reason. */
export interface PauseInForce extends PausedSpan {
  readonly reason: string;
}

/** Everything that holds work back. */
export interface Holding {
  readonly now: number;
  /** Pauses, those that ended included. */
  readonly pauses: readonly PauseInForce[];
  readonly services: ReadonlyMap<string, ServiceRecord>;
  /** What happens to work whose breaker is open. */
  readonly whenOpen: (service: string) => WhenOpen;
}

/** A Holding in which nothing is held back. */
export function nothingHeld(now: number): Holding {
  return { now, pauses: [], services: new Map(), whenOpen: () => "park" };
}

/** The states that are derived when read, for jobs that wait. */
export const SHOWN_STATES = ["scheduled", "retrying", "paused", "parked"] as const;
/** A stored state, or one of `SHOWN_STATES`. */
export type ShownState = Job["state"] | (typeof SHOWN_STATES)[number];

/** The state of a job as people see it. */
export function shownState(job: Belonging & Pick<Job, "state" | "runAt" | "attempts">, holding: Holding): ShownState {
  if (job.state !== "queued") return job.state;
  if (job.runAt > holding.now) return job.attempts > 0 ? "retrying" : "scheduled";
  if (pausesOf(job, holding).length > 0) return "paused";
  return parkedBy(job, holding) === null ? "queued" : "parked";
}

/** True for work that no worker may take now: paused, parked, or its service asked to wait. */
export function isHeld(work: Belonging, holding: Holding): boolean {
  return pausesOf(work, holding).length > 0 || parkedBy(work, holding) !== null || holdUntilOf(work, holding) !== null;
}

/** The pauses in force. */
export function pausesInForce<P extends PausedSpan>({ pauses, now }: { pauses: readonly P[]; now: number }): P[] {
  return pauses.filter(({ from, until }) => from <= now && (until === null || until > now));
}

/** The pauses that hold the work back now. */
export function pausesOf(work: Belonging, holding: Holding): PauseInForce[] {
  return pausesInForce(holding).filter(({ kind, name }) => work[kind] === name);
}

/** The breaker that the work waits for; null where it is closed, or where such work does not wait. */
export function parkedBy({ service }: Pick<Belonging, "service">, { services, whenOpen }: Holding): Breaker | null {
  if (service === null) return null;
  const { breaker } = services.get(service) ?? initialRecord;
  return breaker.state !== "closed" && whenOpen(service) === "park" ? breaker : null;
}

/** Until when the service of the work asked to wait; null for not at all. */
export function holdUntilOf({ service }: Belonging, { services, now }: Holding): number | null {
  const { holdUntil } = (service === null ? null : services.get(service)) ?? initialRecord;
  return holdUntil > now ? holdUntil : null;
}
