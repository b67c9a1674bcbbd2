// `redrive drain`: works until nothing is left to do, reports what it did, and exits with a status. For cron and
// similar schedulers.
import { formatDuration, parseDuration } from "../core/duration.ts";
import { realSystem } from "../system/real.ts";
import { heldJobs, unservedJobs } from "../operate/due-work.ts";
import { type Alert, alertsFrom, resolveAlerts } from "../core/alerts.ts";
import { type RecordsSummary, countRetries, successRateOf } from "../records/process-records.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import type { Redrive } from "../redrive-api.ts";
import type { WorkerCounts } from "../report/reporter.ts";
import { type Cli, examples, type Flags, textual } from "./command.ts";
import { drainInto, drainRecords, missingText, recordsText } from "./drain-records.ts";
import { EXIT } from "./exit.ts";
import type { Session } from "./session.ts";
import { supervise } from "./supervise.ts";
import { jobFileNames, requiredDefinitions } from "./job-files.ts";
import { defaultsOf, workerFlags, workerOptions } from "./worker-flags.ts";
import { heldLines, runsText, unservedLines } from "./worker-summary.ts";

const NOTES = `
Exits when it holds no job, no job is due and no retry falls due within the
grace. Exit code 0: no job died; 1: a job died, a figure passed a limit of
\`alerts\` in the config, or results are missing; the last lines say which.
Signals work as for \`worker\`, with 25s for running jobs. Due jobs of types that
no job file defines stay queued; the last lines name them (--json: "unserved",
counted up to 1,000 a type). They also name due jobs that wait for a breaker, a
pause or a Retry-After (--json: "held").

With --input or --query every record becomes a job of the type, under its id.
Known ids are skipped and counted, so the same file can be fed again. --output
gets a line for every record of the input that is done, now or earlier, by this
process or by another worker (drain waits for its runs), and for every other job
that this call finished; "missing" counts lost results. The log reports failed
tries, dead jobs and runs that drain waits for, unless REDRIVE_LOG sets another
level. With --json or --output -, what your jobs print on stdout goes to stderr.

Environment: MAX_RETRIES (attempts after the first), for types that set none.
Only \`worker\` reads MAX_RETRY_ATTEMPTS and RETRY_DELAY_SECONDS.`;

/** Registers `drain`. */
export function register(cli: Cli): void {
  const command = workerFlags(cli.command)
    .option("--grace <duration>", "wait for retries that fall due within this time", "1s")
    .option(
      "--input <file>",
      "read new records from this file, - for stdin: NDJSON, CSV with a header, or a JSON array",
    )
    .option("--format <format>", "ndjson, csv or json (default: by the file extension, else ndjson)")
    .option("--query <sql>", "read new records from this query, one per row")
    .option("--from <url>", "the database of the query: sqlite:PATH or postgres://…")
    .option("--type <type>", "job type of the records (default: the only defined type)")
    .option("--id-field <name>", "field that holds the id of a record (default id)")
    .option("--output <file>", "write results here, - for stdout")
    .option("--output-format <format>", "ndjson or csv (default: by the file extension, else ndjson)")
    .addHelpText("after", NOTES);
  examples(command, cli, [
    "drain --jobs jobs.ts",
    "drain --jobs jobs.ts --grace 1m --json",
    "drain --jobs jobs.ts --input orders.ndjson --output results.ndjson",
    `drain --jobs jobs.ts --query 'select id, email from users' --from postgres://localhost/app`,
  ]);
  // An info line for each of a million records would bury the warnings.
  cli.act(command, drain, { level: ({ input, query }) => ((input ?? query) === undefined ? "info" : "warn") });
}

async function drain(session: Session, _args: readonly string[], flags: Flags): Promise<number> {
  const grace = textual(flags.grace) ?? "1s";
  parseDuration(grace, "grace");
  const defaults = defaultsOf(session, "drain");
  const options = workerOptions(session, flags, "drain");
  const jobs = await requiredDefinitions(session, flags);
  const taken = drainRecords(session, jobs, flags);
  const redrive = await session.open({ jobs, defaults }).catch((error: unknown) => {
    taken?.out?.abandon();
    throw error;
  });
  const worker = redrive.worker(options);
  const from = realSystem.monotonic();
  const hide = session.quiet
    ? () => undefined
    : session.progress.show(() => `drain: ${runsText(worker.counts)}, ${elapsed(from)}`);
  let summary: RecordsSummary | null = null;
  const work = async (): Promise<void> => {
    if (taken) summary = await drainInto(redrive, worker, taken, grace, session);
    else await worker.drain({ grace });
  };
  let code: number | null;
  try {
    code = await supervise(session, redrive, worker, { work, within: "25s" });
  } finally {
    hide();
  }
  const ms = Math.round(realSystem.monotonic() - from);
  const { counts } = worker;
  // After a signal the store is already closed.
  const left = code === null ? await leftIn(redrive, jobs, options.queues) : null;
  const alerts =
    (summary as RecordsSummary | null)?.alerts ?? (left ? await alertsOf(redrive, jobs, counts, ms, session) : []);
  const text = `${summary ? recordsText(summary) : ""}${runsText(counts)} in ${formatDuration(ms)}\n`;
  if (flags.output === "-") for (const line of text.trimEnd().split("\n")) session.say(line);
  else session.answer({ ...counts, ...(summary as RecordsSummary | null), ms, ...left, alerts }, () => text);
  const lines = left ? [...unservedLines(left.unserved, jobFileNames(session, flags)), ...heldLines(left.held)] : [];
  const missing = (summary as RecordsSummary | null)?.missing ?? 0;
  if (missing > 0) lines.push(missingText(missing));
  for (const line of [...lines, ...alerts.map(({ message }) => `alert: ${message}`)]) session.say(line);
  return code ?? (counts.dead + alerts.length + missing > 0 ? EXIT.failed : EXIT.ok);
}

/** The alerts of a drain without records; such a drain does not count retries. */
async function alertsOf(
  { store }: Redrive,
  jobs: readonly JobDefinition[],
  counts: WorkerCounts,
  ms: number,
  { config }: Session,
): Promise<readonly Alert[]> {
  const limits = resolveAlerts(config.alerts);
  if (Object.keys(limits).length === 0) return [];
  let [retryQueue, deadLetters] = [0, 0];
  for (const { type } of jobs) {
    retryQueue += await countRetries(store, type);
    deadLetters += (await store.tally({ type })).total;
  }
  return alertsFrom({ successRate: successRateOf(counts), retryQueue, deadLetters, averageRetries: null, ms }, limits);
}

/** Due jobs that were not run: no file defines their type, or something holds them back. */
async function leftIn({ store }: Redrive, jobs: readonly JobDefinition[], queues: readonly string[] | undefined) {
  const types = new Set(jobs.map(({ type }) => type));
  return { unserved: await unservedJobs(store, { types, queues }), held: await heldJobs(store) };
}

function elapsed(from: number): string {
  return formatDuration(Math.round((realSystem.monotonic() - from) / 100) * 100);
}
