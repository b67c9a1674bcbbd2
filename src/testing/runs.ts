// Work on demand: the next job, one job, everything due, everything there is.
import { AssertionError } from "node:assert";
import { RedriveError } from "../core/errors.ts";
import { invalid, parseOptions } from "../core/options.ts";
import { pausedMs } from "../core/paused.ts";
import type { Verdict } from "../core/verdict.ts";
import { noJob } from "../operate/jobs.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import type { RedriveEvent } from "../report/events.ts";
import type { Driver, Goal } from "./driver.ts";
import type { ObservedStore } from "./observed-store.ts";
import { reportOf, type RunReport } from "./report.ts";
import type { Timeline } from "./timeline.ts";

/** The result of a drain. */
export interface DrainSummary {
  readonly completed: number;
  readonly retried: number;
  readonly dead: number;
  readonly released: number;
  readonly cancelled: number;
  /** Jobs that still wait: for a later time, for the end of a pause, or for a type that is not defined here. */
  readonly waiting: number;
}

/** Work on demand. */
export interface RunsOnDemand {
  /** Runs the job that a worker would take next; null if nothing is due. */
  runNext(): Promise<RunReport | null>;
  /** Runs this job, due or not. */
  runJob(job: string | { readonly id: string }): Promise<RunReport>;
  /**
   * Runs everything that is due now, and what becomes due through that. With `until: "idle"` time passes until nothing
   * is left that could run; throws after 10,000 runs or a year.
   */
  drain(options?: { readonly until?: "idle" }): Promise<DrainSummary>;
  /** Kills the worker of the running job, and waits the second until that is noticed and charged. */
  crashWorker(): Promise<RunReport>;
}

/** The end of a run. */
export type RunEnd = Extract<RedriveEvent, { readonly verdict: Verdict }>;
const COUNTED = ["completed", "retried", "dead", "released", "cancelled"] as const;

/** What running on demand needs. */
export interface RunsOptions {
  readonly driver: Driver;
  readonly observed: ObservedStore;
  readonly timeline: Timeline;
  readonly jobs: readonly JobDefinition[];
  /** Listens for the ends of runs; returns a function that stops. */
  readonly onEnded: (listener: (event: RunEnd) => void) => () => void;
}

/** Work on demand. */
export function openRuns(options: RunsOptions): RunsOnDemand {
  const { driver, observed, onEnded } = options;
  const { verbs } = observed;

  /** Drives until one run has ended; null if there was none to take. */
  const one = async (name: string, first: string | null, isTaken: boolean): Promise<RunReport | null> => {
    let taken = isTaken ? first : null;
    let ended: RunEnd | null = null;
    const stop = onEnded((event) => {
      if (event.job.id === taken) ended ??= event;
    });
    const goal: Goal = {
      name,
      wish: () => (taken !== null ? "none" : first === null ? "any" : { id: first }),
      onTaken: (id) => (taken ??= first === null || id === first ? id : null),
      done: () => ended !== null || (first === null && taken === null && driver.isQuiet() && !driver.isDue()),
    };
    await driver.drive(goal).finally(stop);
    const end = ended as RunEnd | null;
    if (end === null) return null;
    const [job] = verbs.get([end.job.id]);
    if (!job) throw noJob(end.job.id);
    return reportOf(job, end.verdict, job.state === "queued" ? job.runAt : null);
  };

  return {
    runNext: () => one("runNext", null, false),
    async runJob(target) {
      const id = typeof target === "string" ? target : target.id;
      checkRunnable(id, options);
      return (await one("runJob", id, false)) as RunReport;
    },
    async drain(given = {}) {
      const { until } = parseOptions(given, ["until"], "drain");
      if (until !== undefined && until !== "idle") throw invalid("drain.until", '"idle"', until, "or leave it out");
      const sum = { completed: 0, retried: 0, dead: 0, released: 0, cancelled: 0 };
      const stop = onEnded(({ kind }) => {
        const field = COUNTED.find((each) => kind === `job.${each}`);
        if (field) sum[field] += 1;
      });
      const done = until === "idle" ? () => driver.isIdle() : () => driver.isQuiet() && !driver.isDue();
      await driver.drive({ name: "drain", wish: () => "any", done }).finally(stop);
      return { ...sum, waiting: verbs.count().queued };
    },
    async crashWorker() {
      const [holding] = observed.holdings.values();
      if (!driver.life || !holding)
        throw new AssertionError({
          message:
            "crashWorker: no job is running. Use crashNext, or slowNext and advance the clock by half of that time.",
        });
      driver.life.crash();
      return (await one("crashWorker", holding.id, true)) as RunReport;
    },
  };
}

/** Throws unless the job waits, its type is defined here and it is not paused. */
function checkRunnable(id: string, { observed, timeline, jobs }: RunsOptions): void {
  const { verbs } = observed;
  const [job] = verbs.get([id]);
  if (!job) throw noJob(id);
  const refuse = (why: string): never => {
    throw new RedriveError("illegal_transition", `runJob: job ${id} of ${job.type} ${why}`, { details: { id } });
  };
  if (job.state !== "queued") refuse(`does not wait; it is ${job.state}.`);
  if (!jobs.some(({ type }) => type === job.type)) refuse("has no definition here. Pass it in `jobs`.");
  if (pausedMs(verbs.control().pauses, job, timeline.now, timeline.now + 1) > 0) refuse("is paused. Resume it first.");
}
