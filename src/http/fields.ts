// The schemas of single fields that many documents share.
import * as v from "valibot";
import { DEATH_REASONS, FAILURE_CLASSES, LIMIT_NAMES, STATES, TERMS } from "../core/job.ts";
import type { JobLimitOptions } from "../core/policy.ts";
import { SHOWN_STATES } from "../core/holding.ts";

/** Any text. */
export const text = v.string();
/** A text, or null for none. */
export const textOrNull = v.nullable(v.string());
/** A number. */
export const number = v.number();
/** A whole number from 0. */
export const count = v.pipe(v.number(), v.integer(), v.minValue(0));
/** A number, or null for none. */
export const numberOrNull = v.nullable(v.number());
/** Yes or no. */
export const flag = v.boolean();
/** A time in ISO 8601, by the store's clock. */
export const time = v.pipe(v.string(), v.isoTimestamp());
/** A time, or null for none. */
export const timeOrNull = v.nullable(time);
/** Any JSON. */
export const json = v.unknown();
/** A whole number within bounds. */
export const wholeFrom = (least: number, most: number) =>
  v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(most));
/** The priority of a job. */
export const priority = wholeFrom(0, 9);
/** An object of counts. */
export const counts = v.record(v.string(), count);

/** A duration as `"5s"` or milliseconds. */
export const duration = v.pipe(
  v.union([v.pipe(v.string(), v.maxLength(64)), v.number()]),
  v.description('A duration such as "90s", "5m" or "1h30m", or milliseconds.'),
);
/** A time that a caller names. */
export const moment = v.pipe(
  v.union([v.pipe(v.string(), v.maxLength(64)), v.number()]),
  v.description('A time in ISO 8601, epoch milliseconds, or how long ago: "-2h".'),
);
/** A name of a type, queue, service or tenant, or a key. */
export const name = v.pipe(v.string(), v.minLength(1), v.maxLength(255));
/** The id of a job, a plan or a run. */
export const id = v.pipe(v.string(), v.minLength(1), v.maxLength(80));
/** The id that a caller gives a job. */
export const jobId = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z0-9_-]{1,64}$/),
  v.description("Your id for the job, so that a repeated call makes no second one."),
);
/** Ids of jobs. */
export const ids = v.pipe(v.array(id), v.minLength(1), v.maxLength(1_000));
/** Why it is done, for the event log. */
export const why = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(1_000),
  v.description("Why you do it, for the event log."),
);

/** The limits that a new job or schedule may set. */
export const ownLimits = {
  deadline: v.optional(v.nullable(duration)),
  maxAttempts: v.optional(wholeFrom(TERMS.maxAttempts.least, TERMS.maxAttempts.most)),
  maxRetries: v.optional(wholeFrom(TERMS.maxAttempts.least - 1, TERMS.maxAttempts.most - 1)),
} satisfies Record<keyof JobLimitOptions, v.GenericSchema>;

type Limit = (typeof LIMIT_NAMES)[number];
/** The limits of a job or a policy. */
export const jobLimits = Object.fromEntries(
  LIMIT_NAMES.map((name) => [name, TERMS[name].mayBeNull ? numberOrNull : count]),
) as { readonly [L in Limit]: (typeof TERMS)[L]["mayBeNull"] extends true ? typeof numberOrNull : typeof count };

/** The stored states. */
export const state = v.picklist(STATES);
/** The states that people see. */
export const shownState = v.picklist([...STATES, ...SHOWN_STATES]);
/** Classes of failures. */
export const failureClass = v.picklist(FAILURE_CLASSES);
/** Why jobs die. */
export const deathReason = v.picklist(DEATH_REASONS);

/** How many items a page has. */
export const limit = v.pipe(
  v.number(),
  v.integer(),
  v.minValue(1),
  v.maxValue(200),
  v.description("1 to 200; default 50."),
);
/** Where a page begins. */
export const cursor = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(400),
  v.description("The `next` of the page before; leave it out for the first page."),
);

/** A page of items. */
export function pageOf<S extends v.GenericSchema>(item: S) {
  return v.strictObject({
    items: v.array(item),
    next: v.pipe(textOrNull, v.description("The cursor of the next page; null on the last.")),
    seenTo: v.optional(
      v.pipe(time, v.description("Only on a page that looked at as much as it may: how far it looked.")),
    ),
  });
}

/** All items of a small list. */
export function listOf<S extends v.GenericSchema>(item: S) {
  return v.strictObject({ items: v.array(item) });
}

/** A count that ends somewhere. */
export const boundedCount = v.strictObject({
  n: count,
  atLeast: v.pipe(flag, v.description("True where it was counted no further.")),
});
