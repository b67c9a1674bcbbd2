// Finds numbers that JavaScript cannot hold. A function that gets a parsed payload and returns a new one would change
// them silently; a merge patch on text does not.
import { skipString, skipValue } from "./json-text.ts";

/** Shorter numbers without an exponent have at most 15 digits, which JavaScript holds exactly. */
const SHORT = 15;

/** True for JSON text with a number that `JSON.parse` and `JSON.stringify` would change. */
export function losesNumbers(text: string): boolean {
  return lostNumber(text) !== null;
}

/** The first number of a JSON text that `JSON.parse` and `JSON.stringify` would change; null for none. */
export function lostNumber(text: string): string | null {
  const next = /["\d-]/g;
  for (let found = next.exec(text); found; found = next.exec(text)) {
    const end = found[0] === '"' ? skipString(text, found.index) : skipValue(text, found.index);
    if (found[0] !== '"' && isChanged(text.slice(found.index, end))) return text.slice(found.index, end);
    next.lastIndex = end;
  }
  return null;
}

function isChanged(word: string): boolean {
  if (word.length <= SHORT && !/[eE]/.test(word)) return false;
  const value = Number(word);
  return !Number.isFinite(value) || normal(word) !== normal(String(value));
}

/** A decimal number in one form for each value: its digits without zeros at either end, and the power of ten. */
function normal(word: string): string {
  const [mantissa = "", power = "0"] = word.replace("-", (_, at: number) => (at === 0 ? "" : "-")).split(/[eE]/);
  const [whole = "", part = ""] = mantissa.split(".");
  const digits = whole + part;
  let [from, to] = [0, digits.length];
  while (from < to && digits[from] === "0") from += 1;
  while (to > from && digits[to - 1] === "0") to -= 1;
  if (from === to) return "0";
  return `${word.startsWith("-") ? "-" : ""}${digits.slice(from, to)}e${Number(power) - part.length + digits.length - to}`;
}
