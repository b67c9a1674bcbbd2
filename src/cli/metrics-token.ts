// The secret that monitors send, from a file: a flag would show it to everyone who lists processes.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { RedriveError } from "../core/errors.ts";
import type { Session } from "./session.ts";

/** The secret in a file, without the end of its line. */
export function tokenFrom({ io }: Pick<Session, "io">, file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  // The name of the flag stands last: the word after it would be masked as a secret.
  const refused = (why: string): RedriveError =>
    new RedriveError(
      "config_refused",
      `expected a file with a secret of 1 to 255 bytes for --metrics-token-file; ${why}`,
    );
  let text: string;
  try {
    text = readFileSync(resolve(io.cwd, file), "utf8").trim();
  } catch (cause) {
    throw refused(`${file} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
  if (text === "") throw refused(`${file} is empty; write one into it`);
  if (Buffer.byteLength(text) > 255 || /\s/.test(text)) throw refused(`${file} has more than that, or spaces`);
  return text;
}
