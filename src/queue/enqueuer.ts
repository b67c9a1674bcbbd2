// Single enqueue calls that share writes: callers each await their own job, and whatever they ask for while one write
// is under way goes with the next.
import { isRedriveError } from "../core/errors.ts";
import { checkNewJob, type NewJob } from "../core/new-job.ts";
import { sharing } from "../store/sharing.ts";
import type { EnqueueAnswer, Store } from "../store/store.ts";

/** Jobs per write at most; bounds how long a heartbeat can wait behind one. */
const GROUP = 500;

/** Writes at once: while the store works on one, the next is on its way. */
const IN_FLIGHT = 2;

/** Takes jobs one at a time. */
export interface Enqueuer {
  /** Resolves when the job is stored; rejects if that is not known to be so. */
  enqueue(job: NewJob): Promise<EnqueueAnswer>;
  idle(): Promise<void>;
}

/** An enqueuer in front of a store. */
export function openEnqueuer(store: Store): Enqueuer {
  interface Entry {
    readonly job: NewJob;
    readonly resolve: (answer: EnqueueAnswer) => void;
    readonly reject: (error: unknown) => void;
  }
  const write = async (group: Entry[]): Promise<void> => {
    try {
      const answers = await store.enqueue(group.map(({ job }) => job));
      group.forEach(({ resolve }, at) => resolve(answers[at] as EnqueueAnswer));
    } catch (error) {
      // An outage concerns them all; anything else is the fault of one, which is found by asking for each alone.
      const isOutage = isRedriveError(error, "store_unavailable") && error.details.key === undefined;
      if (group.length === 1 || isOutage) for (const { reject } of group) reject(error);
      else await Promise.all(group.map((entry) => write([entry])));
    }
  };
  const plain = sharing(write, GROUP, IN_FLIGHT);
  // A key may be in somebody's open transaction, and whoever shares its write waits with it.
  const keyed = sharing(write, GROUP, IN_FLIGHT);
  return {
    enqueue: (job) =>
      new Promise((resolve, reject) => {
        checkNewJob(job);
        (job.key === null ? plain : keyed).add({ job, resolve, reject });
      }),
    idle: async () => void (await Promise.all([plain.idle(), keyed.idle()])),
  };
}
