// Which jobs hold a place in a group, on SQLite: the jobs whose column `placed` names the group, found by an index of
// only those.
import { groupRoom, type Holder } from "../../core/group.ts";
import type { GroupKey } from "../store.ts";
import type { SqliteDatabase } from "./driver.ts";
import type { Value } from "../columns.ts";
import { WITH_LANE } from "./jobs.ts";
import type { SqliteLaneNumbers } from "./lane-numbers.ts";
import { SELECT_JOB } from "./wire.ts";

/** The verb about groups; jobs come back as rows. */
export interface GroupVerbs {
  holders(key: GroupKey): Value[][];
}

/** The verb about groups. */
export function groupVerbs(db: SqliteDatabase, lanes: SqliteLaneNumbers): GroupVerbs {
  const read = db.prepare(`select ${SELECT_JOB} from job j ${WITH_LANE} where j.placed = ? order by j.seq`);
  return {
    holders: (key) => {
      const group = lanes.groupBy(key);
      return group === null ? [] : read.all(group);
    },
  };
}

/** A job that holds a place. */
export interface PlacedJob extends Holder {
  readonly seq: number;
  readonly runAt: number;
}

/** What a lane of a group may give now: so many, or only this one; null for a lane without a group. */
export type RoomOf = (lane: number) => number | PlacedJob | null;

/** The room of lanes. */
export function roomOf(db: SqliteDatabase, lanes: SqliteLaneNumbers): RoomOf {
  const placed = db.prepare("select seq, lane, state = 'queued', run_at from job where placed = ? limit ? + 0");
  return (lane) => {
    const concurrency = lanes.belonging(lane)?.groupConcurrency ?? null;
    if (concurrency === null) return null;
    // One more than it takes to fill the group: a group of one whose place is held twice has no room for a holder that waits.
    const rows = placed.all(lanes.groupOf(lane), concurrency + 1) as [number, number, number, number][];
    const holders = rows.map(([seq, own, waits, runAt]) => ({ seq, lane: own, waits: waits === 1, runAt }));
    return groupRoom(concurrency, holders, lane);
  };
}
