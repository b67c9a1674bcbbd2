// Results of records, written as they come: a line of NDJSON or CSV each. A file appears under its name when it is whole.
import { createWriteStream, existsSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, extname, resolve } from "node:path";
import { once } from "node:events";
import { finished } from "node:stream/promises";
import { csvCell } from "../core/csv.ts";
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

/** Opens an output: a file, or stdout for `-`. */
export function openResults(io: Io, output: string, format: ResultFormat): ResultsOut {
  const lineOf = format === "csv" ? csvLines() : ndjsonLine;
  if (output === "-") {
    return {
      async write(done) {
        if (!io.stdout.write(lineOf(done))) await io.stdout.drained?.();
      },
      end: async () => undefined,
      abandon: () => undefined,
    };
  }
  const path = resolve(io.cwd, output);
  if (!existsSync(dirname(path)) || (existsSync(path) && !statSync(path).isFile()))
    throw invalid("output", "the path of a file in a folder that is there", output, "check the path");
  const part = `${path}.part`;
  const stream = createWriteStream(part, { mode: 0o600 });
  let failed: unknown = null;
  stream.on("error", (error) => (failed = error));
  return {
    async write(done) {
      if (failed) throw failed;
      // `once` leaves no listener behind, and rejects where the stream fails.
      if (!stream.write(lineOf(done))) await once(stream, "drain");
    },
    async end() {
      stream.end();
      await finished(stream);
      renameSync(part, path);
    },
    abandon() {
      stream.destroy();
      rmSync(part, { force: true });
    },
  };
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
