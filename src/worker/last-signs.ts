// The signs of the last look, for every loop of a worker that waits for a change: while they are fresh and unchanged,
// no loop reads the store.
import type { LanePage, Signs } from "../store/store.ts";
import type { System } from "../system/system.ts";

/** Older signs are not used: the worker may be too busy to look. */
const FRESH_MS = 3_000;

/** The signs of the last look, with their time. */
export class LastSigns {
  readonly #system: Pick<System, "monotonic">;
  #last: { readonly signs: Signs; readonly storeTime: number; readonly at: number } | null = null;

  constructor(system: Pick<System, "monotonic">) {
    this.#system = system;
  }

  /** Stores the signs of a look. */
  see({ signs, now }: Pick<LanePage, "signs" | "now">): void {
    this.#last = signs ? { signs, storeTime: now, at: this.#system.monotonic() } : null;
  }

  /** The signs, with the store's time as far as it is known; null where none are fresh. */
  read(): (Signs & { readonly storeTime: number }) | null {
    if (!this.#last) return null;
    const { signs, storeTime, at } = this.#last;
    const ageMs = this.#system.monotonic() - at;
    return ageMs > FRESH_MS ? null : { ...signs, storeTime: storeTime + ageMs };
  }
}
