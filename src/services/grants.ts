// How much a worker may take now of work that is limited or held back.
import type { JobDefinition } from "../jobs/define-job.ts";
import type { Control } from "../store/store.ts";

/** Zero for paused work; for types with a concurrency limit what their slots allow. */
export function grantsOf(
  control: Control,
  jobs: readonly JobDefinition[],
  /** Slots that a type takes. */
  countOf: (type: string) => number,
): Map<string, number> {
  const grants = new Map<string, number>();
  for (const { type, concurrency, batch } of jobs) {
    if (!Number.isFinite(concurrency)) continue;
    grants.set(`type:${type}`, Math.max(0, concurrency - countOf(type)) * (batch?.size ?? 1));
  }
  for (const { kind, name, until } of control.pauses) {
    if (until === null || until > control.now) grants.set(`${kind}:${name}`, 0);
  }
  return grants;
}
