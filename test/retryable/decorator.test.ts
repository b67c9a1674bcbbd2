// `@retryable` on the methods of classes, compiled by the compiler users have.
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isRedriveError } from "../../src/core/errors.ts";
import { retryable, type Retryable, retryableOn } from "../../src/retryable/retryable.ts";
import { openWorkshop } from "../support/compiled.ts";
import { onVirtualTime } from "../support/virtual-time.ts";

const workshop = openWorkshop();
const FILE = fileURLToPath(new URL("./decorated.ts", import.meta.url));
let pricesOn: typeof import("./decorated.ts").pricesOn;

beforeAll(async () => {
  expect(workshop.compile([FILE])).toEqual([]);
  ({ pricesOn } = await workshop.load<typeof import("./decorated.ts")>(FILE));
});
afterAll(() => workshop.remove());

describe("a decorated method", () => {
  it("is tried again with its this and its arguments", () =>
    onVirtualTime(async (system) => {
      const Prices = pricesOn(retryableOn(system));
      const prices = new Prices("EUR", 2);
      expect(await prices.of("apple", 3)).toBe("3 apple in EUR");
      expect(prices.calls).toBe(3);
      await expect(new Prices("EUR", 3).of("apple")).rejects.toThrow("not yet");
    }));

  it("may be static or private", () =>
    onVirtualTime(async (system) => {
      const Prices = pricesOn(retryableOn(system));
      Prices.failures = 2;
      expect(await Prices.all()).toBe("all");
      expect(await new Prices("EUR", 2).secret()).toBe("secret");
    }));

  it("has one breaker for the class", () =>
    onVirtualTime(async (system) => {
      const Prices = pricesOn(retryableOn(system));
      for (let n = 0; n < 2; n++) await expect(new Prices("EUR", 1).guarded()).rejects.toThrow("not yet");
      const refusal: unknown = await new Prices("EUR").guarded().catch((error: unknown) => error);
      expect(isRedriveError(refusal, "breaker_open")).toBe(true);
      expect((refusal as Error).message).toContain("guarded: breaker guarded is open");
    }));

  it("takes the signal of a call from its arguments", () =>
    onVirtualTime(async (system) => {
      const prices = new (pricesOn(retryableOn(system)))("EUR");
      expect(await prices.cancellable("apple")).toBe("apple");
      const call = prices.cancellable("apple", { signal: AbortSignal.abort() });
      expect(isRedriveError(await call.catch((error: unknown) => error), "aborted")).toBe(true);
    }));

  it("stays on the prototype under its own name", () => {
    const Prices = pricesOn(retryable);
    expect(Object.hasOwn(Prices.prototype, "of")).toBe(true);
    expect(Prices.prototype.of.name).toBe("of");
  });
});

describe("the decorator", () => {
  const decorate = retryable() as unknown as (...args: unknown[]) => unknown;
  const method = async (): Promise<void> => undefined;

  it("refuses what is no method, and the decorators of before the standard", () => {
    const message = /^@retryable: expected a class method .*experimentalDecorators must be off/;
    expect(() => decorate(method, { kind: "getter" })).toThrow(message);
    expect(() => decorate({}, "method", { value: method })).toThrow(message);
    expect(() => decorate(method)).toThrow(message);
    expect(() => (retryable as unknown as Retryable & typeof decorate)(method, { kind: "method" })).toThrow(/"kind"/);
  });
});
