// The memory store of a test: it can be down, it knows which worker holds which run, and it can put one job before all
// others. It treats jobs by the memory store's own code.
import { RedriveError } from "../core/errors.ts";
import type { Job, Lease } from "../core/job.ts";
import { IN_MEMORY, memoryVerbs } from "../store/memory/index.ts";
import { emptyTables, jobOf, startWaiting, stopWaiting, type Tables } from "../store/memory/tables.ts";
import type { ClaimRequest, SettleRequest, Store } from "../store/store.ts";
import { type Verb, VERBS } from "../store/verb-facts.ts";
import { ring, storeFrom, type Verbs } from "../store/verbs.ts";

/** A run that a worker holds. */
export interface ObservedRun extends Pick<Lease, "id" | "epoch"> {
  readonly type: string;
  readonly worker: string;
  readonly since: number;
  /** Its handler is not at work: it waits for the fake clock, or has returned. */
  waits: boolean;
}

/** The store of a test. */
export class ObservedStore {
  /** What the test and its workers see. */
  readonly store: Store;
  /** The same without outages and without waiting, for the test's own machinery. */
  readonly verbs: Verbs;
  readonly holdings = new Map<string, ObservedRun>();
  /** Runs of workers that died, until they are judged. */
  readonly lost = new Set<string>();
  /** Down until this instant. */
  downUntil = 0;
  readonly #tables: Tables;
  readonly #wake = new Set<() => void>();
  #listeners: (() => void)[] = [];

  constructor(now: () => number) {
    const tables = emptyTables(now);
    this.#tables = tables;
    this.verbs = memoryVerbs(tables);
    this.store = storeFrom(IN_MEMORY, (verb, args) => this.#carryOut(verb, args), {
      wake: this.#wake,
      close: async () => undefined,
    });
  }

  get isDown(): boolean {
    return this.#tables.clock() < this.downUntil;
  }

  /** Resolves when something is written, or on request. */
  changed(): Promise<void> {
    return new Promise((resolve) => this.#listeners.push(resolve));
  }

  change(): void {
    for (const tell of this.#listeners.splice(0)) tell();
  }

  /** Wakes workers that wait for work. */
  ring(): void {
    ring(this.#wake);
  }

  /** Makes a waiting job due and the first of its lane; answers the lane, or null if it does not wait. */
  bringForward(id: string): number | null {
    const row = this.#tables.jobs.get(id);
    if (row?.state !== "queued") return null;
    stopWaiting(this.#tables, row);
    row.runAt = Math.min(row.runAt, this.#tables.clock());
    startWaiting(this.#tables, row);
    const line = this.#tables.waiting.get(row.lane) ?? [];
    line.splice(line.indexOf(row), 1);
    line.unshift(row);
    return row.lane;
  }

  /** Records that the worker is dead: its runs have no worker. */
  lose(worker: string): void {
    for (const [name, holding] of this.holdings) {
      if (holding.worker !== worker) continue;
      this.holdings.delete(name);
      this.lost.add(name);
    }
    this.change();
  }

  /** The first waiting job of every lane. */
  heads(): Job[] {
    return [...this.#tables.waiting.values()].flatMap(([row]) => (row ? [jobOf(row)] : []));
  }

  async #carryOut(verb: Verb, args: readonly unknown[]): Promise<unknown> {
    // Whether it is written or not, the handler has returned.
    if (verb === "settle") for (const name of judged(args[0] as SettleRequest)) this.#returned(name);
    if (this.isDown)
      throw new RedriveError(
        "store_unavailable",
        "The store is down, because the test asked for it. Nothing was written.",
      );
    const answer = (this.verbs[verb] as (...given: readonly unknown[]) => unknown)(...args);
    if (verb === "claim") {
      const { worker } = args[0] as ClaimRequest;
      const since = this.#tables.clock();
      for (const { id, epoch, type } of (answer as Awaited<ReturnType<Store["claim"]>>).jobs)
        this.holdings.set(nameOf({ id, epoch }), { id, epoch, type, worker, since, waits: false });
    }
    if (verb === "settle") {
      for (const name of judged(args[0] as SettleRequest)) {
        this.holdings.delete(name);
        this.lost.delete(name);
      }
    }
    if (VERBS[verb].promises !== undefined) this.change();
    return answer;
  }

  #returned(name: string): void {
    const holding = this.holdings.get(name);
    if (holding) holding.waits = true;
    this.change();
  }
}

/** The runs that these settlements end. */
function judged({ settlements }: SettleRequest): string[] {
  return settlements.filter(({ verdict }) => verdict.kind !== "progress").map(nameOf);
}

/** The name of one run of one job. */
export function nameOf({ id, epoch }: Pick<Lease, "id" | "epoch">): string {
  return `${id} ${epoch}`;
}
