// `redrive plan`: what a redrive would send, what speaks against it, how fast it may go and how long it takes. It changes
// no job; `redrive start` carries it out.
import type { Command } from "commander";
import { FAILURE_CLASSES } from "../core/job.ts";
import { formatDuration } from "../core/duration.ts";
import { safeLine } from "../core/safe-text.ts";
import { isoTime } from "../operate/json-form.ts";
import type { RedriveSelection } from "../operate/redrive-selection.ts";
import type { RedrivePlan } from "../core/recovery/plan.ts";
import { type Cli, defined, examples, type Flags, numeric, textual } from "./command.ts";
import { counted, grouped, shortTime } from "./format.ts";
import { noMatchHint } from "./no-match-hint.ts";
import type { Session } from "./session.ts";

const NOTES = `
A plan changes no job. It is good for 15 minutes, and \`start\` refuses it when
the dead letters have changed since. Letters whose key a newer job has are
skipped, unless you pass --superseded. --patch changes every payload on its way,
by a JSON merge patch: {"currency":"EUR","legacy":null} sets one field and
removes another.`;

/** Registers `plan`. */
export function register(cli: Cli): void {
  const command = selectionFlags(
    cli.command.description("Plan a redrive: what it sends, how fast, and what to know first."),
  )
    .option("--superseded", "send letters whose key a newer job has, too")
    .option("--patch <json>", "JSON merge patch for every payload")
    .option("--skip-misfits", "leave out letters whose patched payload does not fit their type")
    .addHelpText("after", NOTES);
  examples(command, cli, [
    "plan --cause 7f3a9c1e02b4d611",
    "plan --type charge --class network --from 2027-01-31T08:00:00Z",
    `plan --cause 7f3a9c1e02b4d611 --patch '{"currency":"EUR"}' --json`,
  ]);
  cli.act(command, async (session, ids, flags) => {
    const redrive = await session.openExisting();
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

/** A plan as JSON for callers. */
function planForm(plan: RedrivePlan): object {
  const { id, count, toSend, warnings, rate, durationMs, facts, proves, by } = plan;
  const { types, services, tenants, groups } = facts;
  return {
    id,
    count,
    toSend,
    warnings,
    expiresAt: isoTime(plan.expiresAt),
    rate,
    rateBecause: plan.rateBecause,
    durationMs,
    types,
    services,
    tenants,
    groups,
    proves,
    by,
  };
}

function planText(plan: RedrivePlan, session: Session): string {
  const { paint } = session;
  const { facts, proves } = plan;
  const [first, last] = [facts.firstDiedAt, facts.lastDiedAt].map((at) => (at === null ? "" : shortTime(at)));
  const died = first === last ? `died ${first}` : `died ${first} to ${last}`;
  const lines = [
    `${paint("bold", `Plan ${plan.id}`)}  ${counted(plan.count, "dead letter")}, ${died}`,
    `  ${aboutLetters(plan)}`,
    ...plan.warnings.map(({ text }) => `  ${paint("yellow", "!")} ${safeLine(text)}`),
    `  sends ${grouped(plan.toSend)}: ${stepsText(
      proves.map(({ good }) => good),
      plan.toSend,
    )}, ${rateText(plan.rate)} (${safeLine(plan.rateBecause)}): about ${formatDuration(plan.durationMs)}`,
    ...(proves.length === 0 ? [] : [`  proves ${proves.map(proofText).join(", ")}, with 95 % confidence`]),
    `Good for ${formatDuration(plan.expiresAt - plan.at)}. Start: ${session.suggest(`start ${plan.id} --follow`)}`,
  ];
  return `${lines.join("\n")}\n`;
}

function aboutLetters({ facts }: RedrivePlan): string {
  const types = named(facts.types, "type");
  const services = named(facts.services, "service");
  const parts = [types, services, facts.tenants > 0 ? counted(facts.tenants, "tenant") : ""];
  return parts.filter((part) => part !== "").join(" · ");
}

/** At most three names with their counts. */
function named(counts: Readonly<Record<string, number>>, what: string): string {
  const all = Object.entries(counts).toSorted(([, a], [, b]) => b - a);
  if (all.length === 0) return "";
  const shown = all.slice(0, 3).map(([name, count]) => `${safeLine(name)} ${grouped(count)}`);
  const more = all.length > 3 ? ` and ${all.length - 3} more` : "";
  return `${what} ${shown.join(", ")}${more}`;
}

/** `5, then 50, then the rest`. */
export function stepsText(steps: readonly number[], toSend: number): string {
  const canary = steps.reduce((sum, size) => sum + size, 0);
  const parts = [...steps.map(grouped), ...(canary < toSend ? [steps.length === 0 ? "all at once" : "the rest"] : [])];
  return parts.join(", then ");
}

/** `20 a second`, `one every 5s`. */
export function rateText(rate: number): string {
  return rate >= 1 ? `${grouped(rate)} a second` : `one every ${formatDuration(Math.round(1_000 / rate))}`;
}

function proofText({ good, failingAtMost }: RedrivePlan["proves"][number]): string {
  return `${grouped(good)} good leave at most ${Math.round(failingAtMost * 100)} % failing`;
}
