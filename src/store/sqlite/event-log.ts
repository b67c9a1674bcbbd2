// The event log on SQLite, where one writer at a time makes the order of numbers that of commits. No event has an earlier
// time than the one before it, also where the clock was set back.
import { LASTING_EVENTS } from "../../core/event-log.ts";
import { pageOf } from "../dialect.ts";
import { eventFromRow, eventList, EVENTS_MOST, withoutRepeats } from "../event-log.ts";
import type { Pruning } from "../retention.ts";
import type { Verbs } from "../verbs.ts";
import { SQLITE } from "./dialect.ts";
import type { SqliteDatabase } from "./driver.ts";

/** The verbs about the event log. */
export function eventVerbs(db: SqliteDatabase, clock: () => number): Pick<Verbs, "record" | "events"> {
  // Asked before, because an insert that finds a conflict uses a number.
  const there = db.prepare("select 1 from event where once = 1 and kind = ? and subject = ?");
  const insert = db.prepare(
    `insert into event (at, kind, actor, why, subject, intent, value, once)
     values (max(?, coalesce((select at from event order by seq desc limit 1), 0)), ?, ?, ?, ?, ?, ?, ?) returning seq`,
  );
  return {
    record(events) {
      const numbers: (number | null)[] = events.map(() => null);
      for (const { at, event } of withoutRepeats(events)) {
        const { kind, actor, why, subject, intent = null, value, once = false } = event;
        if (once && there.all(kind, subject).length > 0) continue;
        const values = [clock(), kind, actor, why, subject, intent, value, Number(once)];
        numbers[at] = insert.all(...values)[0]?.[0] as number;
      }
      return numbers;
    },
    events(query) {
      const { text, values } = eventList(SQLITE, query);
      const { rows, next } = pageOf(db.prepare(text).all(...values), query.limit, 0);
      return { items: rows.map(eventFromRow), next };
    },
  };
}

const LASTING = LASTING_EVENTS.map((kind) => `'${kind}'`).join(", ");

/** Deletes old events, with every step as many as allowed. */
export function eventCleaner(db: SqliteDatabase): (by: Pruning, limit: number) => void {
  const oldest = (where: string, order: string) =>
    db.prepare(`delete from event where seq in (select seq from event
      where ${where} and kind not in (${LASTING}) order by ${order} limit ?)`);
  const old = oldest("at <= ?", "at, seq");
  const tooMany = oldest(`seq <= (select max(seq) from event) - ${EVENTS_MOST}`, "seq");
  return ({ eventsUntil }, limit) => {
    old.run(eventsUntil, limit);
    tooMany.run(limit);
  };
}
