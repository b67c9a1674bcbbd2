// The claims of this process that are not fully settled: the number of each job, by which its verdict finds it faster
// than by its id, and which claims are used up. The row of a claim names all jobs taken together; once each of them is
// settled, the next claim deletes the row. A row that stays longer, because another process settled or this process
// died, only takes space: the lease on the job is what counts.
import type { Lease } from "../../core/job.ts";

/** Claims whose jobs are not all settled. */
export interface OpenClaims {
  took(worker: string, nonce: string, id: string, run: ClaimedRun): void;
  /** The run for which this process gave out the lease; undefined for any other. */
  runOf(lease: Lease): ClaimedRun | undefined;
  /** The lease is over, whichever process ended it. */
  settled(lease: Lease): void;
  /** The claims of this worker that are used up. */
  spent(worker: string): readonly string[];
  /** Their rows were deleted. */
  deleted(worker: string, nonces: readonly string[]): void;
}

/** A run that was claimed here. */
export interface ClaimedRun {
  readonly epoch: number;
  /** The number of the job. */
  readonly seq: number;
  /** The job holds a place in a group. */
  readonly grouped: boolean;
}

interface OpenClaim {
  readonly worker: string;
  readonly runs: Map<string, ClaimedRun>;
}

/** The open claims of one process. */
export function trackClaims(): OpenClaims {
  const open = new Map<string, OpenClaim>();
  const spent = new Map<string, string[]>();
  const runOf: OpenClaims["runOf"] = ({ id, epoch, nonce }) => {
    const run = open.get(nonce)?.runs.get(id);
    // A lease that was never given out matches no run.
    return run?.epoch === epoch ? run : undefined;
  };
  return {
    took(worker, nonce, id, run) {
      const claim = open.get(nonce) ?? { worker, runs: new Map() };
      open.set(nonce, claim);
      claim.runs.set(id, run);
    },
    runOf,
    settled(lease) {
      const claim = open.get(lease.nonce);
      if (!claim || !runOf(lease)) return;
      claim.runs.delete(lease.id);
      if (claim.runs.size > 0) return;
      open.delete(lease.nonce);
      spent.set(claim.worker, [...(spent.get(claim.worker) ?? []), lease.nonce]);
    },
    spent: (worker) => spent.get(worker) ?? [],
    deleted(worker, nonces) {
      const left = (spent.get(worker) ?? []).filter((nonce) => !nonces.includes(nonce));
      if (left.length > 0) spent.set(worker, left);
      else spent.delete(worker);
    },
  };
}
