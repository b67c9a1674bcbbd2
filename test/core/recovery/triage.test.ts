// The advice for a cause: each row changes a few facts of one incident.
import { describe, expect, it } from "vitest";
import { ADVICES, type Advice, triage } from "../../../src/core/recovery/triage.ts";
import type { TriageFacts } from "../../../src/core/recovery/triage-facts.ts";

const NOW = 1_767_225_600_000;
const MINUTE = 60_000;

/** A bug in the newest release, an hour ago. */
const BUG: TriageFacts = {
  class: "permanent",
  name: "Error",
  code: null,
  reason: "permanent",
  live: 40,
  deaths: 40,
  firstAt: NOW - 180 * MINUTE,
  lastAt: NOW - 60 * MINUTE,
  boutAt: NOW - 180 * MINUTE,
  now: NOW,
  state: "open",
  fixedIn: null,
  releases: { failing: ["1.4.1"], seen: ["1.4.0", "1.4.1"], running: [], suspect: null },
  service: null,
  during: null,
  since: { completed: 0, failed: 0, class: null },
  alike: { looked: 60, least: 20, tenants: 1 },
  redriven: { completed: 0, failing: 0, dead: 0, none: 0 },
  payloadBound: false,
};
/** A service that was down and is back. */
const stripe = { name: "stripe", breaker: "closed", closedAt: NOW - 30 * MINUTE, successes: 41 } as const;
const OUTAGE: TriageFacts = { ...BUG, class: "network", reason: "exhausted", service: stripe };
const REFUSED: TriageFacts = { ...BUG, class: "validation", payloadBound: true };
const RELEASED: TriageFacts["releases"] = { ...BUG.releases, seen: ["1.4.0", "1.4.1", "1.4.2"] };
const FIXED: TriageFacts = { ...BUG, state: "fixed", fixedIn: "1.4.2", releases: RELEASED };
const ran = (completed: number, failed: number): TriageFacts["since"] => ({ completed, failed, class: null });
/** Every run of the types failed while it went on; only some did; nearly all complete since. */
const ALL = { completed: 0, failed: 30 };
const SOME = { completed: 90, failed: 30 };
const OVER = ran(60, 0);
/** The release that failed was new, and had completed nothing; or had completed a lot. */
const suspect = { name: "1.4.1", ageMs: MINUTE, completed: 0 };
const BROUGHT: TriageFacts["releases"] = { ...BUG.releases, suspect };
const proven: TriageFacts["releases"] = { ...BUG.releases, suspect: { ...suspect, ageMs: 60 * MINUTE, completed: 90 } };
const NETWORK: TriageFacts = { ...OUTAGE, service: null, during: ALL, since: OVER };
const DISK: TriageFacts = { ...NETWORK, class: "system", code: "ENOSPC" };
const HICCUP: TriageFacts = { ...NETWORK, class: "transient", code: "502" };
const { alike } = BUG;
const never = { ...stripe, closedAt: null };
const old = { ...suspect, ageMs: 6 * 24 * 60 * MINUTE, completed: 900 };
const TYPE_ERROR = { class: "transient", name: "TypeError" } as const;
const both = ["1.4.1", "1.4.2"];
const recent = { lastAt: NOW - MINUTE, since: ran(0, 0) };
const none = { completed: 0, failing: 0, dead: 0, none: 0 };

const ROWS: readonly [string, TriageFacts, Partial<TriageFacts>, Advice][] = [
  ["a service that is back and answers", OUTAGE, {}, "redrive"],
  ["a service that has answered few calls", OUTAGE, { service: { ...stripe, successes: 3 } }, "canary"],
  [
    "a service that is back, has no call now, and had runs",
    OUTAGE,
    { service: { ...stripe, successes: 0 }, since: ran(80, 1) },
    "redrive",
  ],
  ["an open breaker", OUTAGE, { service: { ...stripe, breaker: "open" } }, "wait"],
  ["a half-open breaker", OUTAGE, { service: { ...stripe, breaker: "half_open" } }, "wait"],
  ["a service that is back, and most runs fail", OUTAGE, { since: ran(4, 30) }, "wait"],
  ["failures after the breaker closed", OUTAGE, { service: { ...stripe, closedAt: NOW - 70 * MINUTE } }, "canary"],
  ["an outage without a service, and runs complete", OUTAGE, { service: null, since: ran(300, 2) }, "redrive"],
  ["an outage without a service, and few runs", OUTAGE, { service: null, since: ran(3, 0) }, "canary"],
  ["an outage without a service, and no run", OUTAGE, { service: null }, "unknown"],
  ["an outage that goes on", OUTAGE, { service: null, lastAt: NOW - MINUTE }, "wait"],
  ["an outage that came back before", OUTAGE, { state: "regressed" }, "canary"],
  ["letters of an outage that completed", OUTAGE, { service: null, redriven: { ...none, completed: 5 } }, "redrive"],
  ["a bug of the newest release", BUG, {}, "unknown"],
  ["a bug of the newest release, and all else completes", BUG, { since: ran(9_000, 0) }, "unknown"],
  ["a bug of the newest release, and few letters completed", BUG, { redriven: { ...none, completed: 9 } }, "canary"],
  ["a bug, and a newer release", BUG, { releases: RELEASED }, "canary"],
  ["a bug, a newer release, and it still fails", BUG, { releases: RELEASED, lastAt: NOW - MINUTE }, "wait"],
  ["a bug, and no release is known", BUG, { releases: { ...BUG.releases, failing: [], seen: [] } }, "unknown"],
  ["a bug that is fixed and deployed", FIXED, {}, "canary"],
  ["a bug that is fixed, deployed, and ran often", FIXED, { since: ran(500, 0) }, "canary"],
  ["a crash that is fixed, deployed, and ran often", FIXED, { class: "crashed", since: ran(500, 0) }, "canary"],
  ["a bug that is fixed, but not deployed", FIXED, { fixedIn: "1.5.0", since: ran(500, 0) }, "wait"],
  [
    "a fix that fails itself",
    FIXED,
    { releases: { ...RELEASED, failing: ["1.4.2", "1.4.1"] }, since: ran(500, 0) },
    "unknown",
  ],
  [
    "a fix whose next release fails, by a lower number",
    FIXED,
    { releases: { ...RELEASED, failing: ["1.4.0-b", "1.4.1"], seen: ["1.4.1", "1.4.2", "1.4.0-b"] } },
    "unknown",
  ],
  ["a fix from now on", FIXED, { fixedIn: null, since: ran(500, 0) }, "canary"],
  ["a fix of which few letters completed", FIXED, { redriven: { ...none, completed: 49 } }, "canary"],
  ["a fix whose letters completed", FIXED, { redriven: { ...none, completed: 50 } }, "canary"],
  [
    "an error of some payloads, while others complete, of a service that was never down",
    OUTAGE,
    {
      class: "transient",
      service: { name: "stripe", breaker: "closed", closedAt: null, successes: 500 },
      since: ran(500, 0),
    },
    "canary",
  ],
  ["a credential that works again", OUTAGE, { class: "authentication" }, "canary"],
  ["a credential that does not", OUTAGE, { class: "authentication", since: ran(0, 9) }, "unknown"],
  ["jobs whose time was over", OUTAGE, { reason: "deadline" }, "unknown"],
  ["a fix whose letters fail again", FIXED, { redriven: { ...none, failing: 1, completed: 3 } }, "unknown"],
  ["a fix of which few letters failed", FIXED, { redriven: { ...none, dead: 1, completed: 99 } }, "canary"],
  ["a fix whose letters did not run yet", FIXED, { redriven: { ...none, none: 5 } }, "wait"],
  ["a bug that came back", BUG, { state: "regressed", since: ran(500, 0) }, "unknown"],
  ["payloads that are refused", REFUSED, {}, "repair"],
  ["payloads that are refused, and some were repaired", REFUSED, { redriven: { ...none, completed: 50 } }, "repair"],
  ["payloads that are refused again", REFUSED, { redriven: { ...none, dead: 2 } }, "repair"],
  ["payloads that the fix accepts", REFUSED, { state: "fixed", fixedIn: "1.4.2", releases: RELEASED }, "canary"],
  ["an error without a class, and runs complete", BUG, { class: "transient", since: ran(300, 1) }, "canary"],
  ["an error without a class, and nothing ran", BUG, { class: "transient" }, "unknown"],
  ["an error without a class, and runs fail", BUG, { class: "transient", since: ran(1, 9) }, "unknown"],
  ["jobs that operators ended", OUTAGE, { reason: "manual" }, "unknown"],
  ["no letter", OUTAGE, { live: 0 }, "unknown"],

  // Evidence is of the same tenants, types and services, and of all runs.
  ["a network that is back", NETWORK, {}, "redrive"],
  ["a network, one of whose services has no run yet", NETWORK, { alike: { ...alike, least: 2 } }, "canary"],
  ["a service that is back, one of whose tenants has no run", OUTAGE, { alike: { ...alike, tenants: 0.9 } }, "canary"],
  ["a network, and only other tenants had runs", NETWORK, { alike: { ...alike, tenants: 0 } }, "unknown"],
  ["a network, and the completed jobs are deleted", NETWORK, { alike: { looked: 0, least: 0, tenants: 0 } }, "canary"],
  ["a network that failed for some, while others completed", NETWORK, { during: SOME }, "canary"],
  ["a service that failed for some, while others completed", OUTAGE, { during: SOME }, "canary"],
  [
    "letters that completed, of a network that failed for some",
    NETWORK,
    { during: SOME, redriven: { ...none, completed: 9 } },
    "canary",
  ],
  [
    "a credential, and only other tenants had runs",
    NETWORK,
    { class: "authentication", alike: { ...alike, tenants: 0 } },
    "unknown",
  ],
  ["a credential, and others were never refused", NETWORK, { class: "authentication", during: SOME }, "unknown"],
  ["a credential that is refused now", NETWORK, { class: "authentication", ...recent }, "unknown"],

  // Short failures of services, databases and machines.
  ["a gateway that hiccuped, shorter than its breaker needs", HICCUP, {}, "redrive"],
  ["a database that was restarted", HICCUP, { code: "57P03" }, "redrive"],
  ["a service that answered 500 to all", HICCUP, { code: "500" }, "canary"],
  ["a service that answers 500 to some, and now", HICCUP, { code: "500", during: SOME, ...recent }, "unknown"],
  ["a gateway that fails now", HICCUP, recent, "wait"],
  ["a slow service, whose breaker never opened", OUTAGE, { class: "timeout", service: never, since: OVER }, "canary"],
  ["a disk that was full and is not", DISK, {}, "redrive"],
  ["a disk that was full on some hosts", DISK, { during: SOME }, "canary"],
  ["a disk that is full", DISK, recent, "unknown"],
  ["files that leak in a new release", DISK, { releases: proven }, "canary"],
  ["a full disk, and the release is old", DISK, { releases: { ...proven, suspect: old } }, "redrive"],
  ["a machine whose fix did not last", DISK, { state: "regressed" }, "unknown"],

  // A release may bring what looks like a network.
  ["a network that fails since the first runs of a release", NETWORK, { releases: BROUGHT }, "canary"],
  ["a service that fails since the first runs of a release", OUTAGE, { releases: BROUGHT }, "canary"],
  ["a network that fails in a release that had worked", NETWORK, { releases: proven }, "redrive"],
  ["a wrong host in the newest release, now", NETWORK, { releases: BROUGHT, ...recent }, "unknown"],
  ["a network that fails now, in a release that had worked", NETWORK, { releases: proven, ...recent }, "wait"],

  // What its jobs fail by now is another error.
  ["a service that is back with another API", OUTAGE, { since: { ...ran(0, 56), class: "permanent" } }, "unknown"],
  ["a service that is back and does not answer", OUTAGE, { since: { ...ran(0, 56), class: "timeout" } }, "wait"],

  // Bugs do not pass by themselves, whatever the breaker says.
  ["a bug of the newest release, a minute ago", BUG, { class: "transient", ...recent }, "unknown"],
  [
    "a TypeError that opened the breaker",
    OUTAGE,
    { ...TYPE_ERROR, service: { ...stripe, breaker: "open" } },
    "unknown",
  ],
  ["a TypeError in an outage that is over", OUTAGE, { ...TYPE_ERROR, since: OVER, during: SOME }, "unknown"],
  ["a table that came after its release", BUG, { during: ALL, since: OVER }, "canary"],
  ["a bug that hits some payloads", BUG, { class: "transient", during: SOME, since: OVER }, "unknown"],

  // Which releases run now.
  ["a bug whose release was rolled back", BUG, { releases: { ...BUG.releases, running: ["1.4.0"] } }, "canary"],
  ["a bug whose release runs again", BUG, { releases: { ...RELEASED, running: ["1.4.1"] } }, "unknown"],
  ["a bug, and half of the fleet is newer", BUG, { releases: { ...RELEASED, running: both }, ...recent }, "wait"],
  ["a fix that was rolled back", FIXED, { releases: { ...RELEASED, running: ["1.4.1"] } }, "wait"],

  // Refused payloads, or a schema that refuses all.
  ["payloads of one tenant", REFUSED, { during: SOME }, "repair"],
  ["a release that refuses every payload", REFUSED, { during: ALL, releases: BROUGHT }, "unknown"],
  [
    "payloads that are all refused, by a release that took others",
    REFUSED,
    { during: ALL, releases: proven },
    "repair",
  ],
  [
    "a release that refused every payload and was rolled back",
    REFUSED,
    { during: ALL, releases: { ...BROUGHT, running: ["1.4.0"] }, since: OVER },
    "canary",
  ],
  [
    "payloads of a tenant that has sent none since the next release",
    REFUSED,
    { during: SOME, releases: { ...RELEASED, running: ["1.4.2"] }, since: OVER, alike: { ...alike, tenants: 0 } },
    "repair",
  ],

  // Letters that were sent back.
  [
    "a fix of which one letter in ten failed again",
    FIXED,
    { redriven: { ...none, dead: 2, completed: 18 } },
    "unknown",
  ],
  [
    "letters that died again in an outage, which ended since",
    NETWORK,
    { redriven: { ...none, dead: 8, completed: 2 } },
    "canary",
  ],
  ["letters of which some have not run yet", NETWORK, { redriven: { ...none, completed: 5, none: 45 } }, "wait"],
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
        since: ran(pick(seed >>> 9, [0, 30, 9_000]), pick(seed >>> 11, [0, 3])),
        redriven: { ...none, completed: pick(seed >>> 13, [0, 4, 20]), failing: pick(seed >>> 15, [0, 1]) },
        payloadBound: pick(seed >>> 17, [true, false, false]),
      };
      told.add(triage(facts).advice);
    }
    expect([...told].toSorted()).toEqual(ADVICES.filter((advice) => advice !== "redrive").toSorted());
  });
});
