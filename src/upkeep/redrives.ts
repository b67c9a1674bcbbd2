// Drives redrive runs. Every worker does this, and every process that follows a run; a lease in the record of each run
// says which process does at a time. An idle fleet reads nothing for it: the signs of a look tell that a run has begun.
import { drivenBy, isDriven, isDrivenElsewhere, type RedriveRun } from "../core/recovery/run.ts";
import { rhythmOf } from "../core/recovery/allowance.ts";
import { isListed, listRun, readListedRuns, runChange, type StoredRun } from "./run-cells.ts";
import { driveRun, type RunDriving, type RunMemory } from "./redrive-step.ts";
import type { Service } from "./upkeep.ts";

/** What a driver needs. */
export interface RedriveDriverOptions extends RunDriving {
  /** A number that changes when a run begins, and the store's time, where known without asking. */
  readonly sign?: () => { readonly cells: number } | null;
}

/** Drives runs. */
export interface RedriveDriver {
  /** One step of every run that is due; answers how long to wait before the next. */
  step(signal?: AbortSignal): Promise<number>;
  /** One step of every run now. */
  stepAll(): Promise<number>;
  /** Lets other processes drive at once. */
  release(): Promise<void>;
}

/** How often a driver checks for new runs. */
const LOOK_MS = 1_000;
/** How often it reads the list in any case; less often where it learns of changes without asking. */
const READ_MS = { asked: 5_000, told: 120_000 } as const;
const RETRY_MS = 1_000;

/** The service of a worker. */
export function redriveService(driver: RedriveDriver): Service {
  return { name: "redrives", retryMs: RETRY_MS, step: (signal) => driver.step(signal) };
}

/** A driver of runs. */
export function openRedriveDriver(options: RedriveDriverOptions): RedriveDriver {
  return new Driver(options);
}

class Driver implements RedriveDriver {
  readonly #options: RedriveDriverOptions;
  /** When each known run is looked at next, by the monotonic clock. */
  readonly #dueAt = new Map<string, number>();
  readonly #memories = new Map<string, RunMemory>();
  /** The runs that this process drives. */
  readonly #ours = new Set<string>();
  #sign: number | null = null;
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(options: RedriveDriverOptions) {
    this.#options = options;
  }

  async step(signal?: AbortSignal): Promise<number> {
    const { system, sign } = this.#options;
    const at = system.monotonic();
    const told = sign?.() ?? null;
    const isTold = told !== null && told.cells === this.#sign;
    const isDue = [...this.#dueAt.values()].some((due) => due <= at);
    if (!isDue && at - this.#readAt < (isTold ? READ_MS.told : told === null ? READ_MS.asked : 0))
      return this.#waitMs();
    const isChanged = told === null || told.cells !== this.#sign;
    this.#sign = told?.cells ?? null;
    await this.#stepThrough(isChanged && !isDue, signal);
    return this.#waitMs();
  }

  async stepAll(): Promise<number> {
    await this.#stepThrough(true);
    return this.#waitMs();
  }

  async release(): Promise<void> {
    const ours = [...this.#ours];
    this.#ours.clear();
    if (ours.length === 0) return;
    const { runs, now } = await readListedRuns(this.#options.store, ours);
    const own = runs.filter(({ run }) => this.#isOurs(run) && run.driver !== null && run.driver.until > now);
    const released = own.map(({ run, version }) => {
      const after = drivenBy(run, this.#options.worker(), 0, now);
      return runChange({ ...after, nextAt: Math.max(run.nextAt, now + rhythmOf(run.rate).everyMs) }, version);
    });
    if (released.length > 0) await this.#options.store.setCells(released);
  }

  #isOurs({ driver }: RedriveRun): boolean {
    return driver?.worker === this.#options.worker();
  }

  #waitMs(): number {
    const at = this.#options.system.monotonic();
    return Math.max(0, Math.min(LOOK_MS, ...[...this.#dueAt.values()].map((due) => due - at)));
  }

  async #stepThrough(isAll: boolean, signal?: AbortSignal): Promise<void> {
    try {
      await this.#stepEach(isAll, signal);
    } catch (error) {
      // What was done is not known, so everything is read again.
      this.#readAt = Number.NEGATIVE_INFINITY;
      throw error;
    }
  }

  async #stepEach(isAll: boolean, signal: AbortSignal | undefined): Promise<void> {
    const { store, system } = this.#options;
    const { listed, runs, now } = await readListedRuns(store, [...this.#dueAt.keys()]);
    this.#readAt = system.monotonic();
    const over = runs.flatMap(({ run }) => (isListed(run) ? [] : [run.id])).filter((id) => listed.includes(id));
    for (const id of this.#dueAt.keys()) if (!listed.includes(id) || over.includes(id)) this.#forget(id);
    for (const stored of runs) if (!signal?.aborted && isListed(stored.run)) await this.#stepOne(stored, now, isAll);
    if (over.length > 0) await listRun(store, { remove: over });
  }

  /** Drives a run that is due and no other process drives. */
  async #stepOne(stored: StoredRun, now: number, isAll: boolean): Promise<void> {
    const { run } = stored;
    const { system, worker } = this.#options;
    const at = system.monotonic();
    const plan = (ms: number): void => void this.#dueAt.set(run.id, system.monotonic() + ms);
    if (!isDriven(run)) return plan(READ_MS.told);
    if (isDrivenElsewhere(run, worker(), now)) {
      this.#ours.delete(run.id);
      return plan((run.driver?.until ?? now) - now);
    }
    if (!isAll && (this.#dueAt.get(run.id) ?? at) > at) return;
    this.#ours.add(run.id);
    plan(await driveRun(this.#options, stored, this.#memoryOf(run.id), now));
  }

  #memoryOf(id: string): RunMemory {
    const known = this.#memories.get(id) ?? { seen: "", still: 0, notBefore: 0 };
    this.#memories.set(id, known);
    return known;
  }

  #forget(id: string): void {
    this.#dueAt.delete(id);
    this.#memories.delete(id);
    this.#ours.delete(id);
  }
}
