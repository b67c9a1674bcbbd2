// Decides whether a worker whose lease has ended may be given up. A worker that was itself cut off from the store knows
// nothing about others: they may have been cut off as long. So a worker is given up only by one that had contact with
// the store for that worker's whole lease, in which a living worker would have sent a heartbeat.

/** An interruption of contact up to this moment of the steady clock, or a jump of the store's time by so much. */
export interface HoldUp {
  readonly until: number;
  readonly ms: number;
}

/** An answer with the store's time, and when it was asked for and arrived, by the steady clock. */
export interface TimeReading {
  readonly storeTime: number;
  readonly asked: number;
  readonly answered: number;
}

/** A worker and its lease in store time. */
export interface Leased {
  readonly id: string;
  readonly beatAt: number;
  readonly leaseEnd: number;
  readonly givenUp: boolean;
}

/** The interruptions that count once this one is known; one that a longer one covers does not count. */
export function withHoldUp(known: readonly HoldUp[], holdUp: HoldUp): HoldUp[] {
  const counting = known.filter(({ until, ms }) => ms > holdUp.ms && holdUp.until - until < 2 * ms);
  return holdUp.ms > 0 ? [...counting, holdUp] : counting;
}

/** True if contact lasted for this lease, with no interruption longer than half of it. */
export function hasLasted(known: readonly HoldUp[], leaseMs: number, now: number): boolean {
  return known.every(({ until, ms }) => now - until >= leaseMs || ms <= leaseMs / 2);
}

/**
 * The most that the store's clock can have stepped ahead of the steady clock between two readings, since answers take
 * time.
 */
export function steppedAhead(before: TimeReading, after: TimeReading): number {
  return Math.max(0, after.storeTime - before.storeTime - (after.asked - before.answered));
}

/** Workers whose lease had ended by this store time, if contact lasted for that lease. */
export function lapsedWorkers(
  workers: readonly Leased[],
  storeTime: number,
  lasted: (leaseMs: number) => boolean,
): string[] {
  const lapsed = workers.filter(({ givenUp, leaseEnd }) => !givenUp && leaseEnd <= storeTime);
  return lapsed.filter(({ leaseEnd, beatAt }) => lasted(leaseEnd - beatAt)).map(({ id }) => id);
}
