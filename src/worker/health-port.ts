// A port for the probes of an orchestrator: `/live` while the event loop turns and the worker need not be replaced,
// `/ready` while it is in contact with the store and takes work. It shows no details, so it needs no secret.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { RedriveError } from "../core/errors.ts";
import { checkInteger } from "../core/new-job.ts";

/** Where to listen and what to report. */
export interface HealthOptions {
  /** 0 lets the system choose one. */
  readonly port: number;
  /** Default 127.0.0.1. */
  readonly host?: string | undefined;
  readonly isLive: () => boolean;
  readonly isReady: () => boolean;
}

/** An open port. */
export interface HealthPort {
  readonly port: number;
  close(): Promise<void>;
}

/** Opens the port. */
export async function serveHealth(options: HealthOptions): Promise<HealthPort> {
  const { port, host = "127.0.0.1", isLive, isReady } = options;
  checkInteger("health.port", port, 0, 65_535);
  const probes = new Map([
    ["/live", isLive],
    ["/ready", isReady],
  ]);
  const server = createServer((request, response) => {
    const probe = probes.get((request.url ?? "").split("?", 1)[0] ?? "");
    const status = probe === undefined ? 404 : probe() ? 200 : 503;
    response.writeHead(status, { "content-type": "text/plain", "cache-control": "no-store", connection: "close" });
    response.end(`${status === 200 ? "ok" : status === 404 ? "not found: /live or /ready" : "no"}\n`);
  });
  server.requestTimeout = 10_000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) => {
      const message = `The health port ${host}:${port} cannot be opened: ${cause.message}. Choose another one.`;
      reject(new RedriveError("invalid_argument", message, { cause }));
    });
    server.listen(port, host, resolve);
  });
  server.unref();
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        // A probe that keeps its connection open must not keep the worker alive.
        server.closeAllConnections();
      }),
  };
}
