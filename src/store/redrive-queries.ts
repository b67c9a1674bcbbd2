// The counts of redrive runs as SQL, the same for every SQL store, from their ticks of ten seconds.
import { RECENT_RUNS, REDRIVE_SUMS, type RedriveSums } from "../core/recovery/outcome.ts";
import { NO_SUMS, type RedriveCounts } from "./dead-letters.ts";
import type { Dialect } from "./dialect.ts";
import { summed } from "./tick-tables.ts";

/** The counts of runs, one row each; `isOne` says which runs. A tick is recent if those after it have too few first runs. */
export function redriveCountsText({ table }: Dialect, isOne: string): string {
  const sums = summed(REDRIVE_SUMS);
  const isRecent = `after < ${RECENT_RUNS}`;
  const recent = REDRIVE_SUMS.map((count) => `cast(sum(case when ${isRecent} then ${count} else 0 end) as bigint)`);
  return `select redrive, ${sums}, ${recent.join(", ")} from (
      select t.*, sum(good + same + other) over (partition by redrive order by at desc) - (good + same + other) as after
      from (select redrive, at, ${sums} from ${table("redrive_tick")} where ${isOne} group by redrive, at) t) c
    group by redrive`;
}

function sumsAt(row: readonly unknown[], from: number): RedriveSums {
  return { ...NO_SUMS, ...Object.fromEntries(REDRIVE_SUMS.map((count, at) => [count, row[from + at]])) };
}

/** The counts of runs in the order of their ids. */
export function countsFromRows(ids: readonly string[], rows: readonly (readonly unknown[])[]): RedriveCounts[] {
  const byId = new Map(rows.map((row) => [row[0], row]));
  return ids.map((id) => {
    const row = byId.get(id);
    if (!row) return { id, ...NO_SUMS, recent: NO_SUMS };
    return { id, ...sumsAt(row, 1), recent: sumsAt(row, 1 + REDRIVE_SUMS.length) };
  });
}
