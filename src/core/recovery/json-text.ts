// Walks through JSON text that was parsed before and is therefore legal: where a string, a value or white space ends.

/** Where the white space that begins here ends. */
export function skipSpace(text: string, from: number): number {
  let at = from;
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code !== 32 && code !== 10 && code !== 13 && code !== 9) break;
  }
  return at;
}

/** The end of the string that begins here. */
export function skipString(text: string, from: number): number {
  for (let at = from + 1; ; at++) {
    const code = text.charCodeAt(at);
    if (code === 92) at += 1;
    else if (code === 34 || at >= text.length) return at + 1;
  }
}

/** The end of the value that begins here; without recursion, because a payload may be deep. */
export function skipValue(text: string, from: number): number {
  let depth = 0;
  let at = from;
  while (at < text.length) {
    const char = text[at];
    if (char === '"') at = skipString(text, at);
    else if (char === "{" || char === "[") {
      depth += 1;
      at += 1;
      continue;
    } else if (char === "}" || char === "]") {
      depth -= 1;
      at += 1;
    } else if (depth === 0) at = skipWord(text, at);
    else {
      at += 1;
      continue;
    }
    if (depth === 0) return at;
  }
  return at;
}

/** The end of a number, or of true, false and null. */
function skipWord(text: string, from: number): number {
  const word = /[^\s,}\]]*/y;
  word.lastIndex = from;
  word.test(text);
  return word.lastIndex;
}
