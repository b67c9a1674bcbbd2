// A probe of the fleet's breaker that a call outside the queue has won, and no call uses. On virtual time.
import { describe, expect, it } from "vitest";
import { retryable } from "../../src/index.ts";
import { createTestRedrive } from "../../src/testing/index.ts";

describe("a probe that was won and not used", () => {
  it("is given back soon, so that others may probe", async () => {
    const breaker = { failures: 3, openFor: "400ms", probes: 2, closeAfter: 1 } as const;
    await using test = await createTestRedrive({ jobs: [], services: { pricing: { breaker, ramp: 0 } } });
    const shared = test.breaker("pricing");
    const quote = retryable(async () => "price", { maxAttempts: 1, breaker: shared });
    shared.open("maintenance", test.clock.now() + 60_000);
    await test.clock.advance("61s");
    await expect(quote()).rejects.toMatchObject({ code: "breaker_open" });
    await test.clock.advance("100ms");
    expect(await test.breakers.get("pricing")).toMatchObject({ state: "half_open", probes: 1 });
    await test.clock.advance("2s");
    expect(await test.breakers.get("pricing")).toMatchObject({ state: "half_open", probes: 0 });
  });
});
