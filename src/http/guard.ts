// What a request must bring before anything is done: a known Host, the origin of the page itself where it comes without an
// Authorization header, and a body in a form that no plain web form can send.
import { HttpError } from "./http-error.ts";
import { isText, type Route } from "./route.ts";

/** True for a media type; parameters such as the charset do not count. */
function isMedia(header: string | null, media: string): boolean {
  return (header ?? "").split(";", 1)[0]?.trim().toLowerCase() === media;
}

/** Refuses a request for another host: a page of another name may have been pointed at this address. */
export function checkHost(request: Request, hosts: readonly string[] | null): void {
  if (hosts === null) return;
  const host = hostOf(request);
  if (hosts.includes(host) || hosts.includes(nameOf(host))) return;
  throw new HttpError("misdirected_request", "Host: expected a name of this server; got another", {
    hint: "Add it with --allow-host, or to `hosts`.",
  });
}

function hostOf(request: Request): string {
  return (request.headers.get("host") ?? new URL(request.url).host).toLowerCase();
}

/** The host without its port. */
function nameOf(host: string): string {
  return host.replace(/:\d+$/, "");
}

/**
 * Refuses a write that a page of another site may have caused. Browsers send `Sec-Fetch-Site`; on plain HTTP to any name
 * but loopback they send only `Origin`. A request with an Authorization header was made by a program: no page can set it
 * for another site.
 */
export function checkOrigin(request: Request): void {
  const { headers } = request;
  if (request.method === "GET" || request.method === "HEAD" || headers.has("authorization")) return;
  const site = headers.get("sec-fetch-site");
  if (site === "same-origin") return;
  const origin = headers.get("origin");
  if (site === null && origin !== null && originHost(origin) === hostOf(request)) return;
  throw new HttpError("forbidden", "The request may come from a page of another site, so nothing was changed.", {
    hint: "Programs send `Authorization: Bearer TOKEN`; pages of this server send their Origin.",
    details: { missing: "same-origin" },
  });
}

function originHost(origin: string): string | null {
  try {
    return new URL(origin).host.toLowerCase();
  } catch {
    return null;
  }
}

/** Refuses a body that is not in a form that the route takes; a write without an Authorization header always needs it. */
export function checkMedia(request: Request, { method, body, accepts = [] }: Route): void {
  if (method === "GET") return;
  const header = request.headers.get("content-type");
  const isMade = request.headers.has("authorization");
  if (isMade && (body === null || (header === null && !hasBody(request)))) return;
  if (isMedia(header, "application/json") || accepts.some((media) => isMedia(header, media))) return;
  throw new HttpError(
    "unsupported_media_type",
    `content-type: expected ${["application/json", ...accepts].join(" or ")}; got ${(header ?? "none").slice(0, 60)}; set it`,
  );
}

/** Asked only where it matters: behind some servers the question makes the body a stream. */
function hasBody(request: Request): boolean {
  return request.headers.get("content-length") !== "0" && request.body !== null;
}

/** Refuses a request that takes no form in which the route answers. */
export function checkAccept(request: Request, { answer, accepts = [] }: Route): void {
  const header = request.headers.get("accept");
  if (header === null || header === "*/*") return;
  const forms = [...(isText(answer) ? [answer.text, ...(answer.also ?? [])] : ["application/json"]), ...accepts];
  const wanted = header.split(",").flatMap((part) => {
    const [media = "", ...parameters] = part.split(";").map((each) => each.trim().toLowerCase());
    return media === "" || parameters.some((each) => /^q=0(?:\.0*)?$/.test(each)) ? [] : [media];
  });
  const isGood = wanted.some((media) =>
    forms.some((form) => media === "*/*" || media === form || media === `${form.split("/", 1)[0]}/*`),
  );
  if (isGood || header.trim() === "") return;
  throw new HttpError(
    "not_acceptable",
    `accept: expected ${forms.join(" or ")}; got ${header.slice(0, 80)}; accept one of these`,
  );
}

/** True where the body is lines of JSON. */
export function isLines(request: Request): boolean {
  return isMedia(request.headers.get("content-type"), "application/x-ndjson");
}
