// The items of a JSON array as texts, byte for byte: parsed and written again, long numbers would be rounded.

/** The texts of the items of an array, given a text that is one. */
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

/** Where the text ends that begins here. */
function endOfText(array: string, begin: number): number {
  let at = begin + 1;
  while (array[at] !== '"' && at < array.length) at += array[at] === "\\" ? 2 : 1;
  return at;
}
