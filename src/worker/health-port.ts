// A port for the probes of an orchestrator and for monitors: `/live` while the event loop turns and the worker need not be
// replaced, `/ready` while it is in contact with the store and takes work, `/metrics` with the counters of this process.
// The probes show no details and need no secret; metrics need one on an address that other machines reach.
import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { RedriveError } from "../core/errors.ts";
import { checkInteger } from "../core/new-job.ts";
import type { Log } from "../system/log.ts";

/** An answer to a monitor. */
export interface MetricsAnswer {
  readonly mediaType: string;
  readonly text: string;
}

/** Where to listen and what to report. */
export interface HealthPortOptions {
  /** 0 lets the system choose one. */
  readonly port: number;
  /** Default 127.0.0.1. */
  readonly host?: string | undefined;
  /** The secret for `/metrics`; default none. */
  readonly metricsToken?: string | undefined;
  readonly isLive?: () => boolean;
  readonly isReady?: () => boolean;
  /** Reads the metrics in the form that the `Accept` header asks for; absent where there are none. */
  readonly metrics?: (accept: string | undefined) => MetricsAnswer | Promise<MetricsAnswer>;
  /** True where the process lives for this port; else the port does not keep it alive. */
  readonly isMain?: boolean;
  readonly log: Log;
}

/** An open port. */
export interface HealthPort {
  readonly port: number;
  close(): Promise<void>;
}

const PLAIN = { "content-type": "text/plain", "cache-control": "no-store", connection: "close" } as const;

/** True for an address that only this machine reaches. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Opens the port. */
export async function serveHealth(options: HealthPortOptions): Promise<HealthPort> {
  const { port, host = "127.0.0.1", isLive, isReady, log } = options;
  checkInteger("health.port", port, 0, 65_535);
  const probes = new Map<string, () => boolean>();
  if (isLive) probes.set("/live", isLive);
  if (isReady) probes.set("/ready", isReady);
  const metrics = servedMetrics(options, host);
  const paths = [...probes.keys(), ...(metrics ? ["/metrics"] : [])].join(" or ");
  const server = createServer((request, response) => {
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    const answer = (status: number, text: string, headers: Readonly<Record<string, string>> = {}): void => {
      response.writeHead(status, { ...PLAIN, ...headers });
      response.end(text);
    };
    if (path === "/metrics" && metrics) return void metrics(request, answer);
    const probe = probes.get(path);
    if (probe === undefined) return answer(404, `not found: ${paths}\n`);
    answer(probe() ? 200 : 503, probe() ? "ok\n" : "no\n");
  });
  server.requestTimeout = 10_000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) => {
      const message = `The health port ${host}:${port} cannot be opened: ${cause.message}. Choose another one.`;
      reject(new RedriveError("invalid_argument", message, { cause }));
    });
    server.listen(port, host, resolve);
  });
  if (options.isMain !== true) server.unref();
  if (options.metrics && !metrics)
    log.warn(
      { host },
      "/metrics is not served: other machines reach this address, and there is no secret; name a file that has one with --metrics-token-file (health.metricsToken in a program)",
    );
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

type Answer = (status: number, text: string, headers?: Readonly<Record<string, string>>) => void;

/** Answers requests for metrics; null where they are not served. */
function servedMetrics(
  { metrics, metricsToken, log }: HealthPortOptions,
  host: string,
): ((request: IncomingMessage, answer: Answer) => Promise<void>) | null {
  if (!metrics || (metricsToken === undefined && !isLoopback(host))) return null;
  return async ({ method, headers }, answer) => {
    if (method !== "GET" && method !== "HEAD") return answer(405, "expected GET\n", { allow: "GET, HEAD" });
    if (metricsToken !== undefined && !isBearer(headers.authorization, metricsToken))
      return answer(401, "expected the header Authorization: Bearer TOKEN\n", { "www-authenticate": "Bearer" });
    try {
      const { mediaType, text } = await metrics(headers.accept);
      answer(200, method === "HEAD" ? "" : text, { "content-type": mediaType });
    } catch (error) {
      log.warn({ error: error instanceof Error ? error.message : String(error) }, "the metrics could not be read");
      answer(503, "the metrics could not be read; the log says why\n");
    }
  };
}

/** Compared as digests, which takes as long whatever the header says. */
function isBearer(header: string | undefined, token: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(header ?? ""), digest(`Bearer ${token}`));
}
