// Deletes lanes on Postgres that have had no job for long. No index tells which jobs a lane has, and an enqueue under
// way may name it, so deletion takes three steps. The lane is retired: from then on no statement writes a job to it
// before it is taken into use again. When that is long ago, so that no such write is under way, it is sealed with the
// number of the newest job. It is deleted once every job up to that number is deleted or known to be of another lane.
import type { Pruning } from "../retention.ts";
import { NOW } from "./context.ts";
import type { Ask } from "./driver.ts";

/** Jobs checked per lane that may be deleted: the oldest ones, which may be kept for very long. */
const OLDEST = 10;

/** Retires, seals and deletes lanes, at most so many of each. Skips one that is being taken into use again. */
export function laneCleaner(s: string): (ask: Ask, by: Pruning, limit: number) => Promise<void> {
  const waits = `exists (select from ${s}.waiting w where w.lane between l.base and l.base + 3)`;
  const retire = {
    name: "lane_retire",
    text: `update ${s}.lane set retired_at = ${NOW} where base = any(array(
      select l.base from ${s}.lane l where l.retired_at is null and l.used_at <= $1 and not ${waits}
      order by l.used_at limit $2 for update skip locked))`,
  };
  const seal = {
    name: "lane_seal",
    text: `update ${s}.lane set retired_seq = (select coalesce(pg_catalog.max(seq), 0) from ${s}.job) where base = any(array(
      select l.base from ${s}.lane l where l.retired_at <= $1 and l.retired_seq is null
      order by l.retired_at limit $2 for update skip locked))`,
  };
  const forget = {
    name: "lane_forget",
    text: `with oldest as materialized (select seq, lane from ${s}.job order by seq limit $1 + 1),
      horizon as materialized (select case when pg_catalog.count(*) > $1 then pg_catalog.max(seq) end as seq from oldest)
      delete from ${s}.lane where base = any(array(
        select l.base from ${s}.lane l where l.retired_seq < coalesce((select seq from horizon), l.retired_seq + 1)
          and l.base <> all(array(select o.lane - o.lane % 4 from oldest o)) and not ${waits}
        order by l.retired_seq limit $2 for update skip locked))`,
  };
  return async (ask, { lanesUntil }, limit) => {
    // The last step first: lanes retired or sealed now have been so for a while when the next prune comes.
    await ask(forget, limit * OLDEST, limit);
    await ask(seal, lanesUntil, limit);
    await ask(retire, lanesUntil, limit);
  };
}
