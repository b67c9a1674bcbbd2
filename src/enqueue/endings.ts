// The ends of jobs that this process has judged, told to those who wait for them. One listener for all who wait: each
// event is read once, however many there are.
import type { Job } from "../core/job.ts";
import type { Events } from "../report/events.ts";

/** What is known of a job before it is written: the id it gets, and the key by which it may turn out to be another. */
export interface Awaited {
  readonly id: string;
  readonly type: string;
  readonly key: string | null;
}

/** Tells ends of jobs. */
export interface Endings {
  /** Hears of the job of this id, and of every one of this type and key; returns the way to stop. */
  listen(awaited: Awaited, hear: (job: Job) => void): () => void;
}

const KINDS = ["job.completed", "job.dead", "job.cancelled"] as const;

/** The ends of jobs in these events; nothing is listened to while nothing is waited for. */
export function openEndings(events: Events): Endings {
  const waiting = new Map<string, Set<(job: Job) => void>>();
  let quiet: (() => void)[] = [];
  const tell = ({ job }: { readonly job: Job }): void => {
    for (const name of namesOf(job)) for (const hear of waiting.get(name) ?? []) hear(job);
  };
  return {
    listen(awaited, hear) {
      if (waiting.size === 0) quiet = KINDS.map((kind) => events.on(kind, tell));
      const names = namesOf(awaited);
      for (const name of names) waiting.set(name, (waiting.get(name) ?? new Set()).add(hear));
      return () => {
        for (const name of names) {
          const heard = waiting.get(name);
          heard?.delete(hear);
          if (heard?.size === 0) waiting.delete(name);
        }
        if (waiting.size === 0) for (const stop of quiet.splice(0)) stop();
      };
    },
  };
}

function namesOf({ id, type, key }: Awaited): string[] {
  return key === null ? [id] : [id, `${type} ${key}`];
}
