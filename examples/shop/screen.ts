// Where the demo is seen: redrawn in place on a terminal, plain lines everywhere else. Nothing but what was there before
// and the summary stays on the screen.
import type { Board } from "./board.ts";
import { frame, LEAST, TONES } from "./frame.ts";

/** What text is written to; any stream of Node's will do. */
export interface Screen {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

/** A way to watch. */
export interface View {
  /** Shows the board until told to end. */
  begin(board: Board): void;
  /** Takes itself off the screen, as far as it can. */
  end(): void;
}

const REDRAW_MS = 100;
const HIDE_CURSOR = "\u001b[?25l";
const SHOW_CURSOR = "\u001b[?25h";
const CLEAR_BELOW = "\u001b[J";
const CLEAR_LINE = "\u001b[K";
const LINE_BREAK = "\r\n";

/** True where a view that moves makes sense. */
export function canMove(screen: Screen, env: Readonly<Record<string, string | undefined>>): boolean {
  const { columns = 80, rows = 24 } = screen;
  if (screen.isTTY !== true || env["NO_COLOR"] || env["TERM"] === "dumb") return false;
  return columns >= LEAST.columns && rows >= LEAST.rows;
}

/** The view of a terminal. */
export function liveView(screen: Screen): View {
  let drawn = 0;
  let timer: NodeJS.Timeout | undefined;
  const home = (): string => (drawn > 0 ? `\r${drawn > 1 ? `\u001b[${drawn - 1}A` : ""}` : "");
  const draw = (board: Board): void => {
    const lines = frame(board, { columns: screen.columns || 80, rows: screen.rows || 24 });
    screen.write(`${home()}${lines.map((line) => line + CLEAR_LINE).join(LINE_BREAK)}${CLEAR_BELOW}`);
    drawn = lines.length;
  };
  const restore = (): void => void screen.write(SHOW_CURSOR);
  return {
    begin(board) {
      screen.write(HIDE_CURSOR);
      // Whatever ends the process: no terminal is left without a cursor.
      process.once("exit", restore);
      const next = (): void => {
        draw(board);
        timer = setTimeout(next, REDRAW_MS);
      };
      next();
    },
    end() {
      clearTimeout(timer);
      process.removeListener("exit", restore);
      screen.write(`${home()}${CLEAR_BELOW}${SHOW_CURSOR}`);
      drawn = 0;
    },
  };
}

/** Lines of news in a file or a pipe; later ones are left out, except where they matter. */
const MOST_LINES = 38;
const PLAIN_QUIET_MS = 6_000;
const PROGRESS_MS = 5_000;

/** The view of everything else: one line for each thing worth noting. */
export function plainView(screen: Screen): View {
  let lines = 0;
  let timer: NodeJS.Timeout | undefined;
  return {
    begin(board) {
      screen.write(`Redrive: ${board.total} jobs of a shop that has a bad day\n\n`);
      board.news.quietMs = PLAIN_QUIET_MS;
      board.news.listen(({ atMs, tone, text }) => {
        lines += 1;
        if (lines > MOST_LINES && tone !== "kill" && tone !== "good") return;
        screen.write(`${(atMs / 1_000).toFixed(1).padStart(5)} s  ${TONES[tone][0]} ${text}\n`);
      });
      const progress = (): void => {
        const { counts: now, retrying, parked, total } = board;
        const finished = now.completed + now.dead;
        if (finished > 0)
          board.news.tell(
            "info",
            `${finished} of ${total} at an end: ${now.completed} completed, ${now.dead} dead; ${now.running} running, ${retrying} retrying${parked > 0 ? `, ${parked} parked` : ""}`,
          );
        timer = setTimeout(progress, PROGRESS_MS);
      };
      timer = setTimeout(progress, PROGRESS_MS);
    },
    end: () => clearTimeout(timer),
  };
}

/** No terminal, no screen. */
export const noView: View = { begin: () => undefined, end: () => undefined };
