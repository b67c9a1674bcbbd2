// Jobs of every course of life, for whoever counts their runs.
import type { AttemptRecord, Job } from "../../src/core/job.ts";
import type { NewJob } from "../../src/core/new-job.ts";
import { type RunRecord, runsOf } from "../../src/core/run-record.ts";
import type { Settlement, Store } from "../../src/store/store.ts";
import { add, end, read, takeOne } from "./runs.ts";
import { cancel, complete, crashed, dead, failure, release, retry } from "./verdicts.ts";

const UNCHARGED = { attempts: 0, crashes: 1 } as const;
const LATE = dead({
  reason: "deadline",
  charge: { attempts: 0, crashes: 0 },
  failure: failure({ message: "too late" }),
});

/** What may happen to a job, one after the other; `redrive`, `run` and `ask` are no verdicts. */
type Step = Settlement["verdict"] | "redrive" | "run" | "ask";

/** The courses by name. */
export const LIVES: Readonly<Record<string, readonly Step[]>> = {
  waits: [],
  runs: ["run"],
  completes: [complete()],
  "completes at the third try": [retry(), retry({ delayMs: 1_000 }), complete()],
  "waits for a retry": [retry(), retry({ delayMs: 60_000, failure: failure({ message: "stuck" }) })],
  "is retried now": [retry(), "run"],
  dies: [retry(), dead()],
  "dies at once": [dead()],
  "dies before it could run": [LATE],
  "dies between two runs": [retry(), LATE],
  "was lost before it started": [crashed({ charge: UNCHARGED }), complete()],
  "was lost, released, retried, lost": [
    crashed({ charge: UNCHARGED }),
    release(),
    retry(),
    crashed({ charge: UNCHARGED }),
    crashed(),
    "run",
  ],
  "is cancelled while it waits": ["ask"],
  "is cancelled while it waits for a retry": [retry({ delayMs: 1_000 }), "ask"],
  "is cancelled while it runs": [retry(), cancel()],
  "is redriven and waits": [retry(), dead(), "redrive"],
  "is redriven and retried": [dead(), "redrive", retry(), retry({ delayMs: 500 })],
  "is redriven twice and completes": [dead(), "redrive", retry(), dead(), "redrive", complete()],
  "fails more often than is kept": [...Array.from({ length: 14 }, () => retry()), "run"],
};

/** Lives through a course; answers the job and its bad runs. */
export async function live(
  store: Store,
  clock: { now: number },
  steps: readonly Step[],
  overrides: Partial<NewJob> = {},
): Promise<{ readonly job: Job; readonly history: readonly AttemptRecord[] }> {
  const id = await add(store, { type: `life-${Math.random()}`, maxAttempts: 5, ...overrides });
  for (const step of steps) {
    clock.now += 1_000;
    const { generation, runAt } = await read(store, id);
    if (step === "redrive") await store.redrive([{ id, generation, delayMs: 0 }]);
    else if (step === "ask") await store.cancel([id]);
    else {
      clock.now = Math.max(clock.now, runAt);
      const run = await takeOne(store, id);
      clock.now += 700;
      if (step !== "run") await end(store, run, step);
    }
  }
  return { job: await read(store, id), history: await store.history(id) };
}

/** The runs as the view has them, times as a function writes them. */
export function asRows(
  { job, history }: { readonly job: Job; readonly history: readonly AttemptRecord[] },
  time: (ms: number) => unknown,
  truth: (is: boolean) => unknown,
): unknown[][] {
  const at = (ms: number | null): unknown => (ms === null ? null : time(ms));
  return runsOf(job, history).map((run: RunRecord) => [
    run.id,
    run.jobId,
    run.type,
    run.generation,
    run.retryCount,
    run.maxRetries,
    truth(run.isRetry),
    run.originalRunId,
    run.status,
    at(run.nextRetryAt),
    run.errorMessage,
    at(run.startedAt),
    at(run.completedAt),
    run.label,
    job.key,
    job.payload,
  ]);
}
