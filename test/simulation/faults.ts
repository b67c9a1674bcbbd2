// What can go wrong between an actor and its store, and when. Every call is a fault point: it may fail before or after
// its effect, arrive late, or meet the crash or the pause of its actor. Faults end at a given time, so that the world
// heals.
import type { Verb } from "../../src/store/verb-facts.ts";
import type { Scribe } from "../support/history/scribe.ts";
import type { Dice } from "./dice.ts";
import type { Settings } from "./scene.ts";
import type { World } from "./world.ts";

const KINDS = [
  "error-before",
  "error-after",
  "delay",
  "crash-before",
  "crash-after",
  "pause-before",
  "pause-after",
] as const;
/** What goes wrong with one call. */
export type Fault = (typeof KINDS)[number];

/** The clock of the store, which can be put ahead or back. */
export interface StoreClock {
  ahead: number;
  now(): number;
  /** The last step ahead by more than half of every lease: when it came, and what the clock said before. */
  step?: { readonly at: number; readonly from: number };
}

/** How much goes wrong, and until when. */
export interface FaultPlan {
  /** Probability of each fault at each call. */
  readonly rates: Readonly<Record<Fault, number>>;
  /** Times at which the store answers nobody. */
  readonly outages: readonly { readonly from: number; readonly until: number }[];
  /** Times at which the clock of the store steps, and how far. */
  readonly clockSteps: readonly { readonly at: number; readonly ms: number }[];
  /** Nothing goes wrong from here on. */
  readonly until: number;
  /** Delays and pauses reach beyond this. */
  readonly leaseMs: number;
}

/** Workers look far more often than they act; what goes wrong is to hit the acting. */
const LOOKS: ReadonlySet<Verb> = new Set(["control", "lanes", "workers", "expired", "beat", "get", "count", "cells"]);
const LOOK_SHARE = 0.25;

/** A plan that follows from the dice: some worlds are calm, some are wild, some lose their store for a while. */
export function rollFaultPlan(
  dice: Dice,
  from: number,
  until: number,
  { leaseMs, clockSteps: asked }: Pick<Settings, "leaseMs" | "clockSteps">,
): FaultPlan {
  const level = dice.pick([0, 0.004, 0.01, 0.02, 0.04]);
  const weight: Record<Fault, number> = {
    "error-before": 1,
    "error-after": 1,
    delay: 0.2,
    "crash-before": 0.2,
    "crash-after": 0.2,
    "pause-before": 0.1,
    "pause-after": 0.1,
  };
  const rates = Object.fromEntries(KINDS.map((kind) => [kind, level * weight[kind]])) as Record<Fault, number>;
  const outages = Array.from({ length: level === 0 ? 0 : dice.pick([0, 0, 1, 2]) }, () => {
    const start = dice.between(from, until);
    return { from: start, until: Math.min(until, start + dice.between(100, 3 * leaseMs)) };
  });
  const steps = level > 0 && dice.chance(0.25) ? 3 : 0;
  const clockSteps = Array.from({ length: asked ?? steps }, () => {
    return { at: dice.between(from, until), ms: dice.between(-2 * leaseMs, 2 * leaseMs) };
  });
  return { rates, outages, clockSteps, until, leaseMs };
}

/** Makes the clock of the store step when the plan says so. */
export function stepClock(world: World, plan: FaultPlan, clock: StoreClock, scribe: Scribe): void {
  for (const { at, ms } of plan.clockSteps) {
    world.later(at - world.now, () => {
      if (ms > plan.leaseMs) clock.step = { at: world.now, from: clock.now() };
      clock.ahead += ms;
      if (ms < 0) scribe.write("test", "mark", "ok", { answer: "clock_back" });
    });
  }
}

/** What goes wrong with a call that is made now; null for nothing. */
export function rollFault(plan: FaultPlan, dice: Dice, verb: Verb, now: number): Fault | null {
  if (now >= plan.until) return null;
  if (isOut(plan, now)) return "error-before";
  let roll = dice.random();
  if (LOOKS.has(verb)) roll /= LOOK_SHARE;
  for (const kind of KINDS) {
    roll -= plan.rates[kind];
    if (roll < 0) return kind;
  }
  return null;
}

/** True while the store answers nobody. */
export function isOut(plan: FaultPlan, now: number): boolean {
  return now < plan.until && plan.outages.some((outage) => outage.from <= now && now < outage.until);
}
