// Looks at the lanes for those a worker serves, page by page, so that those of others, however many, do not hide its own.
import type { ActiveLane } from "../core/lane.ts";
import type { Appetite } from "../core/plan.ts";
import type { LanePage, Store } from "../store/store.ts";

/** Lanes looked at in one call, at least and at most, and calls in one look. */
const [LANES_LEAST, LANES_MOST] = [250, 1_000];
const PAGES = 20;

/** Looks that go on where the last one ended. */
export class Survey {
  readonly #store: Pick<Store, "lanes">;
  readonly #served: () => Pick<Appetite, "serves" | "queues">;
  /** Where the next look goes on behind its first page. */
  #from: number | null = null;

  constructor(store: Pick<Store, "lanes">, served: () => Pick<Appetite, "serves" | "queues">) {
    this.#store = store;
    this.#served = served;
  }

  /**
   * Those that a claim of this size can reach, and as many again. The first page, with the highest priorities, is always
   * among them; where there are more than a look takes, the rest take turns.
   */
  async look(want: number): Promise<LanePage> {
    const size = Math.max(LANES_LEAST, Math.min(LANES_MOST, 2 * want));
    const { serves, queues } = this.#served();
    const lanes: ActiveLane[] = [];
    let nextRunAt: number | null = null;
    let page = await this.#store.lanes(null, size);
    for (let pages = 1; ; pages++) {
      lanes.push(...page.lanes.filter(({ type, queue }) => serves.has(type) && (queues === null || queues.has(queue))));
      if (page.nextRunAt !== null) nextRunAt = Math.min(page.nextRunAt, nextRunAt ?? page.nextRunAt);
      const enough = pages >= PAGES || lanes.length >= 2 * size || (pages > 1 && lanes.length >= size);
      if (page.next === null || enough) {
        this.#from = page.next;
        return { lanes, nextRunAt, now: page.now, next: lanes.length === 0 ? page.next : null };
      }
      const after: number = pages === 1 ? Math.max(page.next, this.#from ?? page.next) : page.next;
      // Those of others are passed in long steps.
      page = await this.#store.lanes(after, lanes.length * 2 >= size ? size : LANES_MOST);
    }
  }
}
