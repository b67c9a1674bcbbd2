// What a handler answered, as a response: JSON with an ETag, text, or a stream; and the headers that every response has.
import { createHash } from "node:crypto";
import { didYouMean } from "../core/options.ts";
import { jsonText } from "../operate/json-form.ts";
import { HttpReply } from "./call.ts";
import { HttpError } from "./http-error.ts";
import { isText, type Route } from "./route.ts";
import { PREFIX, ROUTES } from "./routes.ts";

const JSON_TYPE = "application/json";

/** The response of a call. */
export function answerFrom(answer: object, route: Route, request: Request): Response {
  const reply = answer instanceof HttpReply ? answer : new HttpReply(answer, { status: route.status ?? 200 });
  const { body, status } = reply;
  const media = isText(route.answer) ? route.answer.text : JSON_TYPE;
  const headers: Record<string, string> = { "content-type": media, "cache-control": "no-store", ...reply.headers };
  if (body === null) return new Response(null, { status, headers });
  if (typeof body === "string" || body instanceof ReadableStream) return new Response(body, { status, headers });
  const text = jsonText(body);
  if (route.method !== "GET") return new Response(text, { status, headers });
  // With `no-cache` the browser asks each time, and the answer is short where nothing has changed.
  headers["cache-control"] = "private, no-cache";
  const etag = `W/"${createHash("sha1").update(text).digest("base64url")}"`;
  headers["etag"] = etag;
  if (request.headers.get("if-none-match") === etag) return new Response(null, { status: 304, headers });
  return new Response(text, { status, headers });
}

/** The headers that every response has. */
export function secured(response: Response, requestId: string): Response {
  const { headers } = response;
  headers.set("x-request-id", requestId);
  headers.set("x-content-type-options", "nosniff");
  headers.set("referrer-policy", "no-referrer");
  if (!headers.has("content-security-policy"))
    headers.set("content-security-policy", "default-src 'none'; frame-ancestors 'none'");
  return response;
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
