// The figures for monitors on Postgres, on the connections for people.
import { causesByNote, causesFrom, lettersByType, leastShare, oldestLetter } from "../cause-queries.ts";
import type { DueCount, Store } from "../store.ts";
import { type Context, NOW } from "./context.ts";
import { postgresDialect } from "./dialect.ts";

/**
 * The head of every lane, one step down the index each, and how many of its jobs are due. Always answers a row, for its
 * time.
 */
const dueText = (s: string): string => {
  const after = (lane: string): string =>
    `select w.lane, w.run_at from ${s}.waiting w where w.lane > ${lane} order by w.lane, w.run_at, w.seq limit 1`;
  return `with recursive head as (
      (${after("-1")})
      union all select n.lane, n.run_at from head cross join lateral (${after("head.lane")}) n),
    found as materialized (select lane, run_at from head limit $1),
    due as materialized (select lane, run_at from found where run_at <= ${NOW}),
    share as (select greatest($3::bigint, $2::bigint / greatest(1, count(*))) as jobs from due)
    select ${NOW}, l.type, l.queue, l.service, l.tenant, d.run_at, d.jobs from (select) as always left join (
      select due.lane, due.run_at, c.jobs from due cross join lateral (
        select count(*) as jobs from (select from ${s}.waiting w where w.lane = due.lane and w.run_at <= ${NOW}
          order by w.run_at, w.seq limit (select jobs from share)) few) c) d on true
    left join lateral (select * from ${s}.lane where base = d.lane - d.lane % 4 limit 1) l on true
    order by d.lane`;
};

type DueRow = [now: number, type: string | null, queue: string, service: string, tenant: string, at: number, n: number];

/** The verb. */
export function figuresVerb({ questions, s }: Context): Pick<Store, "figures"> {
  const dialect = postgresDialect(s);
  const due = { text: dueText(s) };
  const byType = { text: lettersByType(dialect) };
  const byNote = { text: causesByNote(dialect) };
  const oldest = { text: oldestLetter(dialect) };
  return {
    async figures({ lanes, jobs, letters, notes }) {
      const [waiting, types, noted, first] = await Promise.all([
        questions.ask(due, lanes, jobs, leastShare(jobs)),
        questions.ask(byType),
        questions.ask(byNote, notes),
        questions.ask(oldest, letters),
      ]);
      const rows = waiting as DueRow[];
      return {
        due: rows.flatMap(([, type, queue, service, tenant, headRunAt, count]): DueCount[] =>
          type === null ? [] : [{ type, queue, service, tenant, headRunAt, jobs: count }],
        ),
        letters: (types as [string, number][]).map(([type, count]) => ({ type, count })),
        oldestLetterAt: (first[0]?.[0] as number | null | undefined) ?? null,
        ...causesFrom(noted as [string | null, number][]),
        now: rows[0]?.[0] as number,
      };
    },
  };
}
