// JSON as text: laid out and compared without a parser touching it, because a parser of JavaScript damages numbers that do
// not fit it.

/** The tokens of a JSON text, strings and numbers as they stand there; null where it is no JSON. */
export function tokensOf(text: string): readonly string[] | null {
  const found = text.match(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{}[\],:]/g) ?? [];
  const rest = text.replaceAll(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{}[\],:]|\s+/g, "");
  return rest === "" && found.length > 0 ? found : null;
}

/** The text over lines; as it is where it is no JSON. */
export function layout(text: string): string {
  const tokens = tokensOf(text);
  if (tokens === null) return text;
  let out = "";
  let deep = 0;
  const fresh = (): string => `\n${"  ".repeat(deep)}`;
  tokens.forEach((token, at) => {
    const before = tokens[at - 1];
    if (token === "}" || token === "]") {
      deep -= 1;
      out += before === "{" || before === "[" ? token : fresh() + token;
    } else {
      if (before === "{" || before === "[" || before === ",") out += fresh();
      out += token === ":" ? ": " : token;
      if (token === "{" || token === "[") deep += 1;
    }
  });
  return out;
}

/** The text without spaces between its tokens; as it is where it is no JSON. */
export function compact(text: string): string {
  return tokensOf(text)?.join("") ?? text;
}

/** A line of a comparison. */
export interface DiffLine {
  readonly kind: "same" | "gone" | "new";
  readonly text: string;
  /** The line in the new text; null for a line that is gone. */
  readonly at: number | null;
}

const MOST = 2_000;

/** The lines of two texts, by their longest common part. */
export function diffOf(before: string, after: string): readonly DiffLine[] {
  const [a, b] = [before.split("\n"), after.split("\n")];
  const all = (): DiffLine[] => [
    ...a.map((text) => ({ kind: "gone" as const, text, at: null })),
    ...b.map((text, at) => ({ kind: "new" as const, text, at })),
  ];
  if (a.length * b.length > MOST * MOST) return all();
  const wide = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i * wide + j] =
        a[i] === b[j]
          ? (lengths[(i + 1) * wide + j + 1] ?? 0) + 1
          : Math.max(lengths[(i + 1) * wide + j] ?? 0, lengths[i * wide + j + 1] ?? 0);
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: "same", text: b[j] as string, at: j });
      i += 1;
      j += 1;
    } else if (
      i < a.length &&
      (j === b.length || (lengths[(i + 1) * wide + j] ?? 0) >= (lengths[i * wide + j + 1] ?? 0))
    ) {
      lines.push({ kind: "gone", text: a[i] as string, at: null });
      i += 1;
    } else {
      lines.push({ kind: "new", text: b[j] as string, at: j });
      j += 1;
    }
  }
  return lines;
}

/** The line of a laid-out text where a path such as `items[2].price` or `items.2.price` stands; 0 where it is not found. */
export function lineOf(text: string, path: string): number {
  const parts = path.split(/[.[\]]+/).filter((part) => part !== "" && part !== "$");
  const lines = text.split("\n");
  let at = 0;
  let deep = 1;
  for (const part of parts) {
    const indent = "  ".repeat(deep);
    if (/^\d+$/.test(part)) {
      let left = Number(part);
      for (let next = at + 1; next < lines.length; next++) {
        const own = lines[next] ?? "";
        if (!own.startsWith(indent) || /^\s*[\]}]/.test(own.slice(indent.length)) || own[indent.length] === " ")
          continue;
        if (left === 0) {
          at = next;
          break;
        }
        left -= 1;
      }
    } else {
      const found = lines.findIndex((own, n) => n > at && own.startsWith(`${indent}${JSON.stringify(part)}: `));
      if (found < 0) return at;
      at = found;
    }
    deep += 1;
  }
  return at;
}
