// The history checker proves itself: every forged history is flagged with its rule, good ones pass, and it is fast.
import { describe, expect, it } from "vitest";
import type { Report } from "../support/history/event.ts";
import { Forge, type ForgedLease } from "./forge.ts";
import { JOB_FORGERIES } from "./forged-jobs.ts";
import { HOLD_FORGERIES } from "./forged-holds.ts";
import { KEY_FORGERIES } from "./forged-keys.ts";
import { once, REDRIVE_FORGERIES } from "./forged-redrives.ts";
import { RUN_FORGERIES } from "./forged-runs.ts";
import { WORKER_FORGERIES } from "./forged-workers.ts";
import { GOOD_EXCUSES } from "./good-excuses.ts";
import { GoodHistory } from "./good-history.ts";
import { readingSpeed } from "./reading-speed.ts";

const FORGERIES = [
  ...JOB_FORGERIES,
  ...RUN_FORGERIES,
  ...WORKER_FORGERIES,
  ...HOLD_FORGERIES,
  ...KEY_FORGERIES,
  ...REDRIVE_FORGERIES,
];
const RULES = Array.from({ length: 21 }, (_, i) => `R${i + 1}`).filter((rule) => rule !== "R18");

describe("a forged history is flagged", () => {
  for (const [rule, how, forge] of FORGERIES) {
    it(`${rule}: ${how}`, () => {
      const f = new Forge();
      forge(f);
      expect(f.check().violations.map((violation) => violation.rule)).toContain(rule);
    });
  }

  it("at least three times for every rule", () => {
    for (const rule of RULES) {
      expect(FORGERIES.filter(([broken]) => broken === rule).length, rule).toBeGreaterThanOrEqual(3);
    }
  });
});

describe("a good history passes", () => {
  it("when it is empty", () => {
    expect(new Forge().check().violations).toEqual([]);
  });

  it("when the forger is honest", () => {
    const f = new Forge();
    f.whole("a", { key: "mail/k" });
    f.dead("b");
    f.redrive("b");
    f.settle(f.claim("b"), "retry", { delayMs: 10 });
    f.time += 10;
    f.settle(f.claim("b"), "complete");
    f.enqueue("c");
    f.cancel("c");
    expect(f.check()).toMatchObject({ violations: [], jobs: 3, lost: 0, doubleAcked: 0 });
  });

  it("when a redrive run sends a letter together with its record", () => {
    const f = new Forge();
    once(f);
    expect(f.check().violations).toEqual([]);
  });

  for (const [how, forge] of GOOD_EXCUSES) {
    it(`when ${how}`, () => {
      const f = new Forge();
      forge(f);
      expect(f.check().violations).toEqual([]);
    });
  }

  it("when a run is listed before the lease end because the clock stepped back", () => {
    expect(reapedAfterStep((f) => f.beat("w")).violations).toEqual([]);
  });

  it("but not when the worker beat again after the step", () => {
    const report = reapedAfterStep(
      (f) => f.beat("w"),
      (f) => f.beat("w"),
    );
    expect(report.violations.map(({ rule }) => rule)).toContain("R6");
  });

  it("when a crash of the server takes back a claim that was not on disk yet", () => {
    expect(claimedAgain((f) => crash(f))).toMatchObject({ violations: [], takenBack: 1 });
  });

  it("when the verdict of such a run is refused before the job is claimed again", () => {
    const report = claimedAgain((f, first) => (crash(f), f.stale(first, "complete")));
    expect(report).toMatchObject({ violations: [], takenBack: 1 });
  });

  it("but not when a verdict is refused without a crash", () => {
    const report = claimedAgain((f, first) => f.stale(first, "complete"));
    expect(report.violations.map(({ rule }) => rule)).toContain("R5");
  });

  it("but not when there was no crash", () => {
    expect(claimedAgain(() => {}).violations.map(({ rule }) => rule)).toEqual(["R6", "R6", "R5"]);
  });

  it("nor when a later write was confirmed before the crash, and the claim with it on disk", () => {
    const report = claimedAgain((f) => (f.whole("b"), crash(f)));
    expect(report.violations.map(({ rule }) => rule)).toEqual(["R6", "R6", "R5"]);
  });

  it("nor when the claim was made after the crash", () => {
    const report = claimedAgain(
      () => {},
      (f) => crash(f),
    );
    expect(report.violations.map(({ rule }) => rule)).toEqual(["R6", "R6", "R5"]);
  });

  it("nor when the lease that was taken back still counts", () => {
    const report = claimedAgain(
      (f) => crash(f),
      () => {},
      (f, first) => f.settle(first, "complete"),
    );
    expect(report.violations.map(({ rule }) => rule)).toContain("R5");
  });

  it("a thousand times, with answers missing everywhere", () => {
    let ambiguous = 0;
    for (let seed = 1; seed <= 1000; seed++) {
      const report = new GoodHistory(seed, 5 + (seed % 20)).check();
      expect(report.violations, `seed ${seed}`).toEqual([]);
      ambiguous += report.ambiguous;
    }
    expect(ambiguous).toBeGreaterThan(100);
  });
});

describe("a report", () => {
  it("of a verdict whose answer was lost stands where nothing speaks against it", () => {
    const f = new Forge();
    f.enqueue("a");
    const lease = f.claim("a");
    f.settle(lease, "complete", {}, "unknown");
    f.stale(lease, "complete");
    f.scribe.write("forger", "report", "ok", { ...lease, answer: "complete", worker: "w" });
    f.job("a").state = "completed";
    expect(f.check()).toMatchObject({ violations: [], doubleAcked: 0, ambiguous: 1 });
  });

  it("counts what was lost, double, stale, ambiguous and run again", () => {
    const f = new Forge();
    f.enqueue("lost");
    f.jobs.delete("lost");
    f.enqueue("a");
    const first = f.claim("a");
    f.listed(first);
    f.settle(first, "retry", { crash: 1, worker: null });
    f.stale(first, "complete");
    const second = f.claim("a", { worker: "v" });
    f.scribe.write("forger", "run", "invoke", { ...second, payloadHash: 7 });
    f.settle(second, "complete", {}, "unknown");
    f.settle(second, "complete");
    f.settle(second, "complete");
    expect(f.check()).toMatchObject({ jobs: 2, lost: 1, doubleAcked: 1, staleRefused: 1, extraRuns: 1, ambiguous: 1 });
  });
});

describe("reading", () => {
  it("takes at most six microseconds of processor time an event", () => {
    // Ten million in a minute is the promise; `npm run prove -- checker` reads all ten million.
    const { events, cpuSeconds } = readingSpeed(300_000);
    expect(events).toBeGreaterThanOrEqual(300_000);
    expect((cpuSeconds / events) * 1e6).toBeLessThan(6);
  });
});

function reapedAfterStep(before: (f: Forge) => void, after: (f: Forge) => void = () => {}): Report {
  const f = new Forge();
  f.enqueue("a");
  const lease = f.claim("a");
  before(f);
  f.time -= 500;
  f.scribe.write("forger", "mark", "ok", { answer: "clock_back" });
  after(f);
  f.listed(lease);
  f.settle(lease, "retry", { crash: 1 });
  f.time += 1000;
  f.settle(f.claim("a", { worker: "v" }), "complete");
  return f.check();
}

/** A job is claimed, something happens, and it is claimed again under the same epoch. */
function claimedAgain(
  between: (f: Forge, first: ForgedLease) => void,
  before: (f: Forge) => void = () => {},
  after: (f: Forge, first: ForgedLease) => void = () => {},
): Report {
  const f = new Forge();
  f.enqueue("a");
  before(f);
  const first = f.claim("a");
  between(f, first);
  f.job("a").epoch--;
  const nonce = "another";
  const second = { ...f.claim("a", { nonce }), nonce };
  after(f, first);
  f.settle(second, "complete");
  return f.check();
}

function crash(f: Forge): void {
  f.scribe.write("forger", "mark", "ok", { answer: "server is killed" });
  f.scribe.write("forger", "mark", "ok", { answer: "server is gone" });
}
