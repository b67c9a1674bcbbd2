// The one door to terminals and logs: all that Redrive writes there, the command line as well as the library's own log,
// goes through `put`. What comes out cannot steer a terminal, hides nothing, has its secrets masked, and is one line where
// a line is meant. Only what `control` marks is passed on as it is, and text from outside cannot forge the mark.
import { randomBytes } from "node:crypto";
import { masked, safeJson, safeLine, safeText } from "../core/safe-text.ts";

/** Where text goes. */
export interface Outlet {
  /** False asks the writer to wait until there is room. */
  write(text: string): boolean;
  readonly isTTY?: boolean | undefined;
}

/**
 * What a text is: several lines for people; one line; JSON, which stays whole; data for other tools, which stays byte for
 * byte unless people look at it.
 */
export type Form = "text" | "line" | "json" | "data";

const MARK = `\ufdd0${randomBytes(8).toString("hex")}\ufdd0`;

/** A sequence that steers the terminal, such as a colour, for `put` to let through. */
export function control(sequence: string): string {
  return MARK + sequence + MARK;
}

/** Writes a text; false asks to wait until there is room. */
export function put(to: Outlet, form: Form, text: string): boolean {
  return to.write(form === "data" && to.isTTY !== true ? text : shownAs(form, text));
}

/** Writes a line of a log to stderr. */
export function putLog(line: string): void {
  put(process.stderr, "line", line);
}

/** A text as people may see it. */
export function shownAs(form: Form, text: string): string {
  if (form === "json") return safeJson(text);
  const clean = form === "line" ? safeLine : safeText;
  const end = form === "line" && text.endsWith("\n") ? "\n" : "";
  return (
    text
      .slice(0, text.length - end.length)
      .split(MARK)
      // Between two marks stands what is ours.
      .map((part, at) => (at % 2 === 1 ? part : masked(clean(part))))
      .join("") + end
  );
}

/** What user code prints, with `console.log` or otherwise, goes to stderr from here on: it is not ours to clean, and stdout is. */
export function printToStderr(): void {
  process.stdout.write = process.stderr.write.bind(process.stderr);
}
