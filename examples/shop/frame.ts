// The live view as a pure function: the board and the size of the terminal in, lines out. No line is wider than the
// terminal and there are never more lines than it has rows.
import { counted, cutTo, widthOf } from "../kit/words.ts";
import { type Board, CELL_MS, type BoardHealth } from "./board.ts";
import { shortCause } from "./cause.ts";
import type { CrewMember } from "./crew.ts";
import { inkCell, inkLine, type Piece, type InkStyle } from "./ink.ts";
import type { Tone } from "./news.ts";
import { SERVICES, type ServiceName } from "./weather.ts";

/** The smallest terminal the view fits on. */
export const LEAST = { columns: 72, rows: 22 };
const MOST_COLUMNS = 132;
const MARGIN = "  ";
const LABEL = 10;

/** How people recognise each kind of news, with and without colour. */
export const TONES: Readonly<Record<Tone, readonly [mark: string, style: InkStyle]>> = {
  info: ["·", "gray"],
  good: ["✓", "green"],
  wait: ["↻", "yellow"],
  bad: ["✗", "red"],
  kill: ["†", "bold red"],
};

const HEALTH: Readonly<Record<BoardHealth, readonly [block: string, style: InkStyle]>> = {
  idle: ["·", "gray"],
  ok: ["▄", "green"],
  errors: ["▆", "yellow"],
  limited: ["▒", "magenta"],
  parked: ["░", "cyan"],
  down: ["█", "red"],
};
const SPARKS = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/** The lines to show now. */
export function frame(board: Board, size: { readonly columns: number; readonly rows: number }): string[] {
  const columns = Math.min(size.columns, MOST_COLUMNS);
  const room = size.rows - LEAST.rows - 1;
  // On a tall terminal: first air between the parts, then more of what is listed.
  const causes = 4 + (room > 6 ? 2 : 0);
  const lines: Piece[][] = [
    ...(room > 2 ? [[]] : []),
    title(board, columns),
    bar(board, columns),
    counts(board),
    [],
    ...services(board, columns, room > 4),
    [],
    ...sideBySide(workers(board, causes), deadLetters(board, causes, columns >= 110), columns),
    [],
  ];
  const news = Math.max(3, Math.min(14, size.rows - lines.length - 2));
  lines.push(...happened(board, news));
  return lines.slice(0, size.rows - 1).map((line) => inkLine([[MARGIN], ...line], columns - 1, true));
}

function heading(text: string): Piece {
  return [text, "bold"];
}

function title(board: Board, columns: number): Piece[] {
  const left: Piece[] = [
    ["Redrive", "bold cyan"],
    ["  a shop has a bad day", "gray"],
  ];
  const right: Piece[] = [
    [counted(board.retries, "retry", "retries"), "yellow"],
    [`${(board.elapsedMs / 1_000).toFixed(1)} s`.padStart(9), "bold"],
  ];
  const used = [...left, ...right].reduce((sum, [text]) => sum + widthOf(text), MARGIN.length * 2 + 1);
  return [...left, [" ".repeat(Math.max(1, columns - used))], ...right];
}

/** One bar for all jobs: done, dead, in work, waiting for another try, parked, waiting, not there yet. */
function bar({ counts: now, total, retrying, parked, enqueued }: Board, columns: number): Piece[] {
  const finished = now.completed + now.dead;
  const tail = `${String(finished).padStart(String(total).length)}/${total}`;
  const width = columns - MARGIN.length * 2 - tail.length - 3;
  const waiting = Math.max(0, enqueued - finished - now.running - retrying - parked);
  const parts: readonly [count: number, block: string, style: InkStyle][] = [
    [now.completed, "█", "green"],
    [now.dead, "█", "red"],
    [now.running, "█", "cyan"],
    [retrying, "▓", "yellow"],
    [parked, "░", "cyan"],
    [waiting, "▒", "gray"],
  ];
  const pieces: Piece[] = [];
  let sum = 0;
  let drawn = 0;
  for (const [count, block, style] of parts) {
    sum += count;
    const until = Math.min(width, Math.round((sum / total) * width));
    if (until > drawn) pieces.push([block.repeat(until - drawn), style]);
    drawn = Math.max(drawn, until);
  }
  return [...pieces, ["─".repeat(Math.max(0, width - drawn)), "gray"], ["  "], [tail, "bold"]];
}

function counts({ counts: now, retrying, parked }: Board): Piece[] {
  const queued = Math.max(0, now.queued - retrying - parked);
  const shown: (readonly [count: number, name: string, style: InkStyle])[] = [
    [now.completed, "completed", "green"],
    [now.dead, "dead", "red"],
    [now.running, "running", "cyan"],
    [retrying, "retrying", "yellow"],
  ];
  if (parked > 0) shown.push([parked, "parked", "cyan"]);
  if (parked === 0 || queued > 0) shown.push([queued, "queued", "gray"]);
  return shown.flatMap(([count, name, style]): Piece[] => [["■ ", style], [String(count), "bold"], [` ${name}   `]]);
}

function services(board: Board, columns: number, withFailures: boolean): Piece[][] {
  const wide = columns >= 110 ? 2 : 1;
  const most = Math.min(44, Math.floor((columns - 2 * MARGIN.length - LABEL - 29) / wide));
  const legend = (["ok", "errors", "limited", "down", "parked"] as const).flatMap((health): Piece[] => [
    [HEALTH[health][0].repeat(2), HEALTH[health][1]],
    [` ${LEGEND[health]}   `, "gray"],
  ]);
  const from = Math.max(0, board.cells - most);
  const strips = SERVICES.map((service): Piece[] => {
    const health = board.healthOf(service).slice(from);
    const blocks = health.map((one): Piece => [HEALTH[one][0].repeat(wide), HEALTH[one][1]]);
    const pad = " ".repeat(Math.max(0, most - health.length) * wide + 2);
    return [[service.padEnd(LABEL)], ...blocks, [pad], ...healthNow(board, service)];
  });
  const spark = (label: string, values: readonly number[], style: InkStyle): Piece[] => {
    const perSecond = Array.from({ length: board.cells - from }, (_, at) => values[at + from] ?? 0);
    const highest = Math.max(1, ...perSecond);
    const line = perSecond.map((value) => (value === 0 ? " " : (SPARKS[Math.ceil((value / highest) * 8) - 1] ?? "█")));
    const pad = " ".repeat(Math.max(0, most - perSecond.length) * wide + 2);
    const last = ((values[board.cells - 2] ?? 0) * 1_000) / CELL_MS;
    return [[label.padEnd(LABEL)], [line.map((one) => one.repeat(wide)).join(""), style], [pad], [`${last}/s`, "gray"]];
  };
  return [
    [heading("Services".padEnd(LABEL)), ...legend],
    ...strips,
    spark("done", board.done, "green"),
    ...(withFailures ? [spark("failed", board.failed, "red")] : []),
  ];
}

const LEGEND = { ok: "well", errors: "some errors", limited: "429", down: "down", parked: "parked" } as const;

function healthNow(board: Board, service: ServiceName): Piece[] {
  const now = board.healthOf(service).findLast((one) => one !== "idle") ?? "idle";
  const words = { ...LEGEND, idle: "", limited: "429, wait 1 s" }[now];
  const said = breakerNow(board, service) ?? [words, HEALTH[now][1]];
  return [[String(board.calls[service]).padStart(4)], [" calls  ", "gray"], said];
}

function breakerNow(board: Board, service: ServiceName): Piece | null {
  const breaker = board.breakers[service] ?? "closed";
  if (breaker === "closed") return null;
  if (breaker === "ramp") return ["back, on a ramp", "green"];
  return [`${breaker}, ${board.parkedOf(service)} parked`, breaker === "open" ? "bold red" : "bold yellow"];
}

function sideBySide(left: readonly Piece[][], right: readonly Piece[][], columns: number): Piece[][] {
  const width = columns >= 110 ? 44 : 33;
  return Array.from({ length: Math.max(left.length, right.length) }, (_, at) => [
    ...inkCell(left[at] ?? [], width),
    ...(right[at] ?? []),
  ]);
}

const STATES: Readonly<Record<CrewMember["state"], readonly [mark: string, style: InkStyle]>> = {
  starting: ["○", "gray"],
  working: ["●", "green"],
  killed: ["†", "bold red"],
  stopped: ["○", "gray"],
  failed: ["✗", "red"],
};

function workers(board: Board, most: number): Piece[][] {
  const lines = board.members.slice(-most).map(({ state, pid, completed, tookOver }): Piece[] => {
    const [mark, style] = STATES[state];
    const after = state === "killed" ? "kill -9" : tookOver > 0 ? `+${tookOver} taken over` : "";
    return [
      [mark, style],
      [` ${String(pid).padEnd(8)}`],
      [`${completed} done`.padEnd(9), "gray"],
      [after, state === "killed" ? "red" : "green"],
    ];
  });
  const blank = Array.from({ length: most - lines.length }, (): Piece[] => []);
  return [[heading("Workers")], ...lines, ...blank];
}

function deadLetters(board: Board, most: number, withClass: boolean): Piece[][] {
  const causes = board.worstCauses;
  const shown = causes.length > most ? most - 1 : most;
  const lines = causes
    .slice(0, shown)
    .map(({ count, class: found, message }): Piece[] => [
      [String(count).padStart(3), "bold red"],
      [withClass ? `  ${found.padEnd(15)}` : "  ", "red"],
      [shortCause(message)],
    ]);
  const left = causes.slice(shown).reduce((sum, { count }) => sum + count, 0);
  if (left > 0)
    lines.push([
      [String(left).padStart(3), "bold red"],
      ["  of other causes", "gray"],
    ]);
  return [[heading("Dead letters by cause")], ...lines];
}

function happened(board: Board, most: number): Piece[][] {
  const items = board.news.items.slice(-most);
  return [
    [heading("What just happened, and why")],
    ...items.map(({ atMs, tone, text }, at): Piece[] => {
      const [mark, style] = TONES[tone];
      const fresh = at >= items.length - 2 || tone === "kill";
      return [
        [`${(atMs / 1_000).toFixed(1).padStart(4)} s  `, "gray"],
        [`${mark} `, style],
        [cutTo(text, 120), fresh ? "" : "gray"],
      ];
    }),
  ];
}
