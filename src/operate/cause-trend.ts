// How the counts of a cause, or of job types, went over time.
import { CAUSE_COUNTS, type CauseCounts, FLOW_COUNTS, type FlowCounts } from "../core/flow.ts";
import type { Store, TrendQuery } from "../store/store.ts";

/** Counts of each step of a span of time, the oldest first; steps without any have zeros. */
export type Trend<Counts> = readonly ({ readonly at: number } & Counts)[];

/** The counts of a cause over time. */
export function causeTrend(
  store: Pick<Store, "trend">,
  query: TrendQuery & { readonly fingerprint: string },
): Promise<Trend<CauseCounts>> {
  return filled(store, query, CAUSE_COUNTS) as Promise<Trend<CauseCounts>>;
}

/** The counts of a type, or of all types, over time. */
export function flowTrend(
  store: Pick<Store, "trend">,
  query: Omit<TrendQuery, "fingerprint">,
): Promise<Trend<FlowCounts>> {
  return filled(store, query, FLOW_COUNTS) as Promise<Trend<FlowCounts>>;
}

async function filled(
  store: Pick<Store, "trend">,
  query: TrendQuery,
  names: readonly string[],
): Promise<readonly { readonly at: number }[]> {
  const { from, until, stepMs } = query;
  const found = new Map((await store.trend(query)).map(({ at, counts }) => [at, counts]));
  const none = Object.fromEntries(names.map((name) => [name, 0]));
  const steps: { readonly at: number }[] = [];
  for (let at = from - (from % stepMs); at < until; at += stepMs) steps.push({ at, ...(found.get(at) ?? none) });
  return steps;
}
