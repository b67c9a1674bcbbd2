// `redrive dlq triage`: what to do about the dead letters of each cause, why, and the command to run next.
import type { Command } from "commander";
import { safeLine } from "../core/safe-text.ts";
import { triageForm } from "../operate/view-forms.ts";
import { triageCauses, type TriagedCause } from "../operate/triage.ts";
import { type Cli, defined, examples, numeric, textual } from "./command.ts";
import { counted, grouped } from "./format.ts";
import { stateStyle } from "./paint.ts";
import type { Session } from "./session.ts";
import { cutTo, tableOf } from "./table.ts";

const NOTES = `
Advice:
  redrive  very likely all complete: send them back
  canary   they may complete: send a few first
  repair   the payloads themselves are refused: change them
  wait     it may pass by itself, or something is under way
  unknown  a person must look: a bug without a fix, or nothing is known`;

/** Registers `dlq triage`. */
export function registerTriage(cli: Cli, dlq: Command): void {
  const command = dlq
    .command("triage")
    .description("advise what to do about the dead letters of each cause, and why")
    .option("--cause <id>", "only this cause")
    .option("--limit <n>", "causes, those with the most letters first, 1 to 200", "20")
    .addHelpText("after", NOTES);
  examples(command, cli, ["dlq triage", "dlq triage --cause 7f3a9c1e02b4d611 --json"]);
  cli.act(command, async (session, _args, flags) => {
    const redrive = await session.openExisting();
    const fingerprint = textual(flags.cause);
    const found = await triageCauses(redrive, { limit: numeric(flags.limit) ?? 20, ...defined({ fingerprint }) });
    session.show({ items: found.map((each) => formOf(each, session)), next: null }, () =>
      found.length === 0 ? "No dead letters.\n" : triageText(found, session),
    );
    const dead = found.reduce((sum, { cause }) => sum + cause.dead, 0);
    if (found.length > 1 && !session.json)
      session.say(`${counted(found.length, "cause")}, ${counted(dead, "letter")}.`);
  });
}

function nextOf({ advice, cause: { fingerprint } }: TriagedCause, session: Session): string {
  if (advice === "redrive" || advice === "canary") return session.suggest(`plan --cause ${fingerprint}`);
  if (advice === "repair") return session.suggest(`plan --cause ${fingerprint} --patch '{"field":"value"}'`);
  return session.suggest(`dlq causes show ${fingerprint}`);
}

function formOf(found: TriagedCause, session: Session): object {
  const { fingerprint, advice, reason, ...rest } = triageForm(found) as Record<string, unknown>;
  return { fingerprint, advice, reason, command: nextOf(found, session), ...rest };
}

/** The table, with the command to run next under each line. */
function triageText(found: readonly TriagedCause[], session: Session): string {
  const table = tableOf(found, session, [
    { title: "CAUSE", of: ({ cause }) => cause.fingerprint },
    { title: "DEAD", align: "right", of: ({ cause }) => grouped(cause.dead) },
    { title: "TYPES", least: 6, optional: true, of: ({ cause }) => cause.types.join(", ") },
    { title: "ADVICE", of: ({ advice }) => ({ text: advice, style: stateStyle(advice) }) },
    { title: "WHY", least: 24, of: ({ reason }) => reason },
  ]);
  const [head = "", ...lines] = table.trimEnd().split("\n");
  const both = lines.flatMap((line, at) => {
    const each = found[at];
    return each ? [line, session.paint("dim", cutTo(`  ${safeLine(nextOf(each, session))}`, session.width))] : [line];
  });
  return `${[head, ...both].join("\n")}\n`;
}
