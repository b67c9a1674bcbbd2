// A service over HTTP with a clock of its own, which is down when a test says so.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** A call, by the service's own clock. */
export interface ServedCall {
  readonly at: number;
  readonly ok: boolean;
}

/** The service, and what was asked of it. */
export interface FlakyServer {
  readonly url: string;
  readonly calls: readonly ServedCall[];
  readonly state: { down: boolean };
}

/** Starts one that ends with the test. */
export async function startFlakyServer(): Promise<FlakyServer> {
  const calls: ServedCall[] = [];
  const state = { down: false };
  const server = createServer((_, response) => {
    calls.push({ at: performance.now(), ok: !state.down });
    response.writeHead(state.down ? 503 : 200).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, calls, state };
}
