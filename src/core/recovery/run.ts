// A redrive run: dead letters that go back to work step by step, and what a driver does next about it. The record is plain
// data in a cell of the store; `nextMove` decides, `moved` writes the decision into the record, and the driver only
// carries it out.
//
//   running ──everything sent and run──► completed
//     │ ▲
//     │ └─resumed──┐
//     ├─undecided, or by an operator──► paused
//     ├─too many failed──► stopped     what was sent and not taken is recalled
//     └─by an operator──► cancelled    nothing more is sent; recalled where the operator says so
import { fieldsFrom, hasNumbers } from "../options.ts";
import { allowance } from "./allowance.ts";
import { type CountedRun, isCanary, judgeStep, lackingOf, pendingOf } from "./judge.ts";
import type { FrozenSelection } from "./selection.ts";

/** The states of a run. */
export const RUN_STATES = ["running", "paused", "stopped", "completed", "cancelled"] as const;
/** One of `RUN_STATES`. */
export type RunState = (typeof RUN_STATES)[number];

/** The kind of the cells of runs. The one without a name lists the runs that are not over. */
export const RUN_CELLS = "redrive";

/** The record of a run. Times are epoch milliseconds by the store's clock. */
export interface RedriveRun {
  /** Its id. */
  readonly id: string;
  /** The plan it was started from. */
  readonly plan: string;
  /** Its state. */
  readonly state: RunState;
  /** Which letters it sends. */
  readonly selection: FrozenSelection;
  /** Letters that matched when it was planned. */
  readonly count: number;
  /** Letters among them that it was to send. */
  readonly toSend: number;
  /** Who started it. */
  readonly by: string;
  /** Why; null where no reason was given. */
  readonly why: string | null;
  /** When it was started. */
  readonly startedAt: number;
  /** When it was completed, stopped or cancelled; null before. */
  readonly endedAt: number | null;
  /** The sizes of its canary steps; the rest follows. */
  readonly steps: readonly number[];
  /** Letters a second, at most. */
  readonly rate: number;
  /** How long a step may take without a verdict before the run is paused. */
  readonly judgeWithinMs: number;
  /** The share that may fail the same way. */
  readonly tolerate: number;
  /** True sends letters whose key a newer job has, too. */
  readonly superseded: boolean;
  /** JSON merge patch that every payload gets; null for none. */
  readonly patch: string | null;
  /** Jobs that are not sent, because their patched payload does not fit their type. */
  readonly misfits: readonly string[];
  /** The present step; `steps.length` for the rest. */
  readonly step: number;
  /** When the clock of the present step began. */
  readonly stepSince: number;
  /** Time that this clock did not count. */
  readonly heldMs: number;
  /** Since when the jobs of the run are held back; null while they are not. */
  readonly heldSince: number | null;
  /** Where the walk through the letters continues; null for the beginning. */
  readonly cursor: string | null;
  /** True once the walk has reached the last letter. */
  readonly walked: boolean;
  /** When letters may be sent next. */
  readonly nextAt: number;
  /** The process that drives it, and until when; null before the first. */
  readonly driver: { readonly worker: string; readonly until: number } | null;
  /** What it waits for, for people; null while it waits for nothing in particular. */
  readonly waits: string | null;
  /** When that ends; null where it is not known. */
  readonly waitsUntil: number | null;
  /** Why it stopped, was paused or was cancelled; null otherwise. */
  readonly reason: string | null;
  /** True while what was sent and not taken is taken back. */
  readonly recall: boolean;
}

/** A run at its start. */
export type NewRun = Omit<
  RedriveRun,
  | "state"
  | "endedAt"
  | "step"
  | "stepSince"
  | "heldMs"
  | "heldSince"
  | "cursor"
  | "walked"
  | "nextAt"
  | "driver"
  | "waits"
  | "waitsUntil"
  | "reason"
  | "recall"
>;

/** The record of a run that begins now. */
export function begunRun(given: NewRun): RedriveRun {
  const { startedAt } = given;
  return {
    ...given,
    state: "running",
    endedAt: null,
    step: 0,
    ...clockFrom(startedAt),
    cursor: null,
    walked: false,
    nextAt: startedAt,
    driver: null,
    ...NO_WAIT,
    reason: null,
    recall: false,
  };
}

const NO_WAIT = { waits: null, waitsUntil: null } as const;

function clockFrom(now: number): Pick<RedriveRun, "stepSince" | "heldMs" | "heldSince"> {
  return { stepSince: now, heldMs: 0, heldSince: null };
}

/** Reads a record from a stored text; null for an invalid one. */
export function runFrom(text: string): RedriveRun | null {
  const run = fieldsFrom(text);
  const isWhole =
    hasNumbers(run, ["count", "toSend", "startedAt", "rate", "judgeWithinMs", "tolerate", "step", "stepSince"]) &&
    hasNumbers(run, ["heldMs", "nextAt"]) &&
    hasNumbers(run["selection"], ["through"]) &&
    typeof run["id"] === "string" &&
    RUN_STATES.some((state) => state === run["state"]) &&
    Array.isArray(run["steps"]) &&
    Array.isArray(run["misfits"]);
  return isWhole ? (run as unknown as RedriveRun) : null;
}

/** True for a run of which a driver has something to do. */
export function isDriven({ state, recall }: Pick<RedriveRun, "state" | "recall">): boolean {
  return state === "running" || recall;
}

/** True for a run that may still send something. */
export function isOpenRun({ state }: Pick<RedriveRun, "state">): boolean {
  return state === "running" || state === "paused";
}

/** What holds the jobs of a run back. */
export interface HeldRun {
  readonly why: string;
  /** When that ends; null where it is not known. */
  readonly until: number | null;
}

/** What a driver knows of a run. */
export interface RunFacts {
  readonly counts: CountedRun;
  /** What holds back the jobs that wait; null where nothing does, or none wait. */
  readonly held: HeldRun | null;
}

/** What a driver does next; `full` says that the limit of the selection is reached, `rest` that there is nothing to do. */
export type Move =
  | { readonly kind: "send"; readonly n: number }
  | { readonly kind: "wait"; readonly held: HeldRun | null; readonly ms: number }
  | { readonly kind: "pass" }
  | { readonly kind: "stop"; readonly why: string }
  | { readonly kind: "pause"; readonly why: string }
  | { readonly kind: "recall" }
  | { readonly kind: "full" }
  | { readonly kind: "finish" }
  | { readonly kind: "rest" };

/** How often the outcomes of what was sent are looked at. */
const LOOK_MS = 500;

/** What to do next about a run. */
export function nextMove(run: RedriveRun, { counts, held }: RunFacts, now: number): Move {
  if (run.recall) return { kind: "recall" };
  if (run.state !== "running") return { kind: "rest" };
  if (!run.walked && run.selection.limit !== undefined && counts.sent >= run.toSend) return { kind: "full" };
  const clocked = withHeld(run, held, now);
  const judgement = judgeStep(clocked, counts, now);
  if (judgement.kind === "stop") return judgement;
  if (judgement.kind === "undecided" && held === null) return { kind: "pause", why: judgement.why };
  if (judgement.kind === "pass") return isCanary(run) ? { kind: "pass" } : { kind: "finish" };
  const wanted = isCanary(run) ? lackingOf(run, counts) : run.walked ? 0 : Number.POSITIVE_INFINITY;
  const n = Math.min(wanted, allowance(run, counts, now));
  if (n > 0) return { kind: "send", n };
  const isNext = wanted > 0 && pendingOf(counts) === 0 && run.nextAt > now;
  return { kind: "wait", held, ms: isNext ? run.nextAt - now : Math.min(LOOK_MS, until(run.nextAt, now)) };
}

function until(at: number, now: number): number {
  return at > now ? at - now : LOOK_MS;
}

/** The run after a move that says all about it; those that send or recall need more, see `sentOf` and `recalledOf`. */
export function moved(run: RedriveRun, move: Move, now: number): RedriveRun {
  switch (move.kind) {
    case "wait":
      return withHeld(run, move.held, now);
    case "pass":
      return { ...run, step: run.step + 1, ...clockFrom(now), ...NO_WAIT };
    case "stop":
      return ended({ ...run, recall: true }, "stopped", move.why, now);
    case "pause":
      return { ...withHeld(run, null, now), state: "paused", reason: move.why };
    case "full":
      return sentOf(run, { ...run, walked: true }, now);
    case "finish":
      return ended(run, "completed", null, now);
    case "send":
    case "recall":
    case "rest":
      return run;
  }
}

/** The run after a send: chunk and record are written in one commit. */
export function sentOf(
  run: RedriveRun,
  { cursor, walked, nextAt }: Pick<RedriveRun, "cursor" | "walked" | "nextAt">,
  now: number,
): RedriveRun {
  // A step is timed from its last send.
  return { ...withHeld(run, null, now), cursor, walked, nextAt, ...clockFrom(now) };
}

/** The run after a part of the recall; the cursor is null when all was asked for. */
export function recalledOf(run: RedriveRun, cursor: string | null): RedriveRun {
  return { ...run, cursor, recall: cursor !== null };
}

/** The run with this driver for so long; time in which no process drove it is not counted. */
export function drivenBy(run: RedriveRun, worker: string, leaseMs: number, now: number): RedriveRun {
  const isOurs = run.driver?.worker === worker;
  const lostMs = isOurs || run.heldSince !== null ? 0 : now - (run.driver?.until ?? run.stepSince);
  return { ...run, heldMs: run.heldMs + Math.max(0, lostMs), driver: { worker, until: now + leaseMs } };
}

/** True while another process drives the run. */
export function isDrivenElsewhere({ driver }: Pick<RedriveRun, "driver">, worker: string, now: number): boolean {
  return driver !== null && driver.worker !== worker && driver.until > now;
}

/** The run after an operator paused it. */
export function pausedRun(run: RedriveRun, reason: string, now: number): RedriveRun {
  return { ...withHeld(run, null, now), state: "paused", reason };
}

/** The run after an operator resumed it: the clock of its step begins again. */
export function resumedRun(run: RedriveRun, now: number): RedriveRun {
  return { ...run, state: "running", reason: null, driver: null, ...clockFrom(now), ...NO_WAIT };
}

/** The run after an operator cancelled it; with a recall, what was sent and not taken is taken back. */
export function cancelledRun(run: RedriveRun, reason: string, recall: boolean, now: number): RedriveRun {
  const before = recall ? { ...run, recall, cursor: null } : run;
  return isOpenRun(run) ? ended(before, "cancelled", reason, now) : before;
}

function ended(run: RedriveRun, state: RunState, reason: string | null, now: number): RedriveRun {
  return { ...withHeld(run, null, now), state, reason, endedAt: now, cursor: null };
}

/** The run with what holds its jobs back now: time in which something does is not counted. */
function withHeld(run: RedriveRun, held: HeldRun | null, now: number): RedriveRun {
  if (held !== null) return { ...run, heldSince: run.heldSince ?? now, waits: held.why, waitsUntil: held.until };
  if (run.heldSince === null) return { ...run, ...NO_WAIT };
  return { ...run, heldMs: run.heldMs + Math.max(0, now - run.heldSince), heldSince: null, ...NO_WAIT };
}
