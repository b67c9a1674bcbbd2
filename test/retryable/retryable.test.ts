// Functions with retries, on virtual time: when each attempt is made, what the caller gets, and what ends a call early.
import { describe, expect, it, vi } from "vitest";
import { type Backoff, exponential, fixed, immediate, linear } from "../../src/core/backoff.ts";
import { isRedriveError, PermanentError, RetryAfterError } from "../../src/core/errors.ts";
import { retryable, retryableOn } from "../../src/retryable/retryable.ts";
import type { RetryableOptions, RetryNotice } from "../../src/retryable/settings.ts";
import { caught, failing, reset } from "../support/failing-function.ts";
import { onVirtualTime } from "../support/virtual-time.ts";

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
