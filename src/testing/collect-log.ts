// A log that remembers its lines, for tests about them and to explain failures.
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
  /** The lines whose message contains this text or matches this pattern. */
  said(what: string | RegExp): LogLine[];
  clear(): void;
}

/** A log that collects its lines, and also passes them to another log, if given. */
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
