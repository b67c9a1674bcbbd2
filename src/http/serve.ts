// A server of Node around the handler, with the limits that keep slow callers from holding it: ten seconds for the headers,
// thirty of silence for a connection.
import { createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { RedriveError } from "../core/errors.ts";
import type { HttpHandler } from "./handler.ts";
import { type NodeListener, toNode } from "./node.ts";

/** Where to listen. */
export interface ServeOptions {
  readonly port: number;
  readonly host: string;
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer } | null;
}

/** A server that listens. */
export interface HttpServer {
  readonly port: number;
  /** Takes no new requests, ends the event streams, and resolves when the open requests have ended. */
  close(): Promise<void>;
  /** Ends the open requests too. */
  abort(): void;
}

const HEADERS_MS = 10_000;
/** How often Node looks for headers that take too long. */
const CHECK_MS = 2_000;
const SILENCE_MS = 30_000;
const HEADER_BYTES = 16_384;

/** Listens. */
export async function serveHttp(handler: HttpHandler, { port, host, tls = null }: ServeOptions): Promise<HttpServer> {
  let isClosing = false;
  const answer = toNode(handler);
  const listener: NodeListener = (request, response) => {
    // Otherwise a caller that asks again and again over one connection would keep the server from ending.
    if (isClosing) response.setHeader("connection", "close");
    answer(request, response);
  };
  const limits = {
    maxHeaderSize: HEADER_BYTES,
    headersTimeout: HEADERS_MS,
    // Lines may come for hours; every other body has its own limit.
    requestTimeout: 0,
    connectionsCheckingInterval: CHECK_MS,
  };
  const server: Server = tls
    ? (createTlsServer({ ...limits, ...tls }, listener) as unknown as Server)
    : createServer(limits, listener);
  server.setTimeout(SILENCE_MS);
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) => {
      const message = `port: expected a free one; ${host}:${port} cannot be opened (${cause.message}); choose another`;
      reject(new RedriveError("invalid_argument", message, { cause }));
    });
    server.listen(port, host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        isClosing = true;
        server.close(() => resolve());
        handler.close();
        server.closeIdleConnections();
      }),
    abort: () => server.closeAllConnections(),
  };
}
