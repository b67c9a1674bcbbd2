// The other side: a real HTTP service on loopback that knows customers and is flaky in every way that an API is. It keeps a
// journal of its own, by its own clock, which everybody else's books must agree with.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { companyOf, fateOf, numberOf, refusalsOf } from "./customers.ts";

/** One call, as the API saw it. */
export interface Call {
  /** When it came in, in milliseconds since the API was opened. */
  readonly at: number;
  readonly id: string;
  /** The how manieth try the caller said it was. */
  readonly attempt: number;
  readonly status: number;
}

/** The API. */
export interface EnrichmentApi {
  readonly url: string;
  readonly journal: readonly Call[];
  close(): Promise<void>;
}

/** What it asks for with a 429. */
export const RETRY_AFTER_SECONDS = 1;
const QUICK_MS = 15;
/** Longer than the job type waits. */
const SLOW_MS = 1_500;
const MESSAGES: Readonly<Record<number, string>> = {
  404: "no such customer",
  429: "too many requests",
  503: "try again later",
};

/** Opens the API on a free port. */
export async function openApi(): Promise<EnrichmentApi> {
  const startedMs = performance.now();
  const journal: Call[] = [];
  const tries = new Map<string, number>();

  const answerTo = (id: string, number: number): { status: number; afterMs: number } => {
    const before = tries.get(id) ?? 0;
    tries.set(id, before + 1);
    const fate = fateOf(number);
    if (fate === "unknown" || number < 0) return { status: 404, afterMs: QUICK_MS };
    if (fate === "cursed" || (fate === "flaky" && before < refusalsOf(number)))
      return { status: 503, afterMs: QUICK_MS };
    if (fate === "busy" && before === 0) return { status: 429, afterMs: QUICK_MS };
    return { status: 200, afterMs: fate === "slow" && before === 0 ? SLOW_MS : QUICK_MS };
  };

  const server = createServer(({ url = "", headers }, response) => {
    response.on("error", () => undefined);
    const number = numberOf(decodeURIComponent(url.replace("/people/", "")));
    const id = String(headers["x-record"]);
    const { status, afterMs } = answerTo(id, number);
    journal.push({ at: performance.now() - startedMs, id, attempt: Number(headers["x-attempt"]), status });
    void sleep(afterMs).then(() => answer(response, status, number));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    journal,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function answer(response: ServerResponse, status: number, number: number): void {
  if (response.destroyed) return;
  const headers = {
    "content-type": "application/json",
    ...(status === 429 && { "retry-after": String(RETRY_AFTER_SECONDS) }),
  };
  const body = status === 200 ? companyOf(number) : { error: MESSAGES[status] };
  response.writeHead(status, headers).end(JSON.stringify(body));
}
