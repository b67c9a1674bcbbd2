// The progress of a run of a list of items: what a restarted process must know (which run, which round) is in one cell;
// everything else is on the jobs.
import { createHash } from "node:crypto";
import { RedriveError } from "../core/errors.ts";
import { fieldsFrom } from "../core/options.ts";
import { BATCH_TYPE } from "../core/round.ts";
import type { Store } from "../store/store.ts";

/** The progress of a run. */
export interface BatchState {
  /** Runs of this name are counted from 1. */
  readonly run: number;
  readonly digest: string;
  readonly items: number;
  /** The value that the run began with; it is stored on the jobs. */
  readonly maxRetries: number;
  /** Rounds of retries that have begun. */
  readonly rounds: number;
  /** A process has counted the last round and is still making its items due. */
  readonly isOpening?: boolean;
  readonly firstPassMs: number;
  readonly retryMs: number;
  readonly isDone: boolean;
}

/** One run among those of a name. */
export interface RunKey {
  readonly name: string;
  readonly run: number;
}

const KIND = "batch";

/** The digest of a list of texts. */
export function digestOf(texts: Iterable<string>): string {
  const hash = createHash("sha256");
  for (const text of texts) hash.update(`${text.length} `).update(text);
  return hash.digest("hex");
}

/** The unfinished run, or a new one where there is none; `isResumed` tells which. */
export async function beginRun(
  store: Store,
  plan: Pick<BatchState, "maxRetries"> & { readonly name: string; readonly items: readonly string[] },
): Promise<{ readonly state: BatchState; readonly isResumed: boolean }> {
  const { name, items, maxRetries } = plan;
  const digest = digestOf(items);
  for (;;) {
    const { state: before, version } = await read(store, name);
    const isResumed = before !== null && (!before.isDone || (await isWaiting(store, name, before.run)));
    if (isResumed && before.digest !== digest) {
      const message = `name: expected the input of the unfinished run ${name}, which has ${before.items} items; got another; finish that run first, or choose another --name`;
      throw new RedriveError("conflict", message);
    }
    if (isResumed && !before.isDone) return { state: before, isResumed };
    const run = (before?.run ?? 0) + 1;
    const state: BatchState = isResumed
      ? { ...before, rounds: before.rounds + 1, isDone: false }
      : { run, digest, items: items.length, maxRetries, rounds: 0, firstPassMs: 0, retryMs: 0, isDone: false };
    if (await save(store, name, state, version)) return { state, isResumed };
  }
}

/** Changes the state of a run, also while other processes change it; null once the next run of its name has begun. */
export async function changeRun(
  store: Store,
  { name, run }: RunKey,
  change: (state: BatchState) => BatchState,
): Promise<BatchState | null> {
  for (;;) {
    const { state, version } = await read(store, name);
    if (state?.run !== run) return null;
    const next = change(state);
    if (next === state || (await save(store, name, next, version))) return next;
  }
}

async function read(
  store: Store,
  name: string,
): Promise<{ readonly state: BatchState | null; readonly version: number }> {
  const [cell] = (await store.cells([{ kind: KIND, name }])).cells;
  return { state: cell ? (fieldsFrom(cell.value) as unknown as BatchState) : null, version: cell?.version ?? 0 };
}

async function save(store: Store, name: string, state: BatchState, version: number): Promise<boolean> {
  const [written] = await store.setCells([{ kind: KIND, name, holder: "", version, value: JSON.stringify(state) }]);
  return written === true;
}

/** True if dead items were sent back to work, which makes a run unfinished again. */
async function isWaiting(store: Store, name: string, run: number): Promise<boolean> {
  const page = await store.list({ type: typeOf(name), queue: queueOf(name, run), state: "queued", limit: 1 });
  return page.items.length > 0;
}

/** The job type of the runs of a name. */
export const typeOf = (name: string): string => BATCH_TYPE + name;
/** The queue of one run. */
export const queueOf = (name: string, run: number): string => `${name}:${run}`;
