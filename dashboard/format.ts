// Numbers, times and durations as people read them. Times are the store's: the page's clock is corrected by what the server
// last said.
import { signal } from "@preact/signals";

/** How much the store's clock is ahead of the browser's. */
export const ahead = signal(0);
/** The store's time, turned once a second while the page is seen. */
export const now = signal(Date.now());

/** The store's time at this moment. */
export const storeNow = (): number => Date.now() + ahead.value;

const whole = new Intl.NumberFormat("en-US");
const few = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });

/** `12,345`. */
export const number = (value: number): string => whole.format(value);
/** `0.75`. */
export const decimal = (value: number): string => few.format(value);
/** `10,000+` where it was counted no further. */
export const bounded = ({ n, atLeast }: { readonly n: number; readonly atLeast: boolean }): string =>
  `${number(n)}${atLeast ? "+" : ""}`;
/** `45 %`. */
export const percent = (share: number): string => `${few.format(share * 100)} %`;
/** `1 job`, `2 jobs`. */
export const counted = (n: number, one: string, many = `${one}s`): string => `${number(n)} ${n === 1 ? one : many}`;

const UNITS: readonly (readonly [ms: number, name: string])[] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"],
];

/** `4 min 10 s`; below a second `120 ms`. `parts` is how many units are named. */
export function span(ms: number, parts = 2): string {
  const size = Math.abs(ms);
  if (size < 1_000) return `${Math.round(size)} ms`;
  const first = UNITS.findIndex(([unit]) => size >= unit);
  let rest = size;
  const said: string[] = [];
  for (const [unit, name] of UNITS.slice(first, first + parts)) {
    const n = Math.floor(rest / unit);
    rest -= n * unit;
    if (n > 0) said.push(`${n} ${name}`);
  }
  return said.join(" ");
}

/** `4 min ago`, `in 12 s`, `now`. */
export function relative(at: number, from: number): string {
  const ms = at - from;
  if (Math.abs(ms) < 1_000) return "now";
  return ms < 0 ? `${span(ms, 1)} ago` : `in ${span(ms)}`;
}

const pad = (value: number, width = 2): string => String(value).padStart(width, "0");

/** `12:49:03`, and on another day `18 Nov 12:49`; local. */
export function clock(at: number, from: number): string {
  const [date, today] = [new Date(at), new Date(from)];
  const time = `${pad(date.getHours())}:${pad(date.getMinutes())}`;
  if (date.toDateString() === today.toDateString()) return `${time}:${pad(date.getSeconds())}`;
  return `${date.getDate()} ${date.toLocaleString("en-US", { month: "short" })} ${time}`;
}

/** A short form of an id, as rows show it. */
export const shortId = (id: string): string => (id.length > 16 ? `${id.slice(0, 8)}…${id.slice(-4)}` : id);

/** One line of at most this many characters. */
export function line(text: string, most = 140): string {
  const flat = text.replaceAll(/\s+/g, " ").trim();
  return flat.length > most ? `${flat.slice(0, most - 1)}…` : flat;
}

/** A word for the shell, quoted where it needs it. */
export const quoted = (text: string): string =>
  /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
