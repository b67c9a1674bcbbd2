// Ids, nonces and timers of the real world.
import { getEventListeners } from "node:events";
import fc from "fast-check";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { randomNonce, randomWorkerId } from "../../src/system/ids.ts";
import { realSystem } from "../../src/system/real.ts";

const UUID_7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const START = 1_767_225_600_123;

/** A maker of ids that has made none yet. */
async function fresh(): Promise<(now: number) => string> {
  vi.resetModules();
  return (await import("../../src/system/ids.ts")).ascendingId;
}

const timeOf = (id: string) => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
const ascends = (ids: readonly string[]) => ids.every((id, at) => at === 0 || (ids[at - 1] as string) < id);

function fakeTimers(): void {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
}

describe("job ids", () => {
  it("are UUIDs of version 7 that carry the time", async () => {
    const ascendingId = await fresh();
    for (let n = 0; n < 1_000; n++) {
      const id = ascendingId(START + n);
      expect(id).toMatch(UUID_7);
      expect(timeOf(id)).toBe(START + n);
    }
  });

  it("ascend and differ over 100,000 of one millisecond", async () => {
    const ascendingId = await fresh();
    const ids = Array.from({ length: 100_000 }, () => ascendingId(START));
    expect(ascends(ids)).toBe(true);
    expect(new Set(ids).size).toBe(100_000);
    expect(ids.every((id) => UUID_7.test(id))).toBe(true);
    // 4,096 fit into a millisecond; the rest borrow from the next ones, a few at most.
    expect(timeOf(ids.at(-1) as string) - START).toBeLessThan(40);
  });

  it("ascend when the clock steps back, and when it comes forward again", async () => {
    const ascendingId = await fresh();
    const times = [START, START + 5, START - 3_600_000, 0, START + 4, START + 5, START + 6, START + 100];
    const ids = times.flatMap((now) => [ascendingId(now), ascendingId(now)]);
    expect(ascends(ids)).toBe(true);
    expect(timeOf(ids.at(-1) as string)).toBe(START + 100);
  });

  it("are whole from the first one on, also where the clock begins", async () => {
    expect((await fresh())(0)).toMatch(UUID_7);
  });

  it("ascend whatever the clock does", async () => {
    const ascendingId = await fresh();
    let last = "";
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 48 - 10_000 }), fc.integer({ min: 1, max: 20 }), (now, count) => {
        for (let n = 0; n < count; n++) {
          const id = ascendingId(now);
          expect(id > last && UUID_7.test(id)).toBe(true);
          last = id;
        }
      }),
    );
  });

  it("of two processes that start at one moment differ", async () => {
    const [one, two] = [await fresh(), await fresh()];
    const ids = Array.from({ length: 10_000 }, () => [one(START), two(START)]).flat();
    expect(new Set(ids).size).toBe(20_000);
  });

  it("of the real system carry the present", () => {
    const before = Date.now();
    const id = realSystem.jobId();
    expect(id).toMatch(UUID_7);
    expect(timeOf(id)).toBeGreaterThanOrEqual(before);
    expect(timeOf(id)).toBeLessThanOrEqual(Date.now() + 1);
  });
});

describe("nonces and worker ids", () => {
  it.each([
    ["128 bits", randomNonce, /^[0-9a-f]{32}$/],
    ["48 bits", randomWorkerId, /^[0-9a-f]{12}$/],
  ])("are %s and do not repeat", (_name, make, form) => {
    const made = Array.from({ length: 20_000 }, make);
    expect(new Set(made).size).toBe(20_000);
    expect(made.every((text) => form.test(text))).toBe(true);
  });

  it("show every digit at every place", () => {
    const seen = Array.from({ length: 32 }, () => new Set<string>());
    for (let n = 0; n < 2_000; n++)
      randomNonce()
        .split("")
        .forEach((digit, at) => seen[at]?.add(digit));
    expect(seen.map((digits) => digits.size)).toEqual(Array.from({ length: 32 }, () => 16));
  });
});

describe("sleep", () => {
  it("ends after its time and not before", async () => {
    fakeTimers();
    let awake = false;
    const slept = realSystem.sleep(1_000).then(() => (awake = true));
    await vi.advanceTimersByTimeAsync(999);
    expect(awake).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(awake).toBe(true);
    await slept;
  });

  it("ends at once when its signal fires, and leaves neither timer nor listener", async () => {
    fakeTimers();
    const control = new AbortController();
    const slept = realSystem.sleep(60_000, control.signal);
    expect([vi.getTimerCount(), getEventListeners(control.signal, "abort").length]).toEqual([1, 1]);
    control.abort(new Error("enough"));
    expect(await slept).toBeUndefined();
    expect([vi.getTimerCount(), getEventListeners(control.signal, "abort").length]).toEqual([0, 0]);
  });

  it("does not begin when its signal has fired already", async () => {
    fakeTimers();
    await realSystem.sleep(60_000, AbortSignal.abort());
    expect(vi.getTimerCount()).toBe(0);
  });

  it("that ended by itself leaves no listener", async () => {
    fakeTimers();
    const { signal } = new AbortController();
    const slept = realSystem.sleep(5, signal);
    await vi.advanceTimersByTimeAsync(5);
    await slept;
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});

describe("after", () => {
  it("calls back once, after its delay", async () => {
    fakeTimers();
    const callback = vi.fn();
    realSystem.after(250, callback);
    await vi.advanceTimersByTimeAsync(249);
    expect(callback).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(callback).toHaveBeenCalledTimes(1);
  });

  it("taken back does not call, and can be taken back again", async () => {
    fakeTimers();
    const callback = vi.fn();
    const cancel = realSystem.after(250, callback);
    cancel();
    cancel();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(callback).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([2 ** 31, 5_000_000_000])("waits %i ms, which is more than one timer can", async (ms) => {
    fakeTimers();
    const callback = vi.fn();
    realSystem.after(ms, callback);
    await vi.advanceTimersByTimeAsync(ms - 1);
    expect(callback).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(callback).toHaveBeenCalledTimes(1);
  });

  it("of a long time can be taken back after it was armed again", async () => {
    fakeTimers();
    const callback = vi.fn();
    const cancel = realSystem.after(5_000_000_000, callback);
    await vi.advanceTimersByTimeAsync(3_000_000_000);
    cancel();
    expect(vi.getTimerCount()).toBe(0);
    await vi.advanceTimersByTimeAsync(3_000_000_000);
    expect(callback).not.toHaveBeenCalled();
  });
});
