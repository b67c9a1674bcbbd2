// A retry budget as a plain value. Each retry costs a token; successes and a small floor per second add tokens. So a
// failing service is not also flooded with retries. A refused retry waits; it is not lost.

import { fieldsFrom, invalid, parseNumber, namesOf, parseOptions } from "./options.ts";

/** What is left of a budget, and when it was last counted. */
export interface Budget {
  readonly tokens: number;
  readonly countedAt: number;
}

/** Resolved settings of a budget. */
export interface BudgetSettings {
  readonly share: number;
  readonly floorPerSecond: number;
  readonly capacity: number;
}

/** A retry budget: how many retries a service gets. */
export interface BudgetOptions {
  /** Retries allowed per success; default 0.2, from 0 to 10. */
  readonly share?: number;
  /** Retries allowed each second in any case; default 10, from 0 to 1,000,000. */
  readonly floorPerSecond?: number;
  /** Retries that can be saved up; default 100, from 1 to 1,000,000. */
  readonly capacity?: number;
}

/** The default settings of a budget. */
export const BUDGET_DEFAULTS: BudgetSettings = Object.freeze({ share: 0.2, floorPerSecond: 10, capacity: 100 });
const FIELDS = namesOf<BudgetOptions>()(["share", "floorPerSecond", "capacity"]);

/** Complete settings from options; throws `invalid_argument` for a bad value. */
export function resolveBudget(options: BudgetOptions = {}, name = "budget"): BudgetSettings {
  const given = parseOptions(options, FIELDS, name);
  const number = (key: keyof BudgetSettings, min: number, max: number) =>
    parseNumber(given[key] ?? BUDGET_DEFAULTS[key], `${name}.${key}`, { min, max });
  const settings = {
    share: number("share", 0, 10),
    floorPerSecond: number("floorPerSecond", 0, 1_000_000),
    capacity: number("capacity", 1, 1_000_000),
  };
  if (settings.share + settings.floorPerSecond === 0)
    throw invalid(
      name,
      "a share or a floorPerSecond above 0",
      "0 for both",
      "raise one of them; without both no retry would ever run",
    );
  return Object.freeze(settings);
}

/** An empty budget; it starts to fill at `now`. */
export function initialBudget(now: number): Budget {
  return { tokens: 0, countedAt: now };
}

/** Reads a budget from a stored text; null for an invalid text. */
export function budgetFrom(text: string): Budget | null {
  const { tokens, countedAt } = fieldsFrom(text);
  return typeof tokens === "number" && typeof countedAt === "number" ? { tokens, countedAt } : null;
}

/** The budget after so many successes. */
export function deposit(budget: Budget, successes: number, settings: BudgetSettings, now: number): Budget {
  const filled = fill(budget, settings, now);
  return { ...filled, tokens: Math.min(settings.capacity, filled.tokens + Math.max(0, successes) * settings.share) };
}

/** The budget after unused tokens were returned. */
export function putBack(budget: Budget, tokens: number, settings: BudgetSettings, now: number): Budget {
  const filled = fill(budget, settings, now);
  return { ...filled, tokens: Math.min(settings.capacity, filled.tokens + tokens) };
}

/** Withdraws tokens for up to `n` retries; `granted` is how many there were. */
export function withdraw(
  budget: Budget,
  n: number,
  settings: BudgetSettings,
  now: number,
): { readonly granted: number; readonly budget: Budget } {
  const filled = fill(budget, settings, now);
  const granted = Math.max(0, Math.min(Math.floor(n), Math.floor(filled.tokens)));
  return { granted, budget: { ...filled, tokens: filled.tokens - granted } };
}

/** The tokens at a time. */
export function tokensIn(budget: Budget, settings: BudgetSettings, now: number): number {
  return fill(budget, settings, now).tokens;
}

/** Adds the floor for the time passed; after the clock stepped back it adds nothing until the clock catches up. */
function fill(budget: Budget, settings: BudgetSettings, now: number): Budget {
  const passedMs = Math.max(0, now - budget.countedAt);
  const tokens = Math.min(settings.capacity, budget.tokens + (passedMs / 1000) * settings.floorPerSecond);
  return { tokens, countedAt: Math.max(budget.countedAt, now) };
}
