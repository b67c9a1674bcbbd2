// The other side: a real HTTP service for prices, on loopback, with troubles that can be switched on. It keeps books of its
// own, by its own clock, which the client's books must agree with in the end.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** What is wrong with the service. */
export type Trouble = "none" | "busy" | "down";

/** One call, as the service saw it. */
export interface Call {
  /** When it came in, in milliseconds since the service was opened. */
  readonly at: number;
  readonly request: string;
  readonly customer: string;
  /** Whether a job or a visitor called, and for the how manieth time. */
  readonly from: string;
  readonly attempt: number;
  readonly status: number;
}

/** A service of prices. */
export interface PriceService {
  readonly url: string;
  readonly calls: readonly Call[];
  trouble: Trouble;
  /** Milliseconds since it was opened. */
  now(): number;
  /** Accepts the keys of a customer from now on, or no longer. */
  accept(customer: string, accepted: boolean): void;
  close(): Promise<void>;
}

/** Calls that the service allows in a second; above it says 429. */
export const QUOTA = 50;
/** What it asks for when it is busy. */
export const RETRY_AFTER_SECONDS = 1;
/** How long a slow answer takes. */
const SLOW_MS = 2_500;
const QUICK_MS = 30;
const MESSAGES: Readonly<Record<number, string>> = {
  401: "this key has expired",
  404: "no such item",
  429: "too many requests",
  503: "down for repairs",
};

/** The price of an item, so that anybody can check an answer. */
export function priceOf(item: number): number {
  return 100 + ((item * 37) % 900);
}

/** Opens the service on a free port. */
export async function openPriceService(): Promise<PriceService> {
  const startedMs = performance.now();
  const calls: Call[] = [];
  const refused = new Set<string>();
  const slowOnce = new Set<string>();
  const now = (): number => performance.now() - startedMs;
  const service = { trouble: "none" as Trouble };

  const statusOf = (customer: string, item: number): number => {
    if (service.trouble === "down") return 503;
    const lately = calls.filter(({ at }) => at > now() - 1_000).length;
    if (service.trouble === "busy" || lately >= QUOTA) return 429;
    if (refused.has(customer)) return 401;
    return item < 0 ? 404 : 200;
  };

  const server = createServer((request, response) => {
    response.on("error", () => undefined);
    const { item, customer, key, from, attempt } = readCall(request);
    const status = statusOf(customer, item);
    calls.push({ at: now(), request: key, customer, from, attempt, status });
    // Some items take long the first time they are asked for.
    const isSlow = status === 200 && item % 29 === 7 && !slowOnce.has(key);
    if (isSlow) slowOnce.add(key);
    void sleep(isSlow ? SLOW_MS : QUICK_MS).then(() => answer(response, status, item));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  return Object.assign(service, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    now,
    accept: (customer: string, accepted: boolean) => void (accepted ? refused.delete(customer) : refused.add(customer)),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}

function readCall({ url = "", headers }: IncomingMessage) {
  const text = (name: string): string => String(headers[name] ?? "");
  return {
    item: Number(/^\/prices\/(-?\d+)$/.exec(url)?.[1] ?? -1),
    customer: text("authorization").replace(/^Bearer key-of-/, ""),
    key: text("x-request"),
    from: text("x-from"),
    attempt: Number(text("x-attempt")),
  };
}

function answer(response: ServerResponse, status: number, item: number): void {
  if (response.destroyed) return;
  const headers = {
    "content-type": "application/json",
    ...(status === 429 && { "retry-after": String(RETRY_AFTER_SECONDS) }),
  };
  const body = status === 200 ? { price: priceOf(item) } : { error: MESSAGES[status] };
  response.writeHead(status, headers).end(JSON.stringify(body));
}
