// Says where a text stops being JSON, without a piece of the text itself: it may hold a secret, and errors are shown and
// logged.
import { skipSpace } from "./recovery/json-text.ts";

/** What may come next. */
const EXPECTED = {
  value: "a value",
  item: "a value or ]",
  name: "a name in double quotes",
  field: "a name in double quotes or }",
  colon: "a colon",
  more: "a comma or the end of the list or object",
  end: "nothing more",
} as const;
type Next = keyof typeof EXPECTED;

interface Fault {
  readonly at: number;
  readonly expected: string;
}

/** Where a text stops being JSON and what was expected there, in words; null for legal JSON. */
export function jsonFault(text: string): string | null {
  const fault = faultIn(text);
  if (fault === null) return null;
  const { at, expected } = fault;
  const before = text.slice(0, at).split("\n");
  const place = `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
  return at >= text.length
    ? `its end at ${place}, where ${expected} was expected`
    : `${place}, where ${expected} was expected`;
}

/** Without recursion, because a text may be deep. */
function faultIn(text: string): Fault | null {
  const closers: string[] = [];
  let next = "value" as Next;
  for (let at = skipSpace(text, 0); ; at = skipSpace(text, at)) {
    const char = text[at];
    if (next === "end" && char === undefined) return null;
    if (char === '"' && next !== "colon" && next !== "more" && next !== "end") {
      const string = stringAt(text, at);
      if ("expected" in string) return string;
      next = next === "name" || next === "field" ? "colon" : behind(closers);
      at = string.end;
    } else if (char === ":" && next === "colon") [next, at] = ["value", at + 1];
    else if (char === "," && next === "more") [next, at] = [closers.at(-1) === "}" ? "name" : "value", at + 1];
    else if (char === closers.at(-1) && char !== undefined && mayClose(next, char)) {
      closers.pop();
      [next, at] = [behind(closers), at + 1];
    } else if ((char === "{" || char === "[") && isValue(next)) {
      closers.push(char === "{" ? "}" : "]");
      [next, at] = [char === "{" ? "field" : "item", at + 1];
    } else {
      const end: number = isValue(next) ? wordEnd(text, at) : at;
      if (end === at) return { at, expected: EXPECTED[next] };
      [next, at] = [behind(closers), end];
    }
  }
}

const behind = (closers: readonly string[]): Next => (closers.length === 0 ? "end" : "more");
const isValue = (next: Next): boolean => next === "value" || next === "item";
const mayClose = (next: Next, closer: string): boolean =>
  next === "more" || next === (closer === "}" ? "field" : "item");

/** The end of a number, or of true, false and null; the start where there is none. */
function wordEnd(text: string, start: number): number {
  let end = start;
  while (end < text.length && /[-+.\w]/.test(text[end] as string)) end += 1;
  try {
    JSON.parse(text.slice(start, end));
    return end;
  } catch {
    return start;
  }
}

function stringAt(text: string, start: number): { readonly end: number } | Fault {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 34) return { end: at + 1 };
    if (code < 32) return { at, expected: "an escape such as \\n" };
    if (code !== 92) continue;
    if (!/^(?:["\\/bfnrt]|u[\da-fA-F]{4})/.test(text.slice(at + 1, at + 6))) return { at, expected: "a legal escape" };
    at += 1;
  }
  return { at: start, expected: "a string with its closing quote" };
}
