// Tables whose rows stand still: while the pointer is over them or one is ticked, new rows wait behind "14 new · show". On
// a phone each row is a card.
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { counted } from "./format.ts";

/** A column. */
export interface Column<T> {
  readonly head: string;
  readonly cell: (row: T) => ComponentChildren;
  /** `wide` columns are left out on phones; `num` are aligned to the right; `main` takes the room. */
  readonly kind?: "wide" | "num" | "main" | "acts";
}

/** Ticks of a table, kept by the page. */
export interface Ticks {
  readonly ids: ReadonlySet<string>;
  readonly set: (ids: ReadonlySet<string>) => void;
}

/** A table. */
export function Table<T>({
  rows,
  columns,
  id,
  says,
  ticks,
  isList = true,
}: {
  rows: readonly T[];
  columns: readonly Column<T>[];
  id: (row: T) => string;
  says: string;
  ticks?: Ticks;
  isList?: boolean;
}) {
  const { shown, fresh, show, hold } = useStill(rows, id, (ticks?.ids.size ?? 0) > 0, isList);
  const toggle = (row: string): void => {
    const next = new Set(ticks?.ids);
    if (!next.delete(row)) next.add(row);
    ticks?.set(next);
  };
  const isAll = shown.length > 0 && shown.every((row) => ticks?.ids.has(id(row)));
  return (
    <div class="table" onPointerEnter={() => hold(true)} onPointerLeave={() => hold(false)}>
      {fresh > 0 && (
        <button type="button" class="fresh" onClick={show}>
          {fresh} new · show
        </button>
      )}
      <table>
        <caption class="off">
          {says}, {counted(shown.length, "row")}
        </caption>
        <thead>
          <tr>
            {ticks && (
              <th scope="col" class="tick">
                <input
                  type="checkbox"
                  aria-label="Tick all rows of this page"
                  checked={isAll}
                  onChange={() => ticks.set(isAll ? new Set() : new Set(shown.map(id)))}
                />
              </th>
            )}
            {columns.map(({ head, kind = "" }) => (
              <th key={head} scope="col" class={kind}>
                {kind === "acts" ? <span class="off">{head}</span> : head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => {
            const own = id(row);
            return (
              <tr key={own} data-row={own} tabIndex={-1} class={ticks?.ids.has(own) ? "ticked" : ""}>
                {ticks && (
                  <td class="tick">
                    <input
                      type="checkbox"
                      aria-label={`Tick ${own}`}
                      checked={ticks.ids.has(own)}
                      onChange={() => toggle(own)}
                    />
                  </td>
                )}
                {columns.map(({ head, cell, kind = "" }) => (
                  <td key={head} class={kind} data-head={head}>
                    {cell(row)}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** Keeps rows where they are while they are held; what is known of them is renewed all the same. */
function useStill<T>(rows: readonly T[], id: (row: T) => string, isTicked: boolean, isList: boolean) {
  const [isOver, hold] = useState(false);
  const last = useRef<readonly T[]>(rows);
  const byId = new Map(rows.map((row) => [id(row), row]));
  const isHeld = isList && (isOver || isTicked) && last.current.length > 0;
  let fresh = 0;
  if (isHeld) {
    const had = new Set(last.current.map(id));
    fresh = rows.filter((row) => !had.has(id(row))).length;
    last.current = last.current.map((row) => byId.get(id(row)) ?? row);
  } else last.current = rows;
  const [, turn] = useState(0);
  const show = (): void => {
    last.current = rows;
    turn((n) => n + 1);
  };
  return { shown: last.current, fresh, show, hold };
}
