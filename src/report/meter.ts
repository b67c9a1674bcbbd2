// What is counted of the runs and the new jobs of one process, for metrics. Only its form is here: the counters are in
// the room metrics, and a process that counts nothing loads none.
import type { Job } from "../core/job.ts";
import type { Verdict } from "../core/verdict.ts";
import type { EnqueueAnswer } from "../store/store.ts";
import type { RunTimes } from "./reporter.ts";

/** Counts what a process does. */
export interface Meter {
  /** Counts a run whose verdict is written; without times for one that this process did not run. */
  ran(job: Pick<Job, "type" | "runAt" | "startedAt">, verdict: Verdict, times?: RunTimes): void;
  /** Counts a run whose verdict the store refused, because the run had lost its lease. */
  stale(type: string): void;
  /** Counts the result of an enqueue. */
  enqueued(type: string, result: EnqueueAnswer["kind"]): void;
}
