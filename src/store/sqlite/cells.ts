// Small values that processes share, on SQLite.
import { inCellOrder } from "../cells.ts";
import { cellFromRow } from "../rows.ts";
import type { Verbs } from "../verbs.ts";
import type { SqliteDatabase } from "./driver.ts";

/** The verbs about cells. */
export function cellVerbs(db: SqliteDatabase, clock: () => number): Pick<Verbs, "cells" | "setCells"> {
  const columns = "c.kind, c.name, c.holder, c.version, c.value, c.at";
  // One statement, so that all of it is of one moment; a cell that is requested twice comes once.
  const read = db.prepare(
    `select ${columns} from json_each(?) q cross join cell c on c.kind = q.value
     union select ${columns} from json_each(?) q cross join cell c on c.kind = q.value ->> 0 and c.name = q.value ->> 1`,
  );
  const versionOf = db.prepare("select version from cell where kind = ? and name = ? and holder = ?");
  const write = db.prepare(
    `insert into cell (kind, name, holder, version, value, at) values (?, ?, ?, ?, ?, ?)
     on conflict (kind, name, holder) do update set version = excluded.version, value = excluded.value, at = excluded.at`,
  );
  const forget = db.prepare("delete from cell where kind = ? and name = ? and holder = ?");
  return {
    cells(queries) {
      const kinds = queries.filter(({ name }) => name === undefined).map(({ kind }) => kind);
      const names = queries.filter(({ name }) => name !== undefined).map(({ kind, name }) => [kind, name]);
      const rows = read.all(JSON.stringify(kinds), JSON.stringify(names));
      return { cells: rows.map(cellFromRow).sort(inCellOrder), now: clock() };
    },
    setCells: (changes) =>
      changes.map(({ kind, name, holder, version, value }) => {
        const found = (versionOf.all(kind, name, holder)[0]?.[0] as number | undefined) ?? 0;
        if (version !== null && version !== found) return false;
        if (value === null) forget.run(kind, name, holder);
        else write.run(kind, name, holder, found + 1, value, clock());
        return true;
      }),
  };
}
