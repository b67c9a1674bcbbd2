// Looks for the lanes that a worker serves, page by page, so that lanes of others, however many, do not hide its own.
// Where there are more lanes than a look takes, it shows a window of them, and the window moves in rounds: through the
// highest priority that is too long for a look, and on to lower ones only if nothing of that could be taken.
import { type ActiveLane, beforePriority, priorityOfLane } from "../core/lane.ts";
import type { LanePage, Store } from "../store/store.ts";
import type { Served } from "./planning.ts";

/** Lanes read in one call, at least and at most, and calls in one look. */
const [LANES_LEAST, LANES_MOST] = [250, 1_000];
const PAGES = 20;
/** Lanes that show work of a higher priority than the window. */
const PEEK = 50;

/** What was done with the lanes of the last look. */
export interface Since {
  /** Counts the turns that lanes were given. */
  readonly turn: number;
  /** The highest priority from which a job was taken; null for none. */
  readonly took: number | null;
}

/** A part of the lanes, as much as a look takes. */
interface Window {
  /** It begins after this lane, and ends with the other one; null if that was the last of all. */
  readonly after: number;
  readonly end: number | null;
  /** The priority of its first lane. */
  readonly level: number;
  /** A job of this priority was taken since the window reached it. */
  readonly worked: boolean;
  /** The turns given before, and how many lanes must have one before it moves on. */
  readonly turn: number;
  readonly lanes: number;
}

/** Looks that continue where the last one ended. */
export class LaneScan {
  readonly #store: Pick<Store, "lanes">;
  readonly #served: Served;
  /** Windows that move in rounds, by the priority in which they begin. */
  readonly #windows = new Map<number, Window>();

  constructor(store: Pick<Store, "lanes">, served: Served) {
    this.#store = store;
    this.#served = served;
  }

  /** True where a look shows everything that we serve, not a window of it. */
  get showsAll(): boolean {
    return this.#windows.size === 0;
  }

  /**
   * The lanes that a claim of this size can reach, and as many again. Work of a higher priority is always among them;
   * `next` tells that lanes are left which were not seen since the window began its round.
   */
  async look(want: number, since: Since): Promise<LanePage> {
    const size = Math.max(LANES_LEAST, Math.min(LANES_MOST, 2 * want));
    if (this.#windows.size > 0) return this.#lookThrough(size, since);
    const all = await this.#gather(null, size);
    if (all.next === null) return all;
    const top = priorityOfLane(all.next);
    const lanes = all.lanes.filter(({ priority }) => priority === top).length;
    const level = all.lanes.find(({ priority }) => priority <= top)?.priority ?? top;
    const window = { after: beforePriority(top), end: all.next, level, worked: false, turn: since.turn, lanes };
    this.#windows.set(top, window);
    return all;
  }

  /** Shows work of a higher priority, and a window. */
  async #lookThrough(size: number, since: Since): Promise<LanePage> {
    const peek = this.#own(await this.#store.lanes(null, PEEK));
    if (peek.next === null) {
      this.#windows.clear();
      return peek;
    }
    const top = priorityOfLane(peek.next);
    const before = this.#windows.get(top);
    const start = before ? windowAfter(before, top, since) : { after: beforePriority(top), worked: false };
    const part = await this.#gather(start.after, size);
    const level = before && start.worked ? before.level : (part.lanes[0]?.priority ?? top);
    const above = peek.lanes.filter(({ priority }) => priority > top);
    const nextRunAt = earlier(peek.nextRunAt, part.nextRunAt);
    if (part.next === null && start.after === beforePriority(top)) {
      this.#windows.clear();
      return { ...part, lanes: [...above, ...part.lanes], nextRunAt };
    }
    let [lanes, end, worked] = [part.lanes, part.next, start.worked];
    const behind = lanes.filter(({ priority }) => priority < level);
    if (worked && (behind.length > 0 || end === null)) {
      // The end of a priority that has work: its beginning comes next, not what is below it.
      const again = await this.#gather(beforePriority(level), size);
      const isWhole = again.next === null || again.next >= start.after;
      const ahead = again.lanes.filter(({ lane }) => lane <= start.after);
      lanes = [...lanes.filter(({ priority }) => priority === level), ...ahead, ...(isWhole ? behind : [])];
      [worked, end] = [false, isWhole ? beforePriority(level) : again.next];
    }
    const isStaying = before !== undefined && start.after === before.after;
    this.#windows.set(top, {
      after: start.after,
      end,
      level,
      worked,
      ...(isStaying ? { turn: before.turn, lanes: before.lanes } : { turn: since.turn, lanes: lanes.length }),
    });
    return { ...part, lanes: [...above, ...lanes], nextRunAt, next: end };
  }

  /** Pages of lanes after this one, until there are enough that we serve. */
  async #gather(from: number | null, size: number): Promise<LanePage> {
    const lanes: ActiveLane[] = [];
    let nextRunAt: number | null = null;
    let step = from === null ? size : Math.min(LANES_MOST, 2 * size);
    for (let [pages, after] = [1, from]; ; pages++) {
      const page = this.#own(await this.#store.lanes(after, step));
      lanes.push(...page.lanes);
      nextRunAt = earlier(nextRunAt, page.nextRunAt);
      const enough = pages >= PAGES || lanes.length >= 2 * size || (pages > 1 && lanes.length >= size);
      if (page.next === null || enough) return { ...page, lanes, nextRunAt };
      after = page.next;
      // Lanes of others are passed in long steps.
      step = lanes.length * 2 >= size ? size : LANES_MOST;
    }
  }

  #own(page: LanePage): LanePage {
    const { serves, queues } = this.#served;
    const isOurs = ({ type, queue }: ActiveLane): boolean => serves.has(type) && (queues === null || queues.has(queue));
    return { ...page, lanes: page.lanes.filter(isOurs) };
  }
}

/** Where the next window begins: after the last one, once every lane in it that gives jobs had its turn. */
function windowAfter(before: Window, top: number, { turn, took }: Since): { after: number; worked: boolean } {
  const { after, end, level } = before;
  // Work that could not be taken when the window passed it can be taken now.
  if (took !== null && took > level && took <= top) return { after: beforePriority(top), worked: false };
  const worked = before.worked || took === level;
  if (took !== null && turn - before.turn < before.lanes) return { after, worked };
  return end === null ? { after: beforePriority(top), worked: false } : { after: end, worked };
}

function earlier(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b);
}
