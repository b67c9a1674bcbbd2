// Stops runs that another process has settled while their worker lives: stuck runs that the check or an operator gave
// up. The store refuses their reports anyway; here their handlers learn that the run is over.
import type { Lease, Store } from "../store/store.ts";
import type { Run } from "./run.ts";

/** The runs of a worker. */
export type LiveRuns = Iterable<Run> & { has(run: Run): boolean };

/** What finding them needs. */
export interface RevokedOptions {
  readonly store: Pick<Store, "held">;
  readonly worker: string;
  readonly runs: LiveRuns;
  /** Only runs that began before this, on the monotonic clock: shorter ones end before it matters. */
  readonly beganBefore: number;
  /** True while a verdict about the run is on its way. */
  readonly isSettling: (lease: Lease) => boolean;
}

/** Stops the runs whose lease the worker no longer holds. */
export async function stopRevoked({ store, worker, runs, beganBefore, isSettling }: RevokedOptions): Promise<void> {
  const long = [...runs].filter(({ claimedMs, job }) => claimedMs < beganBefore && job.worker === worker);
  if (long.length === 0) return;
  const held = new Set((await store.held(worker)).map(nameOf));
  for (const run of long)
    if (runs.has(run) && !held.has(nameOf(run.job)) && !isSettling(run.job)) run.stop("lease_lost");
}

function nameOf({ id, epoch, nonce }: Lease): string {
  return `${id} ${epoch} ${nonce}`;
}
