// Failures of one cause get one fingerprint: the name, the message without its variable parts, the code, and the
// function names of the topmost frames of the user's own code. Every pass is linear and its input bounded.

import type { FailureClass } from "./job.ts";

const MAX_MESSAGE = 2048;
const MAX_STACK = 8192;
const FRAMES = 3;

/** Alternatives in order of precedence; each starts at a boundary, so none scans a position twice. */
const VARIABLE = new RegExp(
  [
    /(?<!\w)(?:status(?: ?code)?|HTTP(?:\/[\d.]+)?)[ :=]{0,3}[45]\d\d(?!\w)/,
    /((?<!\w)[a-z][a-z0-9+]{1,9}:\/\/[^\s"'`<>)\]}]+)/,
    /((?<![\w.+-])[\w.+-]+@[\w.-]+)/,
    /("(?:[^"\\\n]|\\.)*"|(?<!\w)'[^'\n]*'(?!\w)|`[^`\n]*`|“[^”\n]*”)/,
    /((?<![\w.)\]}>/\\])(?:[A-Za-z]:[\\/]|~?\/|\.{1,2}\/)[^\s:'"`<>|,;)\]}]+)/,
    /((?<![\w.-])[\w.-]+\.(?:jpe?g|png|gif|webp|avif|heic|tiff?|svg|mp[34]|mov|mkv|webm|wav|pdf|csv|txt|xml|zip|gz|tmp|log|parquet)(?!\w))/,
    /((?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?(?![\w.]))/,
    /((?<![\w-])[\w-]+)/,
  ]
    .map((alternative) => alternative.source)
    .join("|"),
  "gi",
);
/** Words with digits that are kept, and words without digits that are parts of a date. */
const FIXED_WORD =
  /^(?:utf-?\d+|base(?:32|58|64)(?:url)?|sha-?\d+|md5|ipv[46]|s3|ec2|oauth2|argon2|mp[34]|h26[45]|x509|http[23]|int\d+|uint\d+|float\d+)$/i;
const DATE_WORD = /^(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|am|pm|gmt|utc)$/i;
/** After these words a quoted name belongs to the program or the schema, not to the data. */
const NAMING =
  /(?:reading|setting|property|column|relation|table|constraint|module|package|function|method|index|field|variable|export|command|argument|parameter|option|header|code|path|expected)"?\s*[:=]?\s*\[?\s*$/i;
const VERB = /(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\s$/;

/** The message with ids, numbers, quoted values, addresses, times and paths replaced by placeholders. */
export function normalizeMessage(message: string): string {
  return message
    .slice(0, MAX_MESSAGE)
    .replace(VARIABLE, placeholder)
    .replace(/<n>(?:[\s.,:/+-]+<n>)+/g, "<n>")
    .replace(/\s+/g, " ")
    .trim();
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
  word: string | undefined,
  offset: number,
  text: string,
): string {
  if (word !== undefined) return wordPart(word);
  if (quoted !== undefined) return quotedPart(quoted.slice(1, -1), text.slice(Math.max(0, offset - 24), offset));
  if (url !== undefined) return urlPart(url);
  if (path !== undefined) return VERB.test(text.slice(Math.max(0, offset - 8), offset)) ? routePart(path) : "<path>";
  if (address !== undefined) return addressPart(address);
  if (file !== undefined) return "<path>";
  return email === undefined ? match : "<email>";
}

function wordPart(word: string): string {
  if (/\d/.test(word)) return FIXED_WORD.test(word) ? word : "<n>";
  return (word.length <= 3 && DATE_WORD.test(word)) || /^[a-f]{8,}$/.test(word) ? "<n>" : word;
}

function quotedPart(content: string, before: string): string {
  return NAMING.test(before) && /^[a-z_@$][\w.@/$ -]{0,63}$/i.test(content) && !/\d/.test(content)
    ? content
    : "<value>";
}

/** Scheme and host; for http addresses also the path without its ids, files and query. */
function urlPart(url: string): string {
  const [scheme = "", rest = ""] = url.split("://", 2);
  const [authority = "", ...segments] = (rest.split(/[?#]/, 1)[0] ?? "").split("/");
  const host = authority.slice(authority.lastIndexOf("@") + 1);
  const hostPart = /^[\d.]+(?::\d+)?$/.test(host) ? addressPart(host) : host.replace(/[\w-]*\d[\w-]*(?=\.)/g, "<n>");
  return `${scheme}://${hostPart}${scheme.startsWith("http") ? routePart(`/${segments.join("/")}`) : ""}`;
}

function routePart(path: string): string {
  const segments = (path.split(/[?#]/, 1)[0] ?? "").split("/");
  const isId = (segment: string) => /[.@%]|\d/.test(segment) && !/^v\d$/.test(segment);
  return segments
    .map((segment) => (isId(segment) || segment.length > 32 ? "<n>" : segment))
    .join("/")
    .replace(/\/+$/, "");
}

/** IP addresses change, ports stay: the port tells the service, unless it is ephemeral. */
function addressPart(address: string): string {
  const port = address.split(":")[1];
  return port !== undefined && Number(port) < 32_768 ? `<address>:${port}` : "<address>";
}

/** What a fingerprint is made of. */
export interface FingerprintInput {
  readonly name: string;
  readonly message: string;
  readonly stack: string | null;
  readonly class: FailureClass;
  readonly code?: string | undefined;
}

/**
 * 16 hexadecimal characters, equal for failures of one cause. The heads of the causes in the stack count, so that one
 * wrapper does not hide what it wraps; without a stack the class counts instead of frames.
 */
export function fingerprint(input: FingerprintInput): string {
  if (!isSame(input, last.input)) last = { input, print: printOf(input) };
  return last.print;
}

/** The last answer, because an outage throws the same error again and again. It depends only on the input. */
let last: { readonly input: FingerprintInput | null; readonly print: string } = { input: null, print: "" };

function isSame(a: FingerprintInput, b: FingerprintInput | null): boolean {
  if (b === null || a.stack !== b.stack || a.message !== b.message) return false;
  return a.name === b.name && a.class === b.class && a.code === b.code;
}

function printOf({ name, message, stack, class: found, code }: FingerprintInput): string {
  const [own = "", ...causes] = (stack ?? "").slice(0, MAX_STACK).split("\nCaused by: ");
  const frames = stack === null ? [found] : ownFrames(own);
  const heads = causes.slice(0, FRAMES).map((cause) => normalizeMessage(cause.split("\n", 1)[0] ?? ""));
  const title = name.length <= 2 ? "Error" : name.slice(0, 128).replace(/^_+/, "");
  return hash64([title, code ?? "", normalizeMessage(message), ...frames, ...heads].join("\n"));
}

interface Frame {
  readonly label: string;
  readonly rank: number;
}

/** Labels of the top frames of the user's code; without any, those of libraries, then those of Node. */
function ownFrames(stack: string): string[] {
  let found = 0;
  const frames: Frame[] = [];
  for (const line of stack.split("\n")) {
    const frame = frameOf(line.trim());
    if (frame) frames.push(frame);
    if (frame?.rank === 0 && frame.label !== "" && ++found === FRAMES) break;
  }
  const best = Math.min(...frames.map((frame) => frame.rank));
  return frames
    .filter((frame) => frame.rank === best)
    .map((frame) => frame.label)
    .filter(Boolean)
    .slice(0, FRAMES);
}

/** One line of a V8 stack; undefined for lines of the message. */
function frameOf(line: string): Frame | undefined {
  if (!line.startsWith("at ") || line.length > 1024) return undefined;
  const text = line.slice(3).replace(/^(?:async |new )+/, "");
  const open = text.lastIndexOf(" (");
  const place = open < 0 ? text : text.slice(open + 2, -1);
  if (!/:\d+$|^(?:native|<anonymous>|index \d+)/.test(place)) return undefined;
  const internal = /^(?:node:|internal\/|native|<anonymous>|index )/.test(place);
  const rank = internal ? 2 : /[\\/]node_modules[\\/]/.test(place) ? 1 : 0;
  const name = open < 0 ? "" : text.slice(0, open);
  const anonymous = name === "" || name.includes("<anonymous>");
  return { label: anonymous ? fileLabel(internal ? "" : place) : functionLabel(name), rank };
}

/** The function's name without what bundlers and call sites add; empty for a minified one. */
function functionLabel(name: string): string {
  const bare = name
    .replace(/ \[as [^\]]{0,100}\]$/, "")
    .replace(/^(?:Object|Function|Module|exports|global|process|_)\./, "");
  const parts = bare.split(".").map((part) => part.replace(/^_+|\$\d+$/g, ""));
  return parts.every((part) => part.length <= 2) ? "" : parts.join(".");
}

/** The file's name without directory, extension and content hash. */
function fileLabel(place: string): string {
  const file = place.slice(Math.max(place.lastIndexOf("/"), place.lastIndexOf("\\")) + 1).split(/[:.?]/, 1)[0] ?? "";
  const parts = file.split(/[-_]/).filter((part) => !/\d/.test(part));
  return parts.every((part) => part.length <= 2) ? "" : parts.join("-");
}

/** Two 32-bit multiplicative mixes over the UTF-16 units, finished so that every input bit reaches every output bit. */
function hash64(text: string): string {
  let a = 0xdeadbeef;
  let b = 0x41c6ce57;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    a = Math.imul(a ^ unit, 0x9e3779b1);
    b = Math.imul(b ^ unit, 0x5f356495);
  }
  a = Math.imul(a ^ (a >>> 16), 0x85ebca6b) ^ Math.imul(b ^ (b >>> 13), 0xc2b2ae35);
  b = Math.imul(b ^ (b >>> 16), 0x85ebca6b) ^ Math.imul(a ^ (a >>> 13), 0xc2b2ae35);
  return (a >>> 0).toString(16).padStart(8, "0") + (b >>> 0).toString(16).padStart(8, "0");
}
