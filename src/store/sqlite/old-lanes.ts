// Deletes lanes on SQLite that have had no job for long. No index tells which jobs a lane has, so deletion takes two
// steps: the lane is retired, after which an enqueue would take it into use again; and it is deleted once every job
// that existed when it was retired is deleted or known to be of another lane.
import type { Pruning } from "../retention.ts";
import type { SqliteDatabase } from "./driver.ts";
import type { SqliteLaneNumbers } from "./lane-numbers.ts";

/** Jobs checked per lane that may be deleted: the oldest ones, which may be kept for very long. */
const OLDEST = 10;

/** Retires and deletes lanes, at most so many of each. */
export function laneCleaner(
  db: SqliteDatabase,
  lanes: SqliteLaneNumbers,
  clock: () => number,
): (by: Pruning, limit: number) => void {
  const retire = db.prepare(
    `update lane set retired_at = ?, retired_seq = (select coalesce(max(seq), 0) from job) where base in (
       select l.base from lane l where l.retired_at is null and l.used_at <= ?
         and not exists (select 1 from job j where j.state = 'queued' and j.lane between l.base and l.base + 3)
       order by l.used_at limit ?)`,
  );
  const horizon = db.prepare("select seq from job where seq > 0 order by seq limit 1 offset ?");
  const over = db.prepare(
    `select l.base, l.n from lane l where l.retired_seq < ? and l.retired_at <= ? and l.base not in (
       select j.lane - j.lane % 4 from (select lane from job where seq > 0 order by seq limit ?) as j)
     order by l.retired_seq limit ?`,
  );
  const forget = db.prepare("delete from lane where base in (select value from json_each(?))");
  // The numbers of deleted lanes are not reused, because other processes have them cached.
  const change = db.prepare("update control set lanes = lanes + 1, lane_n = max(lane_n, ?)");
  return ({ lanesUntil }, limit) => {
    const oldest = limit * OLDEST;
    const retired = retire.run(clock(), lanesUntil, limit);
    const [next] = horizon.all(oldest) as [number][];
    const gone = over.all(next?.[0] ?? Number.MAX_SAFE_INTEGER, lanesUntil, oldest, limit) as [number, number][];
    if (gone.length > 0) forget.run(JSON.stringify(gone.map(([base]) => base)));
    if (retired + gone.length === 0) return;
    change.run(gone.reduce((most, [, n]) => Math.max(most, n + 1), 0));
    lanes.reset();
  };
}
