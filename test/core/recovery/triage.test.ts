// The advice for a cause: each row changes a few facts of one incident.
import { describe, expect, it } from "vitest";
import { ADVICES, type Advice, triage, type TriageFacts } from "../../../src/core/recovery/triage.ts";

const NOW = 1_767_225_600_000;
const MINUTE = 60_000;

/** A bug in the newest release, an hour ago. */
const BUG: TriageFacts = {
  class: "permanent",
  reason: "permanent",
  live: 40,
  deaths: 40,
  firstAt: NOW - 180 * MINUTE,
  lastAt: NOW - 60 * MINUTE,
  now: NOW,
  state: "open",
  fixedIn: null,
  releases: { failing: ["1.4.1"], seen: ["1.4.0", "1.4.1"] },
  service: null,
  since: { completed: 0, failed: 0 },
  redriven: { completed: 0, failing: 0, dead: 0, none: 0 },
  payloadBound: false,
};
/** A service that was down and is back. */
const stripe = { name: "stripe", breaker: "closed", closedAt: NOW - 30 * MINUTE, successes: 41 } as const;
const OUTAGE: TriageFacts = { ...BUG, class: "network", reason: "exhausted", service: stripe };
const REFUSED: TriageFacts = { ...BUG, class: "validation", payloadBound: true };
const RELEASED: TriageFacts["releases"] = { failing: ["1.4.1"], seen: ["1.4.0", "1.4.1", "1.4.2"] };
const FIXED: TriageFacts = { ...BUG, state: "fixed", fixedIn: "1.4.2", releases: RELEASED };
const none = { completed: 0, failing: 0, dead: 0, none: 0 };

const ROWS: readonly [string, TriageFacts, Partial<TriageFacts>, Advice][] = [
  ["a service that is back and answers", OUTAGE, {}, "redrive"],
  ["a service that has answered few calls", OUTAGE, { service: { ...stripe, successes: 3 } }, "canary"],
  [
    "a service that is back, has no call now, and had runs",
    OUTAGE,
    { service: { ...stripe, successes: 0 }, since: { completed: 80, failed: 1 } },
    "redrive",
  ],
  ["an open breaker", OUTAGE, { service: { ...stripe, breaker: "open" } }, "wait"],
  ["a half-open breaker", OUTAGE, { service: { ...stripe, breaker: "half_open" } }, "wait"],
  ["a service that is back, and most runs fail", OUTAGE, { since: { completed: 4, failed: 30 } }, "wait"],
  ["failures after the breaker closed", OUTAGE, { service: { ...stripe, closedAt: NOW - 70 * MINUTE } }, "canary"],
  [
    "an outage without a service, and runs complete",
    OUTAGE,
    { service: null, since: { completed: 300, failed: 2 } },
    "redrive",
  ],
  [
    "an outage without a service, and few runs",
    OUTAGE,
    { service: null, since: { completed: 3, failed: 0 } },
    "canary",
  ],
  ["an outage without a service, and no run", OUTAGE, { service: null }, "unknown"],
  ["an outage that goes on", OUTAGE, { service: null, lastAt: NOW - MINUTE }, "wait"],
  ["an outage that came back before", OUTAGE, { state: "regressed" }, "canary"],
  ["letters of an outage that completed", OUTAGE, { service: null, redriven: { ...none, completed: 5 } }, "redrive"],
  ["a bug of the newest release", BUG, {}, "unknown"],
  ["a bug of the newest release, and all else completes", BUG, { since: { completed: 9_000, failed: 0 } }, "unknown"],
  ["a bug of the newest release, and few letters completed", BUG, { redriven: { ...none, completed: 9 } }, "canary"],
  ["a bug, and a newer release", BUG, { releases: RELEASED }, "canary"],
  ["a bug, a newer release, and it still fails", BUG, { releases: RELEASED, lastAt: NOW - MINUTE }, "wait"],
  ["a bug, and no release is known", BUG, { releases: { failing: [], seen: [] } }, "unknown"],
  ["a bug that is fixed and deployed", FIXED, {}, "canary"],
  ["a bug that is fixed, deployed, and ran often", FIXED, { since: { completed: 500, failed: 0 } }, "canary"],
  [
    "a crash that is fixed, deployed, and ran often",
    FIXED,
    { class: "crashed", since: { completed: 500, failed: 0 } },
    "canary",
  ],
  ["a bug that is fixed, but not deployed", FIXED, { fixedIn: "1.5.0", since: { completed: 500, failed: 0 } }, "wait"],
  [
    "a fix that fails itself",
    FIXED,
    { releases: { ...RELEASED, failing: ["1.4.2", "1.4.1"] }, since: { completed: 500, failed: 0 } },
    "unknown",
  ],
  [
    "a fix whose next release fails, by a lower number",
    FIXED,
    { releases: { failing: ["1.4.0-b", "1.4.1"], seen: ["1.4.1", "1.4.2", "1.4.0-b"] } },
    "unknown",
  ],
  ["a fix from now on", FIXED, { fixedIn: null, since: { completed: 500, failed: 0 } }, "canary"],
  ["a fix of which few letters completed", FIXED, { redriven: { ...none, completed: 49 } }, "canary"],
  ["a fix whose letters completed", FIXED, { redriven: { ...none, completed: 50 } }, "canary"],
  [
    "an error of some payloads, while others complete, of a service that was never down",
    OUTAGE,
    {
      class: "transient",
      service: { name: "stripe", breaker: "closed", closedAt: null, successes: 500 },
      since: { completed: 500, failed: 0 },
    },
    "canary",
  ],
  ["a credential that works again", OUTAGE, { class: "authentication" }, "canary"],
  ["a credential that does not", OUTAGE, { class: "authentication", since: { completed: 0, failed: 9 } }, "unknown"],
  ["jobs whose time was over", OUTAGE, { reason: "deadline" }, "unknown"],
  ["a fix whose letters fail again", FIXED, { redriven: { ...none, failing: 1, completed: 3 } }, "unknown"],
  ["a fix of which few letters failed", FIXED, { redriven: { ...none, dead: 1, completed: 99 } }, "canary"],
  ["a fix whose letters did not run yet", FIXED, { redriven: { ...none, none: 5 } }, "wait"],
  ["a bug that came back", BUG, { state: "regressed", since: { completed: 500, failed: 0 } }, "unknown"],
  ["payloads that are refused", REFUSED, {}, "repair"],
  ["payloads that are refused, and some were repaired", REFUSED, { redriven: { ...none, completed: 50 } }, "repair"],
  ["payloads that are refused again", REFUSED, { redriven: { ...none, dead: 2 } }, "repair"],
  ["payloads that the fix accepts", REFUSED, { state: "fixed", fixedIn: "1.4.2", releases: RELEASED }, "canary"],
  [
    "an error without a class, and runs complete",
    BUG,
    { class: "transient", since: { completed: 300, failed: 1 } },
    "canary",
  ],
  ["an error without a class, and nothing ran", BUG, { class: "transient" }, "unknown"],
  ["an error without a class, and runs fail", BUG, { class: "transient", since: { completed: 1, failed: 9 } }, "wait"],
  ["jobs that operators ended", OUTAGE, { reason: "manual" }, "unknown"],
  ["no letter", OUTAGE, { live: 0 }, "unknown"],
];

describe("triage", () => {
  it.each(ROWS)("of %s", (_says, facts, changes, advice) => {
    const found = triage({ ...facts, ...changes });
    expect(found.advice, found.reason).toBe(advice);
    expect(found.reason).toMatch(/^.{10,120}$/);
  });

  it("names the fact that it rests on", () => {
    const reasonOf = (facts: TriageFacts, changes: Partial<TriageFacts>): string =>
      triage({ ...facts, ...changes }).reason;
    expect(reasonOf(FIXED, { fixedIn: "1.5.0" })).toBe("it is fixed in 1.5.0, which no worker has run yet");
    expect(reasonOf(OUTAGE, { service: { ...stripe, breaker: "open" } })).toBe("the breaker of stripe is open");
    expect(reasonOf(FIXED, { releases: { ...RELEASED, failing: ["1.4.2"] } })).toBe(
      "it is fixed in 1.4.2, but 1.4.2 fails by it",
    );
    expect(reasonOf(FIXED, { redriven: { ...none, completed: 3, dead: 1 } })).toBe(
      "of 4 letters sent back 3 completed and 1 failed again",
    );
  });

  it("never says redrive for a bug of the newest release, whatever else is known", () => {
    const pick = <T>(seed: number, some: readonly T[]): T => some[seed % some.length] as T;
    const told = new Set<Advice>();
    for (let n = 0; n < 5_000; n++) {
      const seed = Math.imul(n + 1, 2_654_435_761) >>> 0;
      const facts: TriageFacts = {
        ...BUG,
        class: pick(seed, ["permanent", "crashed", "stuck", "validation", "transient"]),
        state: pick(seed >>> 3, ["open", "muted", "fixed", "regressed"]),
        fixedIn: pick(seed >>> 5, ["1.4.0", "1.4.1", "1.5.0"]),
        lastAt: NOW - pick(seed >>> 7, [0, 10, 600]) * MINUTE,
        since: { completed: pick(seed >>> 9, [0, 30, 9_000]), failed: pick(seed >>> 11, [0, 3]) },
        redriven: { ...none, completed: pick(seed >>> 13, [0, 4, 20]), failing: pick(seed >>> 15, [0, 1]) },
        payloadBound: pick(seed >>> 17, [true, false, false]),
      };
      told.add(triage(facts).advice);
    }
    expect([...told].toSorted()).toEqual(ADVICES.filter((advice) => advice !== "redrive").toSorted());
  });
});
