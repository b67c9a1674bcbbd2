// Small values that processes share, on Postgres. A set locks its cells in the order of their keys, so that two sets
// never wait for each other in a circle. A change that names a version does not wait for a cell that another
// transaction holds: that transaction is about to change the cell, or keeps it for long. Commits are waited for only
// where people wrote a cell: of the others, a crash of the server loses about the last 200 ms of what workers saw,
// which does no harm.
import { cellName, inCellOrder, mustLast } from "../cells.ts";
import type { Value } from "../columns.ts";
import { cellFromRow } from "../rows.ts";
import type { CellChange, Store } from "../store.ts";
import { type Ask, type Context, NOW, type Placed, placed, rounds } from "./context.ts";
import type { Parameter, PostgresStatement } from "./driver.ts";

/** The verbs about cells. */
export function cellVerbs({ db, s }: Context): Pick<Store, "cells" | "setCells"> {
  const read = readCells(s);
  const lasting = writeCells(s, true);
  const passing = writeCells(s, false);
  const put = async (ask: Ask, write: PostgresStatement, turn: Turn): Promise<number[]> => {
    const rows = await ask(write, ...keysOf(turn), versionsOf(turn), valuesOf(turn));
    return rows.map(([n]) => (turn[(n as number) - 1] as Turn[number]).at);
  };
  /** Writes those that name a version and that no other transaction holds. */
  const follow = (to: typeof lasting, turn: Turn): Promise<number[]> => {
    if (turn.length === 0) return Promise.resolve([]);
    if (turn.every(({ item }) => item.value !== null)) return put(db.ask, to.follow, turn);
    return db.together(async (ask) => {
      const written = await put(ask, to.follow, turn);
      await ask(to.sweep, ...keysOf(turn));
      return written;
    });
  };
  /** Writes any, in turn, and waits for those that are held. */
  const write = (to: typeof lasting, turns: readonly Turn[]): Promise<number[]> => {
    const [first = []] = turns;
    if (first.length === 0) return Promise.resolve([]);
    return db.together(async (ask) => {
      await ask(to.make, ...keysOf(first));
      const written: number[] = [];
      for (const turn of turns) written.push(...(await put(ask, to.write, turn)));
      await ask(to.sweep, ...keysOf(first));
      return written;
    });
  };
  return {
    async cells(queries) {
      const all = queries.filter(({ name }) => name === undefined);
      const some = queries.filter(({ name }) => name !== undefined);
      const names = some.map(({ name }) => name as string);
      const rows = await db.ask(read, all.map(kindOf), some.map(kindOf), names);
      const found = rows.filter(([, kind]) => kind !== null).map(([, ...cell]) => cellFromRow(cell as Value[]));
      return { cells: found.sort(inCellOrder), now: rows[0]?.[0] as number };
    },
    async setCells(changes) {
      const turns = rounds(
        placed(changes).sort((a, b) => inCellOrder(a.item, b.item)),
        cellName,
      );
      const [first = []] = turns;
      const to = mustLast(changes) ? lasting : passing;
      if (turns.length <= 1 && changes.every(overwrites)) {
        await db.ask(to.overwrite, ...keysOf(first), valuesOf(first));
        return changes.map(() => true);
      }
      const patient = turns.length > 1 || (changes.length === 1 && mustLast(changes));
      const following = patient ? [] : first.filter(({ item }) => follows(item));
      const others = patient ? turns : [first.filter(({ item }) => !follows(item))];
      const written = new Set([...(await follow(to, following)), ...(await write(to, others))]);
      return changes.map((_, at) => written.has(at));
    },
  };
}

/** Writes one cell in a transaction, and waits for another that holds it; false if the cell has another version. */
export function fencer(s: string): (ask: Ask, change: CellChange) => Promise<boolean> {
  const { make, write, sweep } = writeCells(s, true);
  return async (ask, change) => {
    const turn = placed([change]);
    // Only a cell that may be missing, or is deleted, takes more than one statement.
    const isUsual = follows(change) && change.value !== null;
    if (!isUsual) await ask(make, ...keysOf(turn));
    const written = await ask(write, ...keysOf(turn), versionsOf(turn), valuesOf(turn));
    if (!isUsual) await ask(sweep, ...keysOf(turn));
    return written.length > 0;
  };
}

/** Changes of different cells, in the order of their keys. */
type Turn = readonly Placed<CellChange>[];

const kindOf = ({ kind }: { readonly kind: string }): string => kind;
const overwrites = ({ version, value }: CellChange): boolean => version === null && value !== null;
/** True for a change that needs an existing cell. */
const follows = ({ version }: CellChange): boolean => version !== null && version > 0;

function keysOf(turn: Turn): Parameter[] {
  return [turn.map(({ item }) => item.kind), turn.map(({ item }) => item.name), turn.map(({ item }) => item.holder)];
}

const versionsOf = (turn: Turn): Parameter => turn.map(({ item }) => item.version);
const valuesOf = (turn: Turn): Parameter => turn.map(({ item }) => item.value);

/** At least one row, for the time. */
function readCells(s: string): PostgresStatement {
  const columns = "c.kind, c.name, c.holder, c.version, c.value, c.at";
  return {
    name: "cells",
    text: `select ${NOW}, c.* from (select 1) as one left join (
        select ${columns} from ${s}.cell c where c.kind = any($1::text[])
        union select ${columns} from ${s}.cell c join unnest($2::text[], $3::text[]) as q (kind, name)
          on c.kind = q.kind and c.name = q.name
      ) c on true`,
  };
}

/** The statements of a set; within its transaction, a cell of version 0 does not exist. */
function writeCells(
  s: string,
  mustBeOnDisk: boolean,
): Record<"overwrite" | "write" | "follow" | "make" | "sweep", PostgresStatement> {
  const keys = "unnest($1::text[], $2::text[], $3::text[]) with ordinality as u (kind, name, holder, n)";
  const isSame = "c.kind = u.kind and c.name = u.name and c.holder = u.holder";
  const unhurried = mustBeOnDisk ? "true" : "(select set_config('synchronous_commit', 'off', true)) is not null";
  const name = (of: string): string => (mustBeOnDisk ? `${of}_lasting` : of);
  const overwrite = {
    name: name("cell_overwrite"),
    text: `insert into ${s}.cell as c (kind, name, holder, version, value, at)
      select u.kind, u.name, u.holder, 1, u.value, ${NOW}
      from unnest($1::text[], $2::text[], $3::text[], $4::text[]) with ordinality as u (kind, name, holder, value, n)
      where ${unhurried} order by u.n
      on conflict (kind, name, holder) do update set version = c.version + 1, value = excluded.value, at = excluded.at`,
  };
  const writing = (of: string, lock: string): PostgresStatement => ({
    name: name(of),
    text: `with u as (
      select * from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[]) with ordinality
        as u (kind, name, holder, version, value, n)),
    held as (
      select u.* from u join ${s}.cell c on ${isSame} where ${unhurried} order by u.n ${lock})
    update ${s}.cell c set version = case when u.value is null then 0 else c.version + 1 end,
      value = coalesce(u.value, ''), at = ${NOW}
    from held u where ${isSame} and (u.version is null or u.version = c.version) returning u.n`,
  });
  const write = writing("cell_write", "for update of c");
  const follow = writing("cell_follow", "for update of c skip locked");
  // Creates missing cells and locks the rest: the condition is checked after the lock.
  const make = {
    name: name("cell_make"),
    text: `insert into ${s}.cell as c (kind, name, holder, version, value, at)
      select u.kind, u.name, u.holder, 0, '', ${NOW} from ${keys} where ${unhurried} order by u.n
      on conflict (kind, name, holder) do update set version = c.version where false`,
  };
  const sweep = { name: "cell_sweep", text: `delete from ${s}.cell c using ${keys} where ${isSame} and c.version = 0` };
  return { overwrite, write, follow, make, sweep };
}
