// Runs that somebody else has settled while their worker lives: stuck ones that the check or a person gave up. What they
// say is refused anyway; here they learn that nobody waits for them any more.
import type { Lease, Store } from "../store/store.ts";
import type { Run } from "./run.ts";

/** The runs of a worker. */
export type LiveRuns = Iterable<Run> & { has(run: Run): boolean };

/** What finding them needs. */
export interface RevokedOptions {
  readonly store: Pick<Store, "held">;
  readonly worker: string;
  readonly runs: LiveRuns;
  /** Only runs that began before this, on the monotonic clock: short ones are over before it matters. */
  readonly beganBefore: number;
  /** True while a verdict about the run is on its way. */
  readonly isSettling: (lease: Lease) => boolean;
}

/** Stops the runs whose lease the worker does not hold any more. */
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
