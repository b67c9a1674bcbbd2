// One line at the bottom of a terminal that is redrawn repeatedly, with log lines above it.
import { realSystem } from "../system/real.ts";
import { control, put } from "../system/output.ts";
import type { Io } from "./io.ts";
import { cutTo } from "./table.ts";

/** The line; where stderr is not a terminal, only the other lines are written. */
export interface ProgressLine {
  /** Shows the text that the function returns, a few times a second, until the returned function is called. */
  show(text: () => string): () => void;
  /** Writes a separate line above it. */
  say(line: string): void;
}

/** No line, for a log that programs read. */
export const NO_PROGRESS: ProgressLine = { show: () => () => undefined, say: () => undefined };

const EVERY_MS = 200;
const CLEAR = control("\r\u001b[2K");

/** The progress line of a command. */
export function openProgressLine(io: Io): ProgressLine {
  let current: (() => string) | null = null;
  const draw = (): void => {
    if (current) put(io.stderr, "line", CLEAR + cutTo(current(), (io.stderr.columns || 80) - 1));
  };
  return {
    show(text) {
      if (!io.stderr.isTTY) return () => undefined;
      current = text;
      let cancel = (): void => undefined;
      const again = (): void => {
        draw();
        cancel = realSystem.after(EVERY_MS, again);
      };
      again();
      return () => {
        cancel();
        current = null;
        put(io.stderr, "line", CLEAR);
      };
    },
    say(line) {
      put(io.stderr, "line", current ? CLEAR + line : line);
      draw();
    },
  };
}
