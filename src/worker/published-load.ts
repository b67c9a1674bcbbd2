// What a worker publishes for operators: its configuration, what it serves and how many slots it has. It writes only
// changes, because every write wakes the other processes of a file. Everything is removed with the worker: its
// configuration holds for no other.
import type { WorkerLoad } from "../core/load.ts";
import type { Limits } from "../core/service.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import type { CellChange, Store } from "../store/store.ts";
import type { System } from "../system/system.ts";
import type { Contact } from "../store/store-contact.ts";
import type { WorkerSettings } from "./settings.ts";

/** How often it is written again though unchanged: a store deletes cells after a day without a write. */
const AGAIN_MS = 3_600_000;

/** What the published load is made from. */
export interface PublishedLoadOptions {
  readonly store: Pick<Store, "setCells">;
  readonly system: System;
  readonly contact: Contact;
  readonly settings: Pick<WorkerSettings, "queues" | "heartbeatMs">;
  readonly jobs: readonly JobDefinition[];
  readonly limits: Limits;
  /** Tells how many slots it can use now. */
  readonly inFlight: { readonly slots: number };
}

/** The published load of a worker under one id. */
export class PublishedLoad {
  readonly #options: PublishedLoadOptions;
  readonly #worker: string;
  readonly #ending = new AbortController();
  #written: string | null = null;
  #allWrittenAt = 0;

  constructor(worker: string, options: PublishedLoadOptions) {
    this.#worker = worker;
    this.#options = options;
  }

  /** Writes everything once, then changes, as often as the worker sends heartbeats. */
  async begin(): Promise<void> {
    await this.#write();
    void this.#goOn();
  }

  /** Deletes what was published about the worker. */
  async end(): Promise<void> {
    this.#ending.abort();
    if (this.#written === null) return;
    this.#written = null;
    await this.#set([...this.#settings(false), this.#load(null)]);
  }

  async #goOn(): Promise<void> {
    const { system, settings } = this.#options;
    while (!this.#ending.signal.aborted) {
      await system.sleep(settings.heartbeatMs, this.#ending.signal);
      if (!this.#ending.signal.aborted) await this.#write();
    }
  }

  async #write(): Promise<void> {
    const { jobs, settings, inFlight, system } = this.#options;
    const types = jobs.map(({ type, queue, concurrency, batch, limits }) => ({
      type,
      queue,
      concurrency: Number.isFinite(concurrency) ? concurrency : null,
      ...(batch ? { batch: Math.max(batch.size, batch.retrySize) } : {}),
      ...(Object.keys(limits).length === 0 ? {} : { limits }),
      ...(batch?.isOutside ? { isOutside: true } : {}),
    }));
    const load: WorkerLoad = { types, queues: settings.queues && [...settings.queues], concurrency: inFlight.slots };
    const text = JSON.stringify(load);
    const now = system.monotonic();
    const isAll = this.#written === null || now - this.#allWrittenAt >= AGAIN_MS;
    if (!isAll && text === this.#written) return;
    if (!(await this.#set([...(isAll ? this.#settings(true) : []), this.#load(text)]))) return;
    this.#written = text;
    if (isAll) this.#allWrittenAt = now;
    // It ended while this was on its way.
    if (this.#ending.signal.aborted) await this.end();
  }

  /** The configuration of the worker, name by name; or its deletion. */
  #settings(isSaid: boolean): CellChange[] {
    return [...this.#options.limits.said].map(([name, said]) => {
      const value = isSaid ? JSON.stringify(said) : null;
      return { kind: "settings", name, holder: this.#worker, version: null, value };
    });
  }

  #load(value: string | null): CellChange {
    return { kind: "load", name: "", holder: this.#worker, version: null, value };
  }

  /** True if it was written. No work depends on it: what cannot be written now is written with the next heartbeat. */
  async #set(changes: readonly CellChange[]): Promise<boolean> {
    const { contact, store } = this.#options;
    try {
      return (await contact.attempt("load", () => store.setCells(changes))) !== null;
    } catch (error) {
      contact.complain("load", error);
      return false;
    }
  }
}
