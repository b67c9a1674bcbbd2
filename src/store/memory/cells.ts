// Small values that processes share, in memory.
import { cellName, inCellOrder } from "../cells.ts";
import type { CellChange, CellQuery } from "../store.ts";
import type { Verbs } from "../verbs.ts";
import type { Tables } from "./tables.ts";

/** The verbs about cells. */
export function cellVerbs(tables: Tables): Pick<Verbs, "cells" | "setCells"> {
  return {
    cells(queries) {
      const isAsked = ({ kind, name }: { kind: string; name: string }): boolean =>
        queries.some((query: CellQuery) => query.kind === kind && (query.name ?? name) === name);
      return { cells: [...tables.cells.values()].filter(isAsked).sort(inCellOrder), now: tables.clock() };
    },
    setCells: (changes) => changes.map((change) => setCell(tables, change)),
  };
}

/** Writes a cell; false if it has another version. */
export function setCell({ cells, clock }: Tables, { kind, name, holder, version, value }: CellChange): boolean {
  const id = cellName({ kind, name, holder });
  const found = cells.get(id)?.version ?? 0;
  if (version !== null && version !== found) return false;
  if (value === null) cells.delete(id);
  else cells.set(id, { kind, name, holder, version: found + 1, value, at: clock() });
  return true;
}
