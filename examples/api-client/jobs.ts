// The job types, and what Redrive is told about the service they call. Everything about retries is here.
import { defineJob, exponential, type JobDefinition, type RedriveOptions } from "redrive";
import { fetchPrice, type PriceRequest } from "./client.ts";

/** Where everything of this example waits. */
export const QUEUE = "api-client";
/** Failures in a row that open the breaker. */
export const OPENS_AFTER = 5;
/** Probes that are let through at a time, and that must succeed. */
export const PROBES = 2;
/** How long the load takes to return. */
export const RAMP_MS = 3_000;
/** Calls of jobs in a second; the service allows a little more. */
export const PACE = 40;
/** Retries allowed: this share of successes, and so many a second whatever happens. */
export const BUDGET = { share: 0.2, floorPerSecond: 5 } as const;

/** How the service `pricing` is to be treated, by all workers together. */
export const SERVICES: NonNullable<RedriveOptions["services"]> = {
  pricing: {
    breaker: { failures: OPENS_AFTER, openFor: "700ms", probes: PROBES, closeAfter: PROBES },
    ramp: RAMP_MS,
    rateLimit: { limit: PACE },
    budget: BUDGET,
  },
};

/** Fetches a price; its attempts alone would not outlast the outage. */
export function refreshPrice(address: string): JobDefinition<PriceRequest, { price: number }> {
  return defineJob("refresh-price", {
    queue: QUEUE,
    service: "pricing",
    maxAttempts: 5,
    timeout: "1500ms",
    backoff: exponential({ initial: "200ms", multiplier: 2, jitter: "equal" }),
    run: async (input: PriceRequest, { attempt, signal }) => ({
      price: await fetchPrice(address, input, { from: "job", attempt, signal }),
    }),
  });
}

/** Work that needs no service: it must not notice the outage. */
export const countStock = defineJob("count-stock", {
  queue: QUEUE,
  run: ({ item }: { item: number }) => ({ left: item % 12 }),
});
