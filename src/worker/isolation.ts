// The last chance of a suspect: a child process that registers as a worker, takes one job of the lane, runs it and
// exits. If the job kills it, the crash is charged to that job alone, with the child's end as evidence.
import type { Settled } from "../core/after-verdict.ts";
import type { Failure, Job } from "../core/job.ts";
import { type Outcome, runtimeFailure, type Verdict } from "../core/verdict.ts";
import type { ChildEnd } from "../system/processes.ts";

/** Starts a child that runs one job of a lane under this worker id, and waits for its end. */
export type Isolation = (request: {
  readonly worker: string;
  readonly lane: number;
  /** The version of `control` the lane was planned with. */
  readonly control: number;
  /** The outcome of the job without a run, because its breaker is open and its jobs do not wait; null if it runs. */
  readonly held: Outcome | null;
  /** Fires when the child has lost its job and must be ended. */
  readonly signal: AbortSignal;
  /** Fires when the worker stops; then the child releases its job. */
  readonly stop: AbortSignal;
}) => Promise<ChildEnd>;

/** What the child reports to its parent about the run. */
export interface AloneReport {
  readonly job: Job;
  readonly verdict: Verdict;
  readonly settled: Settled;
  /** How the run ended, for the breaker of its service; null if there was no run. */
  readonly heard: Outcome | null;
}

/** The suffix of the host name of a process that runs a single job: it takes no other. */
export const ISOLATED_HOST = "/isolated";

/** The last message of a child that ended normally. */
export const ALONE_DONE = "done";

/** What the child reported about its run. */
export function reportsOf({ told = [] }: ChildEnd): readonly AloneReport[] {
  return told.filter((word) => word !== ALONE_DONE) as AloneReport[];
}

/** The failure that a child's end means for its job; null if it ended well: it said so, or reported the job's end. */
export function evidenceOf(end: ChildEnd): Failure | null {
  const { code, signal, output, told = [] } = end;
  if (code === 0 && (told.includes(ALONE_DONE) || reportsOf(end).length > 0)) return null;
  const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
  const said = output.trim();
  const failure = runtimeFailure("crashed", "ProcessDied", `The child process of the job died with ${how}.`);
  return { ...failure, code: signal ?? String(code), stack: said === "" ? null : `Last output:\n${said}` };
}
