// Notes when a drain begins and ends. A note that cannot be written changes nothing about the drain.
import { DRAIN_CELLS, drainBegun, type DrainRecord, drainFrom } from "../core/drains.ts";
import { DAY } from "../core/flow.ts";
import { textOf } from "../core/failure.ts";
import type { Cell, Store } from "../store/store.ts";
import type { Log } from "../system/log.ts";

/** What it needs. */
export interface DrainNotes {
  readonly store: Pick<Store, "cells" | "setCells">;
  readonly log: Log;
  readonly jobs: readonly { readonly type: string }[];
}

/** Notes of drains that have not run for so long are deleted. */
const KEPT_MS = 30 * DAY;
/** The name of a cell has room for so many characters of types. */
const NAME_MOST = 250;

/** Notes the start; returns a function that notes the end. */
export async function noteDrain({ store, log, jobs }: DrainNotes): Promise<() => Promise<void>> {
  const failed = (error: unknown): void =>
    log.debug({ error: textOf(error) }, "the times of this drain could not be noted; health may call its work late");
  const types = jobs.map(({ type }) => type).toSorted();
  // A drain without types runs nothing, and a cell without a name has a meaning of its own.
  if (types.length === 0) return async () => undefined;
  const name = nameOf(types);
  const write = async (next: (before: DrainRecord | null, now: number) => DrainRecord | null): Promise<void> => {
    const { cells, now } = await store.cells([{ kind: DRAIN_CELLS }]);
    const own = cells.find((cell) => cell.name === name);
    const record = next(own ? drainFrom(own.value) : null, now);
    const old = cells.filter((cell) => cell.name !== name && now - cell.at > KEPT_MS);
    const drop = ({ kind, name: of, holder, version }: Cell) => ({ kind, name: of, holder, version, value: null });
    const kept = { kind: DRAIN_CELLS, name, holder: "", version: own?.version ?? 0 };
    // Another drain of the same types may write at the same moment: one note is enough.
    await store.setCells([...old.map(drop), ...(record ? [{ ...kept, value: JSON.stringify(record) }] : [])]);
  };
  await write((before, now) => drainBegun(before, types, now)).catch(failed);
  return () => write((before, now) => before && { ...before, endedAt: now }).catch(failed);
}

/** The types as a name; a long list is cut, and its length tells it from others. */
function nameOf(types: readonly string[]): string {
  const whole = types.join(",");
  return whole.length <= NAME_MOST ? whole : `${whole.slice(0, NAME_MOST)}… ${types.length} ${whole.length}`;
}
