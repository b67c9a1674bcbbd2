// Which jobs hold a place in a group, in memory.
import { groupName, groupRoom, keepsPlace } from "../../core/group.ts";
import type { Verbs } from "../verbs.ts";
import { belongingOf, jobOf, type Row, type Tables } from "./tables.ts";

/** The verb about groups. */
export function groupVerbs(tables: Tables): Pick<Verbs, "holders"> {
  return {
    holders: ({ type, group }) => {
      const rows = [...(tables.placed.get(groupName({ type, group })) ?? [])];
      return rows.sort((a, b) => a.seq - b.seq).map(jobOf);
    },
  };
}

/** What a lane may give now: so many, or only this one. */
export function roomOf(tables: Tables, lane: number): number | Row {
  const belonging = belongingOf(tables, lane);
  const { groupConcurrency } = belonging;
  if (groupConcurrency === null) return Number.POSITIVE_INFINITY;
  const holders = [...(tables.placed.get(groupName(belonging)) ?? [])];
  const room = groupRoom(
    groupConcurrency,
    holders.map((row) => ({ row, lane: row.lane, waits: row.state === "queued" })),
    lane,
  );
  return typeof room === "number" ? room : room.row;
}

/** Gives a claimed job its place. */
export function takePlace(tables: Tables, row: Row): void {
  if (row.group === null) return;
  const name = groupName(row);
  tables.placed.set(name, (tables.placed.get(name) ?? new Set()).add(row));
}

/** Frees the place of an ended job. */
export function leavePlace(tables: Tables, row: Row): void {
  if (row.group === null) return;
  const holders = tables.placed.get(groupName(row));
  holders?.delete(row);
  if (holders?.size === 0) tables.placed.delete(groupName(row));
}

/** Frees the place of a job that goes back to the queue, unless it keeps it. */
export function leavePlaceToWait(tables: Tables, row: Row): void {
  if (!keepsPlace(row)) leavePlace(tables, row);
}
