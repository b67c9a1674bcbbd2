// Finds the class of a failure: by the user's rules first, then by the markers of this library, then by the families of
// known errors (classes/), statuses and codes of the error and its causes, then by words. An unknown error is transient.
// It only reads, never throws, and looks at a bounded part.

import { classBeside400, classByFamily, classByWords, wrappedIn } from "./classes/index.ts";
import {
  type ClassifyContext,
  type Judged,
  type MatchRule,
  type ClassifyRule,
  DEFAULT_SEVERITY,
  isRetryable,
  isClass,
} from "./classify-rules.ts";
import { type Clue, clueOf } from "./classes/clue.ts";
import { PermanentError, RetryAfterError } from "./errors.ts";
import { isA, linksOf, messageOf, nameOf, read, readMembers, readPath, readText } from "./error-shape.ts";
import { classOfStatus, statusOf } from "./http-status.ts";
import { type FailedOutcome, isFailed } from "./item-outcome.ts";
import { type FailureClass, type Severity } from "./job.ts";
import { retryAfterOf } from "./retry-after.ts";
import { ERROR_NAMES, GRPC_STATUSES, REDRIVE_CODES, SYSTEM_CODES } from "./system-codes.ts";

const MAX_INPUT = 8192;
/** The class and severity of anything thrown, with the delay it asked for and its code; never throws. */
export function classify(
  thrown: unknown,
  context: ClassifyContext,
  rules: readonly ClassifyRule[],
  now: number,
): Judged {
  const error = isFailed(thrown) ? thrown.error : thrown;
  const clues = linksOf(error).map(clueOf);
  const found = judge(clues, { context, rules, now, left: 32 }) ?? judged({ class: "transient" }, clues, now);
  return isFailed(thrown) ? judgedAs(found, thrown) : found;
}

interface Found {
  readonly class: FailureClass;
  readonly severity?: Severity | undefined;
  readonly code?: string | undefined;
}

interface Inquiry {
  readonly context: ClassifyContext;
  readonly rules: readonly ClassifyRule[];
  readonly now: number;
  /** Errors that may still be looked at, over all nested aggregates. */
  left: number;
}

/** The judgement of an error and its causes, outermost first. */
function judge(clues: readonly Clue[], inquiry: Inquiry): Judged | undefined {
  const ruled = byRules(clues, inquiry);
  if (ruled) return judged(ruled, clues, inquiry.now);
  for (const clue of clues) {
    if (inquiry.left-- <= 0) return undefined;
    const found = recognise(clue);
    if (found) return judged(found, clues, inquiry.now);
    const members = nameOf(clue.error).endsWith("AggregateError") ? byMembers(clue.error, inquiry) : undefined;
    if (members) return members;
  }
  const wrapped = wrappedIn(clues).map(clueOf);
  const found = first(wrapped, recognise) ?? first(clues, byWords) ?? first(wrapped, byWords);
  return found && judged(found, clues, inquiry.now);
}

function first<T, Answer>(from: readonly T[], ask: (one: T) => Answer | undefined): Answer | undefined {
  for (const one of from) {
    const found = ask(one);
    if (found !== undefined) return found;
  }
  return undefined;
}

function byWords(clue: Clue): Found | undefined {
  const found = classByWords(clue);
  return found && { class: found, code: codeOf(clue) };
}

function judged(found: Found, clues: readonly Clue[], now: number): Judged {
  const code = found.code ?? first(clues, codeOf);
  const retryAfterMs = isRetryable(found.class) ? first(clues, (clue) => waitOf(clue, now)) : undefined;
  return {
    class: found.class,
    severity: found.severity ?? DEFAULT_SEVERITY[found.class],
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(code === undefined ? {} : { code }),
  };
}

function byRules(clues: readonly Clue[], { context, rules }: Inquiry): Found | undefined {
  for (const rule of rules) {
    if (typeof rule !== "function") {
      if (clues.some(({ error }) => matches(rule, error, context)))
        return { class: rule.class, severity: rule.severity };
      continue;
    }
    try {
      const found = rule(clues[0]?.error, context);
      if (isClass(found)) return { class: found };
    } catch {
      // A classifier that throws has no opinion; the next rule must still judge the failure.
    }
  }
  return undefined;
}

function matches(rule: MatchRule, link: unknown, context: ClassifyContext): boolean {
  const fits = (pattern: string | number | undefined, text: () => string | number | null | undefined) =>
    pattern === undefined || glob(String(pattern), String(text() ?? "").slice(0, MAX_INPUT));
  return (
    fits(rule.type, () => context.type) &&
    fits(rule.service, () => context.service) &&
    fits(rule.tenant, () => context.tenant) &&
    fits(rule.name, () => nameOf(link)) &&
    fits(rule.code, () => codeText(read(link, "code"))) &&
    fits(rule.status, () => statusOf(link)) &&
    fits(rule.message === undefined ? undefined : `*${rule.message}*`, () => messageOf(link))
  );
}

/** Whole-text match with `*` for any text: each literal part is searched once, so time is linear in practice. */
function glob(pattern: string, text: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return text === first;
  if (!text.startsWith(first)) return false;
  let position = first.length;
  for (const part of rest) {
    const at = text.indexOf(part, position);
    if (at < 0) return false;
    position = at + part.length;
  }
  return text.length - last.length >= position && text.endsWith(last);
}

/** The judgement of a failure for which the handler itself said whether to retry, and after which delay. */
function judgedAs(judged: Judged, said: FailedOutcome): Judged {
  const { status } = said;
  const agreed = isRetryable(judged.class) === (status === "transient");
  const answer = agreed ? judged : { ...judged, class: status, severity: DEFAULT_SEVERITY[status] };
  return status === "permanent" || said.delayMs === null ? answer : { ...answer, delayMs: said.delayMs };
}

/** The wait that the error asks for. Headers and fields of other kinds are in errors that carry more. */
function waitOf({ error, carries }: Clue, now: number): number | undefined {
  return carries === "more" ? retryAfterOf(error, now) : undefined;
}

/** One error by itself, without its causes. */
function recognise(clue: Clue): Found | undefined {
  const { error: link, carries } = clue;
  if (isFailed(link)) return { class: link.status };
  if (isA(link, PermanentError)) return { class: "permanent" };
  if (isA(link, RetryAfterError)) return { class: "rate_limited" };
  const name = nameOf(link);
  const code = codeText(read(link, "code"));
  if (name === "RedriveError") return { class: REDRIVE_CODES.get(code ?? "") ?? "transient", code };
  const named = ERROR_NAMES.get(name);
  if (named) return { class: named };
  const family = classByFamily(clue);
  if (family) return { class: family, code: codeOf(clue) };
  if (carries === "nothing") return undefined;
  return (carries === "more" ? byFields(link, code) : undefined) ?? byCode(clue, code);
}

/** By marks of AWS and by gRPC's number. */
function byFields(link: unknown, code: string | undefined): Found | undefined {
  if (readPath(link, "$retryable", "throttling") === true) return { class: "rate_limited" };
  // AWS marks errors that may succeed on a retry, whatever the status.
  if (read(link, "$retryable") !== undefined) return { class: "transient", code };
  const grpc = grpcStatus(link);
  return grpc && { class: grpc[1], code: grpc[0] };
}

/** By a status, or by a code of the system. */
function byCode(clue: Clue, code: string | undefined): Found | undefined {
  const link = clue.error;
  const status = statusOf(link, clue.carries);
  const beside = status === 400 ? classBeside400(clue) : undefined;
  if (status !== undefined) return { class: beside ?? classOfStatus(status, link), code: String(status) };
  if ((code === "ECONNABORTED" || code === "ETIMEDOUT") && /timeout|timed out/i.test(messageOf(link).slice(0, 256)))
    return { class: "timeout", code };
  // A socket that is not there yet is a service that has not started, not a missing file.
  if (code === "ENOENT" && read(link, "syscall") === "connect") return { class: "network", code };
  const known = SYSTEM_CODES.get(code ?? "") ?? byPrefix(code ?? "");
  return known && { class: known, code };
}

function byPrefix(code: string): FailureClass | undefined {
  return code.startsWith("UND_ERR_") || code.startsWith("ERR_HTTP2_") || code.startsWith("HPE_")
    ? "network"
    : undefined;
}

function grpcStatus(link: unknown): (typeof GRPC_STATUSES)[number] | undefined {
  const code = read(link, "code");
  const looksLikeGrpc = read(link, "details") !== undefined || read(link, "metadata") !== undefined;
  return looksLikeGrpc && typeof code === "number" ? GRPC_STATUSES[code] : undefined;
}

/** Several errors at once: a rate limit among them wins, then any retryable error, then the first. */
function byMembers(link: unknown, inquiry: Inquiry): Judged | undefined {
  const transient: Judged = { class: "transient", severity: DEFAULT_SEVERITY.transient };
  const members = readMembers(link, "errors").map((member) => judge(linksOf(member).map(clueOf), inquiry) ?? transient);
  const limited = members.filter((member) => member.class === "rate_limited");
  const longest = limited.sort((a, b) => (b.retryAfterMs ?? 0) - (a.retryAfterMs ?? 0))[0];
  return longest ?? members.find((member) => isRetryable(member.class)) ?? members[0];
}

function codeOf({ error, type, carries }: Clue): string | undefined {
  // The numeric codes of DOMException are deprecated; its name says the same.
  if (carries === "nothing" || type === "DOMException") return undefined;
  const code = statusOf(error, carries)?.toString() ?? codeText(read(error, "code"));
  return code ?? readText(error, "signal")?.slice(0, 64);
}

function codeText(code: unknown): string | undefined {
  if (typeof code === "number" && Number.isSafeInteger(code)) return String(code);
  return typeof code === "string" && code !== "" ? code.slice(0, 64) : undefined;
}
