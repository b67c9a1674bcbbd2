// `redrive jobs`: lists, explains, cancels, retries and reschedules jobs.
import { JOB_BOUNDS } from "../core/new-job.ts";
import { parseDuration } from "../core/duration.ts";
import { type Holding, shownState } from "../core/holding.ts";
import type { Job } from "../core/job.ts";
import { invalid } from "../core/options.ts";
import { readHolding } from "../services/holding.ts";
import { jobForm } from "../operate/job-forms.ts";
import type { JobFilter } from "../operate/jobs.ts";
import { instantOf } from "../enqueue/new-jobs.ts";
import type { Redrive } from "../redrive-api.ts";
import type { Page } from "../store/store.ts";
import { type Cli, defined, examples, numeric, textual, whyFlag, whyOf } from "./command.ts";
import { mayGoOn } from "./confirm.ts";
import { EXIT } from "./exit.ts";
import { heldState, jobFilter, jobFilterFlags, oneTarget } from "./job-flags.ts";
import { explainToPeople } from "./jobs-explain.ts";
import { showHistory } from "./jobs-history.ts";
import { retryJobs } from "./jobs-retry.ts";
import { showJob } from "./jobs-show.ts";
import { noJobHint } from "./no-match-hint.ts";
import { pageForm } from "../operate/view-forms.ts";
import { lookAt, lookFlag, noneText, sayMore } from "./look.ts";
import { stateStyle } from "./paint.ts";
import { isNextRound } from "../core/round.ts";
import type { Session } from "./session.ts";
import { type Column, KEY_COLUMN, tableText } from "./table.ts";
import { answerChange } from "./whole-ids.ts";
import { counted, errorLine, ofLimit, relativeTime, triesOf } from "./format.ts";

const ID_OR_KEY = "id of the job, or its key (then the newest job with that key)";

/** Registers `jobs`. */
export function register(cli: Cli): void {
  const jobs = cli.command;
  const show = jobs.command("show").description("show everything known about a job").argument("<id>", ID_OR_KEY);
  cli.act(show, async (session, [id = ""]) => showJob(session, id));
  examples(show, cli, ["jobs show 0199c8a2-7d1e-7a4b-9c3d-2f1e5a6b7c8d", "jobs show order-17"]);
  const explain = jobs
    .command("explain")
    .description("explain why a job is not running, what happens next and when")
    .argument("<id>", ID_OR_KEY);
  cli.act(explain, async (session, [id = ""]) => explainToPeople(session, id));
  examples(explain, cli, ["jobs explain 0199c8a2-7d1e-7a4b-9c3d-2f1e5a6b7c8d"]);
  const history = jobs
    .command("history")
    .description("list every run of a job with its retries, oldest first")
    .argument("<id>", `${ID_OR_KEY}, or the id of one of its runs`);
  cli.act(history, async (session, [id = ""]) => showHistory(session, id));
  examples(history, cli, ["jobs history 0199c8a2-7d1e-7a4b-9c3d-2f1e5a6b7c8d"]);
  registerList(cli);
  registerCancel(cli);
  const retry = whyFlag(
    jobs
      .command("retry")
      .description("send dead jobs back to work with their attempts reset, and run waiting jobs now")
      .argument("<ids...>", "job ids"),
  );
  cli.act(retry, async (session, ids, flags) => retryJobs(session, ids, whyOf(flags)));
  examples(retry, cli, ["jobs retry 0199c8a2-7d1e-7a4b-9c3d-2f1e5a6b7c8d"]);
  registerReschedule(cli);
}

function registerList(cli: Cli): void {
  const list = cli.command.command("list").description("list jobs, newest first");
  const command = lookFlag(
    jobFilterFlags(list, { held: true })
      .option("--sort <order>", "due: waiting jobs, in order of due time")
      .option("--limit <n>", "jobs per page, 1 to 200", "50")
      .option("--cursor <cursor>", "where the previous page ended"),
    "jobs",
  );
  examples(command, cli, [
    "jobs list",
    "jobs list --state retrying --sort due",
    "jobs list --state retrying --type thumbnail --limit 10 --json",
  ]);
  cli.act(command, async (session, _args, flags) => {
    const filter = jobFilter(flags, { held: true });
    const where = { limit: numeric(flags.limit) ?? 50, cursor: textual(flags.cursor) ?? null, lookAt: lookAt(flags) };
    const query = {
      ...filter,
      ...where,
      payloads: session.json,
      ...defined({ sort: textual(flags.sort) as "due" | undefined }),
    };
    const redrive = await session.openExisting();
    const holding = await readHolding(redrive.store);
    const state = heldState(flags);
    const page = await (state === null ? redrive.jobs.list(query) : listHeld(redrive, query, state, holding));
    const { items } = page;
    session.show({ items: items.map((job) => jobForm(job, holding)), ...pageForm(page) }, () =>
      items.length === 0 ? noneText(page, noJobHint(flags)) : jobsTable(items, holding, session),
    );
    sayMore(session, page, flags, "job", holding.now);
  });
}

/** Most pages read to fill one page of jobs in a state that needs a check of each job. */
const PAGES_READ = 100;

async function listHeld(
  { jobs }: Redrive,
  query: JobFilter & { readonly limit: number; readonly cursor: string | null },
  state: string,
  holding: Holding,
): Promise<Page<Job>> {
  const found: Job[] = [];
  let last: Omit<Page<Job>, "items"> = { next: query.cursor };
  for (let pages = 0; pages < PAGES_READ; pages++) {
    // Reads never more than still fit, so that the cursor points after the last job shown.
    const { items, ...page } = await jobs.list({
      ...query,
      cursor: last.next,
      limit: pages === 0 ? query.limit : query.limit - found.length,
    });
    found.push(...items.filter((job) => shownState(job, holding) === state));
    last = page;
    if (page.next === null || found.length >= query.limit) break;
  }
  return { items: found, ...last };
}

const COLUMNS: readonly Column[] = [
  { title: "ID" },
  { title: "TYPE", least: 6 },
  KEY_COLUMN,
  { title: "STATE" },
  { title: "TRIES", align: "right" },
  { title: "WHEN" },
  { title: "ERROR", least: 12, optional: true },
];

function jobsTable(jobs: readonly Job[], holding: Holding, { width, paint }: Session): string {
  const { now } = holding;
  const rows = jobs.map((job) => {
    const state = shownState(job, holding);
    const when = job.state === "queued" ? job.runAt : (job.finishedAt ?? job.startedAt);
    const error = job.failure === null || job.state === "completed" ? "" : errorLine(job.failure);
    const tries = ofLimit(job, triesOf(job), "/", job.maxAttempts);
    const isLater = job.state === "queued" && isNextRound(job.type, job.runAt - now);
    const time = isLater ? "next round" : relativeTime(when, now);
    return [job.id, job.type, job.key ?? "", { text: state, style: stateStyle(state) }, tries, time, error];
  });
  return tableText(COLUMNS, rows, { width, paint });
}

function registerCancel(cli: Cli): void {
  const command = jobFilterFlags(
    cli.command
      .command("cancel")
      .description("cancel waiting jobs, and ask running ones to stop")
      .argument("[ids...]", "job ids, or filters"),
  )
    .option("--all", "every job that waits or runs")
    .option("--yes", "do not ask for confirmation when filters or --all are used");
  whyFlag(command);
  examples(command, cli, ["jobs cancel 0199c8a2-7d1e-7a4b-9c3d-2f1e5a6b7c8d", "jobs cancel --type thumbnail --yes"]);
  cli.act(command, async (session, ids, flags) => {
    const target = oneTarget(ids, jobFilter(flags), flags.all === true);
    const because = whyOf(flags);
    const redrive = await session.openExisting();
    if (!Array.isArray(target) && !(await mayGoOn(session.io, flags, "cancel", "every job that matches"))) {
      session.answer({ cancelled: 0, requested: 0, finished: 0, missing: 0 }, () => "Nothing was cancelled.\n");
      return EXIT.ok;
    }
    const sum = await redrive.jobs.cancel(target, because);
    answerChange(session, ids, sum, `${counted(sum.cancelled, "job")} cancelled`, [
      [sum.requested, "running and asked to stop"],
      [sum.finished, "had ended already"],
    ]);
    return Array.isArray(target) && sum.missing + sum.finished > 0 ? EXIT.failed : EXIT.ok;
  });
}

function registerReschedule(cli: Cli): void {
  const command = jobFilterFlags(
    cli.command
      .command("reschedule")
      .description("change when waiting jobs run, or their priority")
      .argument("[ids...]", "job ids, or filters"),
  )
    .option("--all", "every job that waits")
    .option("--delay <duration>", "run after this long, 0s for now")
    .option("--run-at <time>", "run at this time, e.g. 2027-01-31T08:00:00Z")
    .option("--priority <n>", "0 to 9, higher first");
  whyFlag(command);
  examples(command, cli, ["jobs reschedule --state retrying --delay 0s", "jobs reschedule --type mail --priority 9"]);
  cli.act(command, async (session, ids, flags) => {
    const target = oneTarget(ids, jobFilter(flags), flags.all === true);
    const delay = textual(flags.delay);
    const runAt = numeric(flags.runAt);
    if (delay !== undefined) parseDuration(delay, "delay", { maxMs: JOB_BOUNDS.delayMs });
    if (runAt !== undefined) instantOf(runAt, "run-at");
    const change = defined({ delay, runAt, priority: numeric(flags.priority) });
    if (Object.keys(change).length === 0)
      throw invalid("reschedule", "--delay, --run-at or --priority", "none of them", "pass at least one");
    const sum = await (await session.openExisting()).jobs.reschedule(target, { ...change, ...whyOf(flags) });
    answerChange(session, ids, sum, `${counted(sum.changed, "job")} changed`, [[sum.refused, "not waiting"]]);
    return Array.isArray(target) && sum.missing + sum.refused > 0 ? EXIT.failed : EXIT.ok;
  });
}
