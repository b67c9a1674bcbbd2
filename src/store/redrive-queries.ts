// The counts of redrive runs as SQL, the same for every SQL store. A row of `redrive_tick` is what one holder has counted of
// a run in ten seconds, so that two workers never wait for each other.
import { HOUR } from "../core/flow.ts";
import { RECENT_RUNS, REDRIVE_SUMS, type RedriveSums } from "../core/recovery/outcome.ts";
import { NO_SUMS, type RedriveCounts } from "./dead-letters.ts";
import type { Dialect } from "./dialect.ts";

/** The columns of a tick, in the order in which rows are written. */
export const TICK_COLUMNS = ["redrive", "at", "holder", ...REDRIVE_SUMS] as const;

/** Adds the new counts to those of a row that is there. */
export const addRedriveSums = (): string =>
  `on conflict (redrive, at, holder) do update set
    ${REDRIVE_SUMS.map((count) => `${count} = redrive_tick.${count} + excluded.${count}`).join(", ")}`;

/** The counts of runs, one row each; `isOne` says which runs. A tick is recent if those after it have too few first runs. */
export function redriveCountsText({ table }: Dialect, isOne: string): string {
  const sums = REDRIVE_SUMS.map((count) => `cast(sum(${count}) as bigint) as ${count}`).join(", ");
  const isRecent = `after < ${RECENT_RUNS}`;
  const recent = REDRIVE_SUMS.map((count) => `cast(sum(case when ${isRecent} then ${count} else 0 end) as bigint)`);
  return `select redrive, ${sums}, ${recent.join(", ")} from (
      select t.*, sum(good + same + other) over (partition by redrive order by at desc) - (good + same + other) as after
      from (select redrive, at, ${sums} from ${table("redrive_tick")} where ${isOne} group by redrive, at) t) c
    group by redrive`;
}

/** Ticks that are folded once they are six hours old: those of single holders. */
export const REDRIVE_FOLD = { cut: "hoursBefore", where: "holder <> ''" } as const;
/** Ticks that are deleted, long after their run. */
export const REDRIVE_FORGET = { cut: "forgetBefore", where: "holder = ''" } as const;

/** Rows of ticks as one row for each run and hour. */
export function foldedTicks(from: string): string {
  const sums = REDRIVE_SUMS.map((count) => `sum(${count})`).join(", ");
  return `select redrive, at - at % ${HOUR}, '', ${sums} from ${from} group by redrive, at - at % ${HOUR}`;
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
