// The event log on Postgres. A write takes its numbers from the row of the last number, which it holds until it commits:
// so a reader that sees a number sees all before it, however many transactions are open. The row also has the time of the
// last event: a write takes its time when it has the row, so that no event has an earlier time than the one before it.
import { LASTING_EVENTS, type NewEvent } from "../../core/event-log.ts";
import { pageOf } from "../dialect.ts";
import { eventFromRow, eventList, EVENTS_MOST, withoutRepeats } from "../event-log.ts";
import type { Pruning } from "../retention.ts";
import type { Store } from "../store.ts";
import type { Value } from "../columns.ts";
import { type Ask, type Context, NOW_IN_TURN } from "./context.ts";
import { postgresDialect } from "./dialect.ts";
import type { Parameter } from "./driver.ts";

/**
 * The statement that adds events. It answers the place of each in the arrays, from 1, with its number; those that were
 * written once before are missing. Where two transactions write one at the same moment, the second waits, finds it and
 * leaves a number unused.
 */
export const recordText = (s: string): string => `with u as (
    select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::boolean[]) with ordinality
      as u (kind, actor, why, subject, intent, value, once, n)),
  fresh as materialized (
    select u.*, row_number() over (order by n) as k from u
    where not once or not exists (select from ${s}.event e where e.once and e.kind = u.kind and e.subject = u.subject)),
  head as (
    insert into ${s}.event_head as h (one, seq, at) select 1, count(*), ${NOW_IN_TURN} from fresh having count(*) > 0
    on conflict (one) do update set seq = h.seq + excluded.seq, at = greatest(h.at, ${NOW_IN_TURN}) returning seq, at),
  numbered as materialized (
    select fresh.*, head.at, head.seq - (select count(*) from fresh) + k as seq from fresh cross join head),
  done as (
    insert into ${s}.event (seq, at, kind, actor, why, subject, intent, value, once)
    select seq, at, kind, actor, why, subject, intent, value, once from numbered order by seq
    on conflict do nothing returning seq)
  select n, seq from numbered join done using (seq)`;

/** The values of that statement. */
export function recordValues(events: readonly NewEvent[]): Parameter[] {
  return [
    events.map(({ kind }) => kind),
    events.map(({ actor }) => actor),
    events.map(({ why }) => why),
    events.map(({ subject }) => subject),
    events.map(({ intent = null }) => intent),
    events.map(({ value }) => value),
    events.map(({ once = false }) => once),
  ];
}

/** The verbs about the event log. */
export function eventVerbs({ db, questions, s }: Context): Pick<Store, "record" | "events"> {
  const dialect = postgresDialect(s);
  const record = { name: "record", text: recordText(s) };
  return {
    async record(events) {
      const numbers: (number | null)[] = events.map(() => null);
      const own = withoutRepeats(events);
      if (own.length === 0) return numbers;
      for (const [n, seq] of await db.ask(record, ...recordValues(own.map(({ event }) => event))))
        numbers[own[(n as number) - 1]?.at as number] = seq as number;
      return numbers;
    },
    async events(query) {
      const { text, values } = eventList(dialect, query);
      const { rows, next } = pageOf(await questions.ask({ text }, ...values), query.limit, 0);
      return { items: rows.map((row) => eventFromRow(row as Value[])), next };
    },
  };
}

/** Deletes old events, with every step as many as allowed. */
export function eventCleaner(s: string): (ask: Ask, by: Pruning, limit: number) => Promise<void> {
  // Two processes that prune at once delete different ones.
  const oldest = (where: string, order: string) => ({
    text: `delete from ${s}.event where seq = any(array(select seq from ${s}.event
      where ${where} and kind <> all($1::text[]) order by ${order} limit $2 for update skip locked))`,
  });
  const old = oldest("at <= $3", "at, seq");
  const tooMany = oldest(`seq <= (select seq from ${s}.event_head) - ${EVENTS_MOST}`, "seq");
  return async (ask, { eventsUntil }, limit) => {
    await ask(old, [...LASTING_EVENTS], limit, eventsUntil);
    await ask(tooMany, [...LASTING_EVENTS], limit);
  };
}
