// What workers saw of a service, and what that says together: down, or one of them sick.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { resolveBreaker } from "../../src/core/breaker.ts";
import {
  callsOf,
  credible,
  type Evidence,
  evidenceFrom,
  CONFIRMATION_MS,
  isSick,
  noEvidence,
  observe,
  outage,
} from "../../src/core/evidence.ts";

const settings = resolveBreaker({ failures: 5, failureRate: 0.5, minimumCalls: 10, window: "60s" });
const NOW = 1_700_000_000_000;

/** Evidence of calls, each so long before now: + for one that was answered, - for one that failed. */
function saw(calls: readonly (readonly ["+" | "-", number])[], since = 0): Evidence {
  return calls.reduce(
    (seen, [kind, ago]) =>
      observe(seen, { successes: kind === "+" ? 1 : 0, failures: kind === "-" ? 1 : 0 }, settings, NOW - ago),
    noEvidence(since),
  );
}

const row = (kind: "+" | "-", count: number, ago = 100): (readonly ["+" | "-", number])[] =>
  Array.from({ length: count }, (_, i) => [kind, ago + count - i] as const);
const witnesses = (...all: readonly Evidence[]) => all.map((evidence, i) => ({ worker: `w${i}`, evidence }));
/** Why it is sure to be down once the others were heard, or null. */
function sure(all: readonly Evidence[], by = settings, since = 0): string | null {
  const found = outage(witnesses(...all), by, since, NOW, CONFIRMATION_MS);
  return found?.isSure ? found.reason : null;
}
const judged = (...all: readonly Evidence[]) => sure(all);

describe("what one worker saw", () => {
  test("is a streak since its last success", () => {
    const seen = saw([...row("-", 3, 5_000), ["+", 4_000], ["-", 3_000], ["-", 2_000]]);
    expect(seen).toMatchObject({
      streak: 2,
      streakFrom: NOW - 3_000,
      streakTo: NOW - 2_000,
      lastSuccessAt: NOW - 4_000,
    });
    expect(callsOf(seen, settings, NOW)).toEqual({ failures: 5, all: 6 });
  });

  test("counts successes of a set as the earlier ones", () => {
    expect(observe(saw(row("-", 4)), { successes: 3, failures: 2 }, settings, NOW)).toMatchObject({ streak: 2 });
  });

  test("is as before where nothing was called", () => {
    const seen = saw(row("-", 3));
    expect(observe(seen, { successes: 0, failures: 0 }, settings, NOW)).toMatchObject({ streak: 3, lastSuccessAt: 0 });
  });

  test("heals with the first success", () => {
    const sick = { ...saw(row("-", 5)), sickUntil: NOW + 1_000 };
    expect(observe(sick, { successes: 0, failures: 1 }, settings, NOW).sickUntil).toBe(NOW + 1_000);
    expect(observe(sick, { successes: 1, failures: 0 }, settings, NOW).sickUntil).toBe(0);
  });

  test("is forgotten after the window", () => {
    expect(callsOf(saw(row("-", 9)), settings, NOW + 70_000)).toEqual({ failures: 0, all: 0 });
    const long = saw(Array.from({ length: 100 }, (_, i) => [i % 2 === 0 ? "+" : "-", (100 - i) * 8_000] as const));
    expect(long.slices.length).toBeLessThanOrEqual(7);
    expect(judged(long)).toBeNull();
  });

  test("counts the same by a clock that was set back", () => {
    const seen = saw([["+", 0], ...row("-", 4, 50_000)]);
    expect(judged(seen)).toBeNull();
    expect(callsOf(seen, settings, NOW - 50_000)).toEqual({ failures: 4, all: 5 });
    expect(judged(saw([["+", 0], ...row("-", 5, 50_000)]))).toBe("5 failures in a row");
  });
});

describe("a service is down", () => {
  test("by a row of failures of a worker that is alone", () => {
    expect(judged(saw(row("-", 4)))).toBeNull();
    expect(judged(saw(row("-", 5)))).toBe("5 failures in a row");
  });

  test("by a row of failures of two", () => {
    expect(judged(saw(row("-", 3)), saw(row("-", 2)))).toBe("5 failures in a row");
    expect(judged(saw(row("-", 2)), saw(row("-", 2)))).toBeNull();
  });

  test("not by one of several, however often it fails", () => {
    expect(judged(saw(row("-", 500)), saw([["+", 9_000]]))).toBeNull();
    expect(judged(saw(row("-", 500)), saw([["+", 11_000]]))).not.toBeNull();
  });

  test("not while somebody is answered in between", () => {
    expect(judged(saw(row("-", 4, 5_000)), saw([["+", 1_000]]), saw([["-", 500]]))).toBeNull();
  });

  test("by a share of failed calls of at least half of those who call", () => {
    const mixed = (good: number, bad: number) => saw([...row("-", bad, 2_000), ...row("+", good, 1_000)]);
    expect(judged(mixed(5, 5))).toBe("5 of 10 calls failed");
    expect(judged(mixed(5, 4))).toBeNull();
    expect(judged(mixed(6, 4))).toBeNull();
    expect(judged(mixed(3, 3), mixed(2, 2))).toBe("5 of 10 calls failed");
    expect(judged(...Array.from({ length: 5 }, () => mixed(1, 1)))).toBe("5 of 10 calls failed");
    expect(judged(mixed(0, 40), mixed(5, 0))).toBeNull();
    expect(judged(mixed(1, 40), mixed(1, 2), mixed(2, 0), mixed(2, 0), mixed(2, 0))).toBeNull();
  });

  test("not by what was seen before it was last closed", () => {
    const before = saw(row("-", 50), 0);
    expect(sure([before, before], settings, NOW - 50)).toBeNull();
    expect(sure([before, saw(row("-", 5), NOW - 50)], settings, NOW - 50)).toBe("5 failures in a row");
  });

  test("never by a threshold that is Infinity", () => {
    const never = resolveBreaker({ failures: Infinity, failureRate: Infinity });
    expect(sure([saw(row("-", 1_000))], never)).toBeNull();
  });

  test("not surely by one alone, until the others were heard, and not long after that", () => {
    const by = (confirmingMs: number | null, ...all: readonly Evidence[]) =>
      outage(witnesses(...all), settings, 0, NOW, confirmingMs)?.isSure;
    const [alone, mixed] = [saw(row("-", 5)), saw([...row("-", 6, 2_000), ...row("+", 4, 1_000)])];
    for (const one of [alone, mixed]) {
      expect(by(null, one)).toBe(false);
      expect(by(CONFIRMATION_MS - 1, one)).toBe(false);
      expect(by(CONFIRMATION_MS, one)).toBe(true);
      expect(by(CONFIRMATION_MS + 9_999, one)).toBe(true);
      expect(by(CONFIRMATION_MS + 10_000, one)).toBe(false);
    }
    // Two need no confirmation, and against one who was answered lately none helps.
    expect(by(null, alone, saw([["-", 50]]))).toBe(true);
    expect(by(CONFIRMATION_MS, alone, saw([["+", 9_000]]))).toBe(false);
    expect(by(CONFIRMATION_MS, alone, saw([["+", 50]]))).toBeUndefined();
  });

  const call = fc.tuple(fc.constantFrom("+" as const, "-" as const), fc.nat(9_000));
  const ordered = fc
    .array(call, { minLength: 1, maxLength: 60 })
    .map((calls) => calls.toSorted(([, a], [, b]) => b - a));
  const onlyGood = ordered.map((calls) => calls.map(([, ago]) => ["+", ago] as const));

  test("never by the word of one alone, where several called in the last ten seconds", () => {
    fc.assert(
      fc.property(ordered, fc.array(onlyGood, { minLength: 1, maxLength: 4 }), (bad, good) => {
        expect(judged(saw(bad), ...good.map((calls) => saw(calls)))).toBeNull();
      }),
      { seed: 13 },
    );
  });

  test("always when everybody fails and nobody is answered", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 6 }), (failures) => {
        const all = failures.map((count) => saw(row("-", count)));
        const sum = failures.reduce((total, count) => total + count, 0);
        expect(judged(...all) !== null).toBe(sum >= 5);
      }),
      { seed: 14 },
    );
  });
});

describe("whose word counts", () => {
  test("those of workers that live, of callers outside the queue, and one's own", () => {
    const evidence = saw(row("-", 3));
    const all = ["self", "call-1", "living", "gone"].map((worker) => ({ worker, evidence }));
    const heard = credible(all, { worker: "self", evidence }, new Set(["living"]));
    expect(heard.map(({ worker }) => worker)).toEqual(["self", "call-1", "living"]);
  });
});

describe("a worker is sick", () => {
  const sick = (own: Evidence, ...others: readonly Evidence[]) =>
    isSick({ worker: "me", evidence: own }, [{ worker: "me", evidence: own }, ...witnesses(...others)], settings);

  test("when it fails in a row while others are answered", () => {
    expect(sick(saw(row("-", 5)), saw([["+", 50]]))).toBe(true);
  });

  test("not by few failures, alone, or when nobody was answered since", () => {
    expect(sick(saw(row("-", 4)), saw([["+", 50]]))).toBe(false);
    expect(sick(saw(row("-", 5)))).toBe(false);
    expect(sick(saw(row("-", 5)), saw([["+", 5_000]]))).toBe(false);
  });

  test("not when the others fail too, or spoke of another time", () => {
    expect(
      sick(
        saw(row("-", 5)),
        saw([
          ["+", 50],
          ["-", 10],
        ]),
      ),
    ).toBe(false);
    expect(sick(saw(row("-", 5)), saw([["+", 50]], 7))).toBe(false);
  });
});

test.each(["", "junk", "null", "[]", "{}", '{"slices":[]}', '{"since":0,"slices":[null]}', '{"since":0,"slices":5}'])(
  "a text that is no evidence, %s, says nothing",
  (text) => {
    expect(evidenceFrom(text)).toBeNull();
  },
);

test("evidence comes back from its text as it was", () => {
  const seen = saw([...row("-", 3), ["+", 5]]);
  expect(evidenceFrom(JSON.stringify(seen))).toEqual(seen);
});
