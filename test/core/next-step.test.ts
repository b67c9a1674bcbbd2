// What a worker does next, as a table of states and steps; and what no step does in any state.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mayHold, type WorkInHand } from "../../src/core/in-hand.ts";
import { type ActiveLane, firstLane, isSuspect, LANE_KINDS, laneOfKind } from "../../src/core/lane.ts";
import {
  type LanesSeen,
  type Look,
  NEVER,
  NEW_TURN,
  nextStep,
  NOTHING_SEEN,
  type Stage,
  type WorkerStep,
  type Turn,
  type WorkerState,
} from "../../src/core/next-step.ts";
import { RESERVED_MS } from "../../src/core/reservation.ts";
import { EMPTY_HANDS, FULL_HANDS } from "../support/work-in-hand.ts";

const NOW = 1_700_000_000_000;
const POLL = 1_000;

const [FIRST, RETRY, SUSPECT, LAST] = LANE_KINDS.map(
  (kind): ActiveLane => ({
    lane: laneOfKind(firstLane(1, 3), kind),
    kind,
    type: "mail",
    queue: "default",
    service: null,
    tenant: null,
    group: null,
    groupConcurrency: 1,
    priority: 3,
    headRunAt: NOW,
    room: null,
  }),
) as [ActiveLane, ActiveLane, ActiveLane, ActiveLane];

const LOOK: Look = {
  due: true,
  mayStart: true,
  hasMore: false,
  suspect: false,
  lastDueMs: null,
  nextRunAt: null,
  pauseEndsAt: null,
  now: NOW,
  isHeard: false,
};
const NOTHING_DUE: Look = { ...LOOK, due: false, mayStart: false };

/** Lanes that were seen 50 ms ago. */
function seen(lanes: readonly ActiveLane[], more: Partial<LanesSeen> = {}): LanesSeen {
  return { ...NOTHING_SEEN, lanes, look: LOOK, atMs: 950, goodMs: 100, ...more };
}

/** A turn in which this was done. */
function after(stage: Stage, more: Partial<Turn> = {}): Turn {
  return { ...NEW_TURN, stage, ...more };
}

/** An idle worker on a store in its process that has just seen ordinary work. */
const STATE: WorkerState = {
  nowMs: 1_000,
  pollMs: POLL,
  leaseMs: 30_000,
  isRemote: false,
  inHand: EMPTY_HANDS,
  isUnanswered: false,
  askedMs: 0,
  isWoken: false,
  seen: seen([FIRST]),
  isControlKnown: true,
  isSpread: false,
  spreadMost: Number.POSITIVE_INFINITY,
  nextGrantMs: null,
  isReserved: false,
  last: null,
  turn: NEW_TURN,
};
const FULL: Partial<WorkerState> = { inHand: FULL_HANDS };
const IDLE: Partial<WorkerState> = { seen: seen([], { look: NOTHING_DUE }), turn: after("look") };
/** Where a hint is followed by a claim without a look. */
const WOKEN: Partial<WorkerState> = {
  isRemote: true,
  isWoken: true,
  seen: { ...NOTHING_SEEN, look: NOTHING_DUE, before: [FIRST] },
};

const step = (state: Partial<WorkerState>, dice = 0.5): WorkerStep => nextStep({ ...STATE, ...state }, () => dice);

const ASK: WorkerStep = { do: "ask" };
const rest = (ms: number, until: "slot" | "work" | "either" = "work", forgets?: boolean): WorkerStep =>
  forgets === undefined ? { do: "rest", ms, until } : { do: "rest", ms, until, forgets };
const look = (want: number): WorkerStep => ({ do: "look", want });
const take = (stage: "last" | "suspect" | "ordinary", slots: number, ...lanes: ActiveLane[]): WorkerStep => ({
  do: "take",
  stage,
  lanes,
  slots,
});
const UNSEEN: WorkerStep = { do: "take", stage: "unseen", lanes: [FIRST], slots: 10, unlessBefore: firstLane(0, 3) };

interface Row {
  readonly what: string;
  readonly state: Partial<WorkerState>;
  readonly does: WorkerStep;
}

describe.each<{ about: string; rows: readonly Row[] }>([
  {
    about: "a turn begins",
    rows: [
      { what: "asks what it holds where an answer was lost", state: { isUnanswered: true }, does: ASK },
      { what: "asks once in a lease anyway", state: { nowMs: 30_000 }, does: ASK },
      { what: "asks with full hands too", state: { ...FULL, isUnanswered: true }, does: ASK },
      {
        what: "asks once in a turn",
        state: { isUnanswered: true, turn: after("ask") },
        does: take("ordinary", 10, FIRST),
      },
      { what: "rests with full hands", state: FULL, does: rest(POLL, "slot") },
      {
        what: "rests with full hands after it asked",
        state: { ...FULL, turn: after("ask") },
        does: rest(POLL, "slot"),
      },
      {
        what: "looks with full hands while it is reserved",
        state: { ...FULL, ...WOKEN, isReserved: true },
        does: look(0),
      },
      { what: "looks where it may isolate a job", state: { ...FULL, ...WOKEN, last: "isolate" }, does: look(0) },
    ],
  },
  {
    about: "a hint comes",
    rows: [
      { what: "takes from where there was work before", state: WOKEN, does: UNSEEN },
      { what: "looks without a hint", state: { ...WOKEN, isWoken: false }, does: look(10) },
      { what: "looks where a look is cheap", state: { ...WOKEN, isRemote: false }, does: look(10) },
      { what: "looks where limits spread the work", state: { ...WOKEN, isSpread: true }, does: look(10) },
      {
        what: "looks where it does not know what is held back",
        state: { ...WOKEN, isControlKnown: false },
        does: look(10),
      },
      { what: "looks where there was no plain work before", state: { ...WOKEN, seen: NOTHING_SEEN }, does: look(10) },
      {
        what: "goes on as it was in the middle of work",
        state: { ...WOKEN, seen: seen([FIRST], { before: [FIRST] }) },
        does: take("ordinary", 10, FIRST),
      },
      {
        what: "begins again after it took something",
        state: { ...WOKEN, turn: after("unseen", { taken: 1 }) },
        does: rest(0),
      },
      { what: "looks after it took nothing", state: { ...WOKEN, turn: after("unseen") }, does: look(10) },
    ],
  },
  {
    about: "it is time to look",
    rows: [
      { what: "looks at the very start", state: { seen: NOTHING_SEEN }, does: look(10) },
      { what: "looks again after a while", state: { seen: seen([FIRST], { atMs: 900 }) }, does: look(10) },
      {
        what: "not where a look took long",
        state: { seen: seen([FIRST], { atMs: 850, goodMs: 200 }) },
        does: take("ordinary", 10, FIRST),
      },
      { what: "looks where what is held back may have changed", state: { isControlKnown: false }, does: look(10) },
      {
        what: "looks for all slots, however few may start",
        state: { seen: NOTHING_SEEN, spreadMost: 2 },
        does: look(10),
      },
    ],
  },
  {
    about: "nothing may start",
    rows: [
      { what: "rests for a poll", state: IDLE, does: rest(POLL, "work", true) },
      {
        what: "rests until work falls due",
        state: { ...IDLE, seen: seen([], { look: { ...NOTHING_DUE, nextRunAt: NOW + 345 } }) },
        does: rest(345, "work", true),
      },
      {
        what: "rests until a pause ends",
        state: { ...IDLE, seen: seen([FIRST], { look: { ...NOTHING_DUE, pauseEndsAt: NOW + 678 } }) },
        does: rest(678, "work", true),
      },
      { what: "rests until a limit gives more", state: { ...IDLE, nextGrantMs: 42 }, does: rest(42, "work", true) },
      {
        what: "rests a millisecond at least",
        state: { ...IDLE, seen: seen([], { look: { ...NOTHING_DUE, nextRunAt: NOW - 5 } }) },
        does: rest(1, "work", true),
      },
      {
        what: "rests up to 1.6 polls more where hints come",
        state: { ...IDLE, seen: seen([], { look: { ...NOTHING_DUE, isHeard: true } }) },
        does: rest(1_800, "work", true),
      },
      {
        what: "looks on at once where it saw no lane of its own",
        state: { ...IDLE, seen: seen([], { look: { ...NOTHING_DUE, hasMore: true } }) },
        does: rest(1, "work", true),
      },
      {
        what: "looks on soon where it saw some",
        state: { ...IDLE, seen: seen([FIRST], { look: { ...NOTHING_DUE, hasMore: true } }) },
        does: rest(100, "work", true),
      },
      {
        what: "renews a reservation in time",
        state: { ...IDLE, pollMs: 60_000, isReserved: true },
        does: rest(RESERVED_MS / 2, "work", true),
      },
    ],
  },
  {
    about: "suspects are due",
    rows: [
      {
        what: "isolates a job with its last crash left",
        state: { seen: seen([FIRST, SUSPECT, LAST]), last: "isolate" },
        does: { do: "isolate", lanes: [LAST] },
      },
      {
        what: "takes it alone where there is no child process",
        state: { seen: seen([FIRST, SUSPECT, LAST]), last: "take", isReserved: true },
        does: take("last", 1, LAST),
      },
      {
        what: "leaves it alone where it may not",
        state: { seen: seen([FIRST, LAST]) },
        does: take("ordinary", 10, FIRST),
      },
      {
        what: "takes one suspect, in a claim of its own",
        state: { seen: seen([FIRST, SUSPECT, LAST]) },
        does: take("suspect", 1, SUSPECT),
      },
      {
        what: "takes one after it isolated a job",
        state: { seen: seen([FIRST, SUSPECT, LAST]), last: "isolate", turn: after("last") },
        does: take("suspect", 1, SUSPECT),
      },
      {
        what: "takes none after it claimed a job alone",
        state: { seen: seen([FIRST, SUSPECT, LAST]), turn: after("last", { asked: 1 }) },
        does: take("ordinary", 10, FIRST),
      },
      {
        what: "takes none while one is watched",
        state: { seen: seen([FIRST, SUSPECT]), inHand: { ...EMPTY_HANDS, free: 9, held: 1, suspectsMs: [99] } },
        does: take("ordinary", 9, FIRST),
      },
      {
        what: "takes none while it is reserved",
        state: { seen: seen([FIRST, SUSPECT]), isReserved: true },
        does: rest(100, "either"),
      },
      {
        what: "keeps a slot for them",
        state: { seen: seen([FIRST, SUSPECT]), inHand: { ...EMPTY_HANDS, reserved: 1 }, turn: after("suspect") },
        does: take("ordinary", 9, FIRST),
      },
    ],
  },
  {
    about: "no slot is wanted",
    rows: [
      {
        what: "rests for a poll",
        state: { inHand: { ...EMPTY_HANDS, free: 1, reserved: 1, held: 9 } },
        does: rest(POLL, "either"),
      },
      {
        what: "begins again after a suspect",
        state: { ...FULL, turn: after("suspect", { taken: 1 }) },
        does: rest(0, "either"),
      },
      {
        what: "looks again soon while suspects are due",
        state: { ...FULL, seen: seen([FIRST, SUSPECT]), turn: after("suspect") },
        does: rest(100, "either"),
      },
      { what: "looks again soon while it is reserved", state: { isReserved: true }, does: rest(100, "either") },
      {
        what: "sooner where a limit gives more before",
        state: { isReserved: true, nextGrantMs: 30 },
        does: rest(30, "either"),
      },
    ],
  },
  {
    about: "slots are wanted",
    rows: [
      {
        what: "takes so many of what is no suspect",
        state: { seen: seen([FIRST, RETRY, SUSPECT]), turn: after("suspect") },
        does: take("ordinary", 10, FIRST, RETRY),
      },
      {
        what: "takes what may start where limits spread the work",
        state: { isSpread: true, spreadMost: 3 },
        does: take("ordinary", 3, FIRST),
      },
      {
        what: "begins again after it took something",
        state: { turn: after("ordinary", { taken: 5, asked: 1 }) },
        does: rest(0),
      },
      {
        what: "begins again after it was refused",
        state: { isControlKnown: false, turn: after("ordinary", { asked: 1 }) },
        does: rest(0),
      },
      {
        what: "asks groups that are left",
        state: { seen: seen([FIRST], { dropped: true }), turn: after("ordinary", { asked: 1 }) },
        does: rest(0),
      },
      {
        what: "looks anew where all groups were asked and gave",
        state: { seen: seen([], { dropped: true, took: 3 }), turn: after("ordinary") },
        does: rest(0, "work", true),
      },
      {
        what: "looks anew after a moment where they gave nothing",
        state: { seen: seen([], { dropped: true }), turn: after("ordinary") },
        does: rest(100, "work", true),
      },
      {
        what: "rests a moment after it took nothing",
        state: { turn: after("ordinary", { asked: 1 }) },
        does: rest(100, "work", false),
      },
      {
        what: "rests until a limit gives more",
        state: { nextGrantMs: 20, turn: after("ordinary", { asked: 1 }) },
        does: rest(20, "work", false),
      },
      {
        what: "longer than a moment where all is used up",
        state: { nextGrantMs: 600, turn: after("ordinary", { isSpentUp: true }) },
        does: rest(600, "work", false),
      },
    ],
  },
])("when $about, a worker", ({ rows }) => {
  it.each(rows)("$what", ({ state, does }) => {
    expect(step(state)).toEqual(does);
  });
});

describe("in any state, a worker", () => {
  const ms = fc.nat({ max: 20_000 });
  const maybe = fc.option(ms);
  const stage = fc.constantFrom<Stage>("begin", "ask", "unseen", "look", "last", "suspect", "ordinary");
  const slots = fc.nat({ max: 40 });
  const anyHands = fc
    .record({ slots, free: slots, ahead: slots, held: fc.nat({ max: 90 }), settled: slots, settling: slots })
    .map((hands): WorkInHand => ({ ...EMPTY_HANDS, concurrency: 40, ...hands }));
  const anyLook = fc.record({
    mayStart: fc.boolean(),
    hasMore: fc.boolean(),
    isHeard: fc.boolean(),
    next: maybe,
    pause: maybe,
  });
  const anySeen = fc
    .record({
      lanes: fc.subarray([FIRST, RETRY, SUSPECT, LAST]),
      before: fc.subarray([FIRST, RETRY]),
      look: anyLook,
      atMs: fc.constantFrom(NEVER, 0, 950, 1_000),
      dropped: fc.boolean(),
    })
    .map(({ look: { mayStart, hasMore, isHeard, next, pause }, ...more }): LanesSeen => {
      const at = (inMs: number | null): number | null => (inMs === null ? null : NOW + inMs);
      const due = { due: mayStart || hasMore, nextRunAt: at(next), pauseEndsAt: at(pause) };
      return { ...NOTHING_SEEN, goodMs: 100, ...more, look: { ...LOOK, mayStart, hasMore, isHeard, ...due } };
    });
  const anyState = fc
    .record({
      pollMs: fc.integer({ min: 1, max: 20_000 }),
      isRemote: fc.boolean(),
      inHand: anyHands,
      isUnanswered: fc.boolean(),
      isWoken: fc.boolean(),
      seen: anySeen,
      isControlKnown: fc.boolean(),
      isSpread: fc.boolean(),
      spreadMost: fc.constantFrom(0, 3, Number.POSITIVE_INFINITY),
      nextGrantMs: fc.option(fc.integer({ min: 1, max: 20_000 })),
      isReserved: fc.boolean(),
      last: fc.constantFrom("isolate" as const, "take" as const, null),
      turn: fc.record({ stage, taken: fc.nat({ max: 1 }), asked: fc.nat({ max: 1 }), isSpentUp: fc.boolean() }),
    })
    .map((some): WorkerState => ({ ...STATE, ...some }));
  const dice = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  const always = (holds: (given: WorkerState, does: WorkerStep) => void): void =>
    fc.assert(
      fc.property(anyState, dice, (given, die) =>
        holds(
          given,
          nextStep(given, () => die),
        ),
      ),
      { numRuns: 1_000 },
    );

  it("never wants more than may be held", () => {
    always(({ inHand }, does) => {
      if (does.do === "take" && does.stage !== "last")
        expect(inHand.held + does.slots).toBeLessThanOrEqual(mayHold(40, inHand.settling));
    });
  });

  it("takes suspects one at a time, and never with other work", () => {
    always((_, does) => {
      if (does.do !== "take") return;
      const isSingle = does.stage === "last" || does.stage === "suspect";
      expect(does.slots > 0 && (!isSingle || does.slots === 1)).toBe(true);
      expect(does.lanes.every(({ kind }) => isSuspect(kind) === isSingle)).toBe(true);
    });
  });

  it("takes nothing but a job with its last crash left while it is reserved for one", () => {
    always(({ isReserved }, does) => {
      if (isReserved && does.do === "take") expect(does.stage).toBe("last");
    });
  });

  it("comes to the end of its turn: each thing is done once, in their order", () => {
    const order: readonly string[] = ["ask", "unseen", "look", "last", "suspect", "ordinary"];
    const placeOf = (does: WorkerStep): number =>
      order.indexOf(does.do === "take" ? does.stage : does.do === "isolate" ? "last" : does.do);
    always(({ turn }, does) => {
      if (does.do !== "rest") expect(placeOf(does)).toBeGreaterThan(order.indexOf(turn.stage));
    });
  });

  it("never rests past a due time or the end of a pause that its look has told of", () => {
    always(({ seen: { look: told }, turn }, does) => {
      if (does.do !== "rest" || turn.stage !== "look" || !told || told.mayStart) return;
      for (const at of [told.nextRunAt, told.pauseEndsAt])
        if (at !== null && !told.hasMore) expect(does.ms).toBeLessThanOrEqual(Math.max(1, at - told.now));
    });
  });

  it("never rests past the end of its reservation, nor past what a limit gives", () => {
    always(({ isReserved, nextGrantMs, seen: { look: told } }, does) => {
      if (does.do !== "rest" || does.until === "slot") return;
      if (isReserved) expect(does.ms).toBeLessThanOrEqual(RESERVED_MS / 2);
      if (does.until === "work" && nextGrantMs !== null && !told?.hasMore)
        expect(does.ms).toBeLessThanOrEqual(nextGrantMs);
    });
  });

  it("never rests for longer than 2.6 polls", () => {
    always(({ pollMs }, does) => {
      if (does.do === "rest") expect(does.ms).toBeLessThanOrEqual(Math.max(100, 2.6 * pollMs));
    });
  });
});
