// What a handler answered, as plain data: JSON with an ETag, text, or a stream; and the headers that every answer has. A
// server of Node writes it as it is; for others it becomes a Response.
import { createHash } from "node:crypto";
import { didYouMean } from "../core/options.ts";
import { jsonText } from "../operate/json-form.ts";
import { HttpReply } from "./call.ts";
import { HttpError } from "./http-error.ts";
import { isText, type Route } from "./route.ts";
import { PREFIX, ROUTES } from "./routes.ts";

/** An answer, before it is a Response. */
export interface PlainAnswer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: string | Uint8Array | ReadableStream<Uint8Array> | null;
}

const JSON_TYPE = "application/json";

/** The answer to a call. */
export function answerFrom(answer: object, route: Route, request: Request): PlainAnswer {
  const reply = answer instanceof HttpReply ? answer : new HttpReply(answer, { status: route.status ?? 200 });
  const { body, status } = reply;
  const media = isText(route.answer) ? route.answer.text : JSON_TYPE;
  const headers: Record<string, string> = { "content-type": media, "cache-control": "no-store", ...reply.headers };
  if (body === null || typeof body === "string" || body instanceof ReadableStream) return { status, headers, body };
  const text = jsonText(body);
  if (route.method !== "GET") return { status, headers, body: text };
  // With `no-cache` the browser asks each time, and the answer is short where nothing has changed.
  headers["cache-control"] = "private, no-cache";
  const etag = `W/"${createHash("sha1").update(text).digest("base64url")}"`;
  headers["etag"] = etag;
  if (request.headers.get("if-none-match") === etag) return { status: 304, headers, body: null };
  return { status, headers, body: text };
}

/** The headers that every answer has. */
export function secured({ status, headers, body }: PlainAnswer, requestId: string): PlainAnswer {
  headers["x-request-id"] = requestId;
  headers["x-content-type-options"] = "nosniff";
  headers["referrer-policy"] = "no-referrer";
  headers["content-security-policy"] ??= "default-src 'none'; frame-ancestors 'none'";
  return { status, headers, body };
}

/** The answer without its body, for HEAD. */
export function withoutBody({ status, headers, body }: PlainAnswer): PlainAnswer {
  if (body instanceof ReadableStream) void body.cancel().catch(() => undefined);
  return { status, headers, body: null };
}

/** The answer for servers that take a Response. */
export function responseOf({ status, headers, body }: PlainAnswer): Response {
  return new Response(body as string | ReadableStream | null, { status, headers });
}

/** The error for a path without a route, or a method that the path does not have. */
export function notFound(path: string | null, method: string): HttpError {
  const inside = path?.startsWith(PREFIX) ? path.slice(PREFIX.length) : null;
  const methods = inside === null ? [] : ROUTES.flatMap((route) => (isPath(route.path, inside) ? [route.method] : []));
  if (methods.length > 0) {
    const allow = [...new Set(methods)].join(", ");
    return new HttpError(
      "method_not_allowed",
      `method: expected ${allow}; got ${method.slice(0, 20)}; use one of these`,
      {
        headers: { allow },
      },
    );
  }
  const near =
    inside === null
      ? ""
      : didYouMean(
          inside,
          ROUTES.map((route) => route.path),
        );
  const hint = near === "" ? `The routes are in ${PREFIX}/openapi.json.` : near;
  return new HttpError("not_found", "There is no such path.", { hint });
}

function isPath(pattern: string, path: string): boolean {
  const [own, given] = [pattern.split("/"), path.split("/")];
  return own.length === given.length && own.every((part, at) => part.startsWith("{") || part === given[at]);
}
