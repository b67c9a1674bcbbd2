// HTTP statuses in every form in which libraries throw them, and the failure class of each.

import { type Carried, messageOf, read, readMembers, readPath, readText } from "./error-shape.ts";
import type { FailureClass } from "./job.ts";
import { headerOf, rateLimitSpent } from "./retry-after.ts";

/**
 * Fetch responses, axios, got, undici, octokit, AWS SDK v3, boom, Elasticsearch, Supabase functions, Shopify, Cloudinary,
 * Telegram, gaxios (whose `code` is a status, at times as text), JSON:API.
 */
const STATUS_HOLDERS = [
  ["response", "status"],
  ["response", "statusCode"],
  ["status"],
  ["statusCode"],
  ["$metadata", "httpStatusCode"],
  ["$response", "statusCode"],
  ["output", "statusCode"],
  ["meta", "statusCode"],
  ["context", "status"],
  ["response", "code"],
  ["httpStatus"],
  ["httpStatusCode"],
  ["http_code"],
  ["error_code"],
  ["code"],
];
const QUOTA_REASON =
  /^(?:(?:user|sharing)?rate_?limit_?exceeded|quota_?exceeded|(?:daily|concurrent)limitexceeded|resource_exhausted)$/i;

/** The HTTP error status (400 to 599) an error or response carries, if any; one that carries no more may have it as code. */
export function statusOf(error: unknown, carries: Carried = "more"): number | undefined {
  if (carries !== "more") return asStatus(read(error, "code"));
  for (const path of STATUS_HOLDERS) {
    const status = asStatus(readPath(error, ...path));
    if (status !== undefined) return status;
  }
  // JSON:API writes the status of an error as text; members of an AggregateError have theirs as a number.
  const listed = readPath(error, "errors", 0, "status");
  return typeof listed === "string" ? asStatus(listed) : undefined;
}

function asStatus(value: unknown): number | undefined {
  const status = typeof value === "string" && /^\d{3}$/.test(value) ? Number(value) : value;
  return typeof status === "number" && Number.isInteger(status) && status >= 400 && status <= 599 ? status : undefined;
}

/** The class of a status; a 403 is a rate limit where the rest of the error says so (Google, GitHub). */
export function classOfStatus(status: number, error: unknown): FailureClass {
  if (status >= 500 || status === 425 || status === 499) return "transient";
  if (status === 429 || (status === 403 && saysRateLimit(error))) return "rate_limited";
  if (status === 401 || status === 403 || status === 407) return "authentication";
  if (status === 408) return "timeout";
  return status === 400 || status === 422 ? "validation" : "permanent";
}

function saysRateLimit(error: unknown): boolean {
  if (headerOf(error, "retry-after") !== undefined || rateLimitSpent(error)) return true;
  const body = readPath(error, "response", "data", "error");
  const reasons = [...readMembers(error, "errors"), ...readMembers(body, "errors")].map((item) => read(item, "reason"));
  const isQuota = (reason: unknown) => typeof reason === "string" && reason.length < 64 && QUOTA_REASON.test(reason);
  if (reasons.some(isQuota) || isQuota(readText(body, "status"))) return true;
  return /rate limit/i.test(messageOf(error).slice(0, 1024));
}
