// Finds jobs with their last crash left where there are more lanes than a look shows. The window of a look moves on as
// others have their turns; a worker that keeps its hands free for such a job, or should, must not lose sight of it. So
// beside the windows these lanes are searched for a page at a time, and those that were found are shown with every look.
import type { ActiveLane } from "../core/lane.ts";
import type { Store } from "../store/store.ts";
import type { Served } from "./planning.ts";

/** How often a page is searched, and what was found is read again. */
const SEARCH_MS = 1_000;
const PAGE = 1_000;
/** Lanes that are kept in sight at most; each is read with a call of its own. */
const IN_SIGHT = 5;
const NEVER = Number.NEGATIVE_INFINITY;

/** The lanes of such jobs that one worker knows of. */
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

  /** These lanes, and those of last chances elsewhere. */
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
    // The newest find stays: one that may not start now must not hide the others.
    this.#known = [...found.values()].slice(-IN_SIGHT);
    this.#after = next;
    this.#searchedAt = this.#monotonic();
  }

  #isOurs({ kind, type, queue }: ActiveLane): boolean {
    const { serves, queues } = this.#served;
    return kind === "last" && serves.has(type) && (queues === null || queues.has(queue));
  }
}
