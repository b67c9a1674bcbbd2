// What a worker does next, from one record of all it knows. The claim loop only carries it out and waits. The first row
// that fits counts; a row that was carried out in this turn, and those above it, are passed:
//
//   a claim's answer was lost, or a lease has passed ► ask      what is held here without our knowledge, and give it back
//   nothing may be taken ────────────────────────────► rest     until a slot is free, a poll at most
//   woken, and a look costs a trip to a server ──────► take     from where there was work before, unseen
//     that gave something ───────────────────────────► rest 0
//   the lanes were seen too long ago ────────────────► look
//     nothing may start ─────────────────────────────► rest     until work falls due, a pause ends or a limit gives more,
//                                                               a poll at most; a moment where there are lanes unseen
//   a last crash left, and it may be taken ──────────► isolate  where there is a child process for it; else
//                                                      take     it, in a claim of its own, and no other suspect
//   another suspect, and it may be taken ────────────► take     it, in a claim of its own
//   no slot is wanted ───────────────────────────────► rest     0 after a suspect; a moment while suspects are due or the
//                                                               worker is reserved for one; else a poll
//   slots are wanted ────────────────────────────────► take     so many, as core/plan.ts shares them out
//     that gave something, or groups are left ───────► rest 0
//     else ──────────────────────────────────────────► rest     a moment, or until a limit gives more
//
// A rest of 0 begins the next turn at once. How many slots are wanted is said in core/in-hand.ts: none while the worker is
// reserved for a job with its last crash left (core/reservation.ts).
import { mayTakeSuspect, wantedNow, type WorkInHand } from "./in-hand.ts";
import { type ActiveLane, firstLane, isSuspect } from "./lane.ts";
import { RESERVED_MS } from "./reservation.ts";

/** Things that a turn does, in their order and each once at most. */
const STAGES = ["begin", "ask", "unseen", "look", "last", "suspect", "ordinary"] as const;
/** One of them. */
export type Stage = (typeof STAGES)[number];

/** What a look at the lanes found. */
export interface Look {
  /** Something is due that this worker serves, or there are lanes that the look did not show. */
  readonly due: boolean;
  /** Something of what it showed may start now, or when its turn comes under a rate limit. */
  readonly mayStart: boolean;
  /** There are lanes that it did not show. */
  readonly hasMore: boolean;
  /** A suspect is due. */
  readonly suspect: boolean;
  /** How long a job with its last crash left has been due; null where none is. */
  readonly lastDueMs: number | null;
  /** Store times: when more falls due, when the next pause ends, and now. */
  readonly nextRunAt: number | null;
  readonly pauseEndsAt: number | null;
  readonly now: number;
  /** Whoever makes work due wakes this process. */
  readonly isHeard: boolean;
}

/** The lanes as a worker knows them. */
export interface LanesSeen {
  /** What the last look showed, without lanes of groups that were asked since. */
  readonly lanes: readonly ActiveLane[];
  readonly look: Look | null;
  /** When that was, and for how long it is good; never, if something was not there any more. */
  readonly atMs: number;
  readonly goodMs: number;
  /** Lanes of groups were asked since and are not among them any more. */
  readonly dropped: boolean;
  /** The highest priority of which something was taken since; null for nothing. */
  readonly took: number | null;
  /** Where there was work when there last was some, if nothing speaks against taking more from there unseen. */
  readonly before: readonly ActiveLane[];
}

/** When lanes were seen that have to be looked at again. */
export const NEVER = Number.NEGATIVE_INFINITY;
/** A worker that has not looked yet. */
export const NOTHING_SEEN: LanesSeen = {
  lanes: [],
  look: null,
  atMs: NEVER,
  goodMs: 0,
  dropped: false,
  took: null,
  before: [],
};

/** What was done in this turn. */
export interface Turn {
  /** The last of it. */
  readonly stage: Stage;
  /** Jobs that it took, and lanes that its last claim asked. */
  readonly taken: number;
  readonly asked: number;
  /** All that could be asked is spread over time, and none of it may start now. */
  readonly isSpentUp: boolean;
}

/** A turn that begins. */
export const NEW_TURN: Turn = { stage: "begin", taken: 0, asked: 0, isSpentUp: false };

/** All that a worker knows when it decides what to do next; times are those of its own clock. */
export interface WorkerState {
  readonly nowMs: number;
  readonly pollMs: number;
  readonly leaseMs: number;
  /** The store is a server away. */
  readonly isRemote: boolean;
  readonly inHand: WorkInHand;
  /** The answer to the last claim was lost; and when the store was last asked what is held here. */
  readonly isUnanswered: boolean;
  readonly askedMs: number;
  /** A hint came that work may be due. */
  readonly isWoken: boolean;
  readonly seen: LanesSeen;
  /** What holds work back is known; without it nothing is taken. */
  readonly isControlKnown: boolean;
  /** Starts are spread over time by rate limits, ramps or budgets; how many may be taken because of that. */
  readonly isSpread: boolean;
  readonly spreadMost: number;
  /** How long until more may be started of what is spread over time; null where nothing is. */
  readonly nextGrantMs: number | null;
  /** Nothing else is taken, because a job with its last crash left is to run alone here. */
  readonly isReserved: boolean;
  /** What may be done with such a job now. */
  readonly last: "isolate" | "take" | null;
  readonly turn: Turn;
}

/** What a worker takes: from these lanes, for so many slots. */
export interface Take {
  readonly do: "take";
  readonly stage: "unseen" | "last" | "suspect" | "ordinary";
  readonly lanes: readonly ActiveLane[];
  readonly slots: number;
  /** Only if nothing waits in a lane before this one. */
  readonly unlessBefore?: number;
}

/**
 * A rest until a slot is free, until something is due, or until either. `forgets`: what was seen of the lanes is of no use
 * any more.
 */
export interface Rest {
  readonly do: "rest";
  readonly ms: number;
  readonly until: "slot" | "work" | "either";
  readonly forgets?: boolean;
}

/** What to do next; a look is for so many slots. */
export type WorkerStep =
  | { readonly do: "ask" }
  | { readonly do: "look"; readonly want: number }
  | Take
  | { readonly do: "isolate"; readonly lanes: readonly ActiveLane[] }
  | Rest;

/** A moment: after it the lanes are looked at again even though claims still come back full. */
export const LOOK_AGAIN_MS = 100;
/** A process that is woken rests up to this share of a poll longer, each time another one. */
const HEARD_MORE = 1.6;
const AGAIN: Rest = { do: "rest", ms: 0, until: "work" };

/** How many ordinary jobs to take now, in slots. */
export function wanted({ inHand, isRemote, isReserved, spreadMost }: WorkerState): number {
  return isReserved ? 0 : Math.min(wantedNow(inHand, isRemote), spreadMost);
}

/** What a worker does next. Pure: the same state and dice give the same step. */
export function nextStep(state: WorkerState, random: () => number): WorkerStep {
  const { turn, seen, isReserved } = state;
  const passed = STAGES.indexOf(turn.stage);
  const isAhead = (stage: Stage): boolean => passed < STAGES.indexOf(stage);
  const want = wanted(state);
  const isSuspectWanted = !isReserved && mayTakeSuspect(state.inHand);
  if (isAhead("ask") && isInDoubt(state)) return { do: "ask" };
  if (isAhead("unseen")) {
    const isFull = want === 0 && !isSuspectWanted && state.last === null && !isReserved;
    if (isFull) return { do: "rest", ms: state.pollMs, until: "slot" };
    const [first] = seen.before;
    if (want > 0 && first && mayTakeUnseen(state)) {
      const unlessBefore = firstLane(0, first.priority);
      return { do: "take", stage: "unseen", lanes: seen.before, slots: want, unlessBefore };
    }
  }
  if (isAhead("look")) {
    if (turn.taken > 0) return AGAIN;
    const isOld = state.nowMs - seen.atMs >= seen.goodMs;
    if (isOld || !state.isControlKnown)
      return { do: "look", want: isReserved ? 0 : wantedNow(state.inHand, state.isRemote) };
  }
  if (turn.stage === "look" && !seen.look?.mayStart)
    return { do: "rest", ms: idleMs(state, random), until: "work", forgets: true };
  if (isAhead("last") && state.last !== null) {
    const lanes = seen.lanes.filter(({ kind }) => kind === "last");
    if (lanes.length > 0) return state.last === "take" ? takeOne("last", lanes) : { do: "isolate", lanes };
  }
  if (isAhead("suspect") && isSuspectWanted && !(turn.stage === "last" && turn.asked > 0)) {
    const lanes = seen.lanes.filter(({ kind }) => kind === "suspect");
    if (lanes.length > 0) return takeOne("suspect", lanes);
  }
  if (!isAhead("ordinary")) return afterTaking(state);
  if (want === 0) return { do: "rest", ms: handsFullMs(state), until: "either" };
  const lanes = seen.lanes.filter(({ kind }) => !isSuspect(kind));
  return { do: "take", stage: "ordinary", lanes, slots: want };
}

function takeOne(stage: "last" | "suspect", lanes: readonly ActiveLane[]): WorkerStep {
  return { do: "take", stage, lanes, slots: 1 };
}

/** The last claim may have been carried out without our knowledge. Once in a lease anyway: it may reach the store later. */
function isInDoubt({ isUnanswered, nowMs, askedMs, leaseMs }: WorkerState): boolean {
  return isUnanswered || nowMs - askedMs >= leaseMs;
}

/**
 * What a hint tells of is mostly where there was work before, and a look would only say so. Not where a look costs less than
 * a claim in vain, and not in the middle of work.
 */
function mayTakeUnseen({ isWoken, isRemote, seen, isReserved, isSpread, isControlKnown }: WorkerState): boolean {
  return isWoken && isRemote && seen.atMs === NEVER && !isReserved && !isSpread && isControlKnown;
}

/** How long there will be nothing to do after a look that found nothing to start. */
function idleMs({ seen, pollMs, nextGrantMs, isReserved }: WorkerState, random: () => number): number {
  const { look, lanes } = seen;
  if (!look || look.hasMore) return lanes.length === 0 ? 1 : LOOK_AGAIN_MS;
  // Where whoever makes work due wakes us, and a look is a trip to a server, there is less need to look.
  const longMs = pollMs * (look.isHeard ? 1 + HEARD_MORE * random() : 1);
  const mostMs = inTime(isReserved, longMs);
  // Work falls due at its time, and what was paused with the end of its pause.
  const dueMs = [look.nextRunAt, look.pauseEndsAt].map((at) => (at === null ? mostMs : at - look.now));
  return Math.max(1, Math.min(mostMs, nextGrantMs ?? mostMs, ...dueMs));
}

/** Suspects follow one another, and another worker may take the job we keep our slots free for: look again soon. */
function handsFullMs({ turn, seen, pollMs, isReserved, nextGrantMs }: WorkerState): number {
  if (turn.taken > 0) return 0;
  const isSoon = isReserved || seen.lanes.some(({ kind }) => isSuspect(kind));
  return isSoon ? Math.min(pollMs, LOOK_AGAIN_MS, nextGrantMs ?? pollMs) : pollMs;
}

/** A reservation is renewed with a look, before it ends. */
function inTime(isReserved: boolean, ms: number): number {
  return isReserved ? Math.min(ms, RESERVED_MS / 2) : ms;
}

function afterTaking({ turn, seen, isControlKnown, pollMs, nextGrantMs, isReserved }: WorkerState): WorkerStep {
  if (turn.taken > 0 || !isControlKnown) return AGAIN;
  // Groups that were not asked yet are left.
  if (seen.dropped && turn.asked > 0 && seen.lanes.length > 0) return AGAIN;
  // All groups were asked: a look shows what they may give now.
  const forgets = seen.dropped && turn.asked === 0;
  if (forgets && seen.took !== null) return { ...AGAIN, forgets };
  const againMs = turn.isSpentUp ? inTime(isReserved, pollMs) : LOOK_AGAIN_MS;
  return { do: "rest", ms: Math.min(pollMs, againMs, nextGrantMs ?? LOOK_AGAIN_MS), until: "work", forgets };
}
