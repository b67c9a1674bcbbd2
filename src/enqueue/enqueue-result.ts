// The result of an enqueue: for the caller, the log and the listeners.
import { RedriveError } from "../core/errors.ts";
import type { State } from "../core/job.ts";
import { conflictText, type NewJob } from "../core/new-job.ts";
import { invalid } from "../core/options.ts";
import type { FlowMeter } from "../store/flow-meter.ts";
import type { EnqueueAnswer, Store, Within } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import { aboutJob } from "../report/about-job.ts";
import type { Events } from "../report/events.ts";
import type { Meter } from "../report/meter.ts";

/** The result of an enqueue. */
export interface EnqueuedJob {
  /** The id of the job; for a duplicate, the id of the job that holds the key. */
  readonly id: string;
  /** Its type. */
  readonly type: string;
  /** True if a job with this key exists already; then nothing was written. */
  readonly duplicate: boolean;
  /** True if a waiting job with this key got the new payload. */
  readonly replaced: boolean;
  /**
   * `queued` for a job that was written; for a duplicate the state of the job that holds the key, null if it is
   * deleted.
   */
  readonly state: State | null;
}
/** The store inside a caller's transaction; throws for a store without such transactions. */
export function withinOf(store: Store, tx: unknown): Within {
  if (!store.within)
    throw invalid("tx", "a Postgres store, which can share your transaction", store.name, "leave tx out");
  return store.within(tx);
}
/**
 * Where results are reported. Events are null inside a transaction, which may still roll back; the flow counts such a job
 * too.
 */
export type Teller = {
  readonly log: Log | null;
  readonly events: Events | null;
  readonly flow?: FlowMeter;
  readonly meter?: Meter;
};

/** Reports the result of an enqueue to the caller and the listeners. */
export function enqueueResult({ log, events, flow, meter }: Teller, job: NewJob, answer: EnqueueAnswer): EnqueuedJob {
  const { id, kind } = answer;
  const { type, key } = job;
  meter?.enqueued(type, kind);
  if (kind === "conflict") throw new RedriveError("conflict", conflictText(job, id), { details: { id, type, key } });
  if (kind === "duplicate" && answer.state === "dead")
    log?.warn(aboutJob({ ...job, id }), "the job with this key is dead: redrive it, or enqueue under another key");
  if (kind === "created") {
    events?.emit({ kind: "job.enqueued", id, type });
    flow?.add(type, "enqueued");
  }
  const state = kind === "duplicate" ? answer.state : "queued";
  return { id, type, duplicate: kind === "duplicate", replaced: kind === "replaced", state };
}
