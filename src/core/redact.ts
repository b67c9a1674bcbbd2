// Secrets in what people and other tools get to see: fields whose name says so, and passwords in connection strings.

const SECRET = /pass(word|wd|phrase)|secret|token|authorization|cookie|api[-_]?key|private[-_]?key|card|iban/i;
/** Strings, also one without an end; brackets and signs; numbers and words; space. */
const TOKENS = /"(?:[^"\\]|\\[\s\S])*"|"[\s\S]*|[{}[\]:,]|[^\s"{}[\]:,]+|\s+/g;

/** The text without the passwords of connection strings. */
export function redactText(text: string): string {
  return text
    .replace(/(\/\/[^\s:@/"]{0,256}:)[^\s"'<>]{0,256}@/g, "$1***@")
    .replace(/((?:^|[?&;\s_-])(?:password|passwd|pwd|secret|token|api_?key)=)[^&;\s"']+/gi, "$1***")
    .replace(/(authorization: ?(?:bearer |basic )?)[^\s"',;]+/gi, "$1***");
}

/** JSON text with the fields masked that sound like secrets; all else stays byte for byte. */
export function redactJson(text: string): string {
  return redactText(isPlain(text) ? text : redactFields(text));
}

/** Most payloads have nothing to hide. */
function isPlain(text: string): boolean {
  return !SECRET.test(text) && !text.includes("\\u");
}

/** Walks through the text, so that numbers and spaces stay as they are and damaged JSON is masked too. */
function redactFields(text: string): string {
  const tokens = text.match(TOKENS) ?? [];
  let shown = "";
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at] as string;
    shown += token;
    if (!token.startsWith('"') || !SECRET.test(nameIn(token))) continue;
    const [colon, value] = [skipSpace(tokens, at + 1), skipSpace(tokens, skipSpace(tokens, at + 1) + 1)];
    if (tokens[colon] !== ":" || value >= tokens.length) continue;
    shown += `${tokens.slice(at + 1, value).join("")}"***"`;
    at = endOfValue(tokens, value);
  }
  return shown;
}

/** The name a token stands for, escapes resolved. */
function nameIn(token: string): string {
  try {
    return String(JSON.parse(token));
  } catch {
    return token;
  }
}

function skipSpace(tokens: readonly string[], from: number): number {
  let at = from;
  while (/^\s/.test(tokens[at] ?? "")) at += 1;
  return at;
}

/** The position of the last token of the value that begins here. */
function endOfValue(tokens: readonly string[], from: number): number {
  let depth = 0;
  for (let at = from; at < tokens.length; at++) {
    const token = tokens[at];
    if (token === "{" || token === "[") depth += 1;
    if (token === "}" || token === "]") depth -= 1;
    if (depth <= 0) return at;
  }
  return tokens.length;
}
