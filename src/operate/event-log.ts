// Reads the event log for people.
import { parseOptions, namesOf } from "../core/options.ts";
import { instantOf } from "../enqueue/new-jobs.ts";
import type { EventQuery, LoggedEvent, Page, Store } from "../store/store.ts";
import { checkCursor } from "./filter.ts";

/** Which events; every field narrows, and texts are compared exactly. */
export interface EventFilter {
  /** Only events of this kind, such as `pause`. */
  readonly kind?: string;
  /** Only what this person or program did. */
  readonly actor?: string;
  /** Only what happened to this, such as `queue:mail`. */
  readonly subject?: string;
  /** Written at this time or later: a date, epoch milliseconds or an ISO 8601 text. */
  readonly from?: Date | number | string;
  /** Written before this time. */
  readonly until?: Date | number | string;
  /** 1 to 200; default 50. */
  readonly limit?: number;
  /** The `next` of the page before, or the number of an event: the page begins after it. */
  readonly cursor?: string | null;
  /** Oldest first; default newest first. */
  readonly oldest?: boolean;
}

const FIELDS = namesOf<EventFilter>()(["kind", "actor", "subject", "from", "until", "limit", "cursor", "oldest"]);

/** A page of the event log. */
export async function readEvents(store: Pick<Store, "events">, filter: EventFilter = {}): Promise<Page<LoggedEvent>> {
  const { from, until, limit = 50, cursor = null, ...rest } = parseOptions(filter, FIELDS, "events");
  checkCursor(cursor);
  return store.events({
    ...(rest as Omit<EventQuery, "limit">),
    limit: limit as number,
    cursor: cursor as string | null,
    ...(from !== undefined && { from: instantOf(from, "from") }),
    ...(until !== undefined && { until: instantOf(until, "until") }),
  });
}
