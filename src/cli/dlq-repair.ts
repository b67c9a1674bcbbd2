// `redrive dlq repair`: gives many dead letters new payloads by a recipe, after a look at all of them.
import { resolve } from "node:path";
import type { Command } from "commander";
import { isRedriveError } from "../core/errors.ts";
import { invalid } from "../core/options.ts";
import { safeLine } from "../core/safe-text.ts";
import type { DeadLetterTarget } from "../operate/dead-letters.ts";
import type { Recipe } from "../operate/recipe.ts";
import type { Misfits, RepairPreview } from "../operate/repair-letters.ts";
import type { RepairSummary } from "../operate/repair.ts";
import { type Cli, examples, type Flags, textual, whyFlag, whyOf } from "./command.ts";
import { confirmed } from "./confirm.ts";
import { EXIT } from "./exit.ts";
import { counted, grouped } from "./format.ts";
import { definitions, jobFiles, JOBS_FLAG } from "./job-files.ts";
import { letterFilter, letterFilterFlags, oneTarget } from "./job-flags.ts";
import { noMatchHint } from "./no-match-hint.ts";
import type { Session } from "./session.ts";

const NOTES = `
A recipe is a JSON merge patch (--patch), which leaves every other byte of a
payload as it is, or a module whose default export is a function
(payload, letter) => newPayload (--with). The function has 5 s for each letter
and is called once for each. All new payloads are made first: where one does not
fit the schema of its type, nothing is written (exit 4), unless --skip-misfits
leaves those as they are.`;

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
    .option(...JOBS_FLAG)
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
  const skipMisfits = flags.skipMisfits === true;
  const noMatch = async (preview: RepairPreview): Promise<number> => {
    const said = await noMatchHint(redrive, flags);
    session.answer(unwritten(preview), () => `${safeLine(said)}; nothing was written.\n`);
    return EXIT.ok;
  };
  if (flags.preview) {
    const preview = await redrive.deadLetters.preview(target, recipe);
    return isAny(preview) ? showPreview(session, preview, skipMisfits) : noMatch(preview);
  }
  const asked: { preview: RepairPreview | null; isDeclined: boolean } = { preview: null, isDeclined: false };
  const confirm = async (preview: RepairPreview): Promise<boolean> => {
    asked.preview = preview;
    if (preview.fits === 0) return false;
    if (!session.json) session.say(previewText(preview).trimEnd());
    const question = `Give ${counted(preview.fits, "dead letter")} a new payload?`;
    asked.isDeclined = flags.yes !== true && (await confirmed(session.io, question)) === false;
    return !asked.isDeclined;
  };
  try {
    const sum = await redrive.deadLetters.repair(target, recipe, { skipMisfits, confirm, ...because });
    const { preview, isDeclined } = asked as { preview: RepairPreview; isDeclined: boolean };
    if (!isAny(preview)) return await noMatch(preview);
    if (preview.fits === 0) return showPreview(session, preview, skipMisfits);
    if (!isDeclined) return showSum(session, preview, sum, cause);
    session.answer(unwritten(preview), () => "Nothing was written.\n");
    return EXIT.ok;
  } catch (error) {
    const preview = isRedriveError(error, "invalid_payload") && error.details["preview"];
    if (!preview) throw error;
    return showPreview(session, preview as RepairPreview, skipMisfits);
  }
}

/** A preview in the form of a repair that wrote nothing. */
function unwritten(preview: RepairPreview): RepairPreview & RepairSummary {
  return { ...preview, repaired: 0, skipped: 0, refused: 0, conflicts: [] };
}

function isAny({ letters, notDead, missing }: RepairPreview): boolean {
  return letters + notDead + missing > 0;
}

/** Shows what the recipe would do, where nothing is written; answers the exit code. */
function showPreview(session: Session, preview: RepairPreview, skipMisfits: boolean): number {
  const bad = preview.misfits.count + preview.losesNumbers.count;
  const isRefused = bad > 0 && !skipMisfits;
  session.show(unwritten(preview), () => previewText(preview));
  if (isRefused) session.say(refusal(bad, preview.letters));
  return isRefused ? EXIT.refused : preview.notDead + preview.missing > 0 ? EXIT.failed : EXIT.ok;
}

/** Says what was written; answers the exit code. */
function showSum(session: Session, preview: RepairPreview, sum: RepairSummary, cause: string | undefined): number {
  session.answer({ ...preview, ...sum }, () => {
    const rest = [
      [sum.unchanged, "unchanged"],
      [sum.skipped, "skipped"],
      [sum.refused, "not dead, or changed meanwhile"],
      [sum.missing, "not found"],
    ] as const;
    const said = rest.filter(([count]) => count > 0).map(([count, what]) => `, ${grouped(count)} ${what}`);
    const changed = namedText({ count: sum.conflicts.length, named: sum.conflicts });
    return `${counted(sum.repaired, "dead letter")} repaired${said.join("")}\n${changed}`;
  });
  if (!session.json && cause !== undefined && sum.repaired > 0)
    session.say(`Send them back to work: ${session.suggest(`plan --cause ${cause}`)}`);
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
