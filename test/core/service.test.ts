// What people write about services and tenants: defaults, names, and refusals that say what to do.
import { describe, expect, test } from "vitest";
import { BREAKER_DEFAULTS } from "../../src/core/breaker.ts";
import { isRedriveError } from "../../src/core/errors.ts";
import { resolveLimits } from "../../src/core/service.ts";

const services = (pricing: unknown): unknown => ({ services: { pricing } });
const tenants = (acme: unknown): unknown => ({ tenants: { acme } });

describe("settings", () => {
  test("of a service and a tenant nobody mentioned are the defaults", () => {
    const limits = resolveLimits({});
    expect(limits.service("any")).toEqual({
      breaker: BREAKER_DEFAULTS,
      whenOpen: "park",
      rampMs: 20_000,
      budget: null,
      rate: null,
    });
    expect(limits.tenant("any")).toEqual({ weight: 1, rate: null });
    expect(limits.type("any")).toBeNull();
    expect(limits).toMatchObject({ areSpread: false, said: new Map() });
  });

  test("for * hold for names that have no word of their own, and only for those", () => {
    const limits = resolveLimits({
      services: { "*": { breaker: false, rateLimit: { limit: 5 } }, pricing: { ramp: 0 } },
      tenants: { "*": { weight: 2 }, acme: { weight: 3 } },
    });
    expect(limits.service("other")).toMatchObject({ breaker: null, rate: { limit: 5 } });
    expect(limits.service("pricing")).toMatchObject({ breaker: BREAKER_DEFAULTS, rate: null, rampMs: 0 });
    expect([limits.tenant("acme").weight, limits.tenant("other").weight]).toEqual([3, 2]);
    expect(limits.areSpread).toBe(true);
    expect([...limits.said.keys()]).toEqual(["service:*", "service:pricing", "tenant:*", "tenant:acme"]);
  });

  test.each([
    [{ services: { a: { budget: {} } } }, true],
    [{ tenants: { a: { rateLimit: { limit: 1 } } } }, true],
    [{ types: [{ type: "mail", rate: { limit: 1, perMs: 1_000, burst: 1 } }] }, true],
    [{ services: { a: { breaker: { failures: 2 } } }, tenants: { a: { weight: 2 } } }, false],
  ])("of %j are spread over time: %s", (given, spread) => {
    expect(resolveLimits(given).areSpread).toBe(spread);
  });
});

describe("what makes no sense is refused with what was expected, what came and what to do", () => {
  test.each([
    [{ services: [] }, /^services: expected an object; got an array; /],
    [{ services: "pricing" }, /^services: expected an object; got "pricing"; /],
    [{ services: { "a b": {} } }, /^services/],
    [services(null), /^services\.pricing: expected an object with breaker, whenOpen, .*; got null; /],
    [services({ rate: 5 }), /^services\.pricing: expected an object .*; got "rate"; did you mean "/],
    [
      services({ whenOpen: "wait" }),
      /^services\.pricing\.whenOpen: expected park, dead-letter, fail; got "wait"; use one/,
    ],
    [services({ ramp: "2d" }), /^services\.pricing\.ramp: expected a duration .*; got "2d"; /],
    [services({ ramp: -1 }), /^services\.pricing\.ramp: expected a duration .*; got -1; /],
    [services({ breaker: true }), /^services\.pricing\.breaker: expected an object with failures, .*; got true; /],
    [services({ breaker: { failures: 0 } }), /^services\.pricing\.breaker\.failures: expected .*; got 0; /],
    [
      services({ breaker: { openFor: "x" } }),
      /^services\.pricing\.breaker\.openFor: expected a duration .*; got "x"; /,
    ],
    [
      services({ breaker: { probes: 1, closeAfter: 2 } }),
      /^services\.pricing\.breaker\.closeAfter: expected at most probes, 1; got 2; raise/,
    ],
    [services({ budget: null }), /^services\.pricing\.budget: expected an object with share, .*; got null; /],
    [
      services({ budget: { share: 11 } }),
      /^services\.pricing\.budget\.share: expected a number from 0 to 10; got 11; /,
    ],
    [services({ rateLimit: 5 }), /^services\.pricing\.rateLimit: expected an object with limit, .*; got 5; /],
    [services({ rateLimit: { limit: 0 } }), /^services\.pricing\.rateLimit\.limit: expected .*; got 0; /],
    [{ tenants: 5 }, /^tenants: expected an object; got 5; /],
    [{ tenants: { "": {} } }, /^tenants/],
    [tenants(1), /^tenants\.acme: expected an object with weight, rateLimit; got 1; /],
    [tenants({ weight: 0 }), /^tenants\.acme\.weight: expected a number from 0\.01 to 100; got 0; /],
    [tenants({ weight: Number.NaN }), /^tenants\.acme\.weight: expected .*; got NaN; /],
    [tenants({ weigth: 2 }), /^tenants\.acme: .*got "weigth"; did you mean "weight"\?$/],
    [tenants({ rateLimit: {} }), /^tenants\.acme\.rateLimit\.limit: expected .*; got undefined; /],
  ])("%j", (given, message) => {
    let refusal: unknown;
    try {
      resolveLimits(given as Parameters<typeof resolveLimits>[0]);
    } catch (error) {
      refusal = error;
    }
    expect(isRedriveError(refusal) && refusal.code).toBe("invalid_argument");
    expect((refusal as Error).message).toMatch(message);
  });
});
