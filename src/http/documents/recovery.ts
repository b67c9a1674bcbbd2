// The documents of causes, plans, redrive runs and repairs.
import * as v from "valibot";
import { RUN_STATES } from "../../core/recovery/run.ts";
import { count, counts, flag, json, number, numberOrNull, text, textOrNull, time, timeOrNull } from "../fields.ts";

const release = v.strictObject({ release: text, failures: count });
const causeFields = {
  fingerprint: text,
  state: v.picklist(["open", "muted", "fixed", "regressed"]),
  dead: count,
  firstSeen: timeOrNull,
  lastSeen: timeOrNull,
  types: v.array(text),
  sample: v.strictObject({ name: text, message: text }),
  since: timeOrNull,
  until: timeOrNull,
  says: text,
  deaths: count,
  failures: count,
  trend: v.array(count),
  releases: v.array(release),
  by: textOrNull,
  more: numberOrNull,
  fixedIn: textOrNull,
  backIn: textOrNull,
  still: v.array(release),
  note: textOrNull,
  owner: textOrNull,
  revision: v.pipe(text, v.description("Changes with what people say of the cause; for `If-Match`.")),
};
const named = v.array(v.strictObject({ name: text, count }));

/** A cause. */
export const cause = v.strictObject(causeFields);
/** A cause with what its newest letters say, and what to do about it. */
export const causeDetails = v.strictObject({
  ...causeFields,
  letters: v.strictObject({ looked: count, tenants: named, services: named, classes: named, reasons: named }),
  triage: v.nullable(v.strictObject({ advice: text, reason: text })),
});

/** The advice about a cause. */
export const triage = v.strictObject({
  fingerprint: text,
  advice: text,
  reason: text,
  dead: count,
  types: v.array(text),
  facts: v.pipe(v.record(v.string(), json), v.description("What the advice rests on.")),
});

const selection = v.pipe(v.record(v.string(), json), v.description("Which letters, frozen when it was planned."));

/** The plan of a redrive. */
export const plan = v.strictObject({
  id: text,
  count,
  toSend: count,
  warnings: v.array(v.strictObject({ kind: text, count, text })),
  expiresAt: time,
  rate: number,
  rateBecause: text,
  durationMs: number,
  looked: count,
  types: counts,
  services: counts,
  tenants: count,
  groups: count,
  proves: v.array(v.strictObject({ good: count, failingAtMost: number })),
  by: text,
  started: v.pipe(textOrNull, v.description("The run that was started from it; null before.")),
  run: v.pipe(text, v.description("The id that its run has once it is started: PUT /redrives/{id}.")),
});

/** A redrive run. */
export const run = v.strictObject({
  id: text,
  state: v.picklist(RUN_STATES),
  sent: count,
  completed: count,
  failed: count,
  recalled: count,
  left: count,
  reason: textOrNull,
  cancelled: count,
  gone: count,
  pending: count,
  byOthers: count,
  newDeaths: numberOrNull,
  waits: textOrNull,
  waitsUntil: timeOrNull,
  plan: text,
  count,
  toSend: count,
  selection,
  steps: v.array(count),
  step: count,
  rate: number,
  judgeWithinMs: number,
  tolerate: number,
  superseded: flag,
  by: text,
  why: textOrNull,
  startedAt: time,
  endedAt: timeOrNull,
});

const misfits = v.strictObject({ count, named: v.array(v.strictObject({ id: text, issue: text })) });
const previewFields = {
  letters: count,
  fits: count,
  unchanged: count,
  misfits,
  losesNumbers: misfits,
  notDead: count,
  missing: count,
};
/** What a recipe would do. */
export const repairPreview = v.strictObject(previewFields);
/** What a repair did. */
export const repaired = v.strictObject({
  repaired: count,
  unchanged: count,
  skipped: count,
  refused: count,
  conflicts: v.array(v.strictObject({ id: text, issue: text })),
  missing: count,
});

/** Counts of a cause in one step of time. */
export const causePoint = v.strictObject({
  at: time,
  failures: count,
  deaths: count,
  redriven: count,
  removed: count,
});
