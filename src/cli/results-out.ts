// Results of records, written as they come: a line of NDJSON or CSV each. A file appears under its name when it is whole.
import { createWriteStream, existsSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, extname, resolve } from "node:path";
import { once } from "node:events";
import { finished } from "node:stream/promises";
import { csvCell } from "../core/csv.ts";
import { messageOf } from "../core/error-shape.ts";
import { RedriveError } from "../core/errors.ts";
import { invalid } from "../core/options.ts";
import type { RecordResult } from "../process-batch.ts";
import type { Io } from "./io.ts";

/** How results are written. */
export const RESULT_FORMATS = ["ndjson", "csv"] as const;
/** One of `RESULT_FORMATS`. */
export type ResultFormat = (typeof RESULT_FORMATS)[number];

/** Where results go. */
export interface ResultsOut {
  write(done: RecordResult): Promise<void>;
  /** Makes the file whole. */
  end(): Promise<void>;
  /** Leaves nothing half-done behind. */
  abandon(): void;
}

/** The format of an output: as said, else by the ending of its name, else NDJSON. */
export function resultFormatOf(said: string | undefined, output: string): ResultFormat {
  const known = RESULT_FORMATS.find((format) => format === said);
  if (said !== undefined && known === undefined)
    throw invalid("output-format", RESULT_FORMATS.join(", "), said, "use one of these");
  return known ?? (extname(output).toLowerCase() === ".csv" ? "csv" : "ndjson");
}

/** Opens an output: a file, or stdout for `-`. `source` is the file that the records come from, which must stay. */
export function openResults(
  { stdout, cwd }: Pick<Io, "stdout" | "cwd">,
  output: string,
  format: ResultFormat,
  source: string | null,
): ResultsOut {
  const lineOf = format === "csv" ? csvLines() : ndjsonLine;
  if (output === "-") {
    return {
      async write(done) {
        if (!stdout.write(lineOf(done))) await stdout.drained?.();
      },
      end: async () => undefined,
      abandon: () => undefined,
    };
  }
  const path = resolve(cwd, output);
  const part = `${path}.part`;
  if (!existsSync(dirname(path)) || (existsSync(path) && !statSync(path).isFile()))
    throw invalid("output", "the path of a file in a folder that is there", output, "check the path");
  if (source !== null && [path, part].some((each) => isSame(each, source)))
    throw invalid("output", "another file than the input", output, "results would take its place; name another");
  // Opened at once: nothing is begun whose results could not be kept.
  const stream = createWriteStream(part, { fd: openPart(part, output) });
  let failed: unknown = null;
  stream.on("error", (error) => (failed = error));
  return {
    async write(done) {
      if (failed) throw brokenOff(path, failed);
      // `once` leaves no listener behind, and rejects where the stream fails.
      if (!stream.write(lineOf(done)))
        await once(stream, "drain").catch((error) => Promise.reject(brokenOff(path, error)));
    },
    async end() {
      try {
        stream.end();
        await finished(stream);
        renameSync(part, path);
      } catch (error) {
        throw brokenOff(path, error);
      }
    },
    abandon() {
      stream.destroy();
      try {
        rmSync(part, { force: true });
      } catch {
        // Why the call ends is worth more than that its rest could not be removed; the next call writes over it.
      }
    },
  };
}

/** True for one file under two names. */
function isSame(one: string, other: string): boolean {
  const [a, b] = [one, other].map((path) => statSync(path, { bigint: true, throwIfNoEntry: false }));
  return a !== undefined && a.dev === b?.dev && a.ino === b.ino;
}

function openPart(part: string, output: string): number {
  try {
    return openSync(part, "w", 0o600);
  } catch (cause) {
    const message = `output: expected a file that may be written; got ${JSON.stringify(output)} (${messageOf(cause)}); name another, or make way for it`;
    throw new RedriveError("invalid_argument", message, { cause });
  }
}

function brokenOff(path: string, cause: unknown): RedriveError {
  const message =
    `output: expected to write ${path} to its end; got ${messageOf(cause)}; ` +
    "make room, or name another file, and call again: what is done is not run again";
  return new RedriveError("aborted", message, { cause });
}

function ndjsonLine({ id, result, attempts }: RecordResult): string {
  return `${JSON.stringify({ id, result, attempts })}\n`;
}

/** The columns are those of the first result; what others have beside them is in the last one, as JSON. */
function csvLines(): (done: RecordResult) => string {
  let columns: string[] | null = null;
  return ({ id, result }) => {
    const isObject = typeof result === "object" && result !== null && !Array.isArray(result);
    const fields: Readonly<Record<string, unknown>> = isObject ? (result as Record<string, unknown>) : { result };
    const isFirst = columns === null;
    columns ??= Object.keys(fields);
    const known = columns;
    const more = Object.entries(fields).filter(([name]) => !known.includes(name));
    const rest = more.length === 0 ? "" : JSON.stringify(Object.fromEntries(more));
    const line = [id, ...known.map((name) => fields[name]), rest].map(csvValue).join(",");
    return isFirst ? `${["record_id", ...known, "more"].map(csvValue).join(",")}\n${line}\n` : `${line}\n`;
  };
}

function csvValue(value: unknown): string {
  return csvCell(
    value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value),
  );
}
