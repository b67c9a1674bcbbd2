// What an error's message says about its cause, without what changes from one job, host, build or version of a runtime
// to the next. Two tables in order: `CUTS` removes whole parts, `VARIABLE` replaces what is left over of values by
// placeholders. Every pass is linear: alternatives start at a boundary and each repeats one set of characters.

const MAX_MESSAGE = 2048;

/**
 * Parts that say nothing about the cause, or say it in the words of one build: texts of which every match holds one, for
 * patterns that need not be run where the message holds none; the pattern; and what stands in its place.
 */
const CUTS: readonly (readonly [holds: readonly string[], RegExp, string])[] = [
  // A parser's excerpt of the data, an assertion's difference and source text, the objects of a circle.
  [["line "], /(line \d{1,9},? col(?:umn)? \d{1,9}):?\s*\n[^]*$/, "$1"],
  [
    ["actual", "falsy", "circular"],
    /(\+ actual - expected|evaluated to a falsy value|circular structure to JSON)[^]*$/,
    "$1",
  ],
  [[], /^[ \t^~]+$/gm, ""],
  [[" could not be cloned"], /^[^]*(?= could not be cloned)/, "<source>"],
  // Where in a text a parser stood, and a hint; versions of V8 and Python say them in different detail.
  [["(line "], / ?\(line \d{1,9} col(?:umn)? \d{1,9}\)/g, ""],
  [[" Did you mean"], /\.? Did you mean:? [^\n]{0,200}\?/g, ""],
  // Java: what was null (local names depend on the compiler's flags), and the class loader.
  [[' because "'], / because "[^"\n]{0,200}" is null/g, ""],
  [["loader"], / \((?=[^()\n]{0,900}loader)[^()\n]{0,999}\)/g, ""],
  // A package's folders, which shading changes: only the class is kept.
  [["."], /(?<![\w.$/@])(?:[a-z_]\w{0,63}\.){2,10}(?=[A-Z])/g, ""],
  // Variables and classes, which minifiers rename; properties keep their names.
  [["#<"], /#<\w{1,64}>/g, "#<Object>"],
  [
    [" is not "],
    /(?<!\S)(?:\(0 ?, ?|\(intermediate )?\S{0,200}?(?:\.([\w$]{1,64}))?\)?(?= is not (?:a function|iterable|a constructor))/g,
    "<name>.$1",
  ],
  [
    ["Class constructor", "Received "],
    /(Class constructor|Received an instance of|Received function) [\w$]{1,64}/g,
    "$1 <name>",
  ],
  // Data that V8 writes as it is: excerpts of JSON with their quotes, patterns, what `in` and BigInt were asked for.
  [[" is not valid JSON"], /(Unexpected (?:token|non-whitespace character)) [^]*(?= is not valid JSON)/, "$1 <value>"],
  [["Invalid regular expression:"], /(Invalid regular expression:) \/[^\n]*\/[a-z]{0,8}(?=: )/, "$1 <value>"],
  [["operator to search for"], /(operator to search for '[^'\n]{0,200}' in) [^]*$/, "$1 <value>"],
  [["Cannot convert"], /^(Cannot convert) [^]*(?= to a BigInt$)/, "$1 <value>"],
  // `Unknown plan gold`: the last word is a value, unless it names a part of the schema.
  [
    [],
    /((?:unknown|unsupported|no such) (?!column|table|relation|field|option|argument|command|function|method|type|property|module|host)[a-z]{2,30}:?) [\w-]{1,64}$/i,
    "$1 <n>",
  ],
  // `Invalid time zone specified: Mars`, `tenant=acme`.
  [[], /^((?:invalid|illegal|bad|unknown|unsupported|unrecognized|no such) [a-z ]{2,60}: ?)\S{1,64}$/i, "$1<n>"],
  [["=", "#"], /(?<![\w=!<>?&/])(\w{1,64}=|\w{1,64} ?#)[\w-]{1,64}/g, "$1<n>"],
  // What is moved or copied is data, whatever its name.
  [["' -> '"], /'[^'\n]{1,900}' -> '[^'\n]{1,900}'$/, "<path> -> <path>"],
  [[" (cannot read property"], / \(cannot read property Symbol\(Symbol\.iterator\)\)/, ""],
  // Codes of currencies, countries and the like.
  [
    [],
    /(?<![\w.-])(?!API|CPU|CSV|DNS|DOM|EOF|FTP|GET|GPU|HTM|IPC|JWT|NAN|NOT|PDF|PEM|PUT|SDK|SQL|SSH|SSL|TCP|TLS|UDP|URI|URL|UTC|UTF|XML|YML|ZIP)[A-Z]{3}(?![\w.:-])/g,
    "<n>",
  ],
  // `Site north cannot …`: the second word names one of many.
  [
    [],
    /^(?!The|This|That|Your|All|Any|No|An?\b)([A-Z][a-z]{1,30}) [a-z][\w-]{0,63}(?= (?:cannot|could|can|does|did|was|has|failed) )/,
    "$1 <n>",
  ],
];

/**
 * Alternatives in order of precedence, each with what a message must hold for it to match; each starts at a boundary, so
 * none scans a position twice.
 */
const VARIABLE: readonly (readonly [holds: RegExp | null, RegExp])[] = [
  [null, /(?<!\w)(?:status(?: ?code)?|HTTP(?:\/[\d.]+)?)[ :=]{0,3}[45]\d\d(?!\w)/],
  [/:\/\//, /((?<!\w)[a-z][a-z0-9+]{1,9}:\/\/[^\s"'`<>)\]}]+)/],
  [/@/, /((?<![\w.+-])[\w.+-]+@[\w.-]+)/],
  [
    /["'`“]/,
    /("(?:[^"\\\n]|\\.|(?<= )"\w{1,32}"(?= ))*"|(?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w))*'(?!\w)|`[^`\n]*`|“[^”\n]*”)/,
  ],
  [/[\\/]/, /((?<![\w.)\]}>/\\])(?:[A-Za-z]:[\\/]|~?\/|\.{1,2}\/)[^\s:'"`<>|,;)\]}]+)/],
  [
    /\./,
    /((?<![\w.-])[\w.-]+\.(?:jpe?g|png|gif|webp|avif|heic|tiff?|svg|mp[34]|mov|mkv|webm|wav|pdf|csv|txt|xml|zip|gz|tmp|log|parquet)(?!\w))/,
  ],
  [
    /\.|::|localhost/i,
    /((?<![\w.])(?:(?:::ffff:)?(?:\d{1,3}\.){3}\d{1,3}|localhost|\[?::1?\]?(?=:\d|[^\w:]|$))(?::\d{1,5})?(?![\w.]))/,
  ],
  [
    /\./,
    /((?<![\w.-])[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|dev|local|internal|test|example|localdomain|svc)(?::\d{1,5})?(?![\w.-]))/,
  ],
  [null, /((?<![\w-])[\w-]+)/],
];
/** The patterns made so far, by which alternatives they have; at most one for each set of them. */
const patterns = new Map<number, RegExp>();

/** One pattern of the alternatives that may match in the text; the others keep their places as groups that never match. */
function variableIn(text: string): RegExp {
  let set = 0;
  for (const [at, [holds]] of VARIABLE.entries()) if (holds === null || holds.test(text)) set |= 1 << at;
  let pattern = patterns.get(set);
  if (pattern === undefined) {
    const parts = VARIABLE.map(([, { source }], at) => ((set >> at) & 1 ? source : "((?!))"));
    patterns.set(set, (pattern = new RegExp(parts.join("|"), "gi")));
  }
  return pattern;
}
/** Words with digits that are kept, and words without digits that are parts of a date. */
const FIXED_WORD =
  /^(?:utf-?\d+|base(?:32|58|64)(?:url)?|sha-?\d+|md5|ipv[46]|s3|ec2|oauth2|argon2|mp[34]|h26[45]|x509|http[23]|int\d+|uint\d+|float\d+)$/i;
const DATE_WORD = /^(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|am|pm|gmt|utc)$/i;
const MONTH = /^(?:January|February|April|June|July|August|September|October|November|December)$/;
const LOCALE = /^[a-z]{2}[-_][A-Z]{2}$/;
/** After these words a quoted name belongs to the program or the schema, not to the data. */
const NAMING =
  /(?:reading|setting|property|attribute|column|relation|table|constraint|module|named|package|class|type|function|method|index|field|key|variable|export|command|argument|parameter|option|header|code|path|expected|invoke)"?\s*[:=]?\s*\[?\s*$/i;
const NAMED_BEFORE = /^ (?:argument|property|option|parameter|field|column)/;
const VERB = /(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\s$/;
/** A host that could not be resolved is the cause itself. */
const RESOLVING = /(?:getaddrinfo|ENOTFOUND|EAI_AGAIN|resolve|host(?:name)?:?)\s+$/i;
/** A bare word after these is a value, unless it names a type. */
const GIVEN = /(?:got|received|but was|instead of|actual)[ :]+$/i;
const TYPE_WORD =
  /^(?:string|number|boolean|bool|object|array|list|map|set|date|undefined|null|none|nan|function|symbol|bigint|int|integer|float|double|type|an?|the|instance|of|one|no|empty|nothing|unknown|invalid)$/i;
/** Files that belong to a program; the names of others belong to the data. */
const PROGRAM_FILE =
  /(?:^|[\\/])([a-z][a-z_.-]{3,63}\.(?:json|ya?ml|toml|ini|conf|cfg|properties|env|[cm]?[jt]sx?|py|jar|sql|html?|hbs|ejs|css|txt|md|pem|crt|cert|key|wasm|node|so|proto|graphql))$/i;

/** The message with ids, numbers, quoted values, addresses, times and paths replaced by placeholders. */
export function normalizeMessage(message: string): string {
  const text = message.slice(0, MAX_MESSAGE);
  const issues = issuesOf(text);
  if (issues !== "") return issues;
  const left = cut(text);
  const shape = left.replace(variableIn(left), placeholder).replace(/<n>(?:[\s.,:/+-]+<n>)+/g, "<n>");
  return (/[^\S ]| {2}/.test(shape) ? shape.replace(/\s+/g, " ") : shape).trim();
}

function cut(text: string): string {
  let left = text;
  for (const [holds, pattern, instead] of CUTS)
    if (holds.length === 0 || holds.some((part) => left.includes(part))) left = left.replace(pattern, instead);
  return left;
}

/** The issues of a validator that writes them as JSON, as zod does: what is wrong, and where, without list positions. */
function issuesOf(text: string): string {
  if (!/^\s{0,64}\[\s{0,64}\{/.test(text) || !text.includes('"path"')) return "";
  const facts = text.match(/"(?:code|expected|format|path|keys|validation)":\s{0,64}(?:"[^"\n]*"|\[[^[\]]*\])/g) ?? [];
  return facts.map((fact) => fact.replace(/\d+,?|[\s"]+/g, "")).join(" ");
}

/** The replacement of one match of `VARIABLE`; the parameters are its groups, in order. */
function placeholder(
  match: string,
  url: string | undefined,
  email: string | undefined,
  quoted: string | undefined,
  path: string | undefined,
  file: string | undefined,
  address: string | undefined,
  host: string | undefined,
  word: string | undefined,
  offset: number,
  text: string,
): string {
  const before = (count: number) => text.slice(Math.max(0, offset - count), offset);
  if (word !== undefined) return GIVEN.test(before(16)) && !TYPE_WORD.test(word) ? "<value>" : wordPart(word);
  if (quoted !== undefined) {
    const end = offset + quoted.length;
    return quotedPart(
      quoted.slice(1, -1),
      NAMING.test(before(24)) || NAMED_BEFORE.test(text.slice(end, end + 12)),
      text,
    );
  }
  if (url !== undefined) return urlPart(url);
  if (path !== undefined) return VERB.test(before(8)) ? routePart(path) : pathPart(path);
  if (address !== undefined) return addressPart(address);
  if (host !== undefined) return RESOLVING.test(before(24)) ? hostPart(host) : addressPart(host);
  if (file !== undefined) return "<path>";
  return email === undefined ? match : "<email>";
}

function wordPart(word: string): string {
  if (/\d/.test(word)) return FIXED_WORD.test(word) ? word : "<n>";
  const isDate = word.length <= 3 ? DATE_WORD.test(word) : MONTH.test(word);
  return isDate || LOCALE.test(word) || /^[a-f]{8,}$/.test(word) ? "<n>" : word;
}

function quotedPart(content: string, isName: boolean, text: string): string {
  // A message that is one quoted name is Python's KeyError.
  if (
    (isName || content.length + 2 === text.length) &&
    /^[a-z_@$][\w.@/$ ()<>-]{0,63}$/i.test(content) &&
    !/\d/.test(content)
  )
    return content;
  return PROGRAM_FILE.test(content) && /[\\/]/.test(content) ? pathPart(content) : "<value>";
}

function pathPart(path: string): string {
  const file = PROGRAM_FILE.exec(path.slice(-66))?.[1];
  return file === undefined ? "<path>" : `<path>/${file}`;
}

/** Scheme and host; for http addresses also the path without its ids, files and query. */
function urlPart(url: string): string {
  const [scheme = "", rest = ""] = url.split("://", 2);
  const [authority = "", ...segments] = (rest.split(/[?#]/, 1)[0] ?? "").split("/");
  const host = authority.slice(authority.lastIndexOf("@") + 1);
  const shown = /^[\d.]+(?::\d+)?$/.test(host) ? addressPart(host) : hostPart(host);
  return `${scheme}://${shown}${scheme.startsWith("http") ? routePart(`/${segments.join("/")}`) : ""}`;
}

function hostPart(host: string): string {
  return host.replace(/[\w-]*\d[\w-]*(?=\.)/g, "<n>");
}

function routePart(path: string): string {
  const segments = (path.split(/[?#]/, 1)[0] ?? "").split("/");
  const isId = (segment: string) => /[.@%]|\d/.test(segment) && !/^v\d$/.test(segment);
  return segments
    .map((segment) => (isId(segment) || segment.length > 32 ? "<n>" : segment))
    .join("/")
    .replace(/\/+$/, "");
}

/** Addresses change, ports stay: the port tells the service, unless it is ephemeral. */
function addressPart(address: string): string {
  const port = /:(\d{1,5})$/.exec(address.replace(/^\[?::1?\]?/, ""))?.[1];
  return port !== undefined && Number(port) < 32_768 ? `<address>:${port}` : "<address>";
}

/** Words that any failure may have; a message of these alone says nothing about the cause. */
const COMMON_WORDS = new Set(
  [
    "a an the of to in on at by for from with without and or nor but is are was were be been it its this that as than",
    "then not no none any all cannot can could would should may must might do does did has have had will you your",
    "error exception failed fail failure failing invalid illegal unexpected unknown unsupported missing found exist",
    "exists such expected required wrong bad malformed undefined null nil nan type value values argument arguments",
    "parameter object property properties reading setting read write token json position end line column char input",
    "output data string number valid got received after before while during due took longer request response status",
    "code http https timeout timed out connect connection refused reset closed aborted operation internal server",
    "unavailable denied forbidden unauthorized limit exceeded reached too many function name",
    "path file directory open something went promise promises rejected",
  ]
    .join(" ")
    .split(" "),
);
/** Where a parser stood in a text: it says what is wrong with the text, not whose text it is. */
const POSITION = /(?:line|column|position|char|offset) <n>/;

/** A name of the program that a message of the runtime holds. */
const NAMED =
  /\((?:reading|setting) ([\w$]+)\)|(?:property|attribute|named|constraint|column|relation|table:?) ([\w$.]+)|\.([\w$]+) is not a function/;
/** Names that any program has. */
const COMMON_NAMES =
  /^(?:length|size|id|name|type|value|data|key|index|map|filter|find|forEach|reduce|push|join|split|slice|trim|replace|includes|toString|toLowerCase|toUpperCase|toFixed|then|catch|get|set|call|apply|bind|next|default|message|code|status|body|headers|url|text|of|is|<\w*)$/;

/**
 * True for a message, normalised, that tells its cause from others by its words: two of its own, or one beside a code.
 * The runtime's own errors are rare in one program unless they speak of JSON or undefined, so one word is enough.
 */
export function isTelling(normalized: string, code: string | undefined, isOfLanguage: boolean): boolean {
  if (POSITION.test(normalized)) return false;
  const named = NAMED.exec(normalized);
  if (named) return !COMMON_NAMES.test(named[1] ?? named[2] ?? named[3] ?? "");
  const enough = isOfLanguage || code !== undefined ? 1 : 2;
  const own = new Set<string>();
  for (const [word] of normalized.replace(/<\w+>/g, " ").matchAll(/[A-Za-z][A-Za-z']*(?:[A-Z_.]\w+)*/g)) {
    if (word !== code && !COMMON_WORDS.has(word.toLowerCase())) own.add(word);
    if (own.size >= enough) return true;
  }
  return false;
}
