// Enqueues several jobs of any types, each answered on its own: what one of them did wrong keeps no other from being
// written.
import { isRedriveError, type RedriveError } from "../core/errors.ts";
import { checkNewJob, type NewJob } from "../core/new-job.ts";
import { invalid, parseOptions } from "../core/options.ts";
import { isPromise } from "../core/promise.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { asChecked } from "../store/checked-jobs.ts";
import { WRITE_LENGTH } from "../store/group-commit.ts";
import type { EnqueueAnswer, Store } from "../store/store.ts";
import { type EnqueuedJob, enqueueResult, type Teller } from "./enqueue-result.ts";
import { patiently } from "./enqueue-stream.ts";
import { type EnqueueOptions, type KnownType, newJobOf, payloadOfText } from "./new-jobs.ts";
import type { Traces } from "../report/traces.ts";

/** One of several jobs to enqueue; its payload is JSON text, kept byte for byte. */
export interface JobToEnqueue {
  /** The job type: what `defineJob` returned, or its name. */
  readonly job: JobDefinition | string;
  /** The payload as JSON text. */
  readonly text: string;
  /** Options of the job; a transaction is not among them. */
  readonly options?: Omit<EnqueueOptions, "tx">;
  /** Its id, 1 to 64 letters, digits, `_` or `-`; a second job of the same id is a duplicate. Default a new one. */
  readonly id?: string;
}

/** What they are written with. */
export interface EachDependencies extends Teller {
  readonly store: Store;
  readonly traces?: Traces | null;
  readonly maxPayloadBytes: number;
  known(definition: JobDefinition | string): KnownType;
  newId(): string;
  /** Writes one job, together with what others enqueue at the same time. */
  single(job: NewJob): Promise<EnqueueAnswer>;
}

/** Most jobs per write. */
const WRITE = 1_000;

/** Writes the jobs; answers each, in their order. */
export async function enqueueEach(
  parts: EachDependencies,
  jobs: readonly JobToEnqueue[],
): Promise<(EnqueuedJob | RedriveError)[]> {
  if (!Array.isArray(jobs)) throw invalid("jobs", "an array", jobs, "pass one");
  const answers: (EnqueuedJob | RedriveError)[] = [];
  let waiting: { readonly at: number; readonly job: NewJob }[] = [];
  let length = 0;
  const write = async (): Promise<void> => {
    const writing = waiting;
    waiting = [];
    length = 0;
    if (writing.length === 0) return;
    const send = async (sent: readonly NewJob[]): Promise<EnqueueAnswer[]> => {
      const [only] = sent;
      if (jobs.length === 1 && only !== undefined) return [await parts.single(only)];
      const checked = asChecked(sent);
      return patiently(() => parts.store.enqueue(checked));
    };
    const sent = writing.map(({ job }) => job);
    const found = await (parts.traces ? parts.traces.send(sent, send) : send(sent));
    writing.forEach(({ at, job }, index) => {
      answers[at] = ownAnswer(() => enqueueResult(parts, job, found[index] as EnqueueAnswer));
    });
  };
  for (const [at, each] of jobs.entries()) {
    const making = jobOf(parts, each);
    // No await for a job that is ready: it would cost more than the rest of the work on it.
    const made = isPromise(making) ? await making : making;
    if (isRedriveError(made)) {
      answers[at] = made;
      continue;
    }
    waiting.push({ at, job: made });
    length += made.payload.length;
    if (waiting.length >= WRITE || length >= WRITE_LENGTH) await write();
  }
  await write();
  return answers;
}

function jobOf(parts: EachDependencies, given: JobToEnqueue): NewJob | RedriveError | Promise<NewJob | RedriveError> {
  try {
    const { job, text, options = {}, id } = parseOptions(given, ["job", "text", "options", "id"], "jobs");
    const type = parts.known(job as JobDefinition | string);
    if ("tx" in (options as object)) throw invalid("tx", "no transaction for several jobs", "one", "use enqueue");
    const make = (payload: string): NewJob => {
      const made = newJobOf(type, payload, (id as string | undefined) ?? parts.newId(), options as EnqueueOptions);
      checkNewJob(made);
      return made;
    };
    const payload = payloadOfText(type, text as string, parts.maxPayloadBytes);
    return isPromise(payload) ? payload.then(make).catch(refusal) : make(payload);
  } catch (error) {
    return refusal(error);
  }
}

/** The error of one job; one that is not the caller's is thrown. */
function refusal(error: unknown): RedriveError {
  if (isRedriveError(error)) return error;
  throw error;
}

function ownAnswer(answer: () => EnqueuedJob): EnqueuedJob | RedriveError {
  try {
    return answer();
  } catch (error) {
    return refusal(error);
  }
}
