// Asks before an action that cannot be undone.
import { invalid } from "../core/options.ts";
import { put } from "../system/output.ts";
import type { Flags } from "./command.ts";
import type { Io } from "./io.ts";

/** Asks before doing `verb` to `what`, unless the flag says yes; refuses where there is no terminal to ask on. */
export async function mayGoOn(io: Io, flags: Flags, verb: string, what: string): Promise<boolean> {
  if (flags.yes === true) return true;
  const answer = await confirmed(io, `${verb[0]?.toUpperCase()}${verb.slice(1)} ${what}?`);
  if (answer === null)
    throw invalid("yes", `--yes, to ${verb} ${what}`, "no terminal to ask on", "add it; nothing was changed");
  return answer;
}

/** True for yes, false for any other answer, null where there is no terminal to ask on. */
export async function confirmed(io: Io, question: string): Promise<boolean | null> {
  if (!io.stdin.isTTY || !io.stderr.isTTY) return null;
  put(io.stderr, "text", `${question} [y/N] `);
  for await (const chunk of io.stdin)
    return /^y(es)?$/i.test(
      Buffer.from(chunk as Uint8Array)
        .toString("utf8")
        .trim(),
    );
  put(io.stderr, "text", "\n");
  return false;
}
