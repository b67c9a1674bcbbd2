// The documents of the server itself: events, health, the overview, sessions, errors.
import * as v from "valibot";
import { STATES } from "../../core/job.ts";
import {
  boundedCount,
  count,
  counts,
  flag,
  json,
  number,
  numberOrNull,
  text,
  textOrNull,
  time,
  timeOrNull,
} from "../fields.ts";
import { cause } from "./recovery.ts";
import { run } from "./recovery.ts";
import { service } from "./fleet.ts";
import { pause } from "./fleet.ts";

/** A row of the event log. */
export const event = v.strictObject({
  seq: count,
  at: time,
  kind: text,
  actor: v.optional(textOrNull),
  why: v.optional(textOrNull),
  subject: textOrNull,
  intent: numberOrNull,
  value: json,
});

/** The health of the queue. */
export const health = v.strictObject({
  status: v.picklist(["healthy", "degraded", "unhealthy"]),
  score: number,
  successRate: numberOrNull,
  reasons: v.array(v.strictObject({ text, since: timeOrNull, subject: textOrNull, help: text })),
});

/** Counts of one step of time. */
export const flowPoint = v.strictObject({
  at: time,
  enqueued: count,
  completed: count,
  retried: count,
  dead: count,
  released: count,
  runMs: number,
  waitMs: number,
});
/** What the first page shows. */
export const overview = v.strictObject({
  health,
  jobs: v.strictObject(
    Object.fromEntries(STATES.map((each) => [each, boundedCount])) as Record<
      (typeof STATES)[number],
      typeof boundedCount
    >,
  ),
  oldestDueMs: v.pipe(numberOrNull, v.description("How long the oldest due job waits; null where none is due.")),
  flow: v.pipe(v.array(flowPoint), v.description("The last 60 minutes.")),
  causes: v.pipe(v.array(cause), v.description("Those with the most dead letters, up to five.")),
  services: v.pipe(v.array(service), v.description("Those whose breaker is not closed.")),
  pauses: v.array(pause),
  runs: v.pipe(v.array(run), v.description("Redrive runs that are not over.")),
  workers: v.strictObject({ alive: count, givenUp: count, releases: counts }),
  releases: v.pipe(
    v.array(v.strictObject({ release: text, at: time })),
    v.description("Releases first seen in these 60 minutes."),
  ),
  attention: v.pipe(
    v.array(v.strictObject({ kind: text, text, subject: textOrNull })),
    v.description("What a person should look at."),
  ),
});

/** Who calls. */
export const session = v.strictObject({
  actor: textOrNull,
  role: v.nullable(v.picklist(["producer", "viewer", "operator", "admin"])),
  payloads: flag,
  audit: flag,
  expiresAt: timeOrNull,
  store: v.nullable(v.strictObject({ name: text, shown: text })),
  version: textOrNull,
  now: timeOrNull,
  capabilities: v.array(text),
});

/** An error. */
export const error = v.strictObject({
  code: text,
  message: text,
  hint: v.optional(text),
  details: v.optional(v.record(v.string(), json)),
  requestId: text,
});
