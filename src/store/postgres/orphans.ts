// Deletes rows of jobs that were deleted by hand. No foreign key deletes them, so they are searched for: a page of each
// table at a time, from where the last search ended, and from the beginning after the end.
import { tickLetters } from "./causes.ts";
import { tickGone } from "./redrives.ts";
import type { Ask } from "./driver.ts";

/** Rows checked per job that a prune checks: checking is far cheaper than deleting. */
const PAGE = 10;

/** Deletes the orphans on the next page of each table. */
export function orphanSweeper(s: string): (ask: Ask, limit: number) => Promise<void> {
  const counted = `returning fingerprint, type, release, redriven_at, redrive, outcome is null as is_lost),
    ${tickLetters(s, "removed", "gone", "redriven_at is null")}, ${tickGone(s, "gone")}`;
  const tables = [
    sweepOf(s, "attempt", ["job_seq", "epoch"], ")"),
    sweepOf(s, "payload_version", ["job_seq", "n"], ")"),
    sweepOf(s, "dead_letter", ["seq"], counted),
  ];
  return async (ask, limit) => {
    for (const sweep of tables) await sweep(ask, limit * PAGE);
  };
}

/** `then` ends the part that deletes; for letters it counts them too. */
function sweepOf(
  s: string,
  table: string,
  key: readonly string[],
  then: string,
): (ask: Ask, limit: number) => Promise<void> {
  const given = key.map((_, at) => `$${at + 1}::bigint`).join(", ");
  const keys = key.join(", ");
  const backwards = key.map((column) => `${column} desc`).join(", ");
  // Looks each job up by its number: a join would read such large tables as a whole.
  const statement = {
    name: `orphans_${table}`,
    text: `with page as materialized (
      select ctid as place, job_seq as job, ${keys} from ${s}.${table} where (${keys}) > (${given}) order by ${keys} limit $${key.length + 1}),
    gone as (
      delete from ${s}.${table} where ctid = any(array(
        select p.place from page p where not exists (select from ${s}.job j where j.seq = p.job offset 0))) ${then}
    select (select count(*) from page), ${keys} from page order by ${backwards} limit 1`,
  };
  const start = key.map(() => 0);
  let from = start;
  return async (ask, limit) => {
    const [row] = await ask(statement, ...from, limit);
    const [count, ...last] = (row ?? [0]) as number[];
    from = count === limit ? last : start;
  };
}
