// The log of a command: timestamped lines on stderr, safe for a terminal, without passwords.
import { invalid } from "../core/options.ts";
import { RedriveError } from "../core/errors.ts";
import { type Log, LOG_LEVELS, type LogLevel, lineLog } from "../system/log.ts";
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
