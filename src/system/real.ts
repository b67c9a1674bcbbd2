// The real clocks, timers and randomness of this machine.
import { processActor } from "./actor.ts";
import { ascendingId, randomNonce, randomWorkerId } from "./ids.ts";
import type { System } from "./system.ts";

/** Longer timers are armed in steps; beyond 2^31 ms Node fires them at once. */
const LONGEST_TIMER_MS = 2_000_000_000;

/** Clock, timers and randomness of this machine. */
export const realSystem: System = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const end = (): void => {
        stop();
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const stop = after(ms, end);
      signal?.addEventListener("abort", end);
    }),
  after,
  random: () => Math.random(),
  jobId: () => ascendingId(Date.now()),
  nonce: randomNonce,
  workerId: randomWorkerId,
  actor: processActor,
};

function after(ms: number, callback: () => void): () => void {
  let timer: NodeJS.Timeout;
  const arm = (left: number): void => {
    timer = setTimeout(
      () => (left > LONGEST_TIMER_MS ? arm(left - LONGEST_TIMER_MS) : callback()),
      Math.min(left, LONGEST_TIMER_MS),
    );
  };
  arm(ms);
  return () => clearTimeout(timer);
}
