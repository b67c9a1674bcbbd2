// The log of a command: timestamped lines on stderr, safe for a terminal, without passwords; or one JSON object a line.
import { invalid } from "../core/options.ts";
import { RedriveError } from "../core/errors.ts";
import { jsonLog, type Log, LOG_LEVELS, type LogLevel, lineLog } from "../system/log.ts";
import { put } from "../system/output.ts";
import { realSystem } from "../system/real.ts";
import type { Io } from "./io.ts";
import { paintFor, type Style } from "./paint.ts";

/** The level that `REDRIVE_LOG` sets; undefined where it is empty or not set. */
export function levelFrom(env: Io["env"]): LogLevel | undefined {
  const given = env.REDRIVE_LOG;
  if (given === undefined || given === "") return undefined;
  const level = LOG_LEVELS.find((known) => known === given.toLowerCase());
  if (level !== undefined) return level;
  const { message } = invalid("REDRIVE_LOG", LOG_LEVELS.join(", "), given, "use one of these, or unset it");
  throw new RedriveError("config_refused", message);
}

const STYLES: Readonly<Record<string, Style>> = { debug: "dim", info: "cyan", warn: "yellow", error: "red" };

/** The forms of log lines. */
export const LOG_FORMATS = ["text", "json"] as const;
/** One of `LOG_FORMATS`. */
export type LogFormat = (typeof LOG_FORMATS)[number];

/** The form that `--log` asks for, else `REDRIVE_LOG_FORMAT`; text where neither does. */
export function formatFrom(env: Io["env"], flag?: string): LogFormat {
  const [name, given] = flag === undefined ? ["REDRIVE_LOG_FORMAT", env.REDRIVE_LOG_FORMAT] : ["--log", flag];
  if (flag === undefined && (given === undefined || given === "")) return "text";
  const format = LOG_FORMATS.find((known) => known === given?.toLowerCase());
  if (format !== undefined) return format;
  const { message } = invalid(name, LOG_FORMATS.join(", "), given, "use one of these, or leave it out");
  throw new RedriveError(flag === undefined ? "config_refused" : "invalid_argument", message);
}

/** A log of JSON lines on stderr. */
export function cliJsonLog(io: Pick<Io, "stderr">, level: LogLevel): Log {
  return jsonLog(level, realSystem.now, (line) => void put(io.stderr, "json", line));
}

/** A log on stderr; `write` puts one finished line there. */
export function cliLog(io: Io, level: LogLevel, write: (line: string) => void): Log {
  const paint = paintFor(io.stderr, io.env);
  return lineLog(level, (line) => {
    const time = new Date(realSystem.now()).toISOString();
    const name = line.slice(0, 5);
    const shown = paint(STYLES[name.trim()] ?? "dim", name);
    const stamp = io.stderr.isTTY ? time.slice(11, 19) : time;
    write(`${paint("dim", stamp)} ${shown} ${line.slice(6).trimEnd()}\n`);
  });
}
