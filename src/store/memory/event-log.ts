// The event log in memory.
import { LASTING_EVENTS, type NewEvent } from "../../core/event-log.ts";
import { readCursor } from "../cursor.ts";
import { EVENTS_MOST, withoutRepeats } from "../event-log.ts";
import type { Pruning } from "../retention.ts";
import type { Verbs } from "../verbs.ts";
import type { Tables } from "./tables.ts";

/** The verbs about the event log. */
export function eventVerbs(tables: Tables): Pick<Verbs, "record" | "events"> {
  const { events } = tables;
  const isThere = ({ kind, subject, once = false }: NewEvent): boolean =>
    once && events.some((each) => each.once && each.kind === kind && each.subject === subject);
  return {
    record(given) {
      const numbers: (number | null)[] = given.map(() => null);
      for (const { at, event } of withoutRepeats(given).filter((each) => !isThere(each.event))) {
        const { kind, actor, why, subject, intent = null, value, once = false } = event;
        tables.lastEvent += 1;
        numbers[at] = tables.lastEvent;
        const now = Math.max(events.at(-1)?.at ?? 0, tables.clock());
        events.push({ seq: tables.lastEvent, at: now, kind, actor, why, subject, intent, value, once });
      }
      return numbers;
    },
    events({ limit, cursor, oldest = false, kind, actor, subject, intents, ...times }) {
      const { from = 0, until = Number.POSITIVE_INFINITY } = times;
      const after = readCursor(cursor, oldest);
      const found = events.filter(
        (event) =>
          (oldest ? event.seq > after : event.seq < after) &&
          event.kind === (kind ?? event.kind) &&
          event.actor === (actor ?? event.actor) &&
          event.subject === (subject ?? event.subject) &&
          (intents?.some((intent) => intent === event.intent) ?? true) &&
          event.at >= from &&
          event.at < until,
      );
      const page = (oldest ? found : found.toReversed()).slice(0, limit);
      const items = page.map(({ once: _once, ...event }) => event);
      return { items, next: found.length > limit ? String(items.at(-1)?.seq) : null };
    },
  };
}

/** Deletes old events. */
export function forgetEvents(tables: Tables, { eventsUntil }: Pruning, limit: number): void {
  const passing = tables.events.filter(({ kind }) => !LASTING_EVENTS.includes(kind));
  const old = passing.filter(({ at }) => at <= eventsUntil).sort((a, b) => a.at - b.at || a.seq - b.seq);
  const tooMany = passing.filter(({ seq }) => seq <= tables.lastEvent - EVENTS_MOST);
  const gone = new Set([...old.slice(0, limit), ...tooMany.slice(0, limit)]);
  tables.events.splice(0, tables.events.length, ...tables.events.filter((event) => !gone.has(event)));
}
