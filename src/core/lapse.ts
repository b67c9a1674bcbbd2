// Whether a lease that has ended may be held against its worker. Whoever was held up knows nothing about others: they
// may have been held up as long. So a worker is given up only by one who has had the store's ear for that worker's whole
// lease, in which it would have shown itself.

/** Contact stood still up to this moment of the steady clock, or the store's time jumped by so much. */
export interface HoldUp {
  readonly until: number;
  readonly ms: number;
}

/** An answer that tells the store's time, and when it was asked for and came, by the steady clock. */
export interface TimeReading {
  readonly storeTime: number;
  readonly asked: number;
  readonly answered: number;
}

/** A worker and its lease in the time of the store. */
export interface Leased {
  readonly id: string;
  readonly beatAt: number;
  readonly leaseEnd: number;
  readonly givenUp: boolean;
}

/** The hold-ups that still count once this one is known; one that a longer one covers does not. */
export function withHoldUp(known: readonly HoldUp[], holdUp: HoldUp): HoldUp[] {
  const counting = known.filter(({ until, ms }) => ms > holdUp.ms && holdUp.until - until < 2 * ms);
  return holdUp.ms > 0 ? [...counting, holdUp] : counting;
}

/** True if contact has lasted for this lease, in which nothing took longer than half of it. */
export function hasLasted(known: readonly HoldUp[], leaseMs: number, now: number): boolean {
  return known.every(({ until, ms }) => now - until >= leaseMs || ms <= leaseMs / 2);
}

/** How far the store's clock has stepped ahead of the steady one between two readings, at the most: answers take time. */
export function steppedAhead(before: TimeReading, after: TimeReading): number {
  return Math.max(0, after.storeTime - before.storeTime - (after.asked - before.answered));
}

/** Workers whose lease had ended by this store time, if contact has lasted for that lease. */
export function lapsedWorkers(
  workers: readonly Leased[],
  storeTime: number,
  lasted: (leaseMs: number) => boolean,
): string[] {
  const lapsed = workers.filter(({ givenUp, leaseEnd }) => !givenUp && leaseEnd <= storeTime);
  return lapsed.filter(({ leaseEnd, beatAt }) => lasted(leaseEnd - beatAt)).map(({ id }) => id);
}
