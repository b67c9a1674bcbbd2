// The plan of a redrive for people.
import { formatDuration } from "../core/duration.ts";
import type { RedrivePlan } from "../core/recovery/plan.ts";
import { safeLine } from "../core/safe-text.ts";
import { counted, grouped, shortTime } from "./format.ts";
import type { Session } from "./session.ts";

/** A plan for people, in lines of up to 80 columns. */
export function planText(plan: RedrivePlan, session: Session): string {
  const { paint } = session;
  const { facts, proves } = plan;
  const [first, last] = [facts.firstDiedAt, facts.lastDiedAt].map((at) => (at === null ? "" : shortTime(at)));
  const steps = stepsText(
    proves.map(({ good }) => good),
    plan.toSend,
  );
  const lines: readonly (readonly [string, string])[] = [
    ["died", first === last ? `${first}` : `${first} to ${last}`],
    ["of", aboutLetters(plan)],
    ["", facts.looked < facts.count ? `of the first ${grouped(facts.looked)}; the others are counted` : ""],
    ...plan.warnings.map(({ text }) => ["!", text] as const),
    ["sends", `${facts.looked < facts.count ? "at most " : ""}${grouped(plan.toSend)}: ${steps}`],
    ["rate", `${rateText(plan.rate)} (${plan.rateBecause}): about ${formatDuration(plan.durationMs)}`],
    ["proves", proves.length === 0 ? "" : `${proves.map(proofText).join(", ")} (95 % confidence)`],
  ];
  const shown = lines.filter(([, text]) => text !== "").flatMap(([name, text]) => linesOf(name, text, paint));
  const title = `${paint("bold", `Plan ${plan.id}`)}  ${counted(plan.count, "dead letter")}`;
  return `${[title, ...shown, nextLine(plan, session)].join("\n")}\n`;
}

const NAMES = 8;
const COLUMNS = 80;

function linesOf(name: string, text: string, paint: Session["paint"]): string[] {
  const style = name === "!" ? "yellow" : "dim";
  return wrapped(safeLine(text), COLUMNS - NAMES - 2).map(
    (line, at) => `  ${paint(style, (at === 0 ? name : "").padEnd(NAMES))}${line}`,
  );
}

/** The text in lines of so many columns, broken between words. */
function wrapped(text: string, columns: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= columns) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

function nextLine({ id, at, expiresAt, started }: RedrivePlan, session: Session): string {
  if (started !== null) return `It was started. Look: ${session.suggest(`redrives show ${started}`)}`;
  return `Good for ${formatDuration(expiresAt - at)}. Start: ${session.suggest(`start ${id} --follow`)}`;
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
  return `${grouped(good)} good ones leave ${Math.round(failingAtMost * 100)} % failing at most`;
}
