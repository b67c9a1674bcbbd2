// Logs: any logger with the shape of pino's fits; two that write to stderr are included, one with plain lines and one with
// JSON.
import { hostname } from "node:os";
import { isSecretName, redactJson } from "../core/redact.ts";
import { masked } from "../core/safe-text.ts";
import { putLog, shownAs } from "./output.ts";

/** A logger; pino and loggers like it fit. */
export interface Log {
  /** Writes a line for developers. */
  debug(fields: object, message: string): void;
  /** Writes a line about normal operation. */
  info(fields: object, message: string): void;
  /** Writes a line about something that needs attention. */
  warn(fields: object, message: string): void;
  /** Writes a line about an error. */
  error(fields: object, message: string): void;
  /** False for a level whose lines are dropped; Redrive then does not create them. Optional. */
  isLevelEnabled?(level: string): boolean;
}

/** True unless the log drops lines of this level. */
export function isLogged(log: Log, level: "debug" | "info"): boolean {
  return log.isLevelEnabled?.(level) ?? true;
}

/** The levels of a log, from the most verbose. */
export const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;
/** One of `LOG_LEVELS`. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** A logger that writes one line per message, followed by the fields as `name=value`. */
export function lineLog(level: LogLevel, write: (line: string) => void = putLog): Log {
  const from = LOG_LEVELS.indexOf(level);
  const isLevelEnabled = (name: string): boolean => LOG_LEVELS.indexOf(name as LogLevel) >= from;
  const at = (name: Exclude<LogLevel, "silent">) => (fields: object, message: string) => {
    if (!isLevelEnabled(name)) return;
    // Loggers of this shape also take only a text, and code without types relies on it.
    const text = typeof fields === "string" ? fields : `${message}${shownFields(fields)}`;
    write(shownAs("line", `${name.padEnd(5)} ${text}\n`));
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error"), isLevelEnabled };
}

/** The numbers that pino gives the levels. */
const PINO_LEVELS = { debug: 20, info: 30, warn: 40, error: 50 } as const;
/** Names that every line has. A field of the same name is written with `_` behind it. */
const RESERVED: ReadonlySet<string> = new Set(["level", "time", "pid", "hostname", "msg"]);

/** A logger that writes one JSON object a line, as pino does; secrets are masked. */
export function jsonLog(level: LogLevel, now: () => number, write: (line: string) => void): Log {
  const from = LOG_LEVELS.indexOf(level);
  const isLevelEnabled = (name: string): boolean => LOG_LEVELS.indexOf(name as LogLevel) >= from;
  const at = (name: keyof typeof PINO_LEVELS) => (fields: object, message: string) => {
    if (!isLevelEnabled(name)) return;
    const head = { level: PINO_LEVELS[name], time: now(), pid: process.pid, hostname: hostname() };
    const [given, said] = typeof fields === "string" ? [{}, fields] : [fields ?? {}, message];
    write(`${shownAs("json", redactJson(jsonLine(head, given, masked(String(said)))))}\n`);
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error"), isLevelEnabled };
}

function jsonLine(head: object, fields: object, msg: string): string {
  try {
    const named = Object.entries(fields).map(([name, value]) => [RESERVED.has(name) ? `${name}_` : name, value]);
    return JSON.stringify({ ...head, ...Object.fromEntries(named), msg }, inJson);
  } catch {
    return JSON.stringify({ ...head, fields: "(not shown: reading them failed)", msg });
  }
}

/** Fields as `name=value`. A log never throws, so no job fails because of a log line. */
function shownFields(fields: object | null): string {
  try {
    return Object.entries(fields ?? {})
      .map(([key, value]) => ` ${key}=${isSecretName(key) ? "***" : shown(value)}`)
      .join("");
  } catch {
    return " (fields not shown: reading them failed)";
  }
}

function shown(value: unknown): string {
  const plain = inJson("", value);
  if (typeof plain === "string") return plain;
  try {
    return redactJson(JSON.stringify(plain, inJson) ?? "");
  } catch {
    return "(not shown: it has no JSON)";
  }
}

/** Values that JSON omits or refuses, as text. */
function inJson(_key: string, value: unknown): unknown {
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  return typeof value === "bigint" ? String(value) : value;
}

/** Lets one message per cause through in such a time, and reports how many it held back. */
export function oncePer(ms: number, now: () => number): (cause: string, say: (heldBack: number) => void) => void {
  const seen = new Map<string, { at: number; heldBack: number }>();
  return (cause, say) => {
    const last = seen.get(cause);
    if (last && now() - last.at < ms) {
      last.heldBack += 1;
      return;
    }
    // Error texts can be unlimited in number, so the memory is cleared.
    if (seen.size > 1_000) seen.clear();
    seen.set(cause, { at: now(), heldBack: 0 });
    say(last?.heldBack ?? 0);
  };
}
