// GraphQL and tRPC: an answer with status 200 that carries errors. Each error has a word in `extensions.code` (or
// `type`, GitHub) or an HTTP status; of several errors, a rate limit wins, then one that passes, then the first.

import { read, readMembers, readPath, readText } from "../error-shape.ts";
import { classOfStatus } from "../http-status.ts";
import type { FailureClass } from "../job.ts";
import { type Family, readNumber, table } from "./clue.ts";
import { classOfWord } from "./words.ts";

const CODES = table({
  // The client sends the whole query next time.
  transient: "PERSISTED_QUERY_NOT_FOUND INTERNAL_SERVER_ERROR DOWNSTREAM_SERVICE_ERROR",
  validation: "GRAPHQL_PARSE_FAILED GRAPHQL_VALIDATION_FAILED BAD_USER_INPUT MAX_COST_EXCEEDED parse-failed",
  permanent: "PERSISTED_QUERY_NOT_SUPPORTED METHOD_NOT_SUPPORTED NOT_FOUND CONFLICT PRECONDITION_FAILED",
  rate_limited: "THROTTLED RATE_LIMITED",
  authentication: "UNAUTHENTICATED FORBIDDEN UNAUTHORIZED ACCESS_DENIED access-denied permission-error invalid-jwt",
});
const FINAL: readonly FailureClass[] = ["permanent", "validation", "authentication"];

/** GraphQL: Apollo, graphql-request, urql, Shopify, GitHub. */
export const graphql: Family = ({ error }) => {
  const own = read(error, "extensions") === undefined ? undefined : classOfEntry(error);
  if (own !== undefined) return own;
  const holders = [error, read(error, "response"), read(error, "body"), readPath(error, "response", "data")];
  const lists = [
    ...holders.map((holder) => readMembers(holder, "errors")),
    readMembers(error, "graphQLErrors"),
    readMembers(readPath(error, "body", "errors"), "graphQLErrors"),
    readMembers({ thrown: error }, "thrown"),
  ];
  const entries = lists.find((list) => list.some((entry) => classOfEntry(entry) !== undefined));
  if (entries === undefined) return undefined;
  const found = entries.map((entry) => classOfEntry(entry) ?? "transient");
  return found.find((one) => one === "rate_limited") ?? found.find((one) => !FINAL.includes(one)) ?? found[0];
};

function classOfEntry(entry: unknown): FailureClass | undefined {
  const extensions = read(entry, "extensions");
  const code = readText(extensions, "code") ?? readText(extensions, "classification");
  const byCode = code === undefined ? undefined : (CODES.get(code) ?? classOfWord(code));
  if (byCode !== undefined) return byCode;
  const status =
    readNumber(read(extensions, "http"), "status") ??
    readNumber(extensions, "status") ??
    readNumber(extensions, "statusCode") ??
    readNumber(read(extensions, "response"), "statusCode") ??
    0;
  if (status >= 400 && status <= 599) return classOfStatus(status, entry);
  // GitHub's entries have `type` and `path`, and no extensions.
  const type = read(entry, "path") === undefined ? undefined : readText(entry, "type");
  return type === undefined || !/^[A-Z_]+$/.test(type) ? undefined : (CODES.get(type) ?? classOfWord(type));
}

/** tRPC: the client's error has the server's status in `data`; the server's own error a word in `code`. */
export const trpc: Family = ({ error, name, code }) => {
  const data = read(error, "data") ?? readPath(error, "shape", "data");
  const status = readNumber(data, "httpStatus") ?? 0;
  if (status >= 400 && status <= 599) return classOfStatus(status, error);
  if (name !== "TRPCError" && name !== "TRPCClientError") return undefined;
  return classOfWord(readText(data, "code") ?? code);
};
