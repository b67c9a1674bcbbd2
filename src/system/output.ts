// The only way to terminals and logs: everything Redrive writes there, from the command line and from the library's
// log, goes through `put`. The output cannot control a terminal, has its secrets masked, and is one line where one line
// is meant. Only sequences marked by `control` pass unchanged, and foreign text cannot forge the mark.
import { randomBytes } from "node:crypto";
import { masked, safeJson, safeLine, safeText } from "../core/safe-text.ts";

/** A destination of text. */
export interface Outlet {
  /** False asks the writer to wait until there is room. */
  write(text: string): boolean;
  readonly isTTY?: boolean | undefined;
}

/**
 * The form of a text: several lines for people; one line; JSON, which stays complete; data for other tools, which stays
 * byte for byte unless it goes to a terminal.
 */
export type Form = "text" | "line" | "json" | "data";

const MARK = `\ufdd0${randomBytes(8).toString("hex")}\ufdd0`;

/** Marks a sequence that controls the terminal, such as a colour, so that `put` passes it. */
export function control(sequence: string): string {
  return MARK + sequence + MARK;
}

/** Writes a text; false asks the caller to wait until there is room. */
export function put(to: Outlet, form: Form, text: string): boolean {
  return to.write(form === "data" && to.isTTY !== true ? text : shownAs(form, text));
}

/** Writes a line of a log to stderr. */
export function putLog(line: string): void {
  put(process.stderr, "line", line);
}

/** A text made safe to show. */
export function shownAs(form: Form, text: string): string {
  if (form === "json") return safeJson(text);
  const clean = form === "line" ? safeLine : safeText;
  const end = form === "line" && text.endsWith("\n") ? "\n" : "";
  return (
    text
      .slice(0, text.length - end.length)
      .split(MARK)
      // The parts between two marks are ours.
      .map((part, at) => (at % 2 === 1 ? part : masked(clean(part))))
      .join("") + end
  );
}

/** From here on, text that user code prints goes to stderr: it is not ours to clean, and stdout carries our output. */
export function printToStderr(): void {
  process.stdout.write = process.stderr.write.bind(process.stderr);
}

/** Passes on what user code prints in a thread, to stderr for the same reason. */
export function passPrinted(printed: NodeJS.ReadableStream): void {
  printed.pipe(process.stderr, { end: false });
}
