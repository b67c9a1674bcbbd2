// `redrive drain` with an input: runs new records through a job type together with due jobs, and writes the results.
import { resolve } from "node:path";
import { RedriveError } from "../core/errors.ts";
import { invalid } from "../core/options.ts";
import type { RecordsSummary } from "../records/process-records.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import type { Redrive } from "../redrive-api.ts";
import type { RedriveWorker } from "../worker/redrive-worker-api.ts";
import { type Flags, textual } from "./command.ts";
import { formatOf, idIn, openInput, type PlacedRecord, recordsOf } from "./records-in.ts";
import { queryRecords } from "./records-query.ts";
import { openResults, resultFormatOf, type ResultsOut } from "./results-out.ts";
import type { Session } from "./session.ts";
import { storeAddress } from "../config/store-address.ts";
import { counted, grouped } from "./format.ts";

/** A record with its id. */
interface TextRecord extends PlacedRecord {
  readonly id: string;
}

/** The input and output of a drain. */
export interface DrainRecords {
  readonly definition: JobDefinition;
  readonly records: AsyncIterable<TextRecord>;
  readonly out: ResultsOut | null;
}

const NEED_INPUT = ["format", "idField", "output", "outputFormat"] as const;

/** The records of the call; null for a drain without input. */
export function drainRecords(session: Session, jobs: readonly JobDefinition[], flags: Flags): DrainRecords | null {
  const input = textual(flags.input);
  const sql = textual(flags.query);
  if (input === undefined && sql === undefined) {
    const alone = [...NEED_INPUT, "from" as const, "type" as const].find((name) => flags[name] !== undefined);
    if (alone !== undefined) throw refused(`${dashed(alone)}: expected --input or --query too; got neither; add one`);
    return null;
  }
  if (input !== undefined && sql !== undefined) throw refused("input: expected --input or --query; got both; give one");
  const definition = definitionOf(jobs, textual(flags.type));
  const source = sql === undefined ? inputOf(session, input as string, flags) : queryOf(session, sql, flags);
  const field = textual(flags.idField) ?? "id";
  const output = textual(flags.output);
  if (output === "-" && session.json)
    throw refused("output: expected a file, because --json writes to stdout; got -; name a file");
  const format = textual(flags.outputFormat);
  if (format !== undefined && output === undefined)
    throw refused("output-format: expected --output too; got none; name a file, or leave it out");
  const out =
    output === undefined ? null : openResults(session.io, output, resultFormatOf(format, output), source.path);
  return { definition, records: withIds(source.records, field), out };
}

/** Records, and the file they are read from, by its path or its descriptor, if it is one. */
interface Source {
  readonly records: AsyncIterable<PlacedRecord>;
  readonly path: string | number | null;
}

function inputOf({ io }: Session, input: string, flags: Flags): Source {
  if (flags.from !== undefined) throw refused("from: expected --query too; got --input; leave it out");
  const format = formatOf(textual(flags.format), input);
  return {
    records: recordsOf(openInput(io, input), format),
    path: input === "-" ? (io.stdin.fd ?? null) : resolve(io.cwd, input),
  };
}

function queryOf(session: Session, sql: string, flags: Flags): Source {
  const from = textual(flags.from);
  if (from === undefined) throw refused("query: expected --from URL too; got none; name the database to query");
  if (flags.format !== undefined) throw refused("format: expected --input too; got --query; leave it out");
  const address = storeAddress(from, session.io.cwd);
  return { records: queryRecords(address, sql), path: address.file };
}

function definitionOf(jobs: readonly JobDefinition[], type: string | undefined): JobDefinition {
  const names = jobs.map((job) => job.type);
  if (type === undefined && jobs.length === 1) return jobs[0] as JobDefinition;
  if (type === undefined)
    throw refused(`type: expected the job type for the records; got none of ${names.join(", ")}; pass --type`);
  const found = jobs.find((job) => job.type === type);
  if (!found) throw invalid("type", names.join(", "), type, "name one that the job files define");
  return found;
}

/** Feeds the records to the worker. The output is complete when this resolves, and removed when it rejects. */
export async function drainInto(
  redrive: Redrive,
  worker: RedriveWorker,
  { definition, records, out }: DrainRecords,
  grace: string,
  { io, config }: Session,
): Promise<RecordsSummary> {
  const stopping = new AbortController();
  const forget = io.onSignal(() => stopping.abort());
  try {
    const summary = await redrive.processRecords(definition, records, {
      id: ({ id }) => id,
      text: ({ text }) => text,
      place: ({ place }) => place,
      worker,
      grace,
      signal: stopping.signal,
      alerts: config.alerts,
      ...(out && { onResult: (done) => out.write(done) }),
    });
    // A stopped call did not read all of the input, so an existing output file is left unchanged.
    if (stopping.signal.aborted) out?.abandon();
    else await out?.end();
    return summary;
  } catch (error) {
    out?.abandon();
    throw error;
  } finally {
    forget();
  }
}

async function* withIds(source: AsyncIterable<PlacedRecord>, field: string): AsyncGenerator<TextRecord> {
  for await (const record of source) yield { text: record.text, place: record.place, id: idIn(record, field) };
}

function refused(message: string): RedriveError {
  return new RedriveError("invalid_argument", message);
}

function dashed(flag: string): string {
  return flag.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** The message about records that are missing in the output. */
export function missingText(count: number): string {
  const why =
    "another worker died with them, or they were completed before or elsewhere and keep.finished has deleted their results";
  return `missing in the output: ${counted(count, "record")}; ${why}; run the command again, or keep finished jobs longer`;
}

/** The result of the records, in a few lines. */
export function recordsText(summary: RecordsSummary): string {
  const { records, enqueued, known, conflicts, successRate, averageRetries, retryQueue, deadLetters } = summary;
  const read = [`${grouped(enqueued)} new`, `${grouped(known)} known`];
  if (conflicts > 0) read.push(`${grouped(conflicts)} known with another payload`);
  const rate = successRate === null ? "-" : `${(Math.floor(successRate * 1000) / 10).toFixed(1)} %`;
  const retries = averageRetries === null ? "-" : averageRetries.toFixed(2);
  const waiting = retryQueue >= 10_000 ? "10,000 or more" : grouped(retryQueue);
  return [
    `${counted(records, "record")}: ${read.join(", ")}`,
    `success rate ${rate}, ${retries} retries a record, ${waiting} in the retry queue, ${counted(deadLetters, "dead letter")}`,
  ]
    .map((line) => `${line}\n`)
    .join("");
}
