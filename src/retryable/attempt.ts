// One attempt of a call that may be left before it ends: by its timeout, or because the caller's signal fired. A
// function cannot be killed, so leaving means to tell it by its signal and to wait no longer.
import { RedriveError } from "../core/errors.ts";
import type { System } from "../system/system.ts";

/** What a function wrapped by `retryable.withContext` gets before its arguments. */
export interface AttemptContext {
  /** Fires when the attempt's timeout passes or the caller's own signal fires; pass it on, e.g. to `fetch`. */
  readonly signal: AbortSignal;
  /** The attempt that runs now, from 1. */
  readonly attempt: number;
  /** Attempts in all. */
  readonly maxAttempts: number;
}

/** An attempt under way. A class because its signal is made only for those who look at it. */
export class Attempt implements AttemptContext {
  readonly attempt: number;
  readonly maxAttempts: number;
  #controller: AbortController | null = null;
  #left: { readonly reason: unknown } | null = null;

  constructor(attempt: number, maxAttempts: number) {
    this.attempt = attempt;
    this.maxAttempts = maxAttempts;
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#left) this.#controller.abort(this.#left.reason);
    }
    return this.#controller.signal;
  }

  /** Tells the function that nobody waits for it any more. */
  leave(reason: unknown): void {
    this.#left ??= { reason };
    this.#controller?.abort(reason);
  }
}

/** What may end the wait for an attempt. */
export interface AttemptLimits {
  readonly timeoutMs: number | null;
  /** Makes the error of an attempt that took too long. */
  readonly tooLong: () => RedriveError;
  readonly signal: AbortSignal | null;
  readonly system: System;
}

/** Waits for the work as long as the limits allow; rejects with what `tooLong` made or with the signal's reason. */
export function within(limits: AttemptLimits, attempt: Attempt, work: () => unknown): Promise<unknown> {
  const { timeoutMs, signal, system } = limits;
  return new Promise((resolve, reject) => {
    const end = (): void => {
      stopTimer?.();
      signal?.removeEventListener("abort", onAbort);
    };
    // Rejecting first: a function that answers to its signal must not speak before us.
    const leave = (reason: unknown): void => {
      end();
      reject(reason);
      attempt.leave(reason);
    };
    const onAbort = (): void => leave(signal?.reason);
    const stopTimer = timeoutMs === null ? null : system.after(timeoutMs, () => leave(limits.tooLong()));
    signal?.addEventListener("abort", onAbort);
    // What comes of the work after that is heard, so that it is no unhandled rejection, and changes nothing.
    void (async () => {
      try {
        const result = await work();
        end();
        resolve(result);
      } catch (error) {
        end();
        reject(error);
      }
    })();
  });
}
