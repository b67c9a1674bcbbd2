// Finds jobs with one crash left where there are more lanes than a look shows. The window of a look moves on; a worker
// that reserves slots for such a job, or should, must keep seeing it. So these lanes are also searched a page at a
// time, and the found ones are shown with every look.
import type { ActiveLane } from "../core/lane.ts";
import type { Store } from "../store/store.ts";
import type { Served } from "./planning.ts";

/** How often a page is searched, and found lanes are read again. */
const SEARCH_MS = 1_000;
const PAGE = 1_000;
/** Most lanes that are kept in view; each is read with a separate call. */
const IN_SIGHT = 5;
const NEVER = Number.NEGATIVE_INFINITY;

/** The lanes of such jobs that one worker knows. */
export class LastLanes {
  readonly #store: Pick<Store, "lanes">;
  readonly #served: Served;
  readonly #monotonic: () => number;
  #known: readonly ActiveLane[] = [];
  #after: number | null = null;
  #searchedAt = NEVER;

  constructor(store: Pick<Store, "lanes">, served: Served, { monotonic }: { readonly monotonic: () => number }) {
    this.#store = store;
    this.#served = served;
    this.#monotonic = monotonic;
  }

  /** These lanes, and the known lanes of jobs with one crash left elsewhere. */
  async beside(shown: readonly ActiveLane[]): Promise<readonly ActiveLane[]> {
    if (this.#monotonic() - this.#searchedAt >= SEARCH_MS) await this.#search();
    const numbers = new Set(shown.map(({ lane }) => lane));
    const others = this.#known.filter(({ lane }) => !numbers.has(lane));
    return others.length === 0 ? shown : [...shown, ...others];
  }

  async #search(): Promise<void> {
    const { lanes, next } = await this.#store.lanes(this.#after, PAGE);
    const again: ActiveLane[] = [];
    for (const { lane } of this.#known) {
      const [one] = (await this.#store.lanes(lane - 1, 1)).lanes;
      if (one?.lane === lane) again.push(one);
    }
    const found = new Map([...again, ...lanes.filter((lane) => this.#isOurs(lane))].map((lane) => [lane.lane, lane]));
    // The newest finds stay: one that may not start now must not hide the others.
    this.#known = [...found.values()].slice(-IN_SIGHT);
    this.#after = next;
    this.#searchedAt = this.#monotonic();
  }

  #isOurs({ kind, type, queue }: ActiveLane): boolean {
    const { serves, queues } = this.#served;
    return kind === "last" && serves.has(type) && (queues === null || queues.has(queue));
  }
}
