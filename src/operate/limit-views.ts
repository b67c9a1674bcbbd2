// The limits of a fleet as shown to people: what workers are configured with, and what is left of it.
import { type Budget, type BudgetSettings, initialBudget, tokensIn } from "../core/budget.ts";
import { type RateBucket, type RateSettings, spreadOf, startsLeft } from "../core/rate.ts";
import type { Limits, NamedSettings } from "../core/service.ts";
import type { Cell, Store } from "../store/store.ts";
import { livingAmong, settingsFrom } from "../services/holding.ts";

/** The limits of one service, tenant or job type; the name `*` stands for all that are not named. */
export interface LimitView {
  /** What it limits. */
  readonly kind: "service" | "tenant" | "type";
  /** The name of the service, tenant or type; `*` for all that are not named. */
  readonly name: string;
  /**
   * Starts allowed for the whole fleet, when the next is allowed (`nextAt`; null for now), and how many are at once
   * (`left`); null for no limit.
   */
  readonly rate: (RateSettings & { readonly nextAt: number | null; readonly left: number }) | null;
  /** The retry budget, and the retries it allows now (`tokens`); null for none. */
  readonly budget: (BudgetSettings & { readonly tokens: number }) | null;
  /** The share of a tenant besides the others; null for services and types. */
  readonly weight: number | null;
}

/** Every configured limit, by kind and name. */
export async function readLimits(store: Pick<Store, "cells" | "workers">, limits: Limits): Promise<LimitView[]> {
  const kinds = ["settings", "rate", "budget"].map((kind) => ({ kind }));
  const [{ cells, now }, workers] = await Promise.all([store.cells(kinds), store.workers()]);
  const values = new Map(cells.map((cell) => [`${cell.kind} ${cell.name}`, cell]));
  return [...settingsFrom(cells, limits, livingAmong(workers, now)).said]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([key, said]) => viewsOf(key, said, values, now));
}

function viewsOf(key: string, said: NamedSettings, values: ReadonlyMap<string, Cell>, now: number): LimitView[] {
  const colon = key.indexOf(":");
  const [kind, name] = [key.slice(0, colon) as LimitView["kind"], key.slice(colon + 1)];
  const budget = "budget" in said ? said.budget : null;
  const weight = "weight" in said ? said.weight : null;
  // A service with only a breaker configured has no limit.
  if (!said.rate && !budget && weight === null) return [];
  const nextAt = valueOf<RateBucket>(values.get(`rate ${key}`))?.nextAt ?? 0;
  const tokens = budget
    ? tokensIn(valueOf<Budget>(values.get(`budget ${name}`)) ?? initialBudget(now), budget, now)
    : 0;
  return [
    {
      kind,
      name,
      rate: said.rate && {
        ...said.rate,
        nextAt: nextAt > now ? Math.ceil(nextAt) : null,
        left: startsLeft(nextAt, spreadOf(said.rate), now),
      },
      budget: budget && { ...budget, tokens: Math.floor(tokens) },
      weight,
    },
  ];
}

/** The value in a cell; null where there is none, or it cannot be read. */
export function valueOf<T>(cell: Cell | undefined): T | null {
  try {
    return cell ? (JSON.parse(cell.value) as T | null) : null;
  } catch {
    return null;
  }
}
