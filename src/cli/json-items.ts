// The items of a JSON array as texts, byte for byte: parsing and printing them again would round long numbers.

/** Splits the text of a valid JSON array into the texts of its items. */
export function* itemTexts(array: string): Generator<string> {
  let depth = 0;
  let from = 0;
  for (let at = 0; at < array.length; at++) {
    const sign = array[at];
    if (sign === '"') at = endOfText(array, at);
    else if (sign === "[" || sign === "{") {
      depth += 1;
      if (depth === 1) from = at + 1;
    } else if (sign === "]" || sign === "}" || (sign === "," && depth === 1)) {
      if (sign !== ",") depth -= 1;
      if (depth > 1 || (depth === 1 && sign !== ",")) continue;
      const text = array.slice(from, at).trim();
      if (text !== "") yield text;
      from = at + 1;
    }
  }
}

/** The position at which the string that begins here ends. */
function endOfText(array: string, begin: number): number {
  let at = begin + 1;
  while (array[at] !== '"' && at < array.length) at += array[at] === "\\" ? 2 : 1;
  return at;
}
