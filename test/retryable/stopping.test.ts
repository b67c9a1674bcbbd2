// What ends a call of a function with retries early, on virtual time: timeouts and signals.
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { fixed } from "../../src/core/backoff.ts";
import { isRedriveError, PermanentError } from "../../src/core/errors.ts";
import { retryableOn } from "../../src/retryable/retryable.ts";
import type { RetryNotice } from "../../src/retryable/settings.ts";
import { realSystem } from "../../src/system/real.ts";
import { caught, failing, reset } from "../support/failing-function.ts";
import { onVirtualTime } from "../support/virtual-time.ts";

const never = (): Promise<never> => new Promise(() => undefined);

describe("a timeout", () => {
  it("ends the wait for an attempt and counts as a failure of class timeout", () =>
    onVirtualTime(async (system) => {
      const notices: RetryNotice[] = [];
      const onRetry = (notice: RetryNotice) => void notices.push(notice);
      const fn = vi.fn(never);
      const startedAt = system.now();
      // A timeout is what the runtime found; no rule about errors changes that.
      const classify = [() => "permanent" as const];
      const options = { timeout: "10s", backoff: fixed("1s"), maxAttempts: 3, onRetry, classify };
      const error = await caught(retryableOn(system)(fn, options)());
      expect(system.now() - startedAt).toBe(32_000);
      expect(fn).toHaveBeenCalledTimes(3);
      expect(error).toMatchObject({ code: "timeout", details: { timeoutMs: 10_000, attempts: 3 } });
      expect(notices.map(({ failure }) => failure.class)).toEqual(["timeout", "timeout"]);
    }));

  it("leaves no timer behind a success or a failure, and hears what comes too late", () =>
    onVirtualTime(async (system) => {
      const armed: string[] = [];
      const watched = {
        ...system,
        after: (ms: number, callback: () => void) => {
          armed.push("armed");
          const stop = system.after(ms, callback);
          return () => {
            armed.push("stopped");
            stop();
          };
        },
      };
      const again = retryableOn(watched);
      expect(await again(async () => 1, { timeout: "10s" })()).toBe(1);
      const thrower = (): never => {
        throw new PermanentError("no");
      };
      await caught(again(thrower, { timeout: "10s" })());
      expect(armed).toEqual(["armed", "stopped", "armed", "stopped"]);
      const slow = async (): Promise<never> => {
        await system.sleep(60_000);
        throw new Error("too late");
      };
      expect(await caught(again(slow, { timeout: "10s", maxAttempts: 1 })())).toMatchObject({ code: "timeout" });
      await system.sleep(120_000);
    }));
});

describe("a signal", () => {
  const reason = new Error("the user left");

  it("ends a wait at once; the cause is its reason, the details hold the last failure", () =>
    onVirtualTime(async (system, world) => {
      const controller = new AbortController();
      const error = reset();
      const { fn, calledAt } = failing(system, error);
      const startedAt = system.now();
      world.later(2_500, () => controller.abort(reason));
      const options = { backoff: fixed("10s"), signal: controller.signal };
      const thrown = await caught(retryableOn(system)(fn, options)());
      expect(thrown).toMatchObject({ code: "aborted", details: { attempts: 1 } });
      expect((thrown as Error).cause).toBe(reason);
      expect((thrown as { details: { error: unknown } }).details.error).toBe(error);
      expect(system.now() - startedAt).toBe(2_500);
      expect(calledAt).toEqual([0]);
    }));

  it("ends the wait for an attempt at once, and no other is made", () =>
    onVirtualTime(async (system, world) => {
      const controller = new AbortController();
      const fn = vi.fn(never);
      const startedAt = system.now();
      world.later(5_000, () => controller.abort(reason));
      const thrown = await caught(retryableOn(system)(fn, { signal: controller.signal })());
      expect(thrown).toMatchObject({ code: "aborted", cause: reason, details: { attempts: 0 } });
      expect(system.now() - startedAt).toBe(5_000);
      await system.sleep(600_000);
      expect(fn).toHaveBeenCalledTimes(1);
    }));

  it("that fires in a later attempt leaves the failure before it in the details", () =>
    onVirtualTime(async (system, world) => {
      const controller = new AbortController();
      const error = reset();
      let calls = 0;
      world.later(5_000, () => controller.abort(reason));
      const options = { signal: controller.signal, backoff: fixed("1s") };
      const fn = (): Promise<never> => (++calls === 1 ? Promise.reject(error) : never());
      const thrown = await caught(retryableOn(system)(fn, options)());
      expect(thrown).toMatchObject({ code: "aborted", cause: reason, details: { attempts: 1 } });
      expect((thrown as { details: { error: unknown } }).details.error).toBe(error);
    }));

  it("that has fired already lets no attempt begin", () =>
    onVirtualTime(async (system) => {
      const fn = vi.fn(never);
      const thrown = await caught(retryableOn(system)(fn, { signal: AbortSignal.abort(reason) })());
      expect(isRedriveError(thrown, "aborted")).toBe(true);
      expect(fn).not.toHaveBeenCalled();
    }));

  it("that fires in onRetry or with the failure counts too", () =>
    onVirtualTime(async (system) => {
      for (const place of ["hook", "function"]) {
        const controller = new AbortController();
        const fn = vi.fn(async () => {
          if (place === "function") controller.abort(reason);
          throw reset();
        });
        const onRetry = (): void => controller.abort(reason);
        const thrown = await caught(retryableOn(system)(fn, { signal: controller.signal, onRetry })());
        expect(isRedriveError(thrown, "aborted")).toBe(true);
        expect(fn).toHaveBeenCalledTimes(1);
      }
    }));

  it("can be chosen per call from the arguments", () =>
    onVirtualTime(async (system) => {
      const controller = new AbortController();
      const fetchText = async (url: string, options: { signal?: AbortSignal } = {}): Promise<string> =>
        options.signal ? never() : url;
      const safe = retryableOn(system)(fetchText, { signal: (_url, options) => options?.signal });
      expect(await safe("a")).toBe("a");
      const call = caught(safe("a", { signal: controller.signal }));
      controller.abort(reason);
      expect(isRedriveError(await call, "aborted")).toBe(true);
      const wrong = retryableOn(system)(fetchText, { signal: () => 5 as unknown as AbortSignal });
      expect(isRedriveError(await caught(wrong("a")), "invalid_argument")).toBe(true);
    }));

  it("lets one signal stop many calls, without Node taking their listeners for a leak", async () => {
    const warned = vi.fn();
    process.on("warning", warned);
    onTestFinished(() => void process.off("warning", warned));
    const controller = new AbortController();
    const hanging = retryableOn(realSystem)(never, { signal: controller.signal });
    const calls = Array.from({ length: 30 }, () => caught(hanging()));
    controller.abort();
    for (const error of await Promise.all(calls)) expect(isRedriveError(error, "aborted")).toBe(true);
    await new Promise((resolve) => setImmediate(resolve));
    expect(warned).not.toHaveBeenCalled();
  });

  it("keeps no listener once the call has ended", () =>
    onVirtualTime(async (system) => {
      const { signal } = new AbortController();
      const added = vi.spyOn(signal, "addEventListener");
      const removed = vi.spyOn(signal, "removeEventListener");
      const { fn } = failing(system, reset());
      await retryableOn(system)(fn, { signal })();
      await caught(retryableOn(system)(() => Promise.reject(new PermanentError("no")), { signal })());
      expect(added.mock.calls.length).toBeGreaterThan(2);
      expect(removed.mock.calls.map(([, listener]) => listener)).toEqual(
        expect.arrayContaining(added.mock.calls.map(([, listener]) => listener)),
      );
    }));
});
