// One attempt of a call that may be abandoned before it ends: by its timeout, or because the caller's signal fired. A
// function cannot be killed, so abandoning means to fire its signal and to stop waiting.
import { RedriveError } from "../core/errors.ts";
import type { System } from "../system/system.ts";

/** What a function wrapped by `retryable.withContext` gets before its arguments. */
export interface AttemptContext {
  /** Fires when the attempt's timeout passes or the caller's own signal fires; pass it on, e.g. to `fetch`. */
  readonly signal: AbortSignal;
  /** The attempt that runs now, from 1. */
  readonly attempt: number;
  /** Attempts in total. */
  readonly maxAttempts: number;
}

/** An attempt under way. A class, because its signal is created only for functions that read it. */
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

  /** Tells the function that its attempt was abandoned. */
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

/** Waits for the work within the limits; rejects with the error of `tooLong` or with the signal's reason. */
export function within(limits: AttemptLimits, attempt: Attempt, work: () => unknown): Promise<unknown> {
  const { timeoutMs, signal, system } = limits;
  return new Promise((resolve, reject) => {
    const end = (): void => {
      stopTimer?.();
      signal?.removeEventListener("abort", onAbort);
    };
    // Rejects first: a function that reacts to its signal must not settle the promise before us.
    const leave = (reason: unknown): void => {
      end();
      reject(reason);
      attempt.leave(reason);
    };
    const onAbort = (): void => leave(signal?.reason);
    const stopTimer = timeoutMs === null ? null : system.after(timeoutMs, () => leave(limits.tooLong()));
    signal?.addEventListener("abort", onAbort);
    // A later result of the work is caught, so that it is no unhandled rejection, and changes nothing.
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
