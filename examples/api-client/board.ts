// What the panel shows: how the service answered over time, its breaker, the pace of the calls, jobs and visitors.
import type { CircuitBreaker } from "redrive";
import { PACE } from "./jobs.ts";
import { paint, type PaintStyle } from "../kit/paint.ts";
import type { Call } from "./service.ts";
import type { Visits } from "./visitors.ts";

/** Jobs as the events tell of them. */
export interface Tally {
  readonly total: number;
  enqueued: number;
  completed: number;
  dead: number;
  retries: number;
}

/** What the panel is drawn from. */
export interface Board {
  readonly seconds: number;
  readonly calls: readonly Call[];
  readonly breaker: CircuitBreaker;
  readonly tally: Tally;
  readonly visits: Visits;
}

const CELL_MS = 500;
const WIDTH = 40;
const SPARKS = "▁▂▃▄▅▆▇█";

/** The lines of the panel. */
export function panelLines(board: Board): string[] {
  const { seconds, tally, visits } = board;
  const cells = Math.floor((seconds * 1_000) / CELL_MS) + 1;
  const from = Math.max(0, cells - WIDTH);
  const inCell = Array.from({ length: cells }, (): Call[] => []);
  for (const call of board.calls) inCell[Math.floor(call.at / CELL_MS)]?.push(call);
  const shown = inCell.slice(from);
  const waiting = tally.enqueued - tally.completed - tally.dead;
  return [
    "",
    row("pricing", shown.map(health).join("")),
    row("calls", `${shown.map(spark).join("")}  ${pace(board)} in the last second, pace ${PACE}`),
    row("breaker", breakerText(board.breaker)),
    row(
      "jobs",
      `${bar(tally)}  ${tally.completed} done, ${waiting} waiting, ${tally.dead} dead, ${tally.retries} retries`,
    ),
    row(
      "visitors",
      `${visits.answered} answered, ${visits.fromCache} with the last known price, ${visits.failed} failed`,
    ),
  ];
}

/** The same in one line. */
export function shortLine(board: Board): string {
  const { seconds, tally, visits } = board;
  const { completed, dead, enqueued } = tally;
  const jobs = `${completed} done, ${enqueued - completed - dead} waiting, ${dead} dead, ${tally.retries} retries`;
  const pages = `visitors ${visits.answered} answered, ${visits.fromCache} from the cache`;
  return `${seconds.toFixed(1).padStart(5)} s  · ${jobs}; ${pages}; breaker ${board.breaker.state}`;
}

const row = (label: string, text: string): string => `  ${paint("bold", label.padEnd(9))} ${text}`;

function health(calls: readonly Call[]): string {
  const has = (status: number): boolean => calls.some((call) => call.status === status);
  if (has(503)) return paint("red", "█");
  if (has(429)) return paint("magenta", "▒");
  return calls.length === 0 ? paint("dim", "·") : paint("green", "▄");
}

function spark({ length }: readonly Call[]): string {
  const most = (PACE * CELL_MS) / 1_000;
  return length === 0 ? " " : (SPARKS[Math.min(7, Math.ceil((length / most) * 7))] ?? "█");
}

function pace({ calls, seconds }: Board): number {
  return calls.filter(({ at }) => at > seconds * 1_000 - 1_000).length;
}

const STYLES: Readonly<Record<CircuitBreaker["state"], PaintStyle>> = {
  closed: "green",
  open: "red",
  half_open: "yellow",
  isolated: "red",
};

function breakerText({ state, reason, untilMs }: CircuitBreaker): string {
  const left = untilMs === null ? "" : `, next look in ${(Math.max(0, untilMs - Date.now()) / 1_000).toFixed(1)} s`;
  const word = paint(STYLES[state], state === "half_open" ? "half-open, probing" : state);
  return `${word}${reason === null ? "" : `: ${reason}${left}`}`;
}

function bar({ total, completed, dead, enqueued }: Tally): string {
  const width = 20;
  const upTo = (count: number): number => Math.min(width, Math.round((count / total) * width));
  const [done, ended, come] = [upTo(completed), upTo(completed + dead), upTo(enqueued)];
  return [
    paint("green", "█".repeat(done)),
    paint("red", "█".repeat(ended - done)),
    paint("cyan", "░".repeat(come - ended)),
    paint("dim", "─".repeat(width - come)),
  ].join("");
}
