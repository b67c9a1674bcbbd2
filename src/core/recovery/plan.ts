// The plan of a redrive: what would be sent, what speaks against it, how fast it may go, how long it takes and what a
// canary can prove. A plan is refused when the store has changed since.
import { formatDuration } from "../duration.ts";
import type { State } from "../job.ts";
import { fieldsFrom, hasNumbers } from "../options.ts";
import type { Breaker } from "../service-record.ts";
import { BREAKER_WORDS } from "../service-record.ts";
import { rhythmOf, RATE_BOUNDS } from "./allowance.ts";
import { DEFAULT_STEPS, failingAtMost, stepsFor } from "./canary.ts";
import type { FrozenSelection } from "./selection.ts";

/** The kind of the cells of plans. */
export const PLAN_CELLS = "plan";

/** How long a plan may be started. */
export const PLAN_MS = 900_000;

/** What speaks against a plan, or has to be known about it. */
export interface PlanWarning {
  /** What it is about: `superseded`, `breaker`, `paused`, `groups`, `no_worker`, `misfits`. */
  readonly kind: string;
  /** How many letters, groups or services it is about. */
  readonly count: number;
  /** The warning for people. */
  readonly text: string;
}

/** What was found about the letters of a plan. */
export interface PlanFacts {
  /** Letters that match. */
  readonly count: number;
  /** Letters that were looked at one by one, the first in the order of enqueue; what follows is said of these. */
  readonly looked: number;
  /** Letters by the type of their jobs. */
  readonly types: Readonly<Record<string, number>>;
  /** Letters by service, of those that have one. */
  readonly services: Readonly<Record<string, number>>;
  /** How many tenants they are of. */
  readonly tenants: number;
  /** How many groups they are of. */
  readonly groups: number;
  /** Groups among them in which later jobs have run since, as far as was looked. */
  readonly groupsRanOn: number;
  /** Letters whose key a newer job has, by the state of that job; `gone` where it is deleted. */
  readonly superseded: Readonly<Partial<Record<State | "gone", number>>>;
  /** When the first of them died; null where there are none. */
  readonly firstDiedAt: number | null;
  /** When the newest letter died, of all that match. */
  readonly lastDiedAt: number | null;
}

/** What was found about the fleet. */
export interface FleetFacts {
  /** Services of the letters whose breaker is not closed. */
  readonly open: readonly { readonly service: string; readonly state: Breaker["state"] }[];
  /** Pauses that hold the letters' jobs back, such as `queue mail`. */
  readonly pauses: readonly string[];
  /** True if a living worker serves their types. */
  readonly isServed: boolean;
  /** Starts a second that a service allows, of the services that have a limit. */
  readonly limits: readonly { readonly service: string; readonly perSecond: number }[];
  /** What each type completed a second in its last busy hour, of those that have one. */
  readonly completed: readonly { readonly type: string; readonly perSecond: number }[];
  /** Letters whose patched payload does not fit their type. */
  readonly misfits: readonly string[];
}

/** What so many good first runs prove. */
export interface CanaryProof {
  /** Jobs that have run well. */
  readonly good: number;
  /** The share that may still fail, at most, with 95 % confidence. */
  readonly failingAtMost: number;
}

/** The plan of a redrive. */
export interface RedrivePlan {
  /** Its id, to start it. */
  readonly id: string;
  /** The letters, frozen. */
  readonly selection: FrozenSelection;
  /** Letters that match. */
  readonly count: number;
  /** Letters that are sent; at most so many where not all were looked at. */
  readonly toSend: number;
  /** What was found about them. */
  readonly facts: PlanFacts;
  /** What speaks against it. */
  readonly warnings: readonly PlanWarning[];
  /** A safe rate, in letters a second. */
  readonly rate: number;
  /** Why this rate. */
  readonly rateBecause: string;
  /** How long the run takes at this rate, at least. */
  readonly durationMs: number;
  /** What the steps of the usual canary prove. */
  readonly proves: readonly CanaryProof[];
  /** True sends letters whose key a newer job has, too. */
  readonly superseded: boolean;
  /** JSON merge patch that every payload gets; null for none. */
  readonly patch: string | null;
  /** Jobs that are not sent, because their patched payload does not fit their type. */
  readonly misfits: readonly string[];
  /** Services whose breaker was not closed. */
  readonly open: readonly string[];
  /** Who made it. */
  readonly by: string;
  /** When it was made. */
  readonly at: number;
  /** Until when it may be started. */
  readonly expiresAt: number;
  /** The run that was started from it; null before. */
  readonly started: string | null;
}

/** What a plan is made with. */
export interface PlanOptions {
  readonly id: string;
  readonly selection: FrozenSelection;
  readonly superseded: boolean;
  readonly patch: string | null;
  readonly by: string;
  readonly now: number;
}

/** The plan of a redrive. */
export function planRedrive(facts: PlanFacts, fleet: FleetFacts, options: PlanOptions): RedrivePlan {
  const { superseded, now } = options;
  const skipped = superseded ? 0 : supersededCount(facts);
  const toSend = Math.max(0, facts.count - skipped - fleet.misfits.length);
  const { rate, because } = safeRate(fleet);
  const steps = stepsFor(DEFAULT_STEPS, toSend);
  return {
    id: options.id,
    selection: options.selection,
    count: facts.count,
    toSend,
    facts,
    warnings: warningsOf(facts, fleet, superseded),
    rate,
    rateBecause: because,
    durationMs: durationOf(toSend, rate),
    proves: steps.map((good) => ({ good, failingAtMost: failingAtMost(good) })),
    superseded,
    patch: options.patch,
    misfits: fleet.misfits,
    open: fleet.open.map(({ service }) => service),
    by: options.by,
    at: now,
    expiresAt: now + PLAN_MS,
    started: null,
  };
}

function supersededCount({ superseded }: PlanFacts): number {
  return Object.values(superseded).reduce((sum, count) => sum + count, 0);
}

/** The time that so many letters take at a rate. */
export function durationOf(toSend: number, rate: number): number {
  const { most, everyMs } = rhythmOf(rate);
  return Math.ceil(toSend / most) * everyMs;
}

/** The share of a service's limit that a run may use: fresh work needs the other. */
const SHARE = 0.5;
/** The rate where nothing is known. */
const USUAL = 10;

/** A safe rate and the reason for it. */
export function safeRate({ limits, completed }: Pick<FleetFacts, "limits" | "completed">): {
  readonly rate: number;
  readonly because: string;
} {
  const [limit] = limits.toSorted((a, b) => a.perSecond - b.perSecond);
  if (limit) return { rate: bounded(limit.perSecond * SHARE), because: `half of the limit of ${limit.service}` };
  const [slowest] = completed.toSorted((a, b) => a.perSecond - b.perSecond);
  if (slowest)
    return {
      rate: Math.max(1, bounded(slowest.perSecond)),
      because: `what ${slowest.type} completed in its last busy hour`,
    };
  return { rate: USUAL, because: "neither a limit nor a busy hour is known" };
}

/** Whole letters a second, except below one. */
function bounded(rate: number): number {
  const { min, max } = RATE_BOUNDS;
  if (rate < 1) return Math.max(min, Math.floor(rate / min) * min);
  return Math.min(max, Math.floor(rate));
}

/** An hour with at least this share of the busiest one is a busy hour. */
const BUSY = 0.5;
const HOUR_S = 3_600;

/** What was completed a second in the last busy hour of these, the oldest first; null where none completed any. */
export function lastBusyHour(hours: readonly { readonly completed: number }[]): number | null {
  const busiest = Math.max(0, ...hours.map(({ completed }) => completed));
  const last = hours.findLast(({ completed }) => completed > 0 && completed >= busiest * BUSY);
  return last ? last.completed / HOUR_S : null;
}

function warningsOf(facts: PlanFacts, fleet: FleetFacts, superseded: boolean): PlanWarning[] {
  const newer = supersededCount(facts);
  const { completed = 0 } = facts.superseded;
  const { groups, groupsRanOn, looked, count } = facts;
  const among = looked < count ? ` of the first ${looked}` : "";
  const { open, pauses, misfits, isServed } = fleet;
  const about = (kind: string, count: number, text: string): PlanWarning[] =>
    count > 0 ? [{ kind, count, text }] : [];
  return [
    ...about(
      "superseded",
      newer,
      `${letters(newer)}${among} ${newer === 1 ? "has" : "have"} a newer job under ${newer === 1 ? "its" : "their"} key (${completed} completed): ${superseded ? "sent, because you asked for it" : "skipped"}`,
    ),
    ...open.flatMap(({ service, state }) =>
      about(
        "breaker",
        facts.services[service] ?? 1,
        `the breaker of ${service} is ${BREAKER_WORDS[state]}: the run waits for it`,
      ),
    ),
    ...about("paused", pauses.length, `paused: ${pauses.join(", ")}: the run waits until it is resumed`),
    ...about(
      "groups",
      groupsRanOn,
      `${groupsRanOn} of ${groups} ${groups === 1 ? "group" : "groups"}${among && ` of the first ${letters(looked)}`}: later jobs have run since; the order inside each group is kept`,
    ),
    ...about("no_worker", isServed ? 0 : 1, "no living worker serves these types: the run waits until one starts"),
    ...about("misfits", misfits.length, `${letters(misfits.length)} would not fit their type with the patch: skipped`),
  ];
}

function letters(count: number): string {
  return count === 1 ? "1 letter" : `${count} letters`;
}

/** What is compared when a plan is started. */
export interface StartFacts {
  /** Letters of the plan that match still. */
  readonly count: number;
  /** Others that match now. */
  readonly come: number;
  /** Services of the letters whose breaker is not closed now. */
  readonly open: readonly string[];
}

/** The share, and the number, of letters that may come or go between plan and start. */
const DRIFT = { share: 0.05, fewest: 5 } as const;

/** Why a plan must not be started any more; null where it may. */
export function staleness(plan: RedrivePlan, { count, come, open }: StartFacts, now: number): string | null {
  if (now > plan.expiresAt)
    return `it is ${formatDuration(now - plan.at)} old, and good for ${formatDuration(PLAN_MS)}`;
  const gone = Math.max(0, plan.count - count);
  if (gone + come > Math.max(DRIFT.fewest, plan.count * DRIFT.share)) {
    const others = `${come} ${come === 1 ? "other has" : "others have"} come`;
    return `${plan.count} dead letters matched then; ${gone} of them are gone, and ${others}`;
  }
  const opened = open.find((service) => !plan.open.includes(service));
  return opened === undefined ? null : `the breaker of ${opened} has opened since`;
}

/** Reads a plan from a stored text; null for an invalid one. */
export function planFrom(text: string): RedrivePlan | null {
  const plan = fieldsFrom(text);
  const isWhole =
    hasNumbers(plan, ["count", "toSend", "rate", "at", "expiresAt"]) &&
    hasNumbers(plan["selection"], ["through"]) &&
    typeof plan["id"] === "string" &&
    [plan["misfits"], plan["open"], plan["warnings"]].every(Array.isArray);
  return isWhole ? (plan as unknown as RedrivePlan) : null;
}
