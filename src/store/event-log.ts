// The event log as every store has it: which events to read, what one write adds, and how long events stay.
import type { LoggedEvent, NewEvent } from "../core/event-log.ts";
import { readCursor } from "./cursor.ts";
import { Conditions, type Dialect, type Query } from "./dialect.ts";
import type { Value } from "./columns.ts";

/** Which events to list; every field narrows, and texts are compared exactly. */
export interface EventQuery {
  readonly limit: number;
  /** The number of the last event of the page before: the page begins below it or, oldest first, above it. */
  readonly cursor?: string | null;
  /** Oldest first; default newest first. */
  readonly oldest?: boolean;
  readonly kind?: string;
  readonly actor?: string;
  readonly subject?: string;
  /** Written at this time or later. */
  readonly from?: number;
  /** Written before this time. */
  readonly until?: number;
  /** Only the outcomes of these intents, by their numbers; at most 200. */
  readonly intents?: readonly number[];
}

/** How long an event stays. */
export const EVENT_MS = 90 * 86_400_000;
/** The most events that stay; older ones are deleted before their time. */
export const EVENTS_MOST = 1_000_000;

/** The events of one write with their places in it, without those that repeat one written once in the same write. */
export function withoutRepeats(events: readonly NewEvent[]): { readonly at: number; readonly event: NewEvent }[] {
  const seen = new Set<string>();
  return events.flatMap((event, at) => {
    const name = JSON.stringify([event.kind, event.subject]);
    if (event.once && seen.has(name)) return [];
    if (event.once) seen.add(name);
    return [{ at, event }];
  });
}

const COLUMNS = { kind: "kind", actor: "actor", subject: "subject" } as const;

/** A page of events, and one event more than wanted. */
export function eventList(dialect: Dialect, query: EventQuery): Query {
  const { oldest = false, from, until, intents } = query;
  const where = new Conditions(dialect);
  where.add(`seq ${oldest ? ">" : "<"} ${where.of(readCursor(query.cursor, oldest))}`);
  where.addEqual(COLUMNS, query);
  if (from !== undefined) where.add(`at >= ${where.of(from)}`);
  if (until !== undefined) where.add(`at < ${where.of(until)}`);
  if (intents !== undefined) where.add(`intent in (${intents.map((intent) => where.of(intent)).join(", ") || "null"})`);
  const text = `select seq, at, kind, actor, why, subject, intent, value from ${dialect.table("event")}
    where ${where.text} order by seq ${oldest ? "" : "desc"} limit ${where.of(query.limit + 1)}`;
  return { text, values: where.values };
}

type EventRow = [number, number, string, string | null, string | null, string | null, number | null, string];

/** An event from its row. */
export function eventFromRow(row: readonly Value[]): LoggedEvent {
  const [seq, at, kind, actor, why, subject, intent, value] = row as EventRow;
  return { seq, at, kind, actor, why, subject, intent, value };
}
