// What a worker may take at this moment of things that are limited or held back.
import type { JobDefinition } from "../jobs/define-job.ts";
import type { Control } from "../store/store.ts";

/** Nothing of what is paused, and of types with a limit of their own what their slots allow. */
export function grantsOf(
  control: Control,
  jobs: readonly JobDefinition[],
  /** Slots that are taken by a type. */
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
