// The tokens of one retry budget that a worker has withdrawn. It asks for little, and for more where it has used that, and
// they are good for a moment only: what the fleet has saved up must not lie in every worker once more.
import { type BudgetSettings, budgetFrom, deposit, initialBudget, putBack, withdraw } from "../core/budget.ts";

/** What a worker holds of a retry budget. */
export interface BudgetTokens {
  tokens: number;
  /** How many there were when it was filled. */
  granted: number;
  /** Until when they may be spent. */
  goodUntil: number;
  /** Successes not yet deposited. */
  successes: number;
  askedAt: number;
}

/** How often tokens are asked for, and how many at first. */
const ASK_MS = 250;
const ASK_LEAST = 2;
/** How long they are good; who asks again within as long after that gives back what is left, later it is lost. */
const GOOD_MS = 1_000;

/** A purse with nothing in it. */
export function noTokens(): BudgetTokens {
  return { tokens: 0, granted: 0, goodUntil: 0, successes: 0, askedAt: 0 };
}

/** Retries that can be paid now. */
export function tokensOf({ tokens, goodUntil }: BudgetTokens, now: number): number {
  return goodUntil > now ? Math.max(0, tokens) : 0;
}

/** When an empty purse may be filled again; null for one that is not empty. */
export function fillsAt(purse: BudgetTokens, now: number): number | null {
  return tokensOf(purse, now) > 0 ? null : purse.askedAt + ASK_MS;
}

/** What becomes of the budget when a purse is filled from it, and the way to take the tokens once that is written. */
export function filled(
  purse: BudgetTokens,
  text: string | null,
  settings: BudgetSettings,
  now: number,
): { readonly value: string; readonly take: () => void } {
  const { successes, tokens } = purse;
  const left = Math.max(0, tokens);
  const before = (text === null ? null : budgetFrom(text)) ?? initialBudget(now);
  const whole = purse.goodUntil + GOOD_MS > now ? putBack(before, left, settings, now) : before;
  const want = Math.max(ASK_LEAST, 2 * (purse.granted - left));
  const { granted, budget } = withdraw(deposit(whole, successes, settings, now), want, settings, now);
  purse.askedAt = now;
  const take = (): void => {
    purse.successes -= successes;
    purse.tokens += granted - left;
    purse.granted = purse.tokens;
    purse.goodUntil = now + GOOD_MS;
  };
  return { value: JSON.stringify(budget), take };
}
