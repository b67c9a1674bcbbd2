// A backoff written as data, as in YAML: `{ kind: exponential, initial: 5s, multiplier: 2, max: 1m }`.
import {
  type Backoff,
  type CustomDelay,
  exponential,
  type ExponentialOptions,
  fixed,
  immediate,
  linear,
  type LinearOptions,
} from "../core/backoff.ts";
import { isRedriveError, RedriveError } from "../core/errors.ts";
import { didYouMean, invalid, parseOptions } from "../core/options.ts";

const KINDS = ["exponential", "linear", "fixed", "immediate"] as const;

/** The backoff that the data describes; one made by a factory, or a function, is returned unchanged. */
export function backoffFromData(value: unknown): Backoff | CustomDelay {
  if (typeof value === "function") return value as CustomDelay;
  const data = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
  // Made by a factory in a config that is code.
  if ("initialMs" in data || data.kind === "custom") return value as Backoff;
  const kind = KINDS.find((known) => data.kind === known);
  if (kind === undefined) {
    const remedy = "for example { kind: exponential, initial: 5s, multiplier: 2, max: 1m }";
    if (data.kind !== undefined)
      throw invalid(
        "defaults.backoff.kind",
        `one of ${KINDS.join(", ")}`,
        data.kind,
        didYouMean(data.kind, KINDS, remedy),
      );
    throw invalid("defaults.backoff", `an object with kind: ${KINDS.join(", ")}`, value, remedy);
  }
  const { kind: _kind, ...options } = data;
  try {
    return made(kind, options);
  } catch (error) {
    if (!isRedriveError(error)) throw error;
    throw new RedriveError("invalid_argument", inConfig(error.message), { cause: error });
  }
}

/**
 * Renames fields in errors: `exponential.initial: …` becomes `defaults.backoff.initial`; errors of `fixed` name its
 * delay or a field.
 */
function inConfig(message: string): string {
  const isField = /^\w+: expected an object/.test(message);
  const said = message.replace(/^\w+/, "");
  return `defaults.backoff${isField || said.startsWith(".") ? said : `.delay${said}`}`;
}

function made(kind: (typeof KINDS)[number], options: Record<string, unknown>): Backoff {
  if (kind === "exponential") return exponential(options as ExponentialOptions);
  if (kind === "linear") return linear(options as LinearOptions);
  if (kind === "fixed") {
    const { delay, ...rest } = parseOptions(options, ["delay", "jitter"], "fixed");
    return fixed(delay as string, rest as { jitter?: "none" });
  }
  parseOptions(options, [], "immediate");
  return immediate();
}
