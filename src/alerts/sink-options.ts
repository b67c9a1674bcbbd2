// Where alerts are told: the options of the sinks, checked.
import { createHash } from "node:crypto";
import type { BlockList } from "node:net";
import { type AlertRulesOptions, parseSeverity, resolveRules, type Rules } from "../core/alerting/rules.ts";
import type { AlertMessage } from "../core/alerting/message.ts";
import type { HealthLimits } from "../core/health.ts";
import type { Severity } from "../core/job.ts";
import { checkText } from "../core/new-job.ts";
import { invalid, namesOf, parseOptions } from "../core/options.ts";
import { checkVariable } from "../jobs/subprocess.ts";
import { parseAllow } from "../system/addresses.ts";

/** A program that gets each message. */
export interface CommandSinkOptions {
  /** The program and its arguments; no shell runs in between. The message is JSON on stdin. */
  readonly run: readonly string[];
  /** Variables of this process that it may see besides PATH, LANG, TZ and HOME; default none. */
  readonly env?: readonly string[];
  /** It gets messages of this severity and graver ones; default `info`: all. */
  readonly severity?: Severity;
}

/** An HTTPS address that gets each message as JSON. */
export interface WebhookSinkOptions {
  /** Where to: https only. */
  readonly url: string;
  /** Signs each message: `Redrive-Signature` is the HMAC-SHA256 of `<Redrive-Timestamp>.<body>`; default none. */
  readonly secret?: string;
  /**
   * Addresses or subnets that are no public ones and yet allowed, such as `10.0.0.7` or `10.0.0.0/8`; default none.
   */
  readonly allow?: readonly string[];
  /** It gets messages of this severity and graver ones; default `info`: all. */
  readonly severity?: Severity;
}

/** An incoming webhook of Slack, Mattermost, or what takes their form. */
export type SlackSinkOptions = Omit<WebhookSinkOptions, "secret">;

/** Where alerts are told. */
export interface AlertSinksOptions {
  /** Whether they are lines of the log; default true. */
  readonly log?: boolean;
  /** A function of this program; default none. */
  readonly call?: (message: AlertMessage) => unknown;
  /** An address that gets them as JSON; default none. */
  readonly webhook?: WebhookSinkOptions;
  /** An address that gets them as Slack does; default none. */
  readonly slack?: SlackSinkOptions;
  /** A program that gets them; default none. */
  readonly command?: CommandSinkOptions;
}

/** Alerts of the whole fleet. */
export interface FleetAlertOptions {
  /** Which troubles are told, from when on, and how often; default as in docs/guides/monitoring.md. */
  readonly rules?: AlertRulesOptions;
  /** Where to; default the log. */
  readonly sinks?: AlertSinksOptions;
}

/** A sink, checked. */
export type SinkSettings = {
  /** Which sink it is for the whole fleet: processes with the same one tell each message once. */
  readonly id: string;
  /** What people may see of it. */
  readonly name: string;
  readonly least: Severity;
} & (
  | { readonly kind: "log" }
  | { readonly kind: "call"; readonly call: (message: AlertMessage) => unknown }
  | { readonly kind: "command"; readonly command: readonly string[]; readonly env: readonly string[] }
  | { readonly kind: "webhook" | "slack"; readonly url: URL; readonly secret: string | null; readonly allow: BlockList }
);

/** The alerts of a process, checked. */
export interface FleetAlertSettings {
  readonly rules: Rules;
  readonly sinks: readonly SinkSettings[];
}

const SINKS = namesOf<AlertSinksOptions>()(["log", "call", "webhook", "slack", "command"]);
const WEBHOOK = namesOf<WebhookSinkOptions>()(["url", "secret", "allow", "severity"]);
const SLACK = namesOf<SlackSinkOptions>()(["url", "allow", "severity"]);
const COMMAND = namesOf<CommandSinkOptions>()(["run", "env", "severity"]);

/** Checks and completes the options. */
export function resolveFleetAlerts(options: unknown, health: HealthLimits, name = "alerts"): FleetAlertSettings {
  const { rules, sinks } = parseOptions(options ?? {}, ["rules", "sinks"], name);
  return { rules: resolveRules(rules, health, `${name}.rules`), sinks: resolveSinks(sinks, `${name}.sinks`) };
}

function resolveSinks(options: unknown, name: string): readonly SinkSettings[] {
  const { log = true, call, webhook, slack, command } = parseOptions(options ?? {}, SINKS, name);
  if (typeof log !== "boolean") throw invalid(`${name}.log`, "true or false", log, "use one of these");
  if (call !== undefined && typeof call !== "function")
    throw invalid(
      `${name}.call`,
      "a function (message) => …",
      call,
      "pass one, in a program or a config file in TypeScript",
    );
  return [
    ...(log ? [{ kind: "log", id: "log", name: "log", least: "info" } as const] : []),
    ...(call === undefined
      ? []
      : [{ kind: "call", id: "call", name: "call", least: "info", call: call as () => unknown } as const]),
    ...(webhook === undefined ? [] : [resolveUrl("webhook", webhook, WEBHOOK, `${name}.webhook`)]),
    ...(slack === undefined ? [] : [resolveUrl("slack", slack, SLACK, `${name}.slack`)]),
    ...(command === undefined ? [] : [resolveCommand(command, `${name}.command`)]),
  ];
}

function resolveUrl(
  kind: "webhook" | "slack",
  options: unknown,
  fields: readonly (keyof WebhookSinkOptions)[],
  name: string,
): SinkSettings {
  const { url: text, secret = null, allow, severity = "info" } = parseOptions(options, fields, name);
  const url = typeof text === "string" && URL.canParse(text) ? new URL(text) : null;
  // The URL may be a secret, so it is not shown.
  if (url?.protocol !== "https:" || url.username !== "" || url.password !== "")
    throw invalid(
      `${name}.url`,
      "an https URL without user and password",
      url ? "another one" : "no URL",
      "correct it",
    );
  if (secret !== null) checkText(`${name}.secret`, secret);
  const least = parseSeverity(severity, `${name}.severity`);
  const id = idOf(kind, url.href);
  return {
    kind,
    id,
    name: `${kind} ${url.host}`,
    least,
    url,
    secret: secret as string | null,
    allow: parseAllow(allow, `${name}.allow`),
  };
}

function resolveCommand(options: unknown, name: string): SinkSettings {
  const { run, env = [], severity = "info" } = parseOptions(options, COMMAND, name);
  const isTexts = (value: unknown): value is string[] =>
    Array.isArray(value) && value.every((each) => typeof each === "string" && !each.includes("\0"));
  const [program = ""] = isTexts(run) ? run : [];
  if (!isTexts(run) || program === "" || /\.(bat|cmd)$/i.test(program))
    throw invalid(`${name}.run`, "a list of texts: a program that needs no shell, then its arguments", run, "pass one");
  if (!isTexts(env)) throw invalid(`${name}.env`, "a list of names of variables", env, "pass one");
  for (const variable of env) checkVariable(`${name}.env`, variable);
  const least = parseSeverity(severity, `${name}.severity`);
  return {
    kind: "command",
    id: idOf("command", JSON.stringify(run)),
    name: `command ${program}`,
    least,
    command: run,
    env,
  };
}

function idOf(kind: string, what: string): string {
  return `${kind}:${createHash("sha256").update(what).digest("hex").slice(0, 16)}`;
}
