// A rest that can be interrupted without losing an interruption: one that comes between a look and the rest counts too.
// Every part of a worker that frees a slot or learns of work holds it.
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

  /** From now on an interruption ends the next rest, even one that has not begun. */
  listen(): void {
    this.#rung = false;
  }

  /** Ends the rest, whatever its reason. */
  readonly ring = (): void => {
    this.#rung = true;
    // A reason given here avoids creating an exception, which would go unread.
    this.#resting?.abort("rung");
    this.#resting = null;
  };

  /** Work may be due: look again. */
  readonly wake = (): void => {
    if (this.awaitsSlot) return;
    this.isWoken = true;
    this.ring();
  };

  /** A slot is free: ends the rest where only that was missing. */
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
