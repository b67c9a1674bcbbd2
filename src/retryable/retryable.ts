// Retries for any function, without a queue: `retryable(fn)` and, on class methods, `@retryable()`. This file has the
// forms and their types; call.ts makes the calls.
import type { ResultOf } from "../core/item-outcome.ts";
import { invalid } from "../core/options.ts";
import { realSystem } from "../system/real.ts";
import type { System } from "../system/system.ts";
import type { AttemptContext } from "./attempt.ts";
import { type Callable, callOf } from "./call.ts";
import { type RetryableOptions, type RetryableSettings, resolveRetryable } from "./settings.ts";

/** The arguments of the function itself: types in the options are checked against them and do not change them. */
type Known<Args extends readonly unknown[]> = Args extends infer Fixed extends readonly unknown[] ? Fixed : never;

/** A function with retries: the same `this` and arguments, always a promise. */
export type Retried<This, Args extends readonly unknown[], Result> = (
  this: This,
  ...args: Args
) => Promise<ResultOf<Awaited<Result>>>;

/** What `retryable(options)` returns: a standard decorator for methods that return a promise. */
export type RetryableDecorator<Args extends readonly unknown[]> = <
  This,
  MethodArgs extends [...Args, ...unknown[]],
  Result,
>(
  method: (this: This, ...args: MethodArgs) => Promise<Result>,
  context: ClassMethodDecoratorContext<This, (this: This, ...args: MethodArgs) => Promise<Result>>,
) => (this: This, ...args: MethodArgs) => Promise<Result>;

/** The forms of `retryable`. */
export interface Retryable {
  /** Wraps a function. */
  <This, Args extends readonly unknown[], Result>(
    fn: (this: This, ...args: Args) => Result,
    options?: RetryableOptions<Known<Args>>,
  ): Retried<This, Args, Result>;
  /** Makes a decorator; everything it holds, including a breaker, belongs to the class and not to its instances. */
  <Args extends readonly unknown[] = readonly unknown[]>(options?: RetryableOptions<Args>): RetryableDecorator<Args>;
  // A plain wrapper must not change the arguments of a function, and asynchronous storage would cost every call.
  /**
   * Wraps a function that takes a context before its arguments: the attempt, and a signal that fires when it is
   * abandoned.
   */
  withContext<This, Args extends readonly unknown[], Result>(
    fn: (this: This, context: AttemptContext, ...args: Args) => Result,
    options?: RetryableOptions<Known<Args>>,
  ): Retried<This, Args, Result>;
}

/** Adds retries to a function, or to a method as a decorator. */
export const retryable: Retryable = retryableOn(realSystem);

/** `retryable` with another clock, timers and randomness than the machine's. */
export function retryableOn(system: System): Retryable {
  const wrap = (fn: unknown, settings: RetryableSettings, passesContext: boolean): Callable => {
    if (typeof fn !== "function") throw invalid("retryable", "a function", fn, "pass the function to retry");
    const length = passesContext ? Math.max(0, fn.length - 1) : fn.length;
    return Object.defineProperties(callOf(fn as Callable, settings, passesContext, system), {
      name: { value: fn.name, configurable: true },
      length: { value: length, configurable: true },
    });
  };
  const decorator =
    (settings: RetryableSettings) =>
    (method: unknown, context: unknown): Callable => {
      if ((context as { kind?: unknown } | undefined)?.kind !== "method") {
        const remedy = "put it before a method; experimentalDecorators must be off";
        throw invalid("@retryable", "a class method and the context of a standard decorator", context, remedy);
      }
      return wrap(method, settings, false);
    };
  const choose = (first: unknown = {}, options: unknown = {}): unknown =>
    typeof first === "function" ? wrap(first, resolveRetryable(options), false) : decorator(resolveRetryable(first));
  const withContext = (fn: unknown, options: unknown = {}): unknown => wrap(fn, resolveRetryable(options), true);
  return Object.assign(choose, { withContext }) as Retryable;
}
