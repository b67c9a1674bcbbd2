// Waiting for a job to end, wherever it runs. Events of this process make it quick; looking into the store is the truth.
import { RedriveError } from "../core/errors.ts";
import { runtimeFailure } from "../core/verdict.ts";
import type { Failure, Job } from "../core/job.ts";
import type { Store } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import type { Events } from "./events.ts";

/** How a job ended. */
export type RunOutcome<Result> =
  | {
      readonly success: true;
      /**
       * What the handler returned, as JSON brings it back. One of more than 64 KiB is not kept: `{ $truncated: true, bytes }`
       * stands here in its place, whatever `Result` says, and `{ $unserializable: "bigint" }` for what JSON cannot hold.
       * Handlers with large results store them elsewhere and return a reference.
       */
      readonly result: Result;
      readonly job: Job;
    }
  | { readonly success: false; readonly error: Failure; readonly job: Job };

const FIRST_LOOK_MS = 20;
const LONGEST_WAIT_MS = 1_000;
/** After this long without a worker we say so. */
const NOBODY_AFTER_MS = 5_000;

/**
 * Resolves when the job has ended; rejects with `aborted` when the signal fires and with `closed` when the queue is
 * closed, neither of which cancels the job.
 */
export async function outcomeOf<Result>(
  id: string,
  parts: { readonly store: Store; readonly system: System; readonly events: Events; readonly log: Log },
  { signal, gone }: { readonly signal?: AbortSignal | undefined; readonly gone: AbortSignal },
): Promise<RunOutcome<Result>> {
  const { store, system, log } = parts;
  const ended = listenFor(id, parts.events);
  const stop = signal ? AbortSignal.any([signal, gone]) : gone;
  const began = system.monotonic();
  let warned = false;
  try {
    for (let wait = FIRST_LOOK_MS; ; wait = Math.min(LONGEST_WAIT_MS, wait * 1.5)) {
      if (gone.aborted)
        throw new RedriveError("closed", `This Redrive was closed while job ${id} was open; the job goes on.`);
      if (signal?.aborted) throw new RedriveError("aborted", `Waiting for job ${id} was aborted; the job goes on.`);
      const [job] = await store.get([id]);
      // Where nothing of it is kept, its end is known by word of mouth only, and the word may still be on its way.
      if (!job && !ended.job()) await ended.within(LONGEST_WAIT_MS, system, stop);
      const last = job ?? ended.job();
      if (!last && stop.aborted) continue;
      if (!last) throw new RedriveError("not_found", `Job ${id} is gone: it was removed before its end was seen.`);
      const outcome = outcomeIn<Result>(last);
      if (outcome) return outcome;
      if (!warned && system.monotonic() - began > NOBODY_AFTER_MS) {
        warned = true;
        if ((await store.workers()).length === 0)
          log.warn({ job: id, type: last.type }, "no worker is running: start one, or the job will wait");
      }
      await ended.within(wait, system, stop);
    }
  } finally {
    ended.stop();
  }
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

/** Hears of the end of one job in this process, as soon as it is written. */
function listenFor(
  id: string,
  events: Events,
): {
  within(ms: number, system: System, signal: AbortSignal): Promise<void>;
  /** The job as it ended, once that was heard. */
  job(): Job | null;
  stop(): void;
} {
  const heard = new AbortController();
  let followed = false;
  let last: Job | null = null;
  const hear = (job: Job): void => {
    last = job;
    heard.abort();
  };
  const off = (["job.completed", "job.dead", "job.cancelled"] as const).map((kind) =>
    events.on(kind, ({ job }) => job.id === id && hear(job)),
  );
  return {
    within(ms, system, signal) {
      // Heard while a look was under way, which may have been too early: the next one is at once and finds it. Should it
      // not, looking goes on at its own pace.
      if (heard.signal.aborted && !followed) {
        followed = true;
        return Promise.resolve();
      }
      return system.sleep(ms, AbortSignal.any([...(followed ? [] : [heard.signal]), signal]));
    },
    job: () => last,
    stop: () => off.forEach((stop) => stop()),
  };
}
