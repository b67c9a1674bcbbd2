// Single enqueue calls that share writes: callers each await their own job, and whatever they ask for while one write
// is under way goes with the next.
import { isRedriveError } from "../core/errors.ts";
import { checkNewJob, type NewJob } from "../core/new-job.ts";
import { asChecked } from "../store/checked-jobs.ts";
import { groupCommit, type Weight, WRITE_LENGTH } from "../store/group-commit.ts";
import type { EnqueueAnswer, Store } from "../store/store.ts";
import type { System } from "../system/system.ts";

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

/** Jobs that are written alone, at once: few enough to leave connections to everybody else. */
const ALONE_IN_FLIGHT = 4;

/** How long a key in somebody's open transaction is waited for; a store waits a moment each time it is asked. */
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
  // Not in the place of a shared write: whoever has a free key does not wait for those whose keys are not.
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
      // An outage concerns them all; anything else is the fault of one, which is found by asking for each alone.
      const isOutage = isRedriveError(error, "store_unavailable") && error.details.key === undefined;
      const isFinal = isOutage || (group.length === 1 && !isKeyTaken(error));
      const until = monotonic() + KEY_MS;
      for (const entry of group) {
        if (isFinal) entry.reject(error);
        else alone.add({ ...entry, until });
      }
    });
  const plain = groupCommit(together, GROUP, IN_FLIGHT, WEIGHT);
  // A key may be in somebody's open transaction, and whoever shares its write waits with it, for a moment.
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
