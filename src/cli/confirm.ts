// A question before something that cannot be undone.
import type { Io } from "./io.ts";

/** True for yes, false for anything else, null where there is nobody to ask. */
export async function confirmed(io: Io, question: string): Promise<boolean | null> {
  if (!io.stdin.isTTY || !io.stderr.isTTY) return null;
  io.stderr.write(`${question} [y/N] `);
  for await (const chunk of io.stdin)
    return /^y(es)?$/i.test(
      Buffer.from(chunk as Uint8Array)
        .toString("utf8")
        .trim(),
    );
  io.stderr.write("\n");
  return false;
}
