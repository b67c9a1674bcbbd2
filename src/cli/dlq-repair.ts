// `redrive dlq repair`: gives many dead letters new payloads by a recipe, after a look at all of them.
import { resolve } from "node:path";
import type { Command } from "commander";
import { invalid } from "../core/options.ts";
import { safeLine } from "../core/safe-text.ts";
import type { DeadLetterTarget } from "../operate/dead-letters.ts";
import type { Recipe } from "../operate/recipe.ts";
import type { Misfits, RepairPreview } from "../operate/repair-letters.ts";
import { type Cli, collected, examples, type Flags, textual, whyFlag, whyOf } from "./command.ts";
import { confirmed } from "./confirm.ts";
import { EXIT } from "./exit.ts";
import { counted, grouped } from "./format.ts";
import { definitions, jobFiles } from "./job-files.ts";
import { letterFilter, letterFilterFlags, oneTarget } from "./job-flags.ts";
import { noMatchHint } from "./no-match-hint.ts";
import type { Session } from "./session.ts";

const NOTES = `
A recipe is a JSON merge patch (--patch), which leaves every other byte of a
payload as it is, or a module whose default export is a function
(payload, letter) => newPayload (--with). The function has 5 s for each letter.
All letters are looked at first: where one does not fit the schema of its type,
nothing is written (exit 4), unless --skip-misfits leaves those as they are.`;

/** Registers `dlq repair`. */
export function registerRepair(cli: Cli, dlq: Command): void {
  const command = letterFilterFlags(
    dlq
      .command("repair")
      .description("give dead letters new payloads by a merge patch or a function")
      .argument("[ids...]", "job ids, or filters"),
  )
    .option("--cause <fingerprint>", "of this cause")
    .option("--all", "every dead letter")
    .option("--patch <json>", "the recipe: a JSON merge patch (RFC 7396)")
    .option("--with <file>", "the recipe: a module whose default export is a function")
    .option("--preview", "only say what the recipe would do")
    .option("--skip-misfits", "leave the letters that do not fit as they are, and repair the others")
    .option(
      "--jobs <file>",
      "module with the job definitions; repeatable (default: jobs of the config file)",
      collected,
    )
    .option("--yes", "do not ask")
    .addHelpText("after", NOTES);
  whyFlag(command);
  examples(command, cli, [
    `dlq repair --cause 7f3a9c1e02b4d611 --patch '{"currency":"EUR"}' --preview`,
    `dlq repair --cause 7f3a9c1e02b4d611 --with fix.ts --why "the importer sent cents as text"`,
  ]);
  cli.act(command, (session, ids, flags) => repair(session, ids, flags));
}

async function repair(session: Session, ids: readonly string[], flags: Flags): Promise<number> {
  const recipe = recipeOf(session, flags);
  const because = whyOf(flags);
  const jobs = jobFiles(session, flags).length > 0 ? await definitions(session, flags) : [];
  const redrive = await session.openExisting({ jobs });
  const cause = textual(flags.cause);
  if (cause !== undefined && flags.fingerprint !== undefined)
    throw invalid("cause", "no --fingerprint beside it", cause, "give one of the two");
  const named = cause === undefined ? flags : { ...flags, fingerprint: cause };
  const filter = await letterFilter(named, async () => redrive.store);
  const target: DeadLetterTarget = oneTarget(ids, filter, flags.all === true);
  const preview = await redrive.deadLetters.preview(target, recipe);
  const bad = preview.misfits.count + preview.losesNumbers.count;
  const skipMisfits = flags.skipMisfits === true;
  const isRefused = bad > 0 && !skipMisfits;
  const isFound = preview.letters + preview.notDead + preview.missing > 0;
  if (!isFound) {
    const said = await noMatchHint(redrive, named);
    session.answer({ ...preview, repaired: 0 }, () => `${safeLine(said)}; nothing was written.\n`);
    return EXIT.ok;
  }
  if (flags.preview || isRefused || preview.fits === 0) {
    session.show({ ...preview, repaired: 0 }, () => previewText(preview));
    if (isRefused) session.say(refusal(bad, preview.letters));
    return isRefused ? EXIT.refused : preview.notDead + preview.missing > 0 ? EXIT.failed : EXIT.ok;
  }
  if (!session.json) session.say(previewText(preview).trimEnd());
  const question = `Give ${counted(preview.fits, "dead letter")} a new payload?`;
  if (flags.yes !== true && (await confirmed(session.io, question)) === false) {
    session.answer({ ...preview, repaired: 0 }, () => "Nothing was written.\n");
    return EXIT.ok;
  }
  const sum = await redrive.deadLetters.repair(target, recipe, { skipMisfits, ...because });
  session.answer({ ...preview, ...sum }, () => {
    const rest = [
      [sum.unchanged, "unchanged"],
      [sum.skipped, "skipped"],
      [sum.refused, "not dead, or changed meanwhile"],
      [sum.missing, "not found"],
    ] as const;
    const said = rest.filter(([count]) => count > 0).map(([count, what]) => `, ${grouped(count)} ${what}`);
    return `${counted(sum.repaired, "dead letter")} repaired${said.join("")}\n`;
  });
  return sum.refused + sum.missing > 0 ? EXIT.failed : EXIT.ok;
}

function recipeOf(session: Session, flags: Flags): Recipe {
  const [patch, file] = [textual(flags.patch), textual(flags.with)];
  if ((patch === undefined) === (file === undefined))
    throw invalid("recipe", "--patch or --with", patch === undefined ? "neither" : "both", "give one of the two");
  return patch ?? { module: resolve(session.io.cwd, file ?? "") };
}

function refusal(bad: number, letters: number): string {
  return `error: ${grouped(bad)} of ${counted(letters, "dead letter")} would not fit; correct the recipe, or add --skip-misfits; nothing was written`;
}

function previewText(preview: RepairPreview): string {
  const { letters, fits, unchanged, misfits, losesNumbers, notDead, missing } = preview;
  const parts = [
    `${grouped(fits)} fit`,
    ...(unchanged > 0 ? [`${grouped(unchanged)} unchanged`] : []),
    ...(misfits.count > 0 ? [`${grouped(misfits.count)} do not fit`] : []),
    ...(losesNumbers.count > 0 ? [`${grouped(losesNumbers.count)} would lose numbers`] : []),
    ...(notDead > 0 ? [`${grouped(notDead)} not dead`] : []),
    ...(missing > 0 ? [`${grouped(missing)} not found`] : []),
  ];
  return `${counted(letters, "dead letter")}: ${parts.join(", ")}\n${namedText(misfits)}${namedText(losesNumbers)}`;
}

function namedText({ count, named }: Misfits): string {
  const lines = named.map(({ id, issue }) => `  ${id}  ${safeLine(issue)}\n`);
  const more = count > named.length ? `  … and ${grouped(count - named.length)} more\n` : "";
  return lines.join("") + more;
}
