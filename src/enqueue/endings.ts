// The ends of jobs that this process has judged, for callers that wait for them. One event listener serves all of them:
// each event is read once, however many callers wait.
import type { Job } from "../core/job.ts";
import type { Events } from "../report/events.ts";

/** What is known of a job before it is written: its id, and the key by which it may turn out to be an existing job. */
export interface Awaited {
  readonly id: string;
  readonly type: string;
  readonly key: string | null;
}

/** Reports ends of jobs. */
export interface Endings {
  /** Listens for the job of this id, and for every job of this type and key; returns a function that stops. */
  listen(awaited: Awaited, hear: (job: Job) => void): () => void;
}

const KINDS = ["job.completed", "job.dead", "job.cancelled"] as const;

/** The ends of jobs in these events; without callers that wait, it does not listen. */
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
