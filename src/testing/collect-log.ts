// A log that remembers what was said, for tests about it and for failures that want explaining.
import type { Log, LogLevel } from "../system/log.ts";

/** One line of a log. */
export interface LogLine {
  readonly level: Exclude<LogLevel, "silent">;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A log that collects its lines. */
export interface CollectedLog extends Log {
  readonly lines: readonly LogLine[];
  /** The lines whose message contains this text or fits this pattern. */
  said(what: string | RegExp): LogLine[];
  clear(): void;
}

/** A log that collects its lines, and passes them on to another one where there is one. */
export function collectLog(also: Log | null = null): CollectedLog {
  const lines: LogLine[] = [];
  const at =
    (level: LogLine["level"]) =>
    (fields: object, message: string): void => {
      lines.push({ level, message, fields: { ...fields } });
      also?.[level](fields, message);
    };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    lines,
    said: (what) =>
      lines.filter(({ message }) => (typeof what === "string" ? message.includes(what) : what.test(message))),
    clear: () => void lines.splice(0),
  };
}
