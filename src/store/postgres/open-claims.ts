// What this process has claimed and not yet settled: the number of each job, by which its verdict finds it faster than by
// its id, and which claims are used up. A claim's row names all jobs that were taken together; once each of them is
// settled, nobody needs the row, and the next claim deletes it. A row that stays for longer, because somebody else
// settled or this process died, is only space: what counts is the lease on the job.
import type { Lease } from "../../core/job.ts";

/** Claims whose jobs are not all settled. */
export interface OpenClaims {
  took(worker: string, nonce: string, id: string, run: ClaimedRun): void;
  /** What is known of the job that this lease was given out for here; undefined for any other. */
  runOf(lease: Lease): ClaimedRun | undefined;
  /** The lease is over, whoever ended it. */
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

/** A ledger for one process. */
export function trackClaims(): OpenClaims {
  const open = new Map<string, OpenClaim>();
  const spent = new Map<string, string[]>();
  const runOf: OpenClaims["runOf"] = ({ id, epoch, nonce }) => {
    const run = open.get(nonce)?.runs.get(id);
    // A lease that was never given out is nobody's.
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
