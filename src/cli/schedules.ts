// `redrive schedules`: jobs at set times, for the whole fleet; `list` also shows the upkeep services.
import { checkPayloadText } from "../core/payload.ts";
import { didYouMean, invalid } from "../core/options.ts";
import { type CatchUp, type Overlap, OVERLAPS } from "../core/schedule.ts";
import { typesByName } from "../schedules/schedule-jobs.ts";
import type { ScheduleOptions } from "../schedules/schedule-options.ts";
import type { ScheduleView } from "../schedules/schedule-views.ts";
import { checkSchedule } from "../schedules/schedules.ts";
import type { Redrive } from "../redrive-api.ts";
import {
  type Cli,
  defined,
  examples,
  type Flags,
  limitFlags,
  limitOptions,
  numeric,
  textual,
  whyFlag,
  whyOf,
} from "./command.ts";
import { EXIT } from "./exit.ts";
import { safeLine } from "../core/safe-text.ts";
import { scheduleForm } from "../operate/view-forms.ts";
import { schedulesTable, zonedTime } from "./schedules-table.ts";
import type { Session } from "./session.ts";
import { relativeTime } from "./format.ts";
import { definitions, jobFiles, JOBS_FLAG } from "./job-files.ts";

const NOTES = `
Every worker runs schedules; each tick makes one job for the whole fleet.
Cron expressions have five fields, or six with seconds first, in the zone of
--timezone. Adding a schedule under an existing name changes that schedule.

What --catch-up does with ticks that were missed while no worker ran:
  none   they make no job (ticks up to a minute late still do)
  one    only the latest makes a job (default)
  N      the latest N make jobs, oldest first, up to 1,000

What --overlap does when the last job has not ended at the next tick:
  queue    the jobs run one after the other (default)
  skip     the tick makes no job
  replace  the last job is cancelled, or asked to stop, and the next replaces it`;

/** Registers `schedules`. */
export function register(cli: Cli): void {
  const schedules = cli.command;
  const list = schedules.command("list").description("list the schedules, and the upkeep services of the workers");
  examples(list, cli, ["schedules list", "schedules list --json"]);
  cli.act(list, async (session) => {
    const redrive = await session.openExisting();
    const [views, { now }] = await Promise.all([redrive.schedules.list(), redrive.store.control()]);
    session.show({ items: views.map(scheduleForm), next: null }, () =>
      views.length === 0 ? "There is no schedule yet, and no worker has run.\n" : schedulesTable(views, now, session),
    );
  });
  registerAdd(cli, schedules);
  for (const [verb, description] of [
    ["pause", "make no more jobs until the schedule is resumed"],
    ["resume", "continue with the next tick from now"],
  ] as const) {
    const command = schedules.command(verb).description(description).argument("<name>", "name of the schedule");
    whyFlag(command);
    examples(command, cli, [`schedules ${verb} nightly`]);
    cli.act(command, async (session, [name = ""], flags) => {
      const redrive = await session.openExisting();
      await tell(session, redrive, await redrive.schedules[verb](name, whyOf(flags)));
    });
  }
  const run = schedules
    .command("run")
    .description("make one extra job now; the schedule does not change")
    .argument("<name>", "name of the schedule");
  whyFlag(run);
  examples(run, cli, ["schedules run nightly"]);
  cli.act(run, async (session, [name = ""], flags) => {
    const redrive = await session.openExisting();
    const { id } = await redrive.schedules.run(name, whyOf(flags));
    session.answer({ name, id }, () => `${id} enqueued\n`);
  });
  const remove = schedules
    .command("remove")
    .description("remove a schedule; its jobs stay")
    .argument("<name>", "name of the schedule");
  whyFlag(remove);
  examples(remove, cli, ["schedules remove nightly"]);
  cli.act(remove, async (session, [name = ""], flags) => {
    const redrive = await session.openExisting();
    const removed = await redrive.schedules.remove(name, whyOf(flags));
    const names = removed ? [] : (await redrive.schedules.list()).filter(({ kind }) => kind === "schedule");
    session.answer({ name, removed }, () => {
      if (removed) return `The schedule ${safeLine(name)} is removed.\n`;
      const hint = didYouMean(
        name,
        names.map((each) => each.name),
      );
      return `There was no schedule ${safeLine(name)}${hint && ` (${hint})`}.\n`;
    });
    return removed ? EXIT.ok : EXIT.failed;
  });
}

function registerAdd(cli: Cli, schedules: Cli["program"]): void {
  const add = schedules
    .command("add")
    .description("add a schedule, or change the existing one of this name")
    .argument("<name>", "name of the schedule")
    .argument("<type>", "job type")
    .argument("[payload]", "JSON, the input of every job (default {})")
    .option("--cron <expression>", "cron expression of the ticks, e.g. '0 8 * * MON-FRI'")
    .option("--timezone <zone>", "time zone of --cron, an IANA name (default UTC)")
    .option("--every <duration>", "interval between ticks instead of --cron, e.g. 5m")
    .option("--catch-up <rule>", "what to do with missed ticks: none, one or a number (default one; see below)")
    .option("--overlap <rule>", `if the last job has not ended: ${OVERLAPS.join(", ")} (default queue; see below)`)
    .option("--jitter <duration>", "delay every job by a random time up to this long")
    .option(...JOBS_FLAG)
    .option("--priority <n>", "0 to 9, higher first (default 0)")
    .option("--tenant <name>", "owner of the jobs, for fairness and limits")
    .option("--service <name>", "outside service that the jobs depend on")
    .option("--queue <name>", "queue of a type that --jobs does not define (default: default)")
    .addHelpText("after", NOTES);
  limitFlags(add);
  whyFlag(add);
  examples(add, cli, [
    "schedules add nightly report '{\"full\":true}' --cron '0 2 * * *' --timezone Europe/Berlin",
    "schedules add poll fetch-feed --every 5m --overlap skip",
  ]);
  cli.act(add, async (session, [name = "", type = "", payload = "{}"], flags) => {
    const jobs = jobFiles(session, flags).length === 0 ? [] : await definitions(session, flags);
    const { defaults } = session.config;
    const options = { job: type, input: JSON.parse(checkPayloadText(payload)) as unknown, ...optionsOf(flags) };
    // Checks everything before a database file is created.
    await checkSchedule(name, options, typesByName(jobs, defaults));
    const redrive = await session.open({ jobs, defaults });
    await tell(session, redrive, await redrive.schedules.set(name, options, whyOf(flags)));
  });
}

function optionsOf(flags: Flags): Omit<ScheduleOptions, "job" | "input"> {
  if ((flags.cron === undefined) === (flags.every === undefined)) {
    const came = flags.cron === undefined ? "neither" : "both";
    throw invalid("times", "--cron EXPRESSION or --every DURATION", came, "give one of them");
  }
  const rule = textual(flags.catchUp);
  const several = numeric(rule);
  return defined({
    cron: textual(flags.cron),
    timezone: textual(flags.timezone),
    every: textual(flags.every),
    catchUp: typeof several === "number" ? { all: several } : (rule as CatchUp | undefined),
    overlap: textual(flags.overlap) as Overlap | undefined,
    jitter: textual(flags.jitter),
    priority: numeric(flags.priority),
    tenant: textual(flags.tenant),
    ...limitOptions(flags),
    service: textual(flags.service),
    queue: textual(flags.queue),
  });
}

async function tell(session: Session, { store }: Redrive, view: ScheduleView): Promise<void> {
  const { now } = await store.control();
  session.answer(scheduleForm(view), () => `The schedule ${safeLine(view.name)} ${plan(view, now)}.\n`);
}

function plan({ paused, nextAt, timezone }: ScheduleView, now: number): string {
  if (paused) return "is paused until it is resumed";
  if (nextAt === null) return "never runs again";
  return `runs next ${relativeTime(nextAt, now)}, at ${zonedTime(nextAt, timezone)}`;
}
