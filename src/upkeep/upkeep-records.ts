// What upkeep did last, published for every process: each worker keeps a cell per service with when it ran, how long,
// how it ended and when it runs next. Without these, an idle fleet would look like one without upkeep.
import { fieldsFrom, hasNumbers } from "../core/options.ts";
import type { Cell, CellChange, Store } from "../store/store.ts";
import type { System } from "../system/system.ts";

/** The kind of the cells. */
export const RECORD_CELLS = "upkeep";

/** One step of a service. */
export interface Step {
  /** How long it took; null if it has not run yet and only announces its first step. */
  readonly ms: number | null;
  /** What went wrong; null if nothing did. */
  readonly error: string | null;
  /** How long until the next one. */
  readonly waitMs: number;
}

/** A step as other processes read it, in store time. */
export interface StepRecord extends Step {
  readonly service: string;
  readonly worker: string;
  /** When it was published. */
  readonly at: number;
}

/** Records steps. */
export interface Records {
  note(service: string, step: Step): void;
  /** Moves the last records to the empty holder, so that workers that come and go leave one record, not many. */
  end(): Promise<void>;
}

/** How often a worker writes about a service at most, unless it begins to fail or to succeed again. */
export const RECORD_EVERY_MS = 30_000;
const ERROR_LENGTH = 300;
/** The holder of the records of workers that have left. */
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
      // The records of the other services go with it: one write for all of them.
      const changes = [...untold].map(([name, { error, ...rest }]) => {
        told.set(name, { at: now, failed: error !== null });
        const value = JSON.stringify({ ...rest, error: error && error.slice(0, ERROR_LENGTH), worker: worker() });
        last.set(name, value);
        return cell(name, worker(), value);
      });
      untold.clear();
      // If the store does not answer, the steps themselves report it.
      store.setCells(changes).catch(() => undefined);
    },
    async end() {
      const changes = [...last].flatMap(([name, value]) => [cell(name, worker(), null), cell(name, NOBODY, value)]);
      last.clear();
      if (changes.length > 0) await store.setCells(changes).catch(() => undefined);
    },
  };
}

/** The records in cells; unreadable ones are left out. */
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

/** True if the worker that published it can be assumed to do it still. */
export function isFresh({ at, waitMs }: StepRecord, now: number): boolean {
  return now - at <= 3 * Math.max(waitMs, RECORD_EVERY_MS);
}
