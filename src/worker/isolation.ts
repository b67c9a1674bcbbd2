// The last chance of a suspect: a child process that is a worker of its own, takes one job of the lane, runs it and
// ends. If the job kills it, the crash is charged to that job alone, with the child's end as evidence.
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
  /** What becomes of the job without a run, because its breaker is open and its work is not to wait; null if it runs. */
  readonly held: Outcome | null;
  /** Fires when the child has lost its job and is to be ended. */
  readonly signal: AbortSignal;
  /** Fires when the worker stops; the child releases its job then. */
  readonly stop: AbortSignal;
}) => Promise<ChildEnd>;

/** What the child tells its parent about the run. */
export interface AloneReport {
  readonly job: Job;
  readonly verdict: Verdict;
  readonly settled: Settled;
  /** How the run ended, for the breaker of its service, whatever that made of it; null if there was none. */
  readonly heard: Outcome | null;
}

/** The end of the host of a process that runs a single job: it takes no other. */
export const ISOLATED_HOST = "/isolated";

/** The last word of a child that ended as it should. */
export const ALONE_DONE = "done";

/** What the child told about its run. */
export function reportsOf({ told = [] }: ChildEnd): readonly AloneReport[] {
  return told.filter((word) => word !== ALONE_DONE) as AloneReport[];
}

/** What a child's end says about the job it ran; null if it ended well: it said so, or told what became of its job. */
export function evidenceOf(end: ChildEnd): Failure | null {
  const { code, signal, output, told = [] } = end;
  if (code === 0 && (told.includes(ALONE_DONE) || reportsOf(end).length > 0)) return null;
  const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
  const said = output.trim();
  const failure = runtimeFailure("crashed", "ProcessDied", `The job's own process died with ${how}.`);
  return { ...failure, code: signal ?? String(code), stack: said === "" ? null : `Last output:\n${said}` };
}
