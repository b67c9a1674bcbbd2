// `redrive plan`: what a redrive would send, what speaks against it, how fast it may go and how long it takes. It changes
// no job; `redrive start` carries it out.
import type { Command } from "commander";
import { FAILURE_CLASSES } from "../core/job.ts";
import { safeLine } from "../core/safe-text.ts";
import type { RedriveSelection } from "../operate/redrive-selection.ts";
import { type Cli, defined, examples, type Flags, numeric, textual } from "./command.ts";
import { definitions, jobFiles, JOBS_FLAG } from "./job-files.ts";
import { noMatchHint } from "./no-match-hint.ts";
import { planForm } from "../operate/view-forms.ts";
import { planText } from "./plan-form.ts";

const NOTES = `
A plan changes no job. It is good for 15 minutes, and \`start\` refuses it when
the dead letters have changed since. Letters whose key a newer job has are
skipped, unless you pass --superseded. --patch changes every payload on its way,
by a JSON merge patch: {"currency":"EUR","legacy":null} sets one field and
removes another; it needs the job definitions, which check the new payloads.`;

/** Registers `plan`. */
export function register(cli: Cli): void {
  const command = selectionFlags(
    cli.command.description("Plan a redrive: what it sends, how fast, and what to know first."),
  )
    .option("--superseded", "send letters whose key a newer job has, too")
    .option("--patch <json>", "JSON merge patch for every payload")
    .option("--skip-misfits", "leave out letters whose patched payload does not fit their type")
    .option(...JOBS_FLAG)
    .addHelpText("after", NOTES);
  examples(command, cli, [
    "plan --cause 7f3a9c1e02b4d611",
    "plan --type charge --class network --from 2027-01-31T08:00:00Z",
    `plan --cause 7f3a9c1e02b4d611 --patch '{"currency":"EUR"}' --json`,
  ]);
  cli.act(command, async (session, ids, flags) => {
    // A patched payload is checked by the schema of its type.
    const needsTypes = flags.patch !== undefined && jobFiles(session, flags).length > 0;
    const redrive = await session.openExisting({ jobs: needsTypes ? await definitions(session, flags) : [] });
    const options = defined({
      superseded: flags.superseded === true ? true : undefined,
      patch: textual(flags.patch),
      skipMisfits: flags.skipMisfits === true ? true : undefined,
    });
    const plan = await redrive.redrives.plan(selectionOf(ids, flags), options);
    if (plan.count === 0 && !session.json) {
      const hint = ids.length > 0 ? "No job of these ids is dead" : safeLine(await noMatchHint(redrive, flags));
      return session.show(null, () => `${hint}; there is nothing to send.\n`);
    }
    session.show(planForm(plan), () => planText(plan, session));
  });
}

function selectionFlags(command: Command): Command {
  return command
    .argument("[ids...]", "job ids, or filters")
    .option("--cause <id>", "of this cause")
    .option("--class <class>", FAILURE_CLASSES.join(", "))
    .option("--type <type>", "of this job type")
    .option("--tenant <name>", "of this tenant")
    .option("--service <name>", "that depend on this service")
    .option("--key <text>", "of jobs with this key")
    .option("--from <time>", "died at this time or later, or from this long ago, e.g. 2h")
    .option("--until <time>", "died before this time")
    .option("--text <part>", "part of the error's name or message")
    .option("--limit <n>", "at most so many, the first in the order of enqueue");
}

function selectionOf(ids: readonly string[], flags: Flags): RedriveSelection {
  return defined({
    ids: ids.length > 0 ? [...new Set(ids)] : undefined,
    fingerprint: textual(flags.cause),
    class: textual(flags.class),
    type: textual(flags.type),
    tenant: textual(flags.tenant),
    service: textual(flags.service),
    key: textual(flags.key),
    from: numeric(flags.from),
    until: numeric(flags.until),
    text: textual(flags.text),
    limit: numeric(flags.limit),
  }) as RedriveSelection;
}
