// Runs one handler once, outside any queue, through the real executor: the input goes through JSON and schema as it
// would on its way through a store, and the verdict is core's own.
import type { Failure } from "../core/job.ts";
import { parseNumber, namesOf, parseOptions } from "../core/options.ts";
import type { Verdict } from "../core/verdict.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { knownType, newJobOf, payloadOf } from "../enqueue/new-jobs.ts";
import { createMemoryStore } from "../store/memory/index.ts";
import type { ClaimedJob } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import { execute } from "../worker/executor.ts";
import type { Settler } from "../worker/settler.ts";
import { OPEN_GATE } from "../services/service-gate.ts";
import { collectLog, type CollectedLog } from "./collect-log.ts";
import { fakeSystem, seededDice } from "./fake-system.ts";
import { reportOf, type RunReport } from "./report.ts";
import { startOf } from "./start.ts";
import { Timeline } from "./timeline.ts";

/** How a handler is run. */
export interface PerformOptions {
  /** The attempt that the handler sees, 1 to 10,000; default 1. */
  readonly attempt?: number;
  /** Attempts in total, 1 to 10,000; default that of the definition. */
  readonly maxAttempts?: number;
  /** The key of the job; default none. */
  readonly key?: string;
  /** The tenant of the job; default none. */
  readonly tenant?: string;
  /** Fires the context's signal, as a timeout would. */
  readonly signal?: AbortSignal;
  /** A log that also gets every line; default none. */
  readonly log?: Log;
  /** The time on the clock: a date, epoch milliseconds or an ISO 8601 text; default 2026-01-01T00:00:00Z. */
  readonly now?: Date | number | string;
  /** Jitter and everything else random follows from it; default 1. */
  readonly seed?: number;
}

/** The result of a handler. */
export interface Performed<Result> {
  /** `retrying` and `dead` are the states in which the queue would have put the job. */
  readonly state: RunReport["state"];
  readonly result: Result | undefined;
  readonly failure: Failure | null;
  /** The wait before the next attempt in milliseconds: of a snooze or a retry; null otherwise. */
  readonly delayMs: number | null;
  /** The progress it reported with `context.progress`. */
  readonly progress: readonly unknown[];
  readonly log: CollectedLog;
}

const FIELDS = namesOf<PerformOptions>()(["attempt", "maxAttempts", "key", "tenant", "signal", "log", "now", "seed"]);

/** Runs a handler once; rejects, as `enqueue` would, for an input that may not be enqueued. */
export async function perform<Input, Result>(
  definition: JobDefinition<Input, Result>,
  input: NoInfer<Input>,
  options: PerformOptions = {},
): Promise<Performed<Result>> {
  parseOptions(options, FIELDS, "perform");
  const { attempt = 1, signal, seed = 1 } = options;
  parseNumber(attempt, "attempt", { min: 1, max: 10_000, integer: true });
  const log = collectLog(options.log ?? null);
  const timeline = new Timeline(startOf(options.now));
  const system = fakeSystem(timeline, seededDice(seed, definition.type));
  const job = await claimed(definition as JobDefinition, input, options, timeline);
  const progress: unknown[] = [];
  const verdict = await new Promise<Verdict>((resolve) => {
    const settle: Settler["settle"] = (_job, said, done) => {
      if (said.kind === "progress") progress.push(JSON.parse(said.value));
      else resolve(said);
      done("counted", said);
    };
    const store = { name: "memory" } as const;
    const executor = {
      system,
      log,
      settle,
      store,
      abortGraceMs: 0,
      heldMs: () => 0,
      report: () => undefined,
      gate: OPEN_GATE,
    };
    const own = { ...job, attempts: attempt - 1 };
    const run = execute(own, definition as JobDefinition, system.monotonic(), executor, () => undefined);
    if (signal?.aborted) run.stop("timeout");
    signal?.addEventListener("abort", () => run.stop("timeout"));
  });
  const { state, result, failure } = reportOf(job, verdict, null) as RunReport<Result>;
  return { state, result, failure, delayMs: "delayMs" in verdict ? verdict.delayMs : null, progress, log };
}

/** The job as a worker would get it. */
async function claimed(
  definition: JobDefinition,
  input: unknown,
  { key, tenant, maxAttempts }: PerformOptions,
  timeline: Timeline,
): Promise<ClaimedJob> {
  const store = createMemoryStore({ clock: () => timeline.now });
  const system = fakeSystem(timeline, seededDice(1, "perform"));
  const type = knownType(definition, {});
  await store.enqueue([newJobOf(type, await payloadOf(type, input), system.jobId(), { key, tenant, maxAttempts })]);
  const worker = system.workerId();
  await store.register({ id: worker, leaseMs: 30_000, release: null, pid: 1, host: "test" });
  const { version: control } = await store.control();
  const { lanes } = await store.lanes(null, 1);
  const quotas = lanes.map(({ lane }) => ({ lane, limit: 1 }));
  const nonce = system.nonce();
  const { jobs } = await store.claim({ worker, quotas, limit: 1, nonce, control, ticket: 0, startedThrough: 0 });
  return jobs[0] as ClaimedJob;
}
