// Visitors of a web page, who wait for their price and whose requests are worth no job: `retryable`, with the same breaker
// that the workers go by. While it is open they get the last known price at once, and the service is left alone.
import { setTimeout as sleep } from "node:timers/promises";
import { exponential, isRedriveError, type Redrive, retryable } from "redrive";
import { fetchPrice } from "./client.ts";

/** How visits ended. */
export interface Visits {
  started: number;
  /** Got a price from the service, and after how many retries in all. */
  answered: number;
  retries: number;
  /** Got the last known price, because the breaker was open. */
  fromCache: number;
  failed: number;
}

const EVERY_MS = 250;

/** Lets visitors come until the signal; resolves when the last one has an answer. */
export async function receiveVisitors(
  redrive: Redrive,
  address: string,
  visits: Visits,
  signal: AbortSignal,
): Promise<void> {
  const ask = retryable.withContext(
    (context, item: number) =>
      fetchPrice(address, { item, customer: "visitors", request: `visit-${item}` }, { from: "visitor", ...context }),
    {
      breaker: redrive.breaker("pricing"),
      maxAttempts: 3,
      timeout: "1500ms",
      deadline: "5s",
      backoff: exponential({ initial: "100ms", multiplier: 3 }),
      onRetry: () => void (visits.retries += 1),
    },
  );
  const open = new Set<Promise<void>>();
  for (let item = 1_000; !signal.aborted; item += 1) {
    visits.started += 1;
    const visit = ask(item).then(
      () => void (visits.answered += 1),
      (error: unknown) => void (isRedriveError(error, "breaker_open") ? (visits.fromCache += 1) : (visits.failed += 1)),
    );
    open.add(visit);
    void visit.then(() => open.delete(visit));
    await sleep(EVERY_MS);
  }
  await Promise.all(open);
}
