// Cancels jobs and tells of it, whoever asks for that: people, or a schedule that replaces what it made before.
import type { CancelAnswer, Store } from "../store/store.ts";
import type { Events } from "../report/events.ts";

/** Cancels jobs; answers for each. Of a waiting one it is told here, of a running one by the worker that stops it. */
export async function cancelJobs(
  ids: readonly string[],
  store: Pick<Store, "cancel" | "get">,
  events: Pick<Events, "emit" | "isHeard">,
): Promise<CancelAnswer[]> {
  const answers = await store.cancel(ids);
  const cancelled = ids.filter((_, at) => answers[at] === "cancelled");
  if (cancelled.length === 0 || !events.isHeard("job.cancelled")) return answers;
  // They are cancelled all the same if they cannot be read now; whoever waits for one of them looks for itself.
  const jobs = await store.get(cancelled).catch(() => []);
  for (const job of jobs) if (job) events.emit({ kind: "job.cancelled", job, verdict: { kind: "cancel" } });
  return answers;
}
