// Single enqueue calls that share writes: each caller awaits its own job, and the calls that arrive during one write go
// with the next.
import { isRedriveError } from "../core/errors.ts";
import { checkNewJob, type NewJob } from "../core/new-job.ts";
import { asChecked } from "../store/checked-jobs.ts";
import { groupCommit, type Weight, WRITE_LENGTH } from "../store/group-commit.ts";
import type { EnqueueAnswer, Store } from "../store/store.ts";
import type { System } from "../system/system.ts";

/** Most jobs per write; bounds how long a heartbeat waits behind one. */
const GROUP = 500;

/** Writes at the same time: the next is sent while the store works on one. */
const IN_FLIGHT = 2;

/** Takes jobs one at a time. */
export interface Enqueuer {
  /** Resolves when the job is stored; rejects if that is not certain. */
  enqueue(job: NewJob): Promise<EnqueueAnswer>;
  idle(): Promise<void>;
}

/** Most jobs written alone at the same time: few, so that connections are left for other work. */
const ALONE_IN_FLIGHT = 4;

/** How long to wait for a key that another open transaction holds; the store waits a moment each time it is asked. */
const KEY_MS = 10_000;

interface Entry {
  readonly job: NewJob;
  readonly resolve: (answer: EnqueueAnswer) => void;
  readonly reject: (error: unknown) => void;
}

const WEIGHT: Weight<Entry> = { of: ({ job }) => job.payload.length, most: WRITE_LENGTH };

/** An enqueuer in front of a store. */
export function openEnqueuer(store: Store, { monotonic }: Pick<System, "monotonic">): Enqueuer {
  const write = async (group: readonly Entry[]): Promise<void> => {
    const answers = await store.enqueue(asChecked(group.map(({ job }) => job)));
    group.forEach(({ resolve }, at) => resolve(answers[at] as EnqueueAnswer));
  };
  // Separate from shared writes: a job with a free key does not wait for jobs whose keys are held.
  const alone = groupCommit<Entry & { readonly until: number }>(
    async ([entry]) => {
      if (!entry) return;
      await write([entry]).catch((error: unknown) => {
        if (isKeyTaken(error) && monotonic() < entry.until) alone.add(entry);
        else entry.reject(error);
      });
    },
    1,
    ALONE_IN_FLIGHT,
  );
  const together = (group: readonly Entry[]): Promise<void> =>
    write(group).catch((error: unknown) => {
      // An outage affects all of them; any other error is caused by one, which is found by writing each alone.
      const isOutage = isRedriveError(error, "store_unavailable") && error.details.key === undefined;
      const isFinal = isOutage || (group.length === 1 && !isKeyTaken(error));
      const until = monotonic() + KEY_MS;
      for (const entry of group) {
        if (isFinal) entry.reject(error);
        else alone.add({ ...entry, until });
      }
    });
  const plain = groupCommit(together, GROUP, IN_FLIGHT, WEIGHT);
  // Another open transaction may hold a key, and the jobs that share its write wait with it, for a moment.
  const keyed = groupCommit(together, GROUP, IN_FLIGHT, WEIGHT);
  return {
    enqueue: (job) =>
      new Promise((resolve, reject) => {
        checkNewJob(job);
        (job.key === null ? plain : keyed).add({ job, resolve, reject });
      }),
    async idle() {
      await Promise.all([plain.idle(), keyed.idle()]);
      await alone.idle();
    },
  };
}

function isKeyTaken(error: unknown): boolean {
  return isRedriveError(error, "store_unavailable") && error.details.key === "locked";
}
