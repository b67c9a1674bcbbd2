// The handler for servers of Node: http, Express, Fastify, Koa. It takes the path as the client sent it, also below a
// prefix, and a body that another middleware has read.
import type { IncomingMessage, ServerResponse } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { RedriveError } from "../core/errors.ts";
import { HttpError, errorAnswer } from "./http-error.ts";
import type { HttpHandler } from "./handler.ts";

/** A request that Express or another framework may have changed. */
export interface NodeRequest extends IncomingMessage {
  /** The path before a prefix was cut off. */
  readonly originalUrl?: string;
  readonly baseUrl?: string;
  /** The body, where a parser has read it. */
  readonly body?: unknown;
}

/** A listener for `http.createServer` and for frameworks with middleware of the same form. */
export type NodeListener = (request: NodeRequest, response: ServerResponse, next?: unknown) => void;

/** Makes a listener of a handler. `prefix` is cut off the path; Express says it by itself. */
export function toNode(handler: HttpHandler, { prefix }: { readonly prefix?: string } = {}): NodeListener {
  checkPrefix(prefix);
  const listener = getRequestListener(
    async (raw, env) => {
      const incoming = env.incoming as NodeRequest;
      const asked = isRead(incoming) ? withBody(raw, incoming) : raw;
      const answer =
        asked === null
          ? errorAnswer(bytesLost(), "")
          : await handler.plain(asked, { address: incoming.socket?.remoteAddress ?? null });
      const { status, headers, body } = answer;
      if (body instanceof ReadableStream) return new Response(body, { status, headers });
      // Written here, because a Response would cost more than the rest of the work on most requests.
      env.outgoing.writeHead(status, headers);
      if (body === null) env.outgoing.end();
      else env.outgoing.end(body);
      return RESPONSE_ALREADY_SENT;
    },
    { overrideGlobalObjects: false },
  );
  return (request, response) => {
    const cut = prefix ?? request.baseUrl ?? "";
    const path = request.originalUrl ?? request.url ?? "/";
    // Relative addresses of the page need the slash.
    if (cut !== "" && path.split("?", 1)[0] === cut) {
      response.writeHead(308, { location: `${cut.slice(cut.lastIndexOf("/") + 1)}/` });
      response.end();
      return;
    }
    // What was cut off is the base path of the handler, or stands before it.
    if (cut !== "" && path.startsWith(`${cut}/`)) {
      const inside = path.slice(cut.length);
      request.url = cut.endsWith(handler.basePath) ? `${handler.basePath}${inside}` : inside;
    } else request.url = path;
    void listener(request, response);
  };
}

function checkPrefix(prefix: string | undefined): void {
  if (prefix === undefined || /^(?:\/[^/?#\s]+)*$/.test(prefix)) return;
  const message = "prefix: expected a path such as /redrive without a slash at its end; got another text; correct it";
  throw new RedriveError("config_refused", message);
}

/** True where a parser of the application has read the body. */
function isRead(incoming: NodeRequest): boolean {
  return incoming.readableEnded || (incoming.body !== undefined && incoming.complete);
}

/** The request with the body that was read, as text; null where its bytes matter and are lost. */
function withBody(raw: Request, { body, method, headers: sent, url = "" }: NodeRequest): Request | null {
  const { headers, signal } = raw;
  const init = { method: raw.method, headers, signal };
  if (method === "GET" || method === "HEAD") return new Request(raw.url, init);
  if (body === undefined) {
    const hadOne = sent["transfer-encoding"] !== undefined || Number(sent["content-length"] ?? 0) > 0;
    return hadOne ? null : new Request(raw.url, init);
  }
  const isText = typeof body === "string" || body instanceof Uint8Array;
  const path = url.split("?", 1)[0] ?? "";
  const isOfBytes = path.endsWith("/payload") || (method === "POST" && path.endsWith("/jobs"));
  if (!isText && isOfBytes && Object.keys(body as object).length > 0) return null;
  const text = isText
    ? (body as string)
    : Object.keys((body ?? {}) as object).length === 0
      ? "{}"
      : JSON.stringify(body);
  const own = new Headers(headers);
  own.delete("content-length");
  if (own.get("content-type") === null) own.set("content-type", "application/json");
  return new Request(raw.url, { ...init, headers: own, body: text });
}

function bytesLost(): HttpError {
  return new HttpError(
    "unsupported_media_type",
    "A parser of this server has read the body already, so that the bytes of the payload are lost.",
    { hint: "Mount the handler before express.json()." },
  );
}

/** What the plugin needs of Fastify. */
interface FastifyLike {
  removeAllContentTypeParsers(): void;
  addContentTypeParser(
    type: string,
    parse: (request: unknown, payload: unknown, done: (error: null) => void) => void,
  ): void;
  all(
    path: string,
    handler: (request: { raw: NodeRequest }, reply: { hijack(): void; raw: ServerResponse }) => void,
  ): void;
  readonly prefix: string;
}

/** A plugin for Fastify: `await app.register(fastifyRedrive, { handler, prefix: "/redrive" })`. */
export async function fastifyRedrive(app: unknown, { handler }: { readonly handler: HttpHandler }): Promise<void> {
  const scope = app as FastifyLike;
  // The parsers of the scope would read the body before the handler does.
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
  const listener = toNode(handler, { prefix: scope.prefix });
  const answer = (request: { raw: NodeRequest }, reply: { hijack(): void; raw: ServerResponse }): void => {
    reply.hijack();
    listener(request.raw, reply.raw);
  };
  scope.all("/", answer);
  scope.all("/*", answer);
}

/** A middleware for Koa: `app.use(koaRedrive(handler, { prefix: "/redrive" }))`. */
export function koaRedrive(handler: HttpHandler, { prefix = "" }: { readonly prefix?: string } = {}) {
  const listener = toNode(handler, { prefix });
  return async (
    context: { readonly path: string; respond?: boolean; readonly req: NodeRequest; readonly res: ServerResponse },
    next: () => Promise<unknown>,
  ): Promise<void> => {
    if (prefix !== "" && context.path !== prefix && !context.path.startsWith(`${prefix}/`)) return void (await next());
    context.respond = false;
    listener(context.req, context.res);
  };
}
