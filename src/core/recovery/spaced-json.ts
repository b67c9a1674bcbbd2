// White space between the tokens of JSON text, put in for people and taken out again. No token changes, so that numbers
// and escapes stay as they are.
import { skipSpace, skipString } from "./json-text.ts";

/** JSON text without white space between its tokens. */
export function compactJson(text: string): string {
  return spaced(text, () => "", ":");
}

/** JSON text with a line for every field and item, indented by two spaces. */
export function indentJson(text: string): string {
  return spaced(text, (depth) => `\n${"  ".repeat(depth)}`, ": ");
}

/** The text must be legal JSON. */
function spaced(text: string, line: (depth: number) => string, colon: string): string {
  const pieces: string[] = [];
  let depth = 0;
  for (let at = skipSpace(text, 0); at < text.length; at = skipSpace(text, at)) {
    const char = text[at] as string;
    if (char === '"') {
      const end = skipString(text, at);
      pieces.push(text.slice(at, end));
      at = end;
      continue;
    }
    at += 1;
    if (char === "{" || char === "[") {
      const inner = skipSpace(text, at);
      const isEmpty = text[inner] === "}" || text[inner] === "]";
      pieces.push(char, isEmpty ? (text[inner] as string) : line(++depth));
      if (isEmpty) at = inner + 1;
    } else if (char === "}" || char === "]") pieces.push(line(--depth), char);
    else if (char === ",") pieces.push(char, line(depth));
    else pieces.push(char === ":" ? colon : char);
  }
  return pieces.join("");
}
