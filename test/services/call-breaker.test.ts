// The breaker of `retryable` on virtual time: what opens it, whom it refuses, how it recovers, who shares it.
import { describe, expect, it, vi } from "vitest";
import type { BreakerOptions } from "../../src/core/breaker.ts";
import { fixed } from "../../src/core/backoff.ts";
import { isRedriveError, PermanentError } from "../../src/core/errors.ts";
import { retryableOn } from "../../src/retryable/retryable.ts";
import { breakerOn, createBreaker } from "../../src/services/process-breaker.ts";
import type { System } from "../../src/system/system.ts";
import { onVirtualTime } from "../support/virtual-time.ts";

const caught = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => expect.fail("it did not fail"),
    (error: unknown) => error,
  );
const reset = (): Error => Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
const OPTIONS: BreakerOptions = { failures: 3, openFor: "30s", probes: 2, closeAfter: 2 };

/** A service that is up or down, a function that calls it once, and its breaker. */
function service(system: System, options: BreakerOptions = OPTIONS) {
  const breaker = breakerOn(system)("pricing", options);
  const state = { down: false, error: reset as () => unknown };
  const fn = vi.fn(async () => {
    if (state.down) throw state.error();
    return "price";
  });
  return { breaker, state, fn, call: retryableOn(system)(fn, { maxAttempts: 1, breaker }) };
}

async function fail(call: () => Promise<unknown>, times: number): Promise<void> {
  for (let n = 0; n < times; n++) await caught(call());
}

describe("a breaker", () => {
  it("opens after failures in a row, refuses at once and says until when and why", () =>
    onVirtualTime(async (system) => {
      const { breaker, state, fn, call } = service(system);
      await call();
      state.down = true;
      await fail(call, 3);
      const untilMs = system.now() + 30_000;
      expect(breaker).toMatchObject({ name: "pricing", state: "open", untilMs, reason: "3 failures in a row" });
      const refusal = await caught(call());
      expect(refusal).toMatchObject({ code: "breaker_open", details: { breaker: "pricing", untilMs, attempts: 0 } });
      const when = new Date(untilMs).toISOString();
      expect((refusal as Error).message).toContain(`breaker pricing is open until ${when} (3 failures in a row)`);
      expect(fn).toHaveBeenCalledTimes(4);
      expect(breaker.counts.refused).toBe(1);
    }));

  it("lets only its probes through when its time is over, and closes when they succeed", () =>
    onVirtualTime(async (system) => {
      const { breaker, state, fn, call } = service(system);
      state.down = true;
      await fail(call, 3);
      await system.sleep(30_000);
      expect(breaker).toMatchObject({ state: "half_open", reason: null, untilMs: null });
      state.down = false;
      const slow = vi.fn(async () => {
        await system.sleep(1_000);
        return "slow";
      });
      const probe = retryableOn(system)(slow, { breaker });
      const probes = [probe(), probe()];
      expect(await caught(probe())).toMatchObject({
        code: "breaker_open",
        message: expect.stringContaining("is half open, its probes are under way"),
      });
      expect(await Promise.all(probes)).toEqual(["slow", "slow"]);
      expect(breaker.state).toBe("closed");
      expect(slow).toHaveBeenCalledTimes(2);
      await call();
      expect(fn).toHaveBeenCalledTimes(4);
    }));

  it("opens again when a probe fails", () =>
    onVirtualTime(async (system) => {
      const { breaker, state, call } = service(system);
      state.down = true;
      await fail(call, 3);
      await system.sleep(30_000);
      expect(await caught(call())).toMatchObject({ code: "ECONNRESET" });
      expect(breaker).toMatchObject({ state: "open", reason: "a probe failed", untilMs: system.now() + 30_000 });
    }));

  it("gives the place of a probe that was left, or failed of its own, to another", () =>
    onVirtualTime(async (system) => {
      const { breaker, state, call } = service(system, { ...OPTIONS, probes: 1, closeAfter: 1 });
      state.down = true;
      await fail(call, 3);
      await system.sleep(30_000);
      const controller = new AbortController();
      const hang = retryableOn(system)(() => new Promise(() => undefined), { breaker, signal: controller.signal });
      const left = caught(hang());
      expect(await caught(call())).toMatchObject({ code: "breaker_open" });
      controller.abort();
      expect(await left).toMatchObject({ code: "aborted" });
      state.error = () => new PermanentError("bad input");
      expect(await caught(call())).toBeInstanceOf(PermanentError);
      expect(breaker.state).toBe("half_open");
      state.down = false;
      await call();
      expect(breaker.state).toBe("closed");
    }));

  const endings: readonly [string, (system: System, signal: AbortSignal) => Promise<void>][] = [
    ["succeeds", (system) => system.sleep(39_000)],
    ["fails", (system) => system.sleep(39_000).then(() => Promise.reject(reset()))],
    ["is left", (_system, signal) => new Promise((_resolve, reject) => signal.addEventListener("abort", reject))],
  ];
  it.each(endings)("ignores a call from before it opened that %s while a probe runs", (_how, ending) =>
    onVirtualTime(async (system, world) => {
      const { breaker, state, call } = service(system, { ...OPTIONS, probes: 1, closeAfter: 1 });
      const controller = new AbortController();
      world.later(40_000, () => controller.abort());
      const { signal } = controller;
      const old = retryableOn(system)(() => ending(system, signal), { breaker, maxAttempts: 1, signal })();
      const ended = old.catch(() => undefined);
      state.down = true;
      await fail(call, 3);
      await system.sleep(35_000);
      const probe = retryableOn(system)(() => system.sleep(10_000), { breaker })();
      await ended;
      expect(breaker.state).toBe("half_open");
      expect(isRedriveError(await caught(call()), "breaker_open")).toBe(true);
      await probe;
      expect(breaker.state).toBe("closed");
    }),
  );

  it("replaces a probe it has not heard of for five minutes, and ignores its late news", () =>
    onVirtualTime(async (system) => {
      const { breaker, state, call } = service(system, { ...OPTIONS, probes: 1, closeAfter: 1 });
      state.down = true;
      await fail(call, 3);
      await system.sleep(30_000);
      const slow = retryableOn(system)((ms: number) => system.sleep(ms), { breaker });
      const silent = slow(400_000);
      await system.sleep(300_000);
      const second = slow(200_000);
      await silent;
      expect(breaker.state).toBe("half_open");
      await second;
      expect(breaker.state).toBe("closed");
    }));

  it("replaces a probe without news, while another one runs", () =>
    onVirtualTime(async (system) => {
      const { breaker, state, call } = service(system);
      state.down = true;
      await fail(call, 3);
      await system.sleep(30_000);
      const slow = retryableOn(system)((ms: number) => system.sleep(ms), { breaker });
      const silent = slow(900_000);
      await system.sleep(200_000);
      const second = slow(150_000);
      await system.sleep(100_000);
      await slow(1_000);
      expect(await caught(slow(1))).toMatchObject({ code: "breaker_open" });
      await second;
      expect(breaker.state).toBe("closed");
      await silent;
      expect(breaker.counts).toMatchObject({ successes: 0 });
    }));

  it("hears of a probe after five minutes too, where no other took its place", () =>
    onVirtualTime(async (system) => {
      const { breaker, state, call } = service(system, { ...OPTIONS, probes: 1, closeAfter: 1 });
      state.down = true;
      await fail(call, 3);
      await system.sleep(30_000);
      await retryableOn(system)(() => system.sleep(400_000), { breaker })();
      expect(breaker.state).toBe("closed");
    }));

  it("counts failures by a clock that was set back", () =>
    onVirtualTime(async (system) => {
      let backMs = 0;
      const clock = { ...system, now: () => system.now() - backMs };
      const { breaker, state, call } = service(clock);
      await call();
      backMs = 3_600_000;
      state.down = true;
      await fail(call, 3);
      expect(breaker).toMatchObject({ state: "open", reason: "3 failures in a row" });
    }));

  it("counts only failures that speak of the service", () =>
    onVirtualTime(async (system) => {
      const { breaker, state, call } = service(system);
      state.down = true;
      state.error = () => Object.assign(new Error("no"), { status: 422 });
      await fail(call, 20);
      expect(breaker).toMatchObject({ state: "closed", counts: { failures: 0, consecutive: 0 } });
    }));

  it("opens by the rate of failures in its window, and tells its counts", () =>
    onVirtualTime(async (system) => {
      const { breaker, state, call } = service(system, { failures: Number.POSITIVE_INFINITY, minimumCalls: 10 });
      for (let n = 0; n < 9; n++) {
        state.down = n % 2 === 1;
        await call().catch(() => undefined);
        await system.sleep(1_500);
      }
      expect(breaker.counts).toEqual({ successes: 5, failures: 4, consecutive: 0, refused: 0 });
      state.down = true;
      await fail(call, 1);
      expect(breaker).toMatchObject({ state: "open", reason: "5 of 10 calls failed" });
    }));

  it("forgets what left its window, and what it counted before it opened", () =>
    onVirtualTime(async (system) => {
      const { breaker, call } = service(system);
      await call();
      await system.sleep(50_000);
      await call();
      expect(breaker.counts.successes).toBe(2);
      await system.sleep(20_000);
      expect(breaker.counts).toEqual({ successes: 1, failures: 0, consecutive: 0, refused: 0 });
      await call();
      breaker.open("maintenance");
      breaker.close();
      expect(breaker.counts).toEqual({ successes: 0, failures: 0, consecutive: 0, refused: 0 });
    }));

  it("is shared by the functions it is given to, and the function's own where it is given thresholds", () =>
    onVirtualTime(async (system) => {
      const again = retryableOn(system);
      const breaker = breakerOn(system)("shared", { failures: 2 });
      const down = (): never => {
        throw reset();
      };
      const [one, two] = [again(down, { maxAttempts: 1, breaker }), again(down, { maxAttempts: 1, breaker })];
      await fail(one, 1);
      await fail(two, 1);
      expect(isRedriveError(await caught(one()), "breaker_open")).toBe(true);
      expect(isRedriveError(await caught(two()), "breaker_open")).toBe(true);
      const own = { maxAttempts: 1, breaker: { failures: 2 }, service: "api" };
      const [three, four] = [again(down, own), again(down, own)];
      await fail(three, 2);
      expect(await caught(three())).toMatchObject({ code: "breaker_open", details: { breaker: "api" } });
      expect(await caught(four())).toMatchObject({ code: "ECONNRESET" });
    }));
});

describe("a breaker and retries", () => {
  it("opens in the middle of a call, which then ends with the failure as its cause", () =>
    onVirtualTime(async (system) => {
      const { breaker, state, fn } = service(system, { ...OPTIONS, failures: 2 });
      state.down = true;
      const startedAt = system.now();
      const error = await caught(retryableOn(system)(fn, { breaker, backoff: fixed("10s") })());
      expect(error).toMatchObject({ code: "breaker_open", details: { attempts: 2 }, cause: { code: "ECONNRESET" } });
      // Waiting ten seconds for a breaker that is open for thirty would be in vain.
      expect(system.now() - startedAt).toBe(10_000);
      expect(fn).toHaveBeenCalledTimes(2);
    }));

  it("are reconciled by a wait longer than the opening", () =>
    onVirtualTime(async (system) => {
      const { breaker, state, fn } = service(system, { ...OPTIONS, failures: 2 });
      state.down = true;
      const onRetry = ({ attempt }: { attempt: number }): void => {
        state.down = attempt < 2;
      };
      const options = { breaker, backoff: fixed("40s"), onRetry };
      expect(await retryableOn(system)(fn, options)()).toBe("price");
      expect(fn).toHaveBeenCalledTimes(3);
    }));

  it("end when another call opened it during the wait", () =>
    onVirtualTime(async (system, world) => {
      const { breaker, state, fn } = service(system);
      state.down = true;
      world.later(500, () => breaker.open("maintenance"));
      const error = await caught(retryableOn(system)(fn, { breaker, backoff: fixed("1s") })());
      expect(error).toMatchObject({
        code: "breaker_open",
        details: { attempts: 1, reason: "maintenance", untilMs: null },
      });
      expect((error as Error).message).toContain("until it is closed by hand (maintenance)");
      expect((error as Error).cause).toMatchObject({ code: "ECONNRESET" });
    }));

  it("count every attempt, the one that succeeds in the end too", () =>
    onVirtualTime(async (system) => {
      const { breaker, state, fn } = service(system);
      state.down = true;
      const onRetry = ({ attempt }: { attempt: number }): void => {
        state.down = attempt < 2;
      };
      await retryableOn(system)(fn, { breaker, backoff: fixed("1s"), onRetry })();
      expect(breaker.counts).toEqual({ successes: 1, failures: 2, consecutive: 0, refused: 0 });
    }));

  it("count a timeout against the service", () =>
    onVirtualTime(async (system) => {
      const breaker = breakerOn(system)("slow", { failures: 2 });
      const options = { breaker, timeout: "1s", maxAttempts: 1 };
      const hang = retryableOn(system)(() => new Promise(() => undefined), options);
      await fail(hang, 2);
      expect(breaker.state).toBe("open");
    }));
});

describe("by hand, a breaker", () => {
  it("is opened with a reason until it is closed, or until a point in time", () =>
    onVirtualTime(async (system) => {
      const { breaker, call } = service(system);
      breaker.open("maintenance");
      expect(breaker).toMatchObject({ state: "isolated", reason: "maintenance", untilMs: null });
      await system.sleep(86_400_000);
      expect(isRedriveError(await caught(call()), "breaker_open")).toBe(true);
      breaker.close();
      expect(await call()).toBe("price");
      breaker.open("maintenance", new Date(system.now() + 5_000));
      await system.sleep(5_000);
      expect(breaker.state).toBe("half_open");
    }));

  it("is closed keeping its counts, and reset forgetting them", () =>
    onVirtualTime(async (system) => {
      const { breaker, state, call } = service(system);
      await call();
      state.down = true;
      await fail(call, 2);
      breaker.close();
      expect(breaker.counts).toMatchObject({ successes: 1, failures: 2, consecutive: 2 });
      breaker.reset();
      expect(breaker.counts).toMatchObject({ successes: 0, failures: 0, consecutive: 0 });
    }));

  it("refuses a bad name, bad thresholds, no reason and a time that is past", () => {
    expect(() => createBreaker("two words")).toThrow(/^breaker\.name: expected/);
    expect(() => createBreaker("a", { failures: 0 })).toThrow(/^breaker\.failures/);
    const breaker = createBreaker("a");
    expect(() => breaker.open("")).toThrow(/^breaker\.open: expected a reason/);
    expect(() => breaker.open("why", 30_000)).toThrow(/a point in time in the future.*got 30000; add Date\.now\(\)/);
    expect(() => breaker.open("why", new Date(Number.NaN))).toThrow(/a point in time/);
    expect(breaker.state).toBe("closed");
  });
});
