// `redrive dlq stats`: counts dead letters by class, type, reason and cause, with bars.
import type { Tally } from "../store/store.ts";
import type { Flags } from "./command.ts";
import { letterFilter } from "./job-flags.ts";
import { lookAt, lookedText } from "./look.ts";
import { noMatchHint } from "./no-match-hint.ts";
import { masked, safeLine } from "../core/safe-text.ts";
import type { Session } from "./session.ts";
import { tallyForm } from "../operate/view-forms.ts";
import { cutTo, widthOf } from "./table.ts";
import { bar, counted } from "./format.ts";

const BAR_WIDTH = 24;
const TOP_CAUSES = 10;

/** Counts the dead letters and shows them. */
export async function dlqStats(session: Session, flags: Flags): Promise<void> {
  const redrive = await session.openExisting();
  const filter = await letterFilter(flags, async () => redrive.store);
  const [tally, { now }] = await Promise.all([
    redrive.deadLetters.stats({ ...filter, lookAt: lookAt(flags) }),
    redrive.store.control(),
  ]);
  const none = tally.total === 0 && !session.json ? `${safeLine(await noMatchHint(redrive, flags))}.\n` : "";
  session.show(tallyForm(tally), () => (tally.total === 0 ? none : tallyText(tally, session)));
  if (tally.seenTo === undefined || session.json) return;
  session.say(`${lookedText(flags, "dead letter", tally.seenTo, now)} There may be more: add --look-at 1000000`);
}

function tallyText(tally: Tally, session: Session): string {
  const { paint } = session;
  const causes = tally.causes.slice(0, TOP_CAUSES).map(({ name, message, fingerprint, count }): [string, number] => {
    // The message is that of the newest letter; other letters of the same cause may name another file, host or number.
    const sample = count > 1 ? "e.g. " : "";
    return [`${fingerprint}  ${sample}${name}: ${message}`, count];
  });
  const left = tally.total - causes.reduce((sum, [, count]) => sum + count, 0);
  const groups: [string, [string, number][]][] = [
    ["By class", Object.entries(tally.byClass)],
    ["By type", Object.entries(tally.byType)],
    ["By reason", Object.entries(tally.byReason)],
    ["Top causes", left > 0 ? [...causes, ["others", left]] : causes],
  ];
  const shown = groups.map(([title, counts]) => `\n${paint("bold", title)}\n${barLines(counts, tally.total, session)}`);
  return `${counted(tally.total, "dead letter")}\n${shown.join("")}`;
}

function barLines(counts: readonly (readonly [string, number])[], total: number, { width }: Session): string {
  const digits = Math.max(...counts.map(([, count]) => String(count).length));
  const room = Math.max(10, width - BAR_WIDTH - digits - 6);
  const names = counts.map(([name]) => cutTo(masked(safeLine(name)), room));
  const widest = Math.min(room, Math.max(...names.map(widthOf)));
  return counts
    .map(([, count], at) => {
      const name = names[at] as string;
      const pad = " ".repeat(widest - widthOf(name));
      return `  ${name}${pad}  ${String(count).padStart(digits)}  ${bar(count / total, BAR_WIDTH)}`.trimEnd();
    })
    .map((line) => `${line}\n`)
    .join("");
}
