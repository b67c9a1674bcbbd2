// `redrive dlq causes`: lists what dead letters died of, the most frequent first, and shows one cause.
import type { Command } from "commander";
import { stillText } from "../core/recovery/cause-state.ts";
import { masked, safeLine } from "../core/safe-text.ts";
import { type CauseDetails, causeForm, type CauseView } from "../operate/causes.ts";
import type { CountedName } from "../operate/cause-letters.ts";
import { type Cli, examples, numeric, textual } from "./command.ts";
import { registerCauseChanges } from "./dlq-cause-changes.ts";
import { counted, errorLine, fullTime, grouped, relativeTime, sparkline } from "./format.ts";
import { stateStyle } from "./paint.ts";
import type { Session } from "./session.ts";
import { type Column, tableOf, type TableCell } from "./table.ts";

const NOTES = `
STATE is open, muted, fixed, or regressed: fixed and back. 1H shows the failures
of the last hour, in steps of ten minutes.`;

/** Registers `dlq causes` and what is below it. */
export function registerCauses(cli: Cli, dlq: Command): void {
  const causes = dlq
    .command("causes")
    .description("list the causes of dead letters, those with the most first")
    .option("--limit <n>", "causes per page, 1 to 200", "50")
    .option("--cursor <cursor>", "where the previous page ended")
    .addHelpText("after", NOTES);
  examples(causes, cli, ["dlq causes", "dlq causes --limit 5 --json", "dlq causes show 7f3a9c1e02b4d611"]);
  cli.act(causes, async (session, _args, flags) => {
    const redrive = await session.openExisting();
    const query = { limit: numeric(flags.limit) ?? 50, cursor: textual(flags.cursor) ?? null };
    const [{ items, next }, { now }] = await Promise.all([redrive.causes.list(query), redrive.store.control()]);
    session.show({ items: items.map(causeForm), next }, () =>
      items.length === 0 ? "No dead letters.\n" : tableOf(items, session, columnsAt(now)),
    );
    if (items.length > 0 && !session.json) sayNext(session, items, next);
  });
  const show = causes.command("show").description("show a cause").argument("<cause>", "its fingerprint");
  examples(show, cli, ["dlq causes show 7f3a9c1e02b4d611"]);
  cli.act(show, async (session, [fingerprint = ""]) => {
    const redrive = await session.openExisting();
    const [cause, { now }] = await Promise.all([redrive.causes.get(fingerprint), redrive.store.control()]);
    session.show({ ...causeForm(cause), letters: cause.letters }, () => detailsText(session, cause, now));
  });
  registerCauseChanges(cli, causes);
}

function sayNext(session: Session, items: readonly CauseView[], next: string | null): void {
  const dead = items.reduce((sum, each) => sum + each.dead, 0);
  const sum = `${counted(items.length, "cause")}, ${counted(dead, "letter")}.`;
  const first = items.find(({ state }) => state === "open" || state === "regressed");
  session.say(first ? `${sum} Next: ${session.suggest(`plan --cause ${first.fingerprint}`)}` : sum);
  if (next !== null) session.say(`More: add --cursor ${next}`);
}

function columnsAt(now: number): readonly (Column & { readonly of: (cause: CauseView) => TableCell })[] {
  return [
    { title: "CAUSE", of: ({ fingerprint }) => fingerprint },
    { title: "STATE", of: ({ state }) => ({ text: state, style: stateStyle(state) }) },
    { title: "DEAD", align: "right", of: ({ dead }) => grouped(dead) },
    { title: "1H", of: ({ trend }) => sparkline(trend) },
    { title: "FIRST", optional: true, of: ({ firstAt }) => relativeTime(firstAt, now) },
    { title: "LAST", of: ({ lastAt }) => relativeTime(lastAt, now) },
    { title: "TYPES", least: 6, of: ({ types }) => types.join(", ") },
    { title: "WHAT", least: 12, optional: true, of: whatOf },
  ];
}

function whatOf(cause: CauseView): string {
  const { sample, state, fixedIn, backIn, still } = cause;
  const what = sample ? errorLine(sample) : "";
  const back = backIn === null ? "back" : `back in ${backIn}`;
  const fix = fixedIn === null ? "" : ` in ${fixedIn}`;
  if (state === "regressed") return `${what} (fixed${fix}, ${back})`;
  return state === "fixed" && still.length > 0 ? `${what} (${stillText(still)})` : what;
}

function detailsText({ paint }: Session, cause: CauseDetails, now: number): string {
  const { fingerprint, state, sample, letters, trend, still } = cause;
  const style = stateStyle(state);
  const title = `${paint("bold", safeLine(fingerprint))} ${style ? paint(style, state) : state}\n`;
  const error = sample ? `  ${paint("red", safeLine(errorLine(sample)))}\n` : "";
  const named = (names: readonly CountedName[]): string | null =>
    names.length === 0 ? null : names.map(({ name, count }) => `${name} ${grouped(count)}`).join(", ");
  const rows: [string, string | null][] = [
    ["state", cause.says],
    [
      "still",
      still.length === 0 ? null : `${stillText(still).replace("still ", "")}; these releases do not have the fix`,
    ],
    ["owner", cause.owner],
    ["note", cause.note],
    ["dead", `${grouped(cause.dead)} of ${counted(cause.deaths, "death")}, ${counted(cause.failures, "failed run")}`],
    ["last hour", `${sparkline(trend)} ${grouped(trend.reduce((sum, n) => sum + n, 0))} failed`],
    ["first", fullTime(cause.firstAt, now)],
    ["last", fullTime(cause.lastAt, now)],
    ["types", cause.types.join(", ")],
    ["releases", named(cause.releases.map(({ release, failures }) => ({ name: release || "none", count: failures })))],
    ["services", named(letters.services)],
    ["tenants", named(letters.tenants)],
    ["classes", named(letters.classes)],
    ["reasons", named(letters.reasons)],
  ];
  const said = rows.filter(([, value]) => value !== null);
  const lines = said.map(([name, value]) => `  ${paint("dim", name.padEnd(9))}  ${masked(safeLine(value ?? ""))}\n`);
  const looked = cause.dead > letters.looked && letters.looked > 0 ? letters.looked : 0;
  const note =
    looked === 0 ? "" : paint("dim", `Services to reasons are those of the newest ${grouped(looked)} letters.\n`);
  return title + error + lines.join("") + note;
}
