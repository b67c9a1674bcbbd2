// Writes the results of records as they arrive, one line of NDJSON or CSV each. The file gets its final name only when
// it is complete.
import { existsSync, fstatSync, statSync } from "node:fs";
import { dirname, extname, resolve } from "node:path";
import { csvCell } from "../core/csv.ts";
import { invalid } from "../core/options.ts";
import type { RecordResult } from "../records/process-records.ts";
import { put } from "../system/output.ts";
import type { Io } from "./io.ts";
import { openWhole, partOf } from "./whole-file.ts";

/** The formats of results. */
export const RESULT_FORMATS = ["ndjson", "csv"] as const;
/** One of `RESULT_FORMATS`. */
export type ResultFormat = (typeof RESULT_FORMATS)[number];

/** The destination of results. */
export interface ResultsOut {
  write(done: RecordResult): Promise<void>;
  /** Completes the file and gives it its name. */
  end(): Promise<void>;
  /** Removes the unfinished file. */
  abandon(): void;
}

/** The format of an output: as given, else by the file extension, else NDJSON. */
export function resultFormatOf(said: string | undefined, output: string): ResultFormat {
  const known = RESULT_FORMATS.find((format) => format === said);
  if (said !== undefined && known === undefined)
    throw invalid("output-format", RESULT_FORMATS.join(", "), said, "use one of these");
  return known ?? (extname(output).toLowerCase() === ".csv" ? "csv" : "ndjson");
}

/**
 * Opens an output: a file, or stdout for `-`. `source` is the input file, by its path or, for a redirected stdin, by
 * its descriptor; the output must not replace it.
 */
export function openResults(
  { stdout, cwd }: Pick<Io, "stdout" | "cwd">,
  output: string,
  format: ResultFormat,
  source: string | number | null,
): ResultsOut {
  const lineOf = format === "csv" ? csvLines() : ndjsonLine;
  if (output === "-") {
    return {
      async write(done) {
        if (!put(stdout, "data", lineOf(done))) await stdout.drained?.();
      },
      end: async () => undefined,
      abandon: () => undefined,
    };
  }
  const path = resolve(cwd, output);
  if (!existsSync(dirname(path)) || (existsSync(path) && !statSync(path).isFile()))
    throw invalid("output", "the path of a file in an existing folder", output, "check the path");
  if (source !== null && [path, partOf(path)].some((each) => isSame(each, source)))
    throw invalid("output", "a file other than the input", output, "the results would replace it; name another");
  // Opened at once, so that no work starts whose results could not be stored.
  const file = openWhole(
    path,
    "make room, or name another file, and run the command again: finished records do not run again",
  );
  return { ...file, write: (done) => file.write(lineOf(done)) };
}

/** True for one file under two names. */
function isSame(one: string, other: string | number): boolean {
  const stat = (file: string | number) =>
    typeof file === "number"
      ? fstatSync(file, { bigint: true })
      : statSync(file, { bigint: true, throwIfNoEntry: false });
  const [a, b] = [stat(one), stat(other)];
  return a !== undefined && a.dev === b?.dev && a.ino === b.ino;
}

function ndjsonLine({ id, result, attempts }: RecordResult): string {
  return `${JSON.stringify({ id, result, attempts })}\n`;
}

/** The first result determines the columns; fields that only later results have go into the last column, as JSON. */
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
