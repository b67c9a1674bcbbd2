// Colours, only on a terminal and unless NO_COLOR is set; FORCE_COLOR overrides both.
import { inspect } from "node:util";
import { control } from "../system/output.ts";
import type { Io, Sink } from "./io.ts";

/** The styles in use. */
export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

/** Applies a style to a text, or returns it unchanged. */
export type Paint = (style: Style, text: string) => string;

/** The paint function for a stream. */
export function paintFor(sink: Sink, env: Io["env"]): Paint {
  const { FORCE_COLOR: force, NO_COLOR: none, TERM } = env;
  const forced = force !== undefined && force !== "0" && force !== "false";
  const wanted = sink.isTTY === true && !none && TERM !== "dumb" && force !== "0" && force !== "false";
  if (!forced && !wanted) return (_style, text) => text;
  return (style, text) => (text === "" ? text : styled(style, text));
}

function styled(style: Style, text: string): string {
  const [begin, end] = inspect.colors[style] ?? [0, 0];
  return `${control(`\u001b[${begin}m`)}${text}${control(`\u001b[${end}m`)}`;
}

const STATE_STYLES: Readonly<Record<string, Style>> = {
  running: "cyan",
  completed: "green",
  dead: "red",
  retrying: "yellow",
  paused: "yellow",
  parked: "yellow",
  open: "red",
  isolated: "red",
  half_open: "yellow",
  closed: "green",
  cancelled: "dim",
  regressed: "red",
  fixed: "green",
  muted: "dim",
  redrive: "green",
  canary: "yellow",
  repair: "cyan",
  healthy: "green",
  degraded: "yellow",
  unhealthy: "red",
  ok: "green",
  warning: "yellow",
  problem: "red",
};

/** The style of a state; undefined for those without one. */
export function stateStyle(state: string): Style | undefined {
  return STATE_STYLES[state];
}
