// A rest that can be rung out of, and that no ring is lost to: one that comes between looking and resting counts too. Every
// part of a worker that frees a slot or hears of work has it.
import type { System } from "../system/system.ts";

/** The rest of one claim loop. */
export class WakeableSleep {
  /** The worker rests because no slot is wanted, not because nothing is due. */
  awaitsSlot = false;
  /** A hint came that work may be due. */
  isWoken = false;
  readonly #system: Pick<System, "sleep">;
  #rung = false;
  #resting: AbortController | null = null;

  constructor(system: Pick<System, "sleep">) {
    this.#system = system;
  }

  /** From now on a ring ends the next rest, even one that has not begun. */
  listen(): void {
    this.#rung = false;
  }

  /** Go on, whatever we rest for. */
  readonly ring = (): void => {
    this.#rung = true;
    // The reason spares the making of an exception that nobody reads.
    this.#resting?.abort("rung");
    this.#resting = null;
  };

  /** Work may be due: look again. */
  readonly wake = (): void => {
    if (this.awaitsSlot) return;
    this.isWoken = true;
    this.ring();
  };

  /** A slot is free: go on where only that was missing. */
  nudge(): void {
    if (this.awaitsSlot) this.ring();
  }

  async rest(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#rung || signal.aborted) return;
    this.#resting = new AbortController();
    signal.addEventListener("abort", this.ring);
    await this.#system.sleep(ms, this.#resting.signal);
    signal.removeEventListener("abort", this.ring);
    this.#resting = null;
  }
}
