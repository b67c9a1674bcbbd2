// What ends a mute, what reopens a fix, and what does not: each row is one piece of news about a cause.
import { describe, expect, it } from "vitest";
import {
  causeAfter,
  type CauseNews,
  type CauseRecord,
  causeFrom,
  causeText,
  fixed,
  muted,
  OPEN_CAUSE,
  opened,
  stateText,
  stillText,
  whyNotNow,
} from "../../../src/core/recovery/cause-state.ts";

const T = 1_767_225_600_000;
const HOUR = 3_600_000;
const NO_NEWS: CauseNews = { deaths: 10, failures: [], startedSince: 0 };

/** Releases in the order in which the store saw them: a hotfix of the old line came after 2.0.0. */
const SEEN = ["1.4.1", "2.0.0", "1.4.2", "1.10.0"].map((release, n) => ({ release, at: T - (4 - n) * HOUR }));
const counts = (all: Record<string, number>): CauseNews["failures"] =>
  Object.entries(all).map(([release, failures]) => ({ release, failures }));
const fixedIn = (release: string | null, before: Record<string, number> = {}): CauseRecord =>
  fixed(OPEN_CAUSE, { release, before: counts(before) }, "ada", T);

describe("a mute", () => {
  it.each<[string, Parameters<typeof muted>[1], Partial<CauseNews>, number, boolean]>([
    ["by time goes on before its end", { until: T + HOUR, more: null, deaths: 10 }, {}, T + HOUR - 1, false],
    ["by time ends at its end", { until: T + HOUR, more: null, deaths: 10 }, {}, T + HOUR, true],
    ["by time ends however few died", { until: T + HOUR, more: null, deaths: 10 }, { deaths: 10 }, T + 9 * HOUR, true],
    ["by time goes on however many died", { until: T + HOUR, more: null, deaths: 10 }, { deaths: 999 }, T + 1, false],
    ["by deaths goes on before as many died", { until: null, more: 5, deaths: 10 }, { deaths: 14 }, T + 1, false],
    ["by deaths ends when as many died", { until: null, more: 5, deaths: 10 }, { deaths: 15 }, T + 1, true],
    ["by deaths goes on for years", { until: null, more: 5, deaths: 10 }, {}, T + 20_000 * HOUR, false],
    ["by both ends by time", { until: T + HOUR, more: 5, deaths: 10 }, {}, T + HOUR, true],
    ["by both ends by deaths", { until: T + HOUR, more: 5, deaths: 10 }, { deaths: 15 }, T + 1, true],
  ])("%s", (_says, mute, news, now, isOver) => {
    const { cause, change } = causeAfter(muted(OPEN_CAUSE, mute, "ada", T), { ...NO_NEWS, ...news }, SEEN, now);
    expect([cause.state, change]).toEqual(isOver ? ["open", "unmuted"] : ["muted", null]);
    if (isOver) expect(cause).toMatchObject({ at: now, by: null, until: null, more: null, untold: "unmuted" });
  });
});

describe("a fix", () => {
  it.each<[string, CauseRecord, Partial<CauseNews>, string | null, string]>([
    ["in a release stays without failures", fixedIn("2.0.0"), {}, null, ""],
    ["is broken by a failure of its release", fixedIn("2.0.0"), { failures: counts({ "2.0.0": 1 }) }, "2.0.0", ""],
    [
      "is broken by a release first seen later, though its number is lower",
      fixedIn("2.0.0"),
      { failures: counts({ "1.4.2": 1 }) },
      "1.4.2",
      "",
    ],
    [
      "is not broken by a release seen before, though its number is higher",
      fixedIn("1.4.2"),
      { failures: counts({ "2.0.0": 12 }) },
      null,
      "still 12 from 2.0.0",
    ],
    [
      "is not broken by what a release seen before still does, which is counted since the fix",
      fixedIn("2.0.0", { "1.4.1": 88 }),
      { failures: counts({ "1.4.1": 100 }) },
      null,
      "still 12 from 1.4.1",
    ],
    [
      "is not broken by failures of its release from before it was marked",
      fixedIn("2.0.0", { "2.0.0": 7 }),
      { failures: counts({ "2.0.0": 7 }) },
      null,
      "",
    ],
    [
      "is broken by one more failure of its release",
      fixedIn("2.0.0", { "2.0.0": 7 }),
      { failures: counts({ "2.0.0": 8 }) },
      "2.0.0",
      "",
    ],
    [
      "in a release that the store has not seen waits for it",
      fixedIn("3.0.0"),
      { failures: counts({ "1.10.0": 4 }), startedSince: 4 },
      null,
      "still 4 from 1.10.0",
    ],
    [
      "in a release says nothing about workers without one",
      fixedIn("2.0.0"),
      { failures: counts({ "": 3 }), startedSince: 3 },
      null,
      "still 3 without a release",
    ],
    [
      "names the first of the releases that broke it",
      fixedIn("2.0.0"),
      { failures: counts({ "1.10.0": 1, "1.4.2": 1, "1.4.1": 5 }) },
      "1.4.2",
      "",
    ],
    [
      "from now on is not broken by runs that had started before",
      fixedIn(null),
      { failures: counts({ "": 3, "1.10.0": 2 }) },
      null,
      "still 3 without a release, 2 from 1.10.0",
    ],
    [
      "from now on is broken by a run that started after it",
      fixedIn(null),
      { failures: counts({ "": 1 }), startedSince: 1 },
      "",
      "",
    ],
  ])("%s", (_says, cause, news, back, still) => {
    const turn = causeAfter(cause, { ...NO_NEWS, ...news }, SEEN, T + HOUR);
    expect([turn.cause.state, turn.change]).toEqual(back === null ? ["fixed", null] : ["regressed", "regressed"]);
    expect(turn.cause.back).toBe(back);
    expect(stillText(turn.still)).toBe(still);
    if (back !== null) expect(turn.cause).toMatchObject({ at: T + HOUR, by: null, release: cause.release });
  });

  it("from now on is broken by a release that the store first saw after it", () => {
    const later = [...SEEN, { release: "1.0.0", at: T + 1 }];
    const news = { ...NO_NEWS, failures: counts({ "1.10.0": 3, "1.0.0": 1 }) };
    expect(causeAfter(fixedIn(null), news, later, T + 2).cause).toMatchObject({ state: "regressed", back: "1.0.0" });
  });

  it("that was broken stays broken, and an open cause open, whatever the news", () => {
    const news = { deaths: 1_000, failures: counts({ "2.0.0": 99 }), startedSince: 9 };
    const broken = causeAfter(fixedIn("2.0.0"), news, SEEN, T).cause;
    for (const cause of [broken, OPEN_CAUSE]) {
      const turn = causeAfter(cause, news, SEEN, T + 9 * HOUR);
      expect(turn).toEqual({ cause, change: null, still: [] });
    }
  });
});

describe("what an operator may do", () => {
  const states = {
    open: OPEN_CAUSE,
    muted: muted(OPEN_CAUSE, { until: T + HOUR, more: 5, deaths: 1 }, "bob", T),
    fixed: fixedIn("2.0.0"),
    regressed: causeAfter(fixedIn("2.0.0"), { ...NO_NEWS, failures: counts({ "1.4.2": 1 }) }, SEEN, T).cause,
  };
  const now = T + 60_000;
  it.each([
    ["mute", { open: true, muted: true, fixed: false, regressed: true }],
    ["unmute", { open: false, muted: true, fixed: false, regressed: false }],
    ["fix", { open: true, muted: true, fixed: false, regressed: true }],
    ["reopen", { open: false, muted: false, fixed: true, regressed: true }],
  ] as const)("%s", (action, allowed) => {
    const found = Object.entries(states).map(([state, cause]) => [state, whyNotNow(cause, action, now) === null]);
    expect(Object.fromEntries(found)).toEqual(allowed);
  });

  it("a refusal says who, when and what to do", () => {
    expect(whyNotNow(states.fixed, "mute", now)).toBe(
      "ada marked it fixed in 2.0.0 1m ago; reopen it before you mute it",
    );
    expect(whyNotNow(states.muted, "reopen", now)).toBe(
      "it is neither fixed nor regressed: bob muted it 1m ago, for 59m more or until 5 more died; unmute it instead",
    );
    expect(stateText(states.regressed, now)).toBe("it was fixed in 2.0.0 and came back in 1.4.2 1m ago");
  });

  it("notes and owner stay through every change of state", () => {
    const own = { ...OPEN_CAUSE, note: "see INC-7", owner: "payments" };
    const after = [
      muted(own, { until: T, more: null, deaths: 1 }, "ada", T),
      fixed(own, { release: "2.0.0", before: [] }, "ada", T),
      opened({ ...own, state: "muted" }, "ada", T),
      causeAfter(
        { ...fixedIn("2.0.0"), note: "see INC-7", owner: "payments" },
        { ...NO_NEWS, failures: counts({ "2.0.0": 1 }) },
        SEEN,
        T,
      ).cause,
    ];
    for (const cause of after) expect(cause).toMatchObject({ note: "see INC-7", owner: "payments" });
  });
});

describe("the stored text", () => {
  it("reads back as it was, and leaves out what says nothing", () => {
    const records = [
      OPEN_CAUSE,
      muted(OPEN_CAUSE, { until: T + HOUR, more: null, deaths: 7 }, "ada", T),
      { ...fixedIn("2.0.0", { "1.4.1": 8, "": 2 }), note: "n", owner: "o" },
      causeAfter(fixedIn(null), { ...NO_NEWS, startedSince: 1 }, SEEN, T).cause,
    ];
    for (const record of records) expect(causeFrom(causeText(record))).toEqual(record);
    expect(causeText(OPEN_CAUSE)).toBe('{"state":"open"}');
  });

  it("of another form counts as open", () => {
    for (const text of ["", "[]", "null", '{"state":"asleep","at":"x","before":[1,{"release":1}]}'])
      expect(causeFrom(text)).toEqual(OPEN_CAUSE);
  });
});
