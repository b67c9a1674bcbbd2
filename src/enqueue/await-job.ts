// Waits for a job to end, in whichever process it runs. Events of this process make it fast; reads of the store make it
// certain.
import { setMaxListeners } from "node:events";
import { RedriveError } from "../core/errors.ts";
import { runtimeFailure } from "../core/verdict.ts";
import type { Failure, Job } from "../core/job.ts";
import type { Store } from "../store/store.ts";
import { aboutJob } from "../report/about-job.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import type { Awaited, Endings } from "./endings.ts";

/** How a job ended. */
export type RunOutcome<Result> =
  | {
      readonly success: true;
      /**
       * What the handler returned, parsed from JSON. A result of more than 64 KiB is not kept: `{ $truncated: true,
       * bytes }` stands here in its place, whatever `Result` says, and `{ $unserializable: "bigint" }` for a value that
       * JSON cannot hold. Handlers with large results store them elsewhere and return a reference.
       */
      readonly result: Result;
      /** The completed job. */
      readonly job: Job;
    }
  | {
      readonly success: false;
      /** Why it died or was cancelled. */
      readonly error: Failure;
      /** The dead or cancelled job. */
      readonly job: Job;
    };

const FIRST_LOOK_MS = 20;
const LONGEST_WAIT_MS = 1_000;
/** After this long without a worker, a warning is logged. */
const NOBODY_AFTER_MS = 5_000;

/** What the wait works with. */
export interface WaitDependencies {
  readonly store: Store;
  readonly system: System;
  readonly log: Log;
  readonly endings: Endings;
  /** Fires when the queue is closed. */
  readonly gone: AbortSignal;
}

/**
 * Writes a job and resolves when it has ended. Rejects with `aborted` when the signal fires and with `closed` when the
 * queue is closed; neither cancels the job. It listens before it writes: a job that is not kept may end before the
 * write is answered.
 */
export async function runToEnd<Result>(
  parts: WaitDependencies,
  awaited: Awaited,
  signal: AbortSignal | undefined,
  write: () => Promise<{ readonly id: string }>,
): Promise<RunOutcome<Result>> {
  const end = listenFor(awaited, parts, signal);
  try {
    const { id } = await write();
    return await outcomeOf(id, parts, signal, end);
  } finally {
    end.stop();
  }
}

async function outcomeOf<Result>(
  id: string,
  { store, system, log, gone }: WaitDependencies,
  signal: AbortSignal | undefined,
  end: End,
): Promise<RunOutcome<Result>> {
  const began = system.monotonic();
  let warned = false;
  for (let wait = FIRST_LOOK_MS; ; wait = Math.min(LONGEST_WAIT_MS, wait * 1.5)) {
    if (gone.aborted)
      throw new RedriveError("closed", `This Redrive was closed before job ${id} ended; the job continues.`);
    if (signal?.aborted) throw new RedriveError("aborted", `Waiting for job ${id} was aborted; the job continues.`);
    const [job] = await store.get([id]);
    // The end of a job that is not kept is known only from an event, which may still be on its way.
    if (!job && !end.of(id)) await end.within(LONGEST_WAIT_MS);
    const last = job ?? end.of(id);
    if (!last && (signal?.aborted || gone.aborted)) continue;
    if (!last) throw removed(id);
    const outcome = outcomeIn<Result>(last);
    if (outcome) return outcome;
    if (!warned && system.monotonic() - began > NOBODY_AFTER_MS) {
      warned = true;
      if ((await store.workers()).length === 0)
        log.warn(aboutJob(last), "no worker is running: start one, or the job will wait");
    }
    await end.within(wait);
  }
}

function removed(id: string): RedriveError {
  const message = `Job ${id} is deleted: it was removed before this process saw its end. With keep.finished: 0 only the process that runs a job knows its result; keep finished jobs for a minute, or run the worker in this process.`;
  return new RedriveError("not_found", message, { details: { id } });
}

function outcomeIn<Result>(job: Job): RunOutcome<Result> | null {
  if (job.state === "completed") {
    const result = (job.result === null ? undefined : JSON.parse(job.result)) as Result;
    return { success: true, result, job };
  }
  if (job.state === "dead") return { success: false, error: job.failure ?? nothingKnown("Dead", job), job };
  return job.state === "cancelled" ? { success: false, error: nothingKnown("Cancelled", job), job } : null;
}

function nothingKnown(name: string, { id }: Job): Failure {
  return { ...runtimeFailure("timeout", name, `Job ${id} was ${name.toLowerCase()}.`), class: "permanent" };
}

/** The end of a job, as far as this process knows it from events. */
interface End {
  /** The ended job of this id, once its event arrived. */
  of(id: string): Job | null;
  /** Waits so long, or until an event arrives, the signal fires or the queue is closed. */
  within(ms: number): Promise<void>;
  stop(): void;
}

/**
 * Listens for it. Plain listeners, removed at the end: a signal combined from others would stay registered on them as
 * long as they live.
 */
function listenFor(
  awaited: Awaited,
  { endings, system, gone }: WaitDependencies,
  signal: AbortSignal | undefined,
): End {
  const heard = new Map<string, Job>();
  let isNew = false;
  let sleeping: AbortController | null = null;
  const stir = (): void => sleeping?.abort();
  const deaf = endings.listen(awaited, (job) => {
    heard.set(job.id, job);
    isNew = true;
    stir();
  });
  const signals = signal ? [signal, gone] : [gone];
  for (const each of signals) {
    // One signal for all calls of a process is normal use; Node takes the eleventh listener for a leak.
    setMaxListeners(0, each);
    each.addEventListener("abort", stir);
  }
  return {
    of: (id) => heard.get(id) ?? null,
    async within(ms) {
      // The event came while a read was under way, which may have been too early: the next read follows at once and
      // finds the job. If it does not, polling continues at its normal interval.
      if (!isNew && !signals.some(({ aborted }) => aborted)) {
        sleeping = new AbortController();
        await system.sleep(ms, sleeping.signal);
      }
      isNew = false;
    },
    stop() {
      deaf();
      for (const each of signals) each.removeEventListener("abort", stir);
    },
  };
}
