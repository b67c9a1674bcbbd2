// How far a list or a count has looked, for people.
import type { Command } from "commander";
import { LOOK_AT } from "../enqueue/paging.ts";
import { safeLine } from "../core/safe-text.ts";
import type { Page } from "../store/store.ts";
import { type Flags, numeric } from "./command.ts";
import { counted, relativeTime } from "./format.ts";
import type { Session } from "./session.ts";

/** The flag for what is looked at: `jobs` or `dead letters`. */
export function lookFlag(command: Command, what: string): Command {
  return command.option("--look-at <n>", `most ${what} to look at, matching or not, up to 1000000`, String(LOOK_AT));
}

/** The value of the flag. */
export const lookAt = (flags: Flags): number => numeric(flags.lookAt) ?? LOOK_AT;

/** `Looked at 10,000 jobs, back to 2h ago.` */
export function lookedText(flags: Flags, one: string, seenTo: number, now: number): string {
  return `Looked at ${counted(lookAt(flags), one)}, up to one from ${relativeTime(seenTo, now)}.`;
}

/** The text instead of an empty table; nothing is said about what was not looked at. */
export function noneText({ seenTo }: Page<unknown>, hint: string): string {
  return seenTo === undefined ? `${safeLine(hint)}.\n` : "None so far.\n";
}

/** Tells people how the next page is asked for, where there is one. */
export function sayMore(session: Session, page: Page<unknown>, flags: Flags, one: string, now: number): void {
  if (page.next === null || session.json) return;
  const looked = page.seenTo === undefined ? "" : `${lookedText(flags, one, page.seenTo, now)} `;
  session.say(`${looked}More: add --cursor ${page.next}`);
}
