// Results of records, written as they come: a line of NDJSON or CSV each. A file appears under its name when it is whole.
import { existsSync, fstatSync, statSync } from "node:fs";
import { dirname, extname, resolve } from "node:path";
import { csvCell } from "../core/csv.ts";
import { invalid } from "../core/options.ts";
import type { RecordResult } from "../records/process-records.ts";
import { put } from "../system/output.ts";
import type { Io } from "./io.ts";
import { openWhole, partOf } from "./whole-file.ts";

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

/**
 * Opens an output: a file, or stdout for `-`. `source` is the file that the records come from, by its path or, for what was
 * redirected to stdin, its descriptor; that file must stay.
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
    throw invalid("output", "the path of a file in a folder that is there", output, "check the path");
  if (source !== null && [path, partOf(path)].some((each) => isSame(each, source)))
    throw invalid("output", "another file than the input", output, "results would take its place; name another");
  // Opened at once: nothing is begun whose results could not be kept.
  const file = openWhole(path, "make room, or name another file, and call again: what is done is not run again");
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
