// Decides what a worker does next, from one record of all it knows. The claim loop only carries the step out and waits.
// The first matching row counts; rows that were carried out in this turn, and those above them, are skipped:
//
//   a claim's answer was lost, or a lease has passed ► ask      which jobs the store says we hold, and release unknown ones
//   nothing may be taken ────────────────────────────► rest     until a slot is free, a poll at most
//   woken, and a look costs a trip to a server ──────► take     from where there was work before, unseen
//     that gave something ───────────────────────────► rest 0
//   the lanes were seen too long ago ────────────────► look
//     nothing may start ─────────────────────────────► rest     until work falls due, a pause ends or a limit gives more,
//                                                               a poll at most; a moment where there are lanes unseen
//   one crash left, and it may be taken ─────────────► isolate  where there is a child process for it; else
//                                                      take     it, in a separate claim, and no other suspect
//   another suspect, and it may be taken ────────────► take     it, in a separate claim
//   no slot is wanted ───────────────────────────────► rest     0 after a suspect; a moment while suspects are due or the
//                                                               worker is reserved for one; else a poll
//   slots are wanted ────────────────────────────────► take     so many, as core/claim-plan.ts shares them out
//     that gave something, or groups are left ───────► rest 0
//     else ──────────────────────────────────────────► rest     a moment, or until a limit gives more
//
// A rest of 0 begins the next turn at once. core/in-hand.ts decides how many slots are wanted: none while the worker is
// reserved for a job with one crash left (core/reservation.ts).
import type { Quota } from "./claim-plan.ts";
import { mayTakeSuspect, wantedNow, type WorkInHand } from "./in-hand.ts";
import { type ActiveLane, firstLane, isSuspect } from "./lane.ts";
import { RESERVED_MS } from "./reservation.ts";

/** The stages of a turn, in order; each happens at most once. */
const STAGES = ["begin", "ask", "unseen", "look", "last", "suspect", "ordinary"] as const;
/** One of the stages. */
export type Stage = (typeof STAGES)[number];

/** What a look at the lanes found. */
export interface Look {
  /** A job that this worker serves is due, or there are lanes that the look did not show. */
  readonly due: boolean;
  /** A job of the shown lanes may start now, or when a rate limit allows it. */
  readonly mayStart: boolean;
  /** There are lanes that the look did not show. */
  readonly hasMore: boolean;
  /** A suspect is due. */
  readonly suspect: boolean;
  /** How long a job with one crash left has been due; null where none is. */
  readonly lastDueMs: number | null;
  /** Store times: when more falls due, when the next pause ends, and now. */
  readonly nextRunAt: number | null;
  readonly pauseEndsAt: number | null;
  readonly now: number;
  /** Processes that make work due wake this process. */
  readonly isHeard: boolean;
}

/** The lanes as a worker knows them. */
export interface LanesSeen {
  /** The lanes of the last look, without lanes of groups that were claimed from since. */
  readonly lanes: readonly ActiveLane[];
  readonly look: Look | null;
  /** When that was, and how long it stays valid; NEVER if a claim found a lane empty. */
  readonly atMs: number;
  readonly goodMs: number;
  /** Lanes of groups were claimed from since and are no longer in the list. */
  readonly dropped: boolean;
  /** The highest priority from which a job was taken since; null for none. */
  readonly took: number | null;
  /** The lanes that last had work, if nothing speaks against taking more from them without a look. */
  readonly before: readonly ActiveLane[];
}

/** The time of a look that must be repeated. */
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
  /** The last stage. */
  readonly stage: Stage;
  /** Jobs taken in this turn, and lanes that the last claim asked. */
  readonly taken: number;
  readonly asked: number;
  /** Every lane that could be asked is under a rate limit, and none may start a job now. */
  readonly isSpentUp: boolean;
}

/** A turn that begins. */
export const NEW_TURN: Turn = { stage: "begin", taken: 0, asked: 0, isSpentUp: false };

/** Everything a worker knows when it decides what to do next; times follow its own clock. */
export interface WorkerState {
  readonly nowMs: number;
  readonly pollMs: number;
  readonly leaseMs: number;
  /** The store is on a server. */
  readonly isRemote: boolean;
  readonly inHand: WorkInHand;
  /** The answer to the last claim was lost; and when the store was last asked what this worker holds. */
  readonly isUnanswered: boolean;
  readonly askedMs: number;
  /** A hint arrived that work may be due. */
  readonly isWoken: boolean;
  readonly seen: LanesSeen;
  /** The pauses and breakers are known; without them nothing is taken. */
  readonly isControlKnown: boolean;
  /** Rate limits, ramps or budgets limit starts; and how many may be taken because of them. */
  readonly isSpread: boolean;
  readonly spreadMost: number;
  /** How long until a limit allows more starts; null where nothing is limited. */
  readonly nextGrantMs: number | null;
  /** The worker takes no other work, because a job with one crash left must run alone here. */
  readonly isReserved: boolean;
  /** What may be done with such a job now. */
  readonly last: "isolate" | "take" | null;
  readonly turn: Turn;
}

/** A claim: from these lanes, for so many slots. */
export interface Take {
  readonly do: "take";
  readonly stage: "unseen" | "last" | "suspect" | "ordinary";
  readonly lanes: readonly ActiveLane[];
  readonly slots: number;
  /** Only if no job waits in a lane before this one. */
  readonly unlessBefore?: number;
}

/** A rest until a slot is free, until something is due, or until either. `forgets`: the lanes seen are outdated. */
export interface Rest {
  readonly do: "rest";
  readonly ms: number;
  readonly until: "slot" | "work" | "either";
  readonly forgets?: boolean;
}

/** The next step; a look is for so many slots. */
export type WorkerStep =
  | { readonly do: "ask" }
  | { readonly do: "look"; readonly want: number }
  | Take
  | { readonly do: "isolate"; readonly lanes: readonly ActiveLane[] }
  | Rest;

/** After this long the worker looks at the lanes again even though claims still come back full. */
export const LOOK_AGAIN_MS = 100;
/** A process that is woken rests longer by a random share of a poll, up to this much. */
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

/**
 * True if the last claim may have been carried out without an answer. Also once per lease, because such a claim may
 * reach the store later.
 */
function isInDoubt({ isUnanswered, nowMs, askedMs, leaseMs }: WorkerState): boolean {
  return isUnanswered || nowMs - askedMs >= leaseMs;
}

/**
 * A hint mostly concerns lanes that had work before, and a look would only confirm that. Not where a look costs less
 * than an empty claim, and not in the middle of work.
 */
function mayTakeUnseen({ isWoken, isRemote, seen, isReserved, isSpread, isControlKnown }: WorkerState): boolean {
  return isWoken && isRemote && seen.atMs === NEVER && !isReserved && !isSpread && isControlKnown;
}

/** How long there is nothing to do after a look that found nothing to start. */
function idleMs({ seen, pollMs, nextGrantMs, isReserved }: WorkerState, random: () => number): number {
  const { look, lanes } = seen;
  if (!look || look.hasMore) return lanes.length === 0 ? 1 : LOOK_AGAIN_MS;
  // Where processes that make work due wake this one, and a look is a trip to a server, looks can be rarer.
  const longMs = pollMs * (look.isHeard ? 1 + HEARD_MORE * random() : 1);
  const mostMs = inTime(isReserved, longMs);
  // Work becomes due at its time, and paused work when its pause ends.
  const dueMs = [look.nextRunAt, look.pauseEndsAt].map((at) => (at === null ? mostMs : at - look.now));
  return Math.max(1, Math.min(mostMs, nextGrantMs ?? mostMs, ...dueMs));
}

/** Look again soon: suspects follow one another, and another worker may take the job that slots are reserved for. */
function handsFullMs({ turn, seen, pollMs, isReserved, nextGrantMs }: WorkerState): number {
  if (turn.taken > 0) return 0;
  const isSoon = isReserved || seen.lanes.some(({ kind }) => isSuspect(kind));
  return isSoon ? Math.min(pollMs, LOOK_AGAIN_MS, nextGrantMs ?? pollMs) : pollMs;
}

/** A reservation is renewed by a look, before it ends. */
function inTime(isReserved: boolean, ms: number): number {
  return isReserved ? Math.min(ms, RESERVED_MS / 2) : ms;
}

function afterTaking({ turn, seen, isControlKnown, pollMs, nextGrantMs, isReserved }: WorkerState): WorkerStep {
  if (turn.taken > 0 || !isControlKnown) return AGAIN;
  // Some groups have not been asked yet.
  if (seen.dropped && turn.asked > 0 && seen.lanes.length > 0) return AGAIN;
  // All groups were asked: a look shows what they may give now.
  const forgets = seen.dropped && turn.asked === 0;
  if (forgets && seen.took !== null) return { ...AGAIN, forgets };
  const againMs = turn.isSpentUp ? inTime(isReserved, pollMs) : LOOK_AGAIN_MS;
  return { do: "rest", ms: Math.min(pollMs, againMs, nextGrantMs ?? LOOK_AGAIN_MS), until: "work", forgets };
}

/**
 * The lanes after a claim from some of them. A lane of a group has given what it may; the next look shows what it may give
 * then. If the claim got less than it asked for, the lanes are outdated; where lanes of groups are left to ask, only those
 * asked are, or the worker would ask an empty one without end.
 */
export function seenAfterClaim(
  seen: LanesSeen,
  quotas: readonly Quota[],
  jobs: readonly { readonly priority: number }[],
  limit: number,
): LanesSeen {
  const asked = new Set(quotas.map(({ lane }) => lane));
  const wished = quotas.reduce((sum, quota) => sum + quota.limit, 0);
  const isShort = jobs.length < Math.min(limit, wished);
  const dropped = seen.dropped || seen.lanes.some(({ group, lane }) => group !== null && asked.has(lane));
  const lanes = dropped
    ? seen.lanes.filter(({ group, lane }) => !asked.has(lane) || (group === null && !isShort))
    : seen.lanes;
  const took = jobs.reduce<number | null>((most, { priority }) => Math.max(priority, most ?? priority), seen.took);
  const isOld = isShort && !(dropped && lanes.length > 0);
  return { ...seen, lanes, dropped, took, atMs: isOld ? NEVER : seen.atMs };
}
