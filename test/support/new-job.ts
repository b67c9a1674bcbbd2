// Builders of jobs on their way into a store. Ids fall while the count rises, so that a store which mistakes the order
// of ids for the order of enqueue is caught.
import { createHash } from "node:crypto";
import { USUAL_TERMS } from "../../src/core/job.ts";
import type { NewJob } from "../../src/core/new-job.ts";

let made = 0;

/** A new id; each is smaller than the one before. */
export function nextId(): string {
  made += 1;
  return `job-${String(1_000_000_000 - made)}`;
}

/** The digest of a payload, as a caller makes it. */
export function digestOf(payload: string): string {
  return createHash("sha256").update(payload).digest("hex");
}

/** A job that may be enqueued as it is: due at once, no key, ten attempts. */
export function newJob(overrides: Partial<NewJob> = {}): NewJob {
  const payload = overrides.payload ?? '{"key":"a.mp4"}';
  return {
    id: nextId(),
    type: "thumbnail",
    queue: "default",
    service: null,
    tenant: null,
    group: null,
    groupConcurrency: overrides.group == null ? null : 1,
    priority: 0,
    key: null,
    digest: overrides.key == null ? null : digestOf(payload),
    payload,
    version: 1,
    unique: "key",
    delayMs: 0,
    runAt: null,
    trace: null,
    ...USUAL_TERMS,
    limited: true,
    keepFinishedMs: null,
    keepDeadMs: null,
    ...overrides,
  };
}
