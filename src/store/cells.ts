// Small values that processes share and that no claim names: what a worker saw of a service, a bucket of start slots, a
// retry budget, the configuration of workers. The store keeps the text and counts its versions.

/** Which cells to read: all of a kind, or those of one name. */
export interface CellQuery {
  readonly kind: string;
  readonly name?: string;
}

/** The key of a cell; name and holder may be empty. */
export interface CellKey {
  readonly kind: string;
  readonly name: string;
  /**
   * The owner of the cell: an owned cell that is no longer written is deleted by a later prune. Empty for a shared
   * cell.
   */
  readonly holder: string;
}

/** A value with its version, which begins with 1 and grows by one with every write. */
export interface Cell extends CellKey {
  readonly version: number;
  /** JSON text. */
  readonly value: string;
  /** Store time of the last write. */
  readonly at: number;
}

/** A write of one cell. */
export interface CellChange extends CellKey {
  /** The version it must follow: 0 for a new cell, null for any. */
  readonly version: number | null;
  /** Null deletes. */
  readonly value: string | null;
}

/**
 * Cells that people write: the schedules they set, the batches they begin, redrive runs, their plans, what they say of
 * causes, tokens, and the alerts of a fleet with their mutes. All others hold what workers saw.
 */
const LASTING_KINDS: ReadonlySet<string> = new Set(["schedule", "batch", "redrive", "plan", "cause", "token", "alert"]);

/** True if one of these writes must survive a power loss once it is answered. */
export function mustLast(changes: readonly CellKey[]): boolean {
  return changes.some(({ kind }) => LASTING_KINDS.has(kind));
}

/** The order in which cells are listed, and locked where there are locks: by key, code unit by code unit. */
export function inCellOrder(a: CellKey, b: CellKey): number {
  return compare(a.kind, b.kind) || compare(a.name, b.name) || compare(a.holder, b.holder);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** A text that is unique for each key. */
export function cellName({ kind, name, holder }: CellKey): string {
  return JSON.stringify([kind, name, holder]);
}
