// The records of redrive runs in the store: a cell for each, and one without a name that lists those that are not over.
// A change of that one tells every worker that a run has begun or goes on, so that idle workers need not ask. A start
// writes the run first and lists it then: a run that is neither listed nor over has not begun, and is not shown.
import { fieldsFrom } from "../core/options.ts";
import { isDriven, isOpenRun, RUN_CELLS, runFrom, type RedriveRun } from "../core/recovery/run.ts";
import type { Cell, CellChange, Store } from "../store/store.ts";

/** A run with the version of its cell. */
export interface StoredRun {
  readonly run: RedriveRun;
  readonly version: number;
}

/** The cells of runs as read at one moment. */
export interface RunsRead {
  /** The ids of the runs that are not over. */
  readonly listed: readonly string[];
  /** The version of the list. */
  readonly listVersion: number;
  readonly runs: readonly StoredRun[];
  /** Store time. */
  readonly now: number;
}

/** The change of a run's cell. */
export function runChange(run: RedriveRun, version: number): CellChange {
  return { kind: RUN_CELLS, name: run.id, holder: "", version, value: JSON.stringify(run) };
}

/** The run of this id; null where there is none. */
export async function readRun(
  store: Pick<Store, "cells">,
  id: string,
): Promise<{ readonly found: StoredRun | null; readonly now: number }> {
  const { cells, now } = await store.cells(["", id].map((name) => ({ kind: RUN_CELLS, name })));
  return { found: begun(runsIn(cells, now)).runs[0] ?? null, now };
}

/** Every run that is kept. */
export async function readAllRuns(store: Pick<Store, "cells">): Promise<RunsRead> {
  const { cells, now } = await store.cells([{ kind: RUN_CELLS }]);
  return begun(runsIn(cells, now));
}

/** These without the runs that have not begun. */
function begun(read: RunsRead): RunsRead {
  return { ...read, runs: read.runs.filter(({ run }) => !isOpenRun(run) || read.listed.includes(run.id)) };
}

/** How long a start may take; what it wrote before may be overwritten then. */
const STARTING_MS = 10_000;

/**
 * Writes the record of a new run, which begins when it is listed; null where its plan has begun a run before, or is being
 * started by another process. Answers the version of the cell.
 */
export async function writeUnlisted(store: Pick<Store, "cells" | "setCells">, run: RedriveRun): Promise<number | null> {
  const { cells } = await store.cells(["", run.id].map((name) => ({ kind: RUN_CELLS, name })));
  const { listed, runs } = runsIn(cells, 0);
  const [before] = runs;
  if (before) {
    const isBegun = listed.includes(run.id) || !isOpenRun(before.run);
    if (isBegun || run.startedAt - before.run.startedAt < STARTING_MS) return null;
  }
  const version = before?.version ?? 0;
  const [isWritten] = await store.setCells([runChange(run, version)]);
  return isWritten ? version + 1 : null;
}

/** How long the records of runs are kept after their end. */
const KEPT_MS = 90 * 86_400_000;

/** Deletes the records of runs that ended long ago, or were written long ago and never began. */
export async function forgetOldRuns(store: Pick<Store, "cells" | "setCells">): Promise<void> {
  const { cells, now } = await store.cells([{ kind: RUN_CELLS }]);
  const { listed, runs } = runsIn(cells, now);
  const old = runs.filter(({ run }) => !listed.includes(run.id) && now - (run.endedAt ?? run.startedAt) > KEPT_MS);
  if (old.length > 0)
    await store.setCells(old.map(({ run, version }) => ({ ...runChange(run, version), value: null })));
}

/** The runs that are not over. Those whose names the caller knows already come with the first question. */
export async function readListedRuns(store: Pick<Store, "cells">, known: readonly string[] = []): Promise<RunsRead> {
  const ask = (names: readonly string[]): ReturnType<Store["cells"]> =>
    store.cells(["", ...names].map((name) => ({ kind: RUN_CELLS, name })));
  const first = await ask(known);
  const listed = listedIn(first.cells);
  const { cells, now } = listed.every((id) => known.includes(id)) ? first : await ask(listed);
  return runsIn(cells, now);
}

/** Most tries to change the list beside other processes. */
const TRIES = 20;

/** Adds a run to the list, or removes those that are over. Always written, because the change tells the workers. */
export async function listRun(
  store: Pick<Store, "cells" | "setCells">,
  { add = [], remove = [] }: { readonly add?: readonly string[]; readonly remove?: readonly string[] },
): Promise<void> {
  for (let tries = 0; tries < TRIES; tries++) {
    const { cells } = await store.cells([{ kind: RUN_CELLS, name: "" }]);
    const { listed, listVersion: version } = runsIn(cells, 0);
    const value = JSON.stringify({ listed: [...new Set([...listed.filter((id) => !remove.includes(id)), ...add])] });
    const [isWritten] = await store.setCells([{ kind: RUN_CELLS, name: "", holder: "", version, value }]);
    if (isWritten) return;
  }
}

/** True for a run that stays in the list. */
export function isListed(run: RedriveRun): boolean {
  return isOpenRun(run) || isDriven(run);
}

/** How long a run may keep the dead from being deleted. */
const HOLD_MS = 7 * 86_400_000;

/** True while a run may still need dead letters that have expired. */
export async function holdsDead(store: Pick<Store, "cells">): Promise<boolean> {
  const { runs, now } = await readListedRuns(store);
  return runs.some(({ run }) => isOpenRun(run) && now - run.startedAt < HOLD_MS);
}

/** The runs in these cells. */
export function runsIn(cells: readonly Cell[], now: number): RunsRead {
  const listVersion = cells.find(({ name }) => name === "")?.version ?? 0;
  return { listed: listedIn(cells), listVersion, runs: storedIn(cells), now };
}

function storedIn(cells: readonly Cell[]): StoredRun[] {
  return cells.flatMap(({ name, version, value }) => {
    const run = name === "" ? null : runFrom(value);
    return run ? [{ run, version }] : [];
  });
}

function listedIn(cells: readonly Cell[]): string[] {
  const { listed } = fieldsFrom(cells.find(({ name }) => name === "")?.value ?? "");
  return Array.isArray(listed) ? listed.filter((id) => typeof id === "string") : [];
}
