// Cancels jobs and reports it, for operators and for schedules that replace their last job.
import type { CancelAnswer, Store } from "../store/store.ts";
import type { Events } from "../report/events.ts";

/** Cancels jobs; answers for each. Reports a waiting job here; the worker that stops a running job reports it. */
export async function cancelJobs(
  ids: readonly string[],
  store: Pick<Store, "cancel" | "get">,
  events: Pick<Events, "emit" | "isHeard">,
): Promise<CancelAnswer[]> {
  const answers = await store.cancel(ids);
  const cancelled = ids.filter((_, at) => answers[at] === "cancelled");
  if (cancelled.length === 0 || !events.isHeard("job.cancelled")) return answers;
  // They are cancelled even if they cannot be read now; a caller that waits for one of them reads the store itself.
  const jobs = await store.get(cancelled).catch(() => []);
  for (const job of jobs) if (job) events.emit({ kind: "job.cancelled", job, verdict: { kind: "cancel" } });
  return answers;
}
