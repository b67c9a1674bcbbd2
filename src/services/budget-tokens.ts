// The tokens of one retry budget that a worker has withdrawn. It asks for few, then for more if it used them, and they
// expire soon: the fleet's savings must not be held by every worker.
import { type BudgetSettings, budgetFrom, deposit, initialBudget, putBack, withdraw } from "../core/budget.ts";

/** What a worker holds of a retry budget. */
export interface BudgetTokens {
  tokens: number;
  /** How many there were after the last withdrawal. */
  granted: number;
  /** Until when they may be spent. */
  goodUntil: number;
  /** Successes not yet deposited. */
  successes: number;
  askedAt: number;
}

/** How often tokens are withdrawn, and how many at first. */
const ASK_MS = 250;
const ASK_LEAST = 2;
/** How long they are valid. A worker that asks again within as long after that returns the rest; later it is lost. */
const GOOD_MS = 1_000;

/** No tokens. */
export function noTokens(): BudgetTokens {
  return { tokens: 0, granted: 0, goodUntil: 0, successes: 0, askedAt: 0 };
}

/** Retries that can be paid now. */
export function tokensOf({ tokens, goodUntil }: BudgetTokens, now: number): number {
  return goodUntil > now ? Math.max(0, tokens) : 0;
}

/** When tokens may be withdrawn again; null while there are some. */
export function fillsAt(own: BudgetTokens, now: number): number | null {
  return tokensOf(own, now) > 0 ? null : own.askedAt + ASK_MS;
}

/** The budget after a withdrawal, and a function that takes the tokens once that is written. */
export function filled(
  own: BudgetTokens,
  text: string | null,
  settings: BudgetSettings,
  now: number,
): { readonly value: string; readonly take: () => void } {
  const { successes, tokens } = own;
  const left = Math.max(0, tokens);
  const before = (text === null ? null : budgetFrom(text)) ?? initialBudget(now);
  const whole = own.goodUntil + GOOD_MS > now ? putBack(before, left, settings, now) : before;
  const want = Math.max(ASK_LEAST, 2 * (own.granted - left));
  const { granted, budget } = withdraw(deposit(whole, successes, settings, now), want, settings, now);
  own.askedAt = now;
  const take = (): void => {
    own.successes -= successes;
    own.tokens += granted - left;
    own.granted = own.tokens;
    own.goodUntil = now + GOOD_MS;
  };
  return { value: JSON.stringify(budget), take };
}
