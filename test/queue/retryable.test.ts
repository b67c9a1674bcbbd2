// Functions with retries, on virtual time: when each attempt is made, what the caller gets, and what ends a call early.
import { describe, expect, it, vi } from "vitest";
import { type Backoff, exponential, fixed, immediate, linear } from "../../src/core/backoff.ts";
import { isRedriveError, PermanentError, RetryAfterError } from "../../src/core/errors.ts";
import { retryable, retryableOn } from "../../src/queue/retryable.ts";
import type { RetryableOptions, RetryNotice } from "../../src/queue/retryable-settings.ts";
import type { System } from "../../src/system/system.ts";
import { onVirtualTime } from "../support/virtual-time.ts";

const caught = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => expect.fail("it did not fail"),
    (error: unknown) => error,
  );
const never = (): Promise<never> => new Promise(() => undefined);

/** A function that fails in these ways and then succeeds, and when it was called, counted from the first call. */
function failing(system: System, ...errors: readonly unknown[]) {
  const startedAt = system.now();
  const calledAt: number[] = [];
  const fn = async (): Promise<string> => {
    calledAt.push(system.now() - startedAt);
    if (calledAt.length <= errors.length) throw errors[calledAt.length - 1];
    return "done";
  };
  return { fn, calledAt };
}

const reset = (): Error => Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
const resets = (count: number): Error[] => Array.from({ length: count }, reset);

describe("the attempts of a function", () => {
  const none = "none" as const;
  const strategies: readonly [string, Backoff | ((attempt: number) => number), number[]][] = [
    ["exponential", exponential({ jitter: none }), [0, 1_000, 4_000, 13_000, 40_000]],
    ["linear", linear({ jitter: none }), [0, 1_000, 3_500, 7_500, 13_000]],
    ["fixed", fixed("1s"), [0, 1_000, 2_000, 3_000, 4_000]],
    ["immediate", immediate(), [0, 0, 0, 0, 0]],
    ["custom", (attempt) => attempt * 10, [0, 10, 30, 60, 100]],
  ];
  it.each(strategies)("are made after the delays of %s", (_name, backoff, expected) =>
    onVirtualTime(async (system) => {
      const { fn, calledAt } = failing(system, ...resets(4));
      await expect(retryableOn(system)(fn, { backoff })()).resolves.toBe("done");
      expect(calledAt).toEqual(expected);
    }),
  );

  it("are six by default, exponential with jitter between the floor and the delay", () =>
    onVirtualTime(async (system) => {
      const { fn, calledAt } = failing(system, ...resets(10));
      await caught(retryableOn(system)(fn)());
      const waits = calledAt.slice(1).map((at, n) => at - (calledAt[n] ?? 0));
      expect(waits).toHaveLength(5);
      for (const [n, wait] of waits.entries()) {
        expect(wait).toBeGreaterThanOrEqual(100);
        expect(wait).toBeLessThanOrEqual(Math.min(60_000, 1_000 * 3 ** n));
      }
      expect(new Set(waits).size).toBe(5);
    }));

  it("continue decorrelated delays from the one before", () =>
    onVirtualTime(async (system) => {
      const { fn, calledAt } = failing(system, ...resets(3));
      const backoff = exponential({ jitter: "decorrelated" });
      await retryableOn({ ...system, random: () => 0.5 })(fn, { backoff })();
      expect(calledAt).toEqual([0, 2_000, 5_500, 11_250]);
    }));

  it("wait as long as the other side asked for, also where the backoff would not", () =>
    onVirtualTime(async (system) => {
      const busy = Object.assign(new Error("busy"), { status: 429, headers: { "retry-after": "7" } });
      const { fn, calledAt } = failing(system, busy, new RetryAfterError("later", "20s"));
      await retryableOn(system)(fn, { backoff: immediate() })();
      expect(calledAt).toEqual([0, 7_000, 27_000]);
    }));

  it.each([{ maxAttempts: 3 }, { maxRetries: 2 }, { preset: "worker" }] as const)("are limited by %j", (options) =>
    onVirtualTime(async (system) => {
      const { fn, calledAt } = failing(system, ...resets(9));
      await caught(retryableOn(system)(fn, options)());
      expect(calledAt).toHaveLength(3);
    }),
  );

  it("are judged by the caller's rules, which know the service", () =>
    onVirtualTime(async (system) => {
      const classify = [{ class: "permanent", service: "pricing", code: "ECONNRESET" }] as const;
      const { fn, calledAt } = failing(system, reset());
      const again = retryableOn(system);
      await caught(again(fn, { service: "pricing", classify })());
      expect(calledAt).toHaveLength(1);
      await expect(again(fn, { service: "other", classify })()).resolves.toBe("done");
    }));

  it("get the same this and arguments every time", () =>
    onVirtualTime(async (system) => {
      const seen: unknown[] = [];
      const counter = {
        step: 2,
        add: retryableOn(system)(async function (this: { step: number }, a: number, b: string) {
          seen.push([this.step, a, b]);
          if (seen.length < 3) throw reset();
          return a + this.step;
        }),
      };
      expect(await counter.add(40, "x")).toBe(42);
      expect(seen).toEqual(Array.from({ length: 3 }, () => [2, 40, "x"]));
    }));

  it("may fail by a plain throw, by a rejection, and with anything", () =>
    onVirtualTime(async (system) => {
      const thrown: unknown[] = [reset(), "text", undefined, null, 42, { odd: true }];
      const fn = vi.fn((): string => {
        if (thrown.length === 0) return "done";
        throw thrown.shift();
      });
      const promise = retryableOn(system)(fn, { maxAttempts: 10 })();
      expect(promise).toBeInstanceOf(Promise);
      await expect(promise).resolves.toBe("done");
      expect(fn).toHaveBeenCalledTimes(7);
    }));
});

describe("a function that gives up", () => {
  it("throws the error itself when its attempts are used up", () =>
    onVirtualTime(async (system) => {
      const errors = resets(2);
      expect(await caught(retryableOn(system)(failing(system, ...errors).fn, { maxAttempts: 2 })())).toBe(errors[1]);
      expect(await caught(retryableOn(system)(() => Promise.reject("text"), { maxAttempts: 1 })())).toBe("text");
    }));

  const hopeless = [
    new PermanentError("no"),
    Object.assign(new Error("Unauthorized"), { status: 401 }),
    Object.assign(new Error("Bad request"), { status: 400 }),
  ];
  it.each(hopeless)("throws the error itself at once when it is not worth a retry: %s", (error) =>
    onVirtualTime(async (system) => {
      const { fn, calledAt } = failing(system, error);
      expect(await caught(retryableOn(system)(fn)())).toBe(error);
      expect(calledAt).toEqual([0]);
    }),
  );

  it("dies before a wait that would pass the deadline, 300 s by default", () =>
    onVirtualTime(async (system) => {
      await system.sleep(1_000_000);
      const errors = resets(9);
      const { fn, calledAt } = failing(system, ...errors);
      const startedAt = system.now();
      const error = await caught(retryableOn(system)(fn, { backoff: fixed("100s"), maxAttempts: 9, service: "api" })());
      expect(calledAt).toEqual([0, 100_000, 200_000, 300_000]);
      expect(system.now() - startedAt).toBe(300_000);
      expect(error).toMatchObject({ code: "timeout", details: { deadlineMs: 300_000, attempts: 4 } });
      expect((error as Error).cause).toBe(errors[3]);
      expect((error as Error).message).toBe(
        "fn (api): gave up after attempt 4, the next one would begin after the deadline of 5m",
      );
    }));

  it("counts the time of its attempts, and has no deadline where it is told so", () =>
    onVirtualTime(async (system) => {
      const slow = vi.fn(async () => {
        await system.sleep(60_000);
        throw reset();
      });
      const again = retryableOn(system);
      const options = { backoff: fixed("1s"), maxAttempts: 20 };
      expect(isRedriveError(await caught(again(slow, { ...options, deadline: "3m" })()), "timeout")).toBe(true);
      expect(slow).toHaveBeenCalledTimes(3);
      expect(await caught(again(slow, { ...options, deadline: null })())).toMatchObject({ code: "ECONNRESET" });
      expect(slow).toHaveBeenCalledTimes(23);
    }));
});

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

describe("withContext", () => {
  it("tells the function its attempt, and by its signal that it was left", () =>
    onVirtualTime(async (system) => {
      const seen: { attempt: number; maxAttempts: number; reason: unknown }[] = [];
      const safe = retryableOn(system).withContext(
        async ({ signal, attempt, maxAttempts }, name: string) => {
          if (attempt === 3) return `${name} ${attempt}`;
          await new Promise((_resolve, reject) => {
            signal.addEventListener("abort", () => {
              seen.push({ attempt, maxAttempts, reason: signal.reason });
              reject(signal.reason);
            });
          });
          return "never";
        },
        { timeout: "10s", backoff: fixed("1s"), maxAttempts: 4 },
      );
      expect(await safe("a")).toBe("a 3");
      expect(seen).toMatchObject([
        { attempt: 1, maxAttempts: 4, reason: { code: "timeout" } },
        { attempt: 2, maxAttempts: 4, reason: { code: "timeout" } },
      ]);
    }));

  it("passes the caller's reason on, also to those who look late", () =>
    onVirtualTime(async (system) => {
      const controller = new AbortController();
      let late: unknown;
      const safe = retryableOn(system).withContext(
        async (context) => {
          await system.sleep(1_000);
          late = context.signal.reason;
        },
        { signal: controller.signal },
      );
      const call = caught(safe());
      controller.abort("left");
      expect(await call).toMatchObject({ code: "aborted", cause: "left" });
      await system.sleep(2_000);
      expect(late).toBe("left");
    }));

  it("works without timeout and signal", async () => {
    const safe = retryable.withContext(async ({ attempt, signal }, n: number) => [attempt, signal.aborted, n]);
    expect(await safe(5)).toEqual([1, false, 5]);
  });
});

describe("onRetry", () => {
  it("hears of every wait before it begins, and is waited for", () =>
    onVirtualTime(async (system) => {
      const notices: RetryNotice[] = [];
      const errors = resets(3);
      const onRetry = async (notice: RetryNotice): Promise<void> => {
        notices.push(notice);
        await system.sleep(500);
      };
      const { fn, calledAt } = failing(system, ...errors);
      await caught(retryableOn(system)(fn, { maxAttempts: 3, backoff: fixed("1s"), onRetry })());
      expect(calledAt).toEqual([0, 1_500, 3_000]);
      expect(notices).toMatchObject([
        { attempt: 1, maxAttempts: 3, delayMs: 1_000, failure: { class: "network", code: "ECONNRESET" } },
        { attempt: 2, maxAttempts: 3, delayMs: 1_000, failure: { class: "network" } },
      ]);
      expect(notices.map(({ error }) => error)).toEqual([errors[0], errors[1]]);
    }));

  it("ends the call with what it throws", () =>
    onVirtualTime(async (system) => {
      const stop = new Error("enough");
      const onRetry = (): never => {
        throw stop;
      };
      expect(await caught(retryableOn(system)(failing(system, reset()).fn, { onRetry })())).toBe(stop);
    }));
});

describe("a wrapped function", () => {
  it("keeps name and length", () => {
    const named = async (_a: number, _b: number): Promise<void> => undefined;
    const safe = retryable(named);
    expect([safe.name, safe.length]).toEqual(["named", 2]);
    expect(retryable.withContext(async (_context, _a: number) => undefined)).toHaveLength(1);
  });

  it("runs on the machine's own clock", async () => {
    let calls = 0;
    const safe = retryable(async () => (++calls < 3 ? Promise.reject(reset()) : calls), { backoff: fixed("1ms") });
    expect(await safe()).toBe(3);
  });

  const refused: readonly [string, unknown, RegExp][] = [
    ["an unknown option", { retries: 3 }, /^retryable: expected an object with .*"retries"; did you mean "maxRetries"/],
    ["what only a job has", { stuck: { after: "1h" } }, /^retryable: .*"stuck"/],
    ["no attempts", { maxAttempts: 0 }, /^retryable\.maxAttempts: expected .*; got 0; /],
    ["attempts and retries that contradict each other", { maxAttempts: 3, maxRetries: 3 }, /^retryable\.maxAttempts/],
    ["a backoff that is none", { backoff: "fast" }, /^retryable\.backoff/],
    ["a deadline that is no duration", { deadline: "soon" }, /^retryable\.deadline/],
    ["a timeout of nothing", { timeout: 0 }, /^retryable\.timeout/],
    ["an unknown preset", { preset: "fast" }, /^retryable\.preset/],
    ["a service that is no name", { service: "a b" }, /^retryable\.service/],
    ["rules that are no list", { classify: {} }, /^retryable\.classify/],
    ["a breaker that is none", { breaker: 5 }, /^breaker: expected/],
    ["thresholds that make no sense", { breaker: { failures: 0 } }, /^breaker\.failures/],
    ["a signal that is none", { signal: {} }, /^retryable\.signal/],
    ["a hook that is no function", { onRetry: "log" }, /^retryable\.onRetry/],
    ["options that are no object", 5, /^retryable: expected an object .*; got 5/],
  ];
  it.each(refused)("refuses %s when it is made", (_what, options, message) => {
    const code = "invalid_argument";
    const fn = async (): Promise<void> => undefined;
    expect(() => retryable(fn, options as RetryableOptions<[]>)).toThrow(expect.objectContaining({ code }));
    expect(() => retryable(fn, options as RetryableOptions<[]>)).toThrow(message);
    expect(() => retryable.withContext(fn, options as RetryableOptions<[]>)).toThrow(message);
    expect(() => retryable(options as RetryableOptions)).toThrow(message);
  });

  it("is made of nothing but a function", () => {
    expect(() => retryable("fn" as unknown as () => void)).toThrow(/^retryable: expected/);
    expect(() => retryable.withContext(5 as unknown as () => void)).toThrow(/^retryable: expected a function; got 5/);
  });
});
