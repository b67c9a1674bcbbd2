// `redrive enqueue`: enqueues one job from the command line or a file, or a stream of jobs from stdin. Stores the
// payload text unchanged, byte for byte.
import { type FileHandle, open } from "node:fs/promises";
import { resolve } from "node:path";
import { isRedriveError, RedriveError } from "../core/errors.ts";
import { checkOneOf, JOB_BOUNDS, tooLarge, UNIQUE_MODES, type UniqueMode } from "../core/new-job.ts";
import { invalid } from "../core/options.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { checkJobOf, type EnqueueOptions, knownType, payloadOfText } from "../enqueue/new-jobs.ts";
import { put } from "../system/output.ts";
import { type Cli, defined, examples, type Flags, limitFlags, limitOptions, numeric, textual } from "./command.ts";
import type { Session } from "./session.ts";
import { definitions, jobFiles, JOBS_FLAG } from "./job-files.ts";

const NOTES = `
The payload is JSON: as text, from a file (@payload.json), or from stdin (-),
one payload a line. With --jobs, or with \`jobs\` in the config file, the input is
checked against its schema; without, any JSON is accepted.
A signal ends a stream after the last complete line and prints the summary.

What --unique does when the key is taken:
  key       the same payload is a duplicate, another payload is refused (exit 4)
  queued    a duplicate while the job with the key waits, else a new job
  active    a duplicate while it waits or runs, else a new job
  replace   a waiting job gets the new payload, else a new job
  debounce  as replace, and the waiting job gets the new due time too`;

/** Registers `enqueue`. */
export function register(cli: Cli): void {
  const command = cli.command
    .argument("<type>", "job type")
    .argument("[payload]", "JSON, @file, or - for one payload a line on stdin")
    .option(...JOBS_FLAG)
    .option("--key <text>", "unique key: a type has at most one job per key (see --unique)")
    .option("--key-field <name>", "with -: use this field of each payload as its key; the payload keeps it")
    .option("--unique <mode>", `what to do when the key is taken: ${UNIQUE_MODES.join(", ")} (default key; see below)`)
    .option("--priority <n>", "0 to 9, higher first (default 0)")
    .option("--delay <duration>", "run no sooner than this long from now, e.g. 10s")
    .option("--run-at <time>", "run no sooner than this time, e.g. 2027-01-31T08:00:00Z")
    .option("--tenant <name>", "owner of the job, for fairness and limits")
    .option("--group <name>", "jobs of one type and group run in order, one at a time (or groupConcurrency at a time)")
    .option("--service <name>", "outside service that the job depends on")
    .option("--queue <name>", "queue of a type that --jobs does not define (default: default)")
    .addHelpText("after", NOTES);
  limitFlags(command);
  examples(command, cli, [
    `enqueue hello '{"name":"Ada"}'`,
    `enqueue hello @payload.json --key order-1 --delay 10s`,
    `enqueue hello - --key-field id < records.ndjson`,
  ]);
  cli.act(command, async (session, [type = "", payload], flags) => {
    const fields = enqueueOptions(flags);
    if (payload === undefined) throw noPayload();
    const jobs = jobFiles(session, flags).length === 0 ? [] : await definitions(session, flags);
    const { defaults } = session.config;
    const definition = definitionOf(type, jobs, session, flags);
    const known = knownType(definition ?? type, defaults);
    const keyField = textual(flags.keyField);
    if (payload === "-") {
      if (fields.key !== undefined)
        throw invalid("key", "no --key with -", fields.key, "use --key-field NAME to take it from each payload");
      checkJobOf(known, "{}", keyField === undefined ? fields : { ...fields, key: "check" });
      const { enqueueStream } = await import("./enqueue-stream.ts");
      return enqueueStream(session, { known, definition, jobs, defaults, fields, keyField });
    }
    if (keyField !== undefined) throw invalid("key-field", "- as the payload", payload, "use --key for a single job");
    const text = payload.startsWith("@") ? await fileText(payload.slice(1), session) : payload;
    // Checks everything before a database file is created.
    checkJobOf(known, await payloadOfText(known, text), fields);
    const producer = await session.openProducer({ jobs, defaults });
    const job = await producer.enqueueText(definition ?? type, text, fields).catch((error: unknown) => {
      throw inFlags(error);
    });
    const document = { ids: [job.id], duplicates: Number(job.duplicate), replaced: Number(job.replaced) };
    if (session.quiet && !session.json) put(session.io.stdout, "line", `${job.id}\n`);
    session.answer(document, () => {
      if (job.duplicate) return `${job.id} exists already${job.state === null ? "" : ` (${job.state})`}\n`;
      return `${job.id} ${job.replaced ? "got the new payload" : "enqueued"}\n`;
    });
    return 0;
  });
}

/** The error about a taken key, with its remedy written as a flag; any other error unchanged. */
function inFlags(error: unknown): unknown {
  if (!isRedriveError(error, "conflict")) return error;
  const message = error.message.replace('unique: "replace"', "--unique replace");
  return new RedriveError("conflict", message, { cause: error, details: { ...error.details } });
}

function noPayload(): RedriveError {
  const message =
    "payload: expected JSON, @file or -; got nothing; pass JSON such as " +
    `'{"name":"Ada"}', a file such as @payload.json, or - for one payload a line on stdin`;
  return new RedriveError("invalid_argument", message);
}

function enqueueOptions(flags: Flags): EnqueueOptions {
  // Checked before the payload is read, because the payload may be a missing file.
  if (flags.unique !== undefined) checkOneOf("unique", flags.unique, UNIQUE_MODES);
  return defined({
    key: textual(flags.key),
    unique: textual(flags.unique) as UniqueMode | undefined,
    priority: numeric(flags.priority),
    delay: textual(flags.delay),
    runAt: numeric(flags.runAt),
    tenant: textual(flags.tenant),
    group: textual(flags.group),
    ...limitOptions(flags),
    service: textual(flags.service),
    queue: textual(flags.queue),
  });
}

/** The definition of the type. A file named with --jobs must define it. */
function definitionOf(
  type: string,
  jobs: readonly JobDefinition[],
  session: Session,
  flags: Flags,
): JobDefinition | null {
  const found = jobs.find((job) => job.type === type);
  if (found || jobs.length === 0) return found ?? null;
  const types = jobs.map((job) => job.type).join(", ");
  if (flags.jobs !== undefined)
    throw invalid("type", `one that --jobs defines (${types})`, type, "check the name, or leave --jobs out");
  session.log.warn(
    { type, defined: types },
    "the jobs of the config file do not define this type; its payload is not checked",
  );
  return null;
}

async function fileText(name: string, { io }: Session): Promise<string> {
  const path = resolve(io.cwd, name);
  let file: FileHandle | null = null;
  try {
    file = await open(path);
    const { size } = await file.stat();
    if (size > JOB_BOUNDS.payloadBytes) throw tooLarge(`The payload in ${name}`, JOB_BOUNDS.payloadBytes, size);
    const bytes = await bytesOf(file);
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes).trim();
  } catch (cause) {
    if (isRedriveError(cause)) throw cause;
    const said = cause instanceof Error ? cause.message : String(cause);
    const message = `payload: expected a file with JSON; ${JSON.stringify(name)} cannot be read: ${said}; check the path`;
    throw new RedriveError("invalid_argument", message, { cause });
  } finally {
    await file?.close();
  }
}

/** Reads the whole file, but never much more than a payload may have: a pipe or a device does not report its size. */
async function bytesOf(file: FileHandle): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of file.createReadStream({ end: JOB_BOUNDS.payloadBytes, autoClose: false }))
    parts.push(part as Buffer);
  return Buffer.concat(parts);
}
