// What the doctor finds in the store: workers, work that nobody does, pauses, dead letters.
import { formatDuration } from "../core/duration.ts";
import type { Store } from "../store/store.ts";
import { gatherHealth } from "../upkeep/health.ts";
import { finding, type Finding } from "./doctor-machine.ts";
import { counted } from "./words.ts";

/** Due work that waits longer than this has nobody who takes it. */
const STUCK_MS = 60_000;

/** Workers, waiting work, orphaned runs, pauses and dead letters. */
export async function queueFindings(store: Store): Promise<Finding[]> {
  const { workers, orphans, oldestDueMs, waitingTypes, paused, deadLetters, jobs } = await gatherHealth(store);
  const findings: Finding[] = [];
  const isIdle = jobs.queued + jobs.running === 0;
  findings.push(
    workers > 0 || isIdle
      ? finding("workers", "ok", counted(workers, "worker"))
      : finding("workers", "warning", "none is alive", "start one: worker --jobs FILE"),
  );
  findings.push(
    oldestDueMs !== null && oldestDueMs >= STUCK_MS
      ? finding(
          "work",
          workers > 0 ? "problem" : "warning",
          `due for ${formatDuration(oldestDueMs)} and not taken: ${waitingTypes.slice(0, 10).join(", ")}`,
          workers > 0 ? "no worker that is alive serves these types, or all are busy: start one that does" : null,
        )
      : finding("work", "ok", `${counted(jobs.queued, "job")} waiting, ${jobs.running} running`),
  );
  if (orphans > 0) {
    const remedy = "any living worker, or `drain`, takes them over within a lease";
    findings.push(finding("runs", "warning", `${counted(orphans, "run")} of workers that do not answer`, remedy));
  }
  if (paused.length > 0)
    findings.push(finding("pauses", "warning", `paused: ${paused.slice(0, 10).join(", ")}`, "resume what should run"));
  if (deadLetters > 0)
    findings.push(
      finding(
        "dead",
        "warning",
        counted(deadLetters, "dead letter"),
        "`dlq stats` says why, `dlq retry` sends them back",
      ),
    );
  return findings;
}
