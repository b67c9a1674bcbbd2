// `redrive batch`: runs a list of items through a command in batches, then retries the failed items. A run that is
// killed at any moment continues when it is started again.
import { type BatchCaller, type BatchRound, type BatchWait, workThrough } from "../batch-command/rounds.ts";
import { type BatchBooks, batchJob, type BatchPlan, booksOf } from "../batch-command/batch-run.ts";
import { type BatchState, beginRun, changeRun } from "../batch-command/batch-state.ts";
import { formatDuration } from "../core/duration.ts";
import type { Job } from "../core/job.ts";
import { redactJson } from "../core/redact.ts";
import { createRedrive } from "../redrive.ts";
import type { RedriveWorker } from "../worker/redrive-worker-api.ts";
import type { Log } from "../system/log.ts";
import { realSystem } from "../system/real.ts";
import { zeroCounts } from "../report/reporter.ts";
import { atMost } from "../worker/wind-down.ts";
import { planOf } from "./batch-plan.ts";
import { type Cli, collected, examples, type Flags } from "./command.ts";
import { EXIT } from "./exit.ts";
import { oneLine } from "../core/safe-text.ts";
import type { Session } from "./session.ts";
import { supervise } from "./supervise.ts";
import { bar, counted } from "./format.ts";

const NOTES = `
Each item is a job: \`jobs list\`, \`dlq list\` and the view item_errors show it.
The command gets a batch as a JSON array on stdin and in JOB_INPUT, or, beyond
128 KiB, in the file that JOB_INPUT_FILE names. Its exit code tells whether all
items succeeded; with --contract lines it reads and writes one line per item. It
sees PATH, LANG, TZ, HOME and the variables that --env names. Its output goes to
stderr, after its name and process id, unless --quiet.

An unfinished run of the same name is resumed: finished items do not run again.
The default name is made from the command and the input. Exit code 0: every item
succeeded in the end; 1: at least one item failed.

Environment: JOB_INPUT, BATCH_SIZE (10), RETRY_BATCH_SIZE (1), MAX_RETRIES (3).`;

/** Registers `batch`. */
export function register(cli: Cli): void {
  const command = cli.command
    .argument("<command...>", "the command and its arguments, after --")
    .option("--input <file>", "the items, - for stdin: a JSON array, NDJSON, or CSV with a header (default: JOB_INPUT)")
    .option("--format <format>", "ndjson, csv or json (default: by the name of the input, or its first character)")
    .option("--batch-size <n>", "items in a batch (default 10)")
    .option("--retry-batch-size <n>", "items in a batch of the retries (default 1)")
    .option("--max-retries <n>", "retries of an item after the first pass (default 3)")
    .option("--parallel <n>", "commands at the same time (default 1)")
    .option("--name <name>", "name of the run, to resume it later")
    .option("--contract <contract>", "plain: an exit code; lines: a line of JSON per item (default plain)")
    .option("--timeout <duration>", "how long a batch may take (default 1h)")
    .option("--env <name>", "a variable that the command may see, '*' for all; repeatable", collected)
    .addHelpText("after", NOTES)
    .exitOverride((error) => {
      if (error.code === "commander.unknownOption") error.message += "; options of the command come after --";
      throw error;
    });
  examples(command, cli, [
    "batch --input codes.json -- python3 entrypoint.py",
    "batch --input items.csv --batch-size 50 --parallel 4 -- ./extract.sh",
    "batch --input - --contract lines --name tonight -- node extract.mjs",
  ]);
  cli.act(command, batch, { level: () => "error" });
}

async function batch(session: Session, command: readonly string[], flags: Flags): Promise<number> {
  const plan = await planOf(session, command, flags);
  if (plan.items.length === 0) {
    session.answer({ ...report(plan, null, { succeeded: 0, failed: 0, retried: 0 }), ms: 0 }, () => "no items\n");
    return EXIT.ok;
  }
  const { store } = await session.open();
  const { state: begun, isResumed } = await beginRun(store, plan);
  const job = batchJob(plan, begun);
  const { config } = session;
  const log = withoutLetters(session.log);
  const redrive = await createRedrive({ store, jobs: [job], services: config.services, log });
  if (isResumed) session.say(`resuming run ${begun.run} of ${plan.name}`);
  if (begun.maxRetries !== plan.maxRetries)
    session.say(`max-retries stays ${begun.maxRetries}, as the run began with; ${plan.maxRetries} is not used`);
  const from = realSystem.monotonic();
  const before = await booksOf(store, job);
  const key = { name: plan.name, run: begun.run };
  // Read again, because other processes may have worked on the run too.
  const reckon = async (): Promise<Reckoning> => {
    return { ...(await booksOf(store, job)), state: (await changeRun(store, key, (now) => now)) ?? begun };
  };
  let working: Promise<void> = Promise.resolve();
  const last: { reckoning: Reckoning | null } = { reckoning: null };
  const course = openCourse(session, plan, before, async () => {
    // Here, because the stop closes the store at its end. The store may also be the reason for the stop, and never
    // answer.
    const reckoned = working.then(reckon).then((reckoning) => void (last.reckoning = reckoning));
    await atMost(
      realSystem,
      reckoned.catch(() => undefined),
      RECKON_MS,
    );
  });
  for (const kind of ["job.completed", "job.dead", "job.cancelled"] as const)
    redrive.on(kind, () => course.ended(kind === "job.completed"));
  let code: number | null;
  try {
    const work = (): Promise<void> => (working = workThrough({ redrive, job, plan, state: begun }, course));
    code = await supervise(session, redrive, course, { work, within: WITHIN });
  } finally {
    course.end();
  }
  const { dead, state, ...books } =
    last.reckoning ?? (await (code === null ? reckon() : { ...course.books, dead: [], state: begun }));
  const ms = Math.round(realSystem.monotonic() - from);
  session.answer({ ...report(plan, state, books), isResumed, ms }, () => summary(plan, state, books, ms));
  complain(session, dead, job.type);
  sayHowToGoOn(session, plan, books);
  if (code === null) await redrive.close();
  return code ?? (books.succeeded < plan.items.length ? EXIT.failed : EXIT.ok);
}

/** How long running batches may take to finish once the run is asked to stop. */
const WITHIN = "25s";
/** How long the store may take to report the state of a stopped run. */
const RECKON_MS = 3_000;

type Reckoning = Awaited<ReturnType<typeof booksOf>> & { readonly state: BatchState };

function sayHowToGoOn({ say }: Session, { items }: BatchPlan, { succeeded, failed }: BatchBooks): void {
  const left = items.length - succeeded - failed;
  if (left > 0) say(`stopped with ${counted(left, "item")} left; start the same command again to continue`);
}

interface Course extends BatchCaller, Pick<RedriveWorker, "stop" | "counts"> {
  /** An item has ended and will not be retried. */
  ended(well: boolean): void;
  /** The books as far as this process knows. */
  readonly books: BatchBooks;
  end(): void;
}

/**
 * Reports where the run is: a line per phase, and a progress bar on a terminal. The code that stops the run sees one
 * worker; `onStopped` is part of the stop.
 */
function openCourse(
  session: Session,
  { items }: BatchPlan,
  before: BatchBooks,
  onStopped: () => Promise<void>,
): Course {
  const total = items.length;
  let { succeeded, failed } = before;
  let [pass, phase] = ["first pass", "first pass"];
  const from = realSystem.monotonic();
  const already = succeeded + failed;
  const show = (): string => {
    const ended = succeeded + failed;
    const rate = (ended - already) / Math.max(0.001, (realSystem.monotonic() - from) / 1_000);
    const left = rate > 0 ? `, ${formatDuration(Math.ceil((total - ended) / rate) * 1_000)} left` : "";
    const share = ended / total;
    const counts = `${ended.toLocaleString("en-US")}/${counted(total, "item")}, ${failed} failed`;
    return `${phase} ${bar(share, 20).padEnd(20)} ${Math.floor(share * 100)} %  ${counts}, ${rate.toFixed(1)}/s${left}`;
  };
  const hide = session.quiet ? () => undefined : session.progress.show(show);
  let worker: RedriveWorker | null = null;
  const stopping = new AbortController();
  return {
    signal: stopping.signal,
    get counts() {
      return worker?.counts ?? zeroCounts();
    },
    async stop(options) {
      const { aborted } = stopping.signal;
      phase = "stopping";
      const how = `running batches may finish within ${WITHIN}; interrupt again to stop at once`;
      session.say(aborted ? "stopping at once" : `stopping: ${how}`);
      stopping.abort();
      await worker?.stop(options);
      if (!aborted) await onStopped();
    },
    onWorker(next) {
      worker = next;
      phase = pass;
    },
    onRound(round) {
      pass = round.round === 0 ? "first pass" : `retry round ${round.round}`;
      phase = pass;
      session.say(`${pass}: ${roundText(round)}`);
    },
    onWait(wait) {
      // Other items may still run while lost ones are waited for.
      if (wait.cause !== "lost") phase = "waiting";
      session.say(`waiting: ${waitText(wait)}`);
    },
    ended(well: boolean): void {
      if (well) succeeded += 1;
      else failed += 1;
    },
    get books() {
      return { ...before, succeeded, failed };
    },
    end: hide,
  };
}

function roundText({ items, sizes: [least, most] }: BatchRound): string {
  return `${counted(items, "item")} in batches of ${least === most ? most : `up to ${most}`}`;
}

function waitText(wait: BatchWait): string {
  if (wait.cause === "paused") {
    const { kind, name, reason } = wait.pause;
    return oneLine(`the ${kind} ${name} is paused${reason === "" ? "" : ` (${reason})`}`);
  }
  const items = counted(wait.items, "item");
  if (wait.cause === "elsewhere") return `${items} run by another process`;
  return `${items} run by a process that seems to have died; taken over within one lease`;
}

function report({ name, items }: BatchPlan, state: BatchState | null, books: BatchBooks): object {
  const { run = 0, rounds = 0, firstPassMs = 0, retryMs = 0 } = state ?? {};
  const { succeeded, failed, retried } = books;
  const left = items.length - succeeded - failed;
  return { items: items.length, succeeded, failed, left, retried, rounds, firstPassMs, retryMs, name, run };
}

function summary({ items }: BatchPlan, state: BatchState, books: BatchBooks, ms: number): string {
  const { succeeded, failed, retried } = books;
  const [good, bad, again] = [succeeded, failed, retried].map((n) => n.toLocaleString("en-US"));
  const { firstPassMs, retryMs, rounds } = state;
  const share = Math.round((100 * retryMs) / Math.max(1, firstPassMs + retryMs));
  return [
    `${counted(items.length, "item")}: ${good} succeeded, ${bad} failed, ${again} retried in ${counted(rounds, "round")}, ${formatDuration(ms)}`,
    `first pass ${formatDuration(firstPassMs)}, retries ${formatDuration(retryMs)} (${share} % of the time)`,
    "",
  ].join("\n");
}

/** The log without its lines about dead letters: the last lines of a run report the items that failed. */
function withoutLetters(log: Log): Log {
  const error: Log["error"] = (fields, message) => {
    if (!(Object.hasOwn(fields, "class") && Object.hasOwn(fields, "reason"))) log.error(fields, message);
  };
  return { ...log, error };
}

const SHOWN = 20;

/** Reports the items that failed and will not be retried, each with its error. */
function complain(session: Session, dead: readonly Job[], type: string): void {
  for (const { key, payload, attempts, failure } of dead.slice(0, SHOWN)) {
    const place = Number(key?.split(":").at(-2)) + 1;
    const error = failure ? `${failure.name}: ${failure.message}` : "cancelled";
    session.say(
      `failed: item ${place} ${oneLine(redactJson(payload)).slice(0, 200)} after ${counted(attempts, "try", "tries")}: ${oneLine(error)}`,
    );
  }
  if (dead.length > SHOWN) session.say(`and ${dead.length - SHOWN} more`);
  const [first] = dead;
  if (!first) return;
  session.say(`list them all: ${session.suggest(`dlq list --type ${type}`)}`);
  session.say(`output of the first one: ${session.suggest(`dlq show ${first.id}`)}`);
}
