// A rest that can be rung out of, and that no ring is lost to: one that comes between looking and resting counts too.
import type { System } from "../system/system.ts";

/** Rings and rests. */
export interface WakeableSleep {
  /** From now on a ring ends the next rest, even one that has not begun. */
  listen(): void;
  ring(): void;
  rest(ms: number, signal: AbortSignal): Promise<void>;
}

/** A bell that nobody has rung. */
export function openSleep(system: System): WakeableSleep {
  let rung = false;
  let resting: AbortController | null = null;
  const ring = (): void => {
    rung = true;
    // The reason spares the making of an exception that nobody reads.
    resting?.abort("rung");
    resting = null;
  };
  return {
    listen() {
      rung = false;
    },
    ring,
    async rest(ms, signal) {
      if (rung || signal.aborted) return;
      resting = new AbortController();
      signal.addEventListener("abort", ring);
      await system.sleep(ms, resting.signal);
      signal.removeEventListener("abort", ring);
      resting = null;
    },
  };
}
