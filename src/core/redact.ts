// Masks secrets in output: fields whose name says so, values in running text that follow such a name, and values
// recognisable by their form. Every text is scanned once from left to right, so the work grows with its length,
// whatever is in it.

const MASK = "***";

/** Words that mark a name as a secret's, as whole words: `shipping` contains no pin, and `author` no auth. */
const SECRET_WORDS = new Set(
  [
    ["password", "passwords", "passwd", "pwd", "pass", "passphrase", "passcode", "secret", "secrets"],
    ["token", "tokens", "auth", "oauth", "authorization", "bearer", "jwt", "cookie", "cookies"],
    ["credential", "credentials", "signature", "sig", "card", "cards", "cvv", "cvc", "pin", "ssn", "iban"],
  ].flat(),
);
/** Next to these words tokens are counted: `maxTokens`, `tokens_used`. */
const COUNTS =
  /^(?:max|min|num|total|prompt|completion|input|output|reasoning|cached|used|remaining|counts?|limit|per|usage)$/;
/** After `token`: a fact about it, not the token itself. */
const ABOUT_TOKEN = /^(?:count|limit|type|usage)$/;
/** Keys that give access; all other keys only identify. */
const SECRET_KEYS = new Set(["api", "private", "access", "encryption", "signing", "master", "shared", "ssh"]);
/** Names written as one word: PGPASSWORD, accesstoken. */
const SECRET_ENDING = /(?:password|passwd|passphrase|secret|token|(?:api|private|access)key)s?$/;
/** Every name of a secret contains one of these. */
const HINT = /pass|pwd|secret|token|auth|bearer|jwt|cookie|credential|sig|card|cvv|cvc|pin|ssn|iban|key/gi;
/** Marks of secrets that have no name before them. */
const FORM = /\/\/|eyJ|-----BEGIN/;
/** A longer name is not treated as a name. */
const NAME_MOST = 128;
/** Values that are never a secret. */
const NO_SECRET = /^(?:null|true|false|yes|no|none|undefined|\*\*\*)$/i;

/**
 * True for a name whose value must be masked; split at case, `_`, `-` and space; only the last part of a path counts.
 */
export function isSecretName(name: string): boolean {
  if (name.length > NAME_MOST) return false;
  const last = name.slice(name.lastIndexOf(".") + 1);
  const words = last
    .split(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+/)
    // `password1` is a secret as well; `auth0` is a company.
    .map((word) => word.toLowerCase().replace(/(?<!\d)[1-9]\d*$/, ""));
  return words.some(
    (word, at) =>
      ((SECRET_WORDS.has(word) || SECRET_ENDING.test(word)) && !isOtherMeaning(words, at)) ||
      (/^keys?$/.test(word) && SECRET_KEYS.has(words[at - 1] ?? "")),
  );
}

/** True for a pass that is a round (`firstPassMs`) and for tokens that are counted or described. */
function isOtherMeaning(words: readonly string[], at: number): boolean {
  const [before, word, next] = [words[at - 1] ?? "", words[at], words[at + 1] ?? ""];
  if (word === "pass") return next !== "";
  if (word === "tokens") return COUNTS.test(before) || COUNTS.test(next);
  return word === "token" && ABOUT_TOKEN.test(next);
}

/** Running text without passwords, tokens and keys. */
export function redactText(text: string): string {
  return redactPairs(redactForms(text));
}

/** Masks secrets recognisable by their form: PEM keys, JWTs, passwords in URLs, and values after `Bearer`. */
function redactForms(text: string): string {
  if (!FORM.test(text) && !/bearer/i.test(text)) return text;
  return redactJwt(redactPem(text))
    .replace(/(\/\/[^\s:@/"]{0,256}:)[^\s"'<>]{0,256}@/g, `$1${MASK}@`)
    .replace(/\b(bearer +)[^\s"'`,;)\]}]+/gi, `$1${MASK}`);
}

/** In steps, because one expression for the whole token overflows the stack on megabytes. */
function redactJwt(text: string): string {
  const begin = /(?<![\w-])eyJ[\w-]+/g;
  let shown = "";
  let from = 0;
  for (let found = begin.exec(text); found; found = begin.exec(text)) {
    const body = /\.[\w-]+/y;
    body.lastIndex = begin.lastIndex;
    if (found[0].length < 8 || !body.test(text)) continue;
    const signature = /(?:\.[\w-]*)?/y;
    signature.lastIndex = body.lastIndex;
    signature.test(text);
    shown += text.slice(from, found.index) + MASK;
    from = begin.lastIndex = signature.lastIndex;
  }
  return shown + text.slice(from);
}

const PEM_BEGIN = /-----BEGIN ([A-Z0-9 ]{0,40}PRIVATE KEY)-----/g;

/** Masks private keys, also one whose end was cut off. */
function redactPem(text: string): string {
  let shown = "";
  let from = 0;
  PEM_BEGIN.lastIndex = 0;
  for (let begin = PEM_BEGIN.exec(text); begin; begin = PEM_BEGIN.exec(text)) {
    shown += text.slice(from, PEM_BEGIN.lastIndex) + MASK;
    const end = text.indexOf(`-----END ${begin[1]}-----`, PEM_BEGIN.lastIndex);
    from = end === -1 ? text.length : end;
    PEM_BEGIN.lastIndex = from;
  }
  return shown + text.slice(from);
}

/** Masks values after a name: `password: x`, `"token": "x"`, `PGPASSWORD=x`, `--api-key x`, `'Cookie', 'x'`. */
function redactPairs(text: string): string {
  const pieces: string[] = [];
  let from = 0;
  const hint = new RegExp(HINT);
  for (let found = hint.exec(text); found; found = hint.exec(text)) {
    const name = nameAround(text, found.index, from);
    // Every name is checked once, however many hints it contains.
    hint.lastIndex = name.end;
    const value = name.isSecret ? valueBehind(text, name) : null;
    if (value === null || NO_SECRET.test(text.slice(value.start, Math.min(value.end, value.start + 10)))) continue;
    pieces.push(text.slice(from, value.start), MASK);
    from = value.end;
    hint.lastIndex = from;
  }
  return pieces.length === 0 ? text : pieces.join("") + text.slice(from);
}

interface Span {
  readonly start: number;
  readonly end: number;
}

const NAME_CHAR = /[\w.$-]/;

/** The name around a hint; includes the word before it where only both together name a secret, as in `api key`. */
function nameAround(text: string, at: number, from: number): Span & { readonly isSecret: boolean } {
  let [start, end] = [at, at];
  while (start > from && NAME_CHAR.test(text[start - 1] as string)) start -= 1;
  while (end < text.length && NAME_CHAR.test(text[end] as string)) end += 1;
  if (end - start > NAME_MOST) return { start, end, isSecret: false };
  if (isSecretName(text.slice(start, end))) return { start, end: wholeName(text, end), isSecret: true };
  if (text[start - 1] !== " ") return { start, end, isSecret: false };
  const before = /[A-Za-z]{1,20}$/.exec(text.slice(Math.max(from, start - 21), start - 1))?.[0] ?? "";
  const isSecret = before !== "" && isSecretName(`${before} ${text.slice(start, end)}`) && !isSecretName(before);
  return { start, end: isSecret ? wholeName(text, end) : end, isSecret };
}

/** The end of a name including a following word that belongs to it: `access key id`, `card number`. */
function wholeName(text: string, end: number): number {
  return end + (/^ (?:id|number|value)(?=["'`]?\s{0,8}[:=])/i.exec(text.slice(end, end + 24))?.[0].length ?? 0);
}

const COOKIE = /cookies?$/i;
const SCHEME = /^(?:bearer|basic|digest|token|negotiate|apikey|aws4-hmac-sha256)\s+/i;

/** The position of a name's value; null where no value follows. */
function valueBehind(text: string, { start, end }: Span): Span | null {
  const near = text.slice(end, end + 40);
  const name = text.slice(start, end);
  const quote = /^(?:\\{0,16}["'`])?/.exec(near)?.[0] ?? "";
  const isQuoted = quote !== "" && text.slice(start - quote.length, start) === quote;
  const pair = /^(?:\\{0,16}["'`]|\])?[ \t]{0,8}(?:=>|={1,3}|:=|:(?!:|\/\/))\s{0,8}/.exec(near);
  const flag = name.startsWith("-") ? /^\s{1,8}(?!-)/.exec(near) : null;
  const listed = isQuoted ? /^\\{0,16}["'`]\s{0,8},\s{0,8}(?=\\{0,16}["'`])/.exec(near) : null;
  const between = pair ?? flag ?? listed;
  if (between === null) return null;
  const from = end + between[0].length;
  if (from >= text.length) return null;
  const scheme = SCHEME.exec(text.slice(from, from + 32))?.[0].length ?? 0;
  return extentOf(text, from + scheme, COOKIE.test(name));
}

/** How far a value that begins here extends: to its quote, its bracket, the end of the line or the end of the word. */
function extentOf(text: string, from: number, isCookie: boolean): Span | null {
  const open = /^\\{0,16}["'`]/.exec(text.slice(from, from + 17))?.[0];
  if (open !== undefined) {
    const start = from + open.length;
    return { start, end: closingQuote(text, start, open) };
  }
  if (text[from] === "{" || text[from] === "[") return { start: from, end: closingBracket(text, from) };
  const stop = isCookie ? /[\r\n"'`]/g : /[\s"'`&;<>\\]/g;
  stop.lastIndex = from;
  let end = stop.exec(text)?.index ?? text.length;
  while (end > from && /[,.;:)\]}]/.test(text[end - 1] as string)) end -= 1;
  return end === from ? null : { start: from, end };
}

function closingQuote(text: string, from: number, open: string): number {
  if (open.length > 1) {
    const end = text.indexOf(open, from);
    return end === -1 ? text.length : end;
  }
  for (let at = from; at < text.length; at++) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === open) return at;
  }
  return text.length;
}

function closingBracket(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    const char = text[at];
    if (char === "{" || char === "[") depth += 1;
    else if (char === "}" || char === "]") depth -= 1;
    if (depth === 0) return at + 1;
  }
  return text.length;
}

/** JSON text with secret fields masked; everything else stays byte for byte. */
export function redactJson(text: string): string {
  // Most payloads contain nothing to mask.
  if (!hasHint(text) && !FORM.test(text) && !text.includes("\\u")) return text;
  const shown = redactTokens(text);
  return isJson(text) ? shown : redactText(shown);
}

function hasHint(text: string): boolean {
  return text.search(HINT) !== -1;
}

/** True for a text that is JSON. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const PAIR_NAME = /^(?:name|key|header|field)$/i;
const PAIR_VALUE = /^(?:value|val)$/i;
/** The beginning of a text that may itself be JSON. */
const JSON_BEGIN = /^\s{0,8}[{["]/;

/** Walks through the tokens, so that numbers and spaces stay unchanged and damaged JSON is masked too. */
function redactTokens(text: string): string {
  const pieces: string[] = [];
  // The lists and objects open at this place; a field of an object may have declared that its `value` is a secret.
  const open = [{ isList: false, isNamed: false }];
  let from = 0;
  const mask = (start: number, end: number): number => {
    if (NO_SECRET.test(text.slice(start, Math.min(end, start + 10)))) return end;
    pieces.push(text.slice(from, start), `"${MASK}"`);
    return (from = end);
  };
  for (let at = 0; at < text.length; ) {
    const char = text[at];
    const around = open.at(-1) as (typeof open)[number];
    if (char === "{" || char === "[") open.push({ isList: char === "[", isNamed: false });
    if ((char === "}" || char === "]") && open.length > 1) open.pop();
    if (char !== '"') {
      at += 1;
      continue;
    }
    const end = stringEnd(text, at);
    const colon = /^\s{0,64}:\s{0,64}/.exec(text.slice(end, end + 130));
    if (colon) {
      const name = contentOf(text.slice(at, end)) ?? "";
      const start = end + colon[0].length;
      const isValue = PAIR_VALUE.test(name) && (around.isNamed || isNameBehind(text, start));
      if (start < text.length && (isValue || isSecretName(name))) at = mask(start, valueEnd(text, start));
      else {
        if (PAIR_NAME.test(name)) around.isNamed = isSecretString(text, start);
        at = start;
      }
      continue;
    }
    const comma = around.isList ? /^\s{0,8},\s{0,8}(?=")/.exec(text.slice(end, end + 20)) : null;
    if (comma && isSecretString(text, at)) {
      const start = end + comma[0].length;
      at = mask(start, stringEnd(text, start));
      continue;
    }
    const shown = redactString(text.slice(at, end));
    if (shown !== null) {
      pieces.push(text.slice(from, at), shown);
      from = end;
    }
    at = end;
  }
  return pieces.join("") + text.slice(from);
}

/** A JSON string with the secrets in it masked, also inside nested JSON; null where there are none. */
function redactString(token: string): string | null {
  const content = contentOf(token);
  if (content === null) return null;
  const shown = JSON_BEGIN.test(content) ? redactJson(content) : redactText(content);
  return shown === content ? null : JSON.stringify(shown);
}

/** The content of a JSON string, escapes resolved; null for a damaged one. */
function contentOf(token: string): string | null {
  if (!token.includes("\\")) return token.length > 1 && token.endsWith('"') ? token.slice(1, -1) : null;
  try {
    return String(JSON.parse(token));
  } catch {
    return null;
  }
}

/** True where a string stands here that names a secret. */
function isSecretString(text: string, at: number): boolean {
  if (text[at] !== '"') return false;
  const end = stringEnd(text.slice(at, at + NAME_MOST + 2), 0);
  return isSecretName(contentOf(text.slice(at, at + end)) ?? "");
}

/** True where the value here is followed by a field that names it as a secret. */
function isNameBehind(text: string, at: number): boolean {
  if (text[at] === "{" || text[at] === "[") return false;
  const end = text[at] === '"' ? stringEnd(text, at) : at + text.slice(at, at + NAME_MOST).search(/[\s,}\]"]|$/);
  const next = /^\s{0,8},\s{0,8}"(\w{1,8})"\s{0,8}:\s{0,8}/.exec(text.slice(end, end + 50));
  return next !== null && PAIR_NAME.test(next[1] ?? "") && isSecretString(text, end + next[0].length);
}

/** Where the string that begins here ends; the end of the text where it is not closed. */
function stringEnd(text: string, from: number): number {
  return Math.min(text.length, closingQuote(text, from + 1, '"') + 1);
}

/** Where the value that begins here ends. */
function valueEnd(text: string, from: number): number {
  if (text[from] === '"') return stringEnd(text, from);
  let depth = 0;
  for (let at = from; at < text.length; ) {
    const char = text[at] as string;
    if (depth === 0 && at > from && /[\s,}\]]/.test(char)) return at;
    if (char === "{" || char === "[") depth += 1;
    if (char === "}" || char === "]") depth -= 1;
    at = char === '"' ? stringEnd(text, at) : at + 1;
    if (depth <= 0 && /[}\]]/.test(char)) return at;
  }
  return text.length;
}
