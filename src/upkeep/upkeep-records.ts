// What upkeep did last, told to everybody: each worker keeps a cell per service with when it ran, how long, how it went
// and when it runs next. Without these, nobody could tell a fleet that has nothing to do from one that nobody looks after.
import { fieldsFrom, hasNumbers } from "../core/options.ts";
import type { Cell, CellChange, Store } from "../store/store.ts";
import type { System } from "../system/system.ts";

/** The kind of the cells. */
export const RECORD_CELLS = "upkeep";

/** One step of a service. */
export interface Step {
  /** How long it took; null if it has not run yet and only says when it will. */
  readonly ms: number | null;
  /** What went wrong; null if nothing did. */
  readonly error: string | null;
  /** How long until the next one. */
  readonly waitMs: number;
}

/** A step as others read it; times are the store's. */
export interface StepRecord extends Step {
  readonly service: string;
  readonly worker: string;
  /** When it was told. */
  readonly at: number;
}

/** Takes note of steps. */
export interface Records {
  note(service: string, step: Step): void;
  /** Leaves what was done last to nobody in particular, so that workers that come and go leave one record, not many. */
  end(): Promise<void>;
}

/** How often a worker writes about a service at most, unless it begins to fail or to go well again. */
export const RECORD_EVERY_MS = 30_000;
const ERROR_LENGTH = 300;
/** Who holds the records of workers that have left. */
const NOBODY = "";

/** The records of one worker. */
export function openRecords({
  store,
  system,
  worker,
}: {
  readonly store: Pick<Store, "setCells">;
  readonly system: Pick<System, "monotonic">;
  readonly worker: () => string;
}): Records {
  const told = new Map<string, { readonly at: number; readonly failed: boolean }>();
  const untold = new Map<string, Step>();
  const last = new Map<string, string>();
  const cell = (name: string, holder: string, value: string | null): CellChange => {
    return { kind: RECORD_CELLS, name, holder, version: null, value };
  };
  return {
    note(service, step) {
      const now = system.monotonic();
      const before = told.get(service);
      const failed = step.error !== null;
      untold.set(service, step);
      if (before && before.failed === failed && now - before.at < RECORD_EVERY_MS) return;
      // What the others have to tell goes along: one write for all of them.
      const changes = [...untold].map(([name, { error, ...rest }]) => {
        told.set(name, { at: now, failed: error !== null });
        const value = JSON.stringify({ ...rest, error: error && error.slice(0, ERROR_LENGTH), worker: worker() });
        last.set(name, value);
        return cell(name, worker(), value);
      });
      untold.clear();
      // Where the store does not answer, the steps themselves say so.
      store.setCells(changes).catch(() => undefined);
    },
    async end() {
      const changes = [...last].flatMap(([name, value]) => [cell(name, worker(), null), cell(name, NOBODY, value)]);
      last.clear();
      if (changes.length > 0) await store.setCells(changes).catch(() => undefined);
    },
  };
}

/** The records in cells; those that nobody can read are left out. */
export function recordsFrom(cells: readonly Cell[]): StepRecord[] {
  return cells.flatMap(({ kind, name, holder, value, at }) => {
    if (kind !== RECORD_CELLS) return [];
    const step = fieldsFrom(value);
    if (!hasNumbers(step, ["waitMs"])) return [];
    const ms = typeof step.ms === "number" ? step.ms : null;
    const error = typeof step.error === "string" ? step.error : null;
    const worker = holder === NOBODY && typeof step.worker === "string" ? step.worker : holder;
    return [{ service: name, worker, at, ms, error, waitMs: step.waitMs as number }];
  });
}

/** True if whoever told it can be taken to do it still. */
export function isFresh({ at, waitMs }: StepRecord, now: number): boolean {
  return now - at <= 3 * Math.max(waitMs, RECORD_EVERY_MS);
}
