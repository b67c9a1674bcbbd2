// `redrive start`: starts a planned redrive. With --follow it shows the run to its end, and drives it where no worker
// does; with --jobs it also works the jobs, so that one command is enough where no worker runs.
import { RedriveError } from "../core/errors.ts";
import { invalid } from "../core/options.ts";
import { definitions } from "./job-files.ts";
import type { Redrive } from "../redrive-api.ts";
import type { RedriveStartOptions } from "../operate/redrive-selection.ts";
import type { RedriveRunView } from "../operate/redrive-views.ts";
import { type Cli, collected, defined, examples, type Flags, numeric, textual, whyFlag, whyOf } from "./command.ts";
import { EXIT } from "./exit.ts";
import { runForm } from "../operate/view-forms.ts";
import { endText, progressText, runExit, stepText } from "./redrive-form.ts";
import type { Session } from "./session.ts";
import { listen } from "./supervise.ts";
import { defaultsOf, workerOptions } from "./worker-flags.ts";

const NOTES = `
The first letters are a canary: each step is judged by the first run of every
job in it, before the next step is sent. A run stops by itself when jobs fail as
they failed before; what was sent and not taken is then recalled. It never goes
on without evidence: while a breaker, a pause or a missing worker holds the jobs
back it waits, and says so.

Any worker drives the run. --follow shows it to its end, and drives it, too.
Exit code 0: completed; 4: stopped, paused, cancelled or refused; 130: you
interrupted the command, and the run goes on.`;

/** Registers `start`. */
export function register(cli: Cli): void {
  const command = cli.command
    .description("Start a planned redrive.")
    .argument("<plan>", "the id that `plan` printed")
    .option("--canary <sizes>", "sizes of the first steps, or none", "5,50")
    .option("--rate <n>", "letters a second, at most (default: that of the plan)")
    .option("--judge-within <duration>", "pause a step that has no verdict after this long (default: 10 x the timeout)")
    .option("--tolerate <share>", "share of a step that may fail the same way, e.g. 2%", "0%")
    .option("--alongside", "start beside a run about the same letters")
    .option("--follow", "show the run to its end")
    .option("--jobs <file>", "with --follow: work the jobs here, too; repeatable", collected)
    .addHelpText("after", NOTES);
  whyFlag(command);
  examples(command, cli, [
    "start p_01jc4y8n2k --follow",
    "start p_01jc4y8n2k --canary 10,100 --rate 50 --tolerate 2% --why 'fixed in 1.5.3'",
    "start p_01jc4y8n2k --canary none --follow --jobs jobs.ts --json",
  ]);
  cli.act(command, async (session, [plan], flags) => start(session, plan as string, flags));
}

async function start(session: Session, plan: string, flags: Flags): Promise<number> {
  const options: RedriveStartOptions = { ...startOptions(flags), ...whyOf(flags) };
  const works = flags.jobs !== undefined;
  if (works && flags.follow !== true)
    throw new RedriveError("invalid_argument", "jobs: expected --follow too; got none; add it");
  const redrive = works
    ? await session.open({ jobs: await definitions(session, flags), defaults: defaultsOf(session, "worker") })
    : await session.openExisting();
  const run = await redrive.redrives.start(plan, options);
  if (flags.follow === true) return follow(session, redrive, run, flags);
  session.answer(runForm(run), () => `Started ${run.id}. Look: ${session.suggest(`redrives show ${run.id}`)}\n`);
  if (run.waits !== null) session.say(`It waits: ${run.waits}`);
  return EXIT.ok;
}

/** Shows a run to its end; answers the exit code. */
async function follow(session: Session, redrive: Redrive, begun: RedriveRunView, flags: Flags): Promise<number> {
  const signals = listen(session.io);
  const leaving = new AbortController();
  const worker = flags.jobs === undefined ? null : redrive.worker(workerOptions(session, flags, "worker"));
  let now = begun;
  const onChange = (run: RedriveRunView): void => {
    const isNext = run.step !== now.step;
    now = run;
    if (isNext) session.say(`${run.id} ${stepText(run)}`);
  };
  const hide = session.quiet ? () => undefined : session.progress.show(() => progressText(now));
  try {
    await worker?.start();
    const signal = signals.next().then((name) => {
      leaving.abort();
      return name;
    });
    const end = await Promise.race([redrive.redrives.follow(begun.id, { signal: leaving.signal, onChange }), signal]);
    hide();
    await worker?.stop({ within: "25s" });
    // The worker has ended runs since the last look.
    const last = await redrive.redrives.get(begun.id);
    if (typeof end === "string") {
      session.show(runForm(last), () => "");
      session.say(`${begun.id} goes on without this command. Look: ${session.suggest(`redrives show ${begun.id}`)}`);
      return EXIT[end];
    }
    session.answer(runForm(last), () => endText(last, session));
    return runExit(last);
  } finally {
    hide();
    signals.stop();
  }
}

function startOptions(flags: Flags): RedriveStartOptions {
  return defined({
    canary: canaryOf(textual(flags.canary)),
    rate: numeric(flags.rate),
    judgeWithin: textual(flags.judgeWithin),
    tolerate: shareOf(textual(flags.tolerate)),
    alongside: flags.alongside === true ? true : undefined,
  });
}

function canaryOf(text: string | undefined): RedriveStartOptions["canary"] {
  if (text === undefined || text === "none") return text;
  const sizes = text.split(",").map((size) => size.trim());
  if (sizes.every((size) => /^\d{1,9}$/.test(size))) return sizes.map(Number);
  throw invalid("canary", "sizes such as 5,50, or none", text, "correct it");
}

/** `2%` or `0.02`. */
function shareOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [, digits, percent] = /^(\d{1,9}(?:\.\d{1,9})?)\s*(%?)$/.exec(text) ?? [];
  if (digits === undefined) throw invalid("tolerate", "a share such as 2% or 0.02", text, "correct it");
  return percent === "%" ? Number(digits) / 100 : Number(digits);
}
