// The types of functions with retries, as the compiler infers them; what must not compile is marked and checked by it.
import { describe, expect, expectTypeOf, it } from "vitest";
import { createBreaker } from "../../src/services/process-breaker.ts";
import type { AttemptContext } from "../../src/retryable/attempt.ts";
import { retryable } from "../../src/retryable/retryable.ts";

describe("the type of a wrapped function", () => {
  it("has the arguments of the function and a promise of its result", () => {
    const dateOf = async (url: string, retries?: number): Promise<Date> => new Date(url.length + (retries ?? 0));
    const safe = retryable(dateOf, { signal: () => undefined });
    expectTypeOf(safe).parameters.toEqualTypeOf<Parameters<typeof dateOf>>();
    expectTypeOf(safe).returns.toEqualTypeOf<Promise<Date>>();
    const plain = retryable((a: number, ...rest: string[]) => a + rest.length);
    expectTypeOf(plain).parameters.toEqualTypeOf<[a: number, ...rest: string[]]>();
    expectTypeOf(plain).returns.toEqualTypeOf<Promise<number>>();
    // @ts-expect-error The first argument is a text.
    expectTypeOf(safe).toBeCallableWith(5);
  });

  it("keeps a type parameter", async () => {
    const same = retryable(async <T extends object>(value: T) => ({ value }));
    expectTypeOf(await same({ a: 1 })).toEqualTypeOf<{ value: { a: number } }>();
    expect(await same({ a: 1 })).toEqual({ value: { a: 1 } });
  });

  it("keeps this", () => {
    const safe = retryable(async function (this: { step: number }) {
      return this.step;
    });
    expectTypeOf(safe).thisParameter.toEqualTypeOf<{ step: number }>();
  });

  it("types the function that chooses the signal by the arguments", () => {
    retryable(async (_url: string, _signal?: AbortSignal) => 1, {
      signal: (url, signal) => {
        expectTypeOf(url).toEqualTypeOf<string>();
        return signal;
      },
    });
    // @ts-expect-error A text is no signal.
    retryable(async (url: string) => url, { signal: (url) => url });
  });

  it("leaves the context out of the arguments", () => {
    const safe = retryable.withContext(async (context, id: number) => {
      expectTypeOf(context).toEqualTypeOf<AttemptContext>();
      return String(id);
    });
    expectTypeOf(safe).toEqualTypeOf<(this: unknown, id: number) => Promise<string>>();
  });

  it("takes thresholds or a breaker, and no option of jobs", () => {
    retryable(async () => 1, { breaker: createBreaker("a") });
    retryable(async () => 1, { breaker: { failures: 3, openFor: "1m" } });
    // @ts-expect-error Only a job can be stuck.
    expect(() => retryable(async () => 1, { stuck: { after: "1h" } })).toThrow(/stuck/);
  });
});
