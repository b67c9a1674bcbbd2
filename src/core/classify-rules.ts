// The user's own rules about failures: what one looks like, and the check of a list of them. Apart from the rules that
// Redrive knows, which only a process that runs jobs loads.
import { invalid, namesOf, parseOptions } from "./options.ts";
import { FAILURE_CLASSES, type FailureClass, type Severity } from "./job.ts";

/** The job that the failed run belonged to. */
export interface ClassifyContext {
  readonly type?: string | null;
  readonly service?: string | null;
  readonly tenant?: string | null;
}

/** What `classify` found; `failureFrom` makes the stored failure from it. */
export interface Judged {
  readonly class: FailureClass;
  readonly severity: Severity;
  readonly retryAfterMs?: number;
  readonly delayMs?: number;
  readonly code?: string;
}

/** A user's classifier as a rule; if it returns undefined or throws, the next rule decides. */
export type ClassifyFunction = (error: unknown, context: ClassifyContext) => FailureClass | undefined;

/**
 * A rule as data: every field given must match, `*` stands for any text, and the first matching rule wins. It is tried
 * on the error and on each of its causes. `message` matches anywhere in the first 8 KiB; the others match whole.
 */
export interface MatchRule {
  /** The class to give. */
  readonly class: FailureClass;
  /** Default that of the class. */
  readonly severity?: Severity;
  /** The error's name; this and the other texts take `*` for any text, 1 to 256 characters. */
  readonly name?: string;
  /** The error's code, such as `ECONNRESET`. */
  readonly code?: string | number;
  /** An HTTP status such as `409` or `"5*"`. */
  readonly status?: string | number;
  /** Part of the message. */
  readonly message?: string;
  /** Only for jobs of this type. */
  readonly type?: string;
  /** Only for jobs of this service. */
  readonly service?: string;
  /** Only for jobs of this tenant. */
  readonly tenant?: string;
}

/** One rule of the user; earlier rules win. */
export type ClassifyRule = MatchRule | ClassifyFunction;

const RULE_KEYS = namesOf<MatchRule>()([
  "class",
  "severity",
  "name",
  "code",
  "status",
  "message",
  "type",
  "service",
  "tenant",
]);
const FINAL: readonly FailureClass[] = ["permanent", "validation", "authentication"];

/** The severity of each class where no rule says otherwise. */
export const DEFAULT_SEVERITY: Readonly<Record<FailureClass, Severity>> = Object.freeze({
  transient: "warning",
  rate_limited: "warning",
  network: "warning",
  timeout: "warning",
  validation: "warning",
  permanent: "error",
  authentication: "error",
  system: "error",
  stuck: "error",
  crashed: "critical",
});

/** Whether failures of this class are worth another try. */
export function isRetryable(found: FailureClass): boolean {
  return !FINAL.includes(found);
}

/** The rules, checked: unknown fields, classes and severities are refused. */
export function resolveRules(rules: unknown, name: string): readonly ClassifyRule[] {
  if (!Array.isArray(rules)) throw invalid(name, "a list of rules", rules, "pass an array");
  return rules.map((rule: unknown, index) => {
    if (typeof rule === "function") return rule as ClassifyFunction;
    const at = `${name}[${index}]`;
    const { class: found, severity, ...patterns } = parseOptions(rule, RULE_KEYS, at);
    if (!isClass(found)) throw invalid(`${at}.class`, FAILURE_CLASSES.join(", "), found, "use one of these");
    if (severity !== undefined && !["info", "warning", "error", "critical"].includes(severity as string)) {
      throw invalid(`${at}.severity`, "info, warning, error or critical", severity, "use one of these");
    }
    for (const [key, pattern] of Object.entries(patterns)) {
      const isNumber = typeof pattern === "number" && (key === "code" || key === "status");
      if (typeof pattern === "string" ? pattern.length > 0 && pattern.length <= 256 : isNumber) continue;
      throw invalid(`${at}.${key}`, "text of 1 to 256 characters, * for any", pattern, "no regular expressions");
    }
    return Object.freeze({ ...(rule as MatchRule) });
  });
}

/** True for the name of a class. */
export function isClass(value: unknown): value is FailureClass {
  return FAILURE_CLASSES.some((known) => known === value);
}
