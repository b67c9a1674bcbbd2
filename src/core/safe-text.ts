// Makes foreign text safe for people: nothing in it can control a terminal or hide in it, and secrets are masked. Every
// function looks at each character a fixed number of times.
import { redactJson, redactText } from "./redact.ts";

/**
 * Control characters, also those of C1, marks that change the direction of text, and characters without width; tab and
 * line break are handled separately.
 */
const STEERING = new RegExp(
  [
    "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f",
    "\\ufdd0-\\ufdef\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}]",
  ].join(""),
  "gu",
);

/** The text with every character made visible that could control a terminal or hide; line breaks and tabs stay. */
export function safeText(text: string): string {
  return text.replace(STEERING, (char) => {
    const code = char.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return code === 0x7f ? "␡" : "�";
  });
}

/** The same on one line. */
export function safeLine(text: string): string {
  return safeText(joined(text, " ⏎ ").replaceAll("\t", " "));
}

/** Several lines as one. */
export function oneLine(text: string): string {
  return joined(text, " ").trim();
}

/** The lines of a text without the space around their breaks, and without empty lines. */
function joined(text: string, by: string): string {
  const lines = text.split(/[\r\n]+/);
  if (lines.length === 1) return text;
  const last = lines.length - 1;
  const shown = lines.map((line, at) => (at === 0 ? line.trimEnd() : at === last ? line.trimStart() : line.trim()));
  return shown.filter((line, at) => at === 0 || at === last || line !== "").join(by);
}

/** JSON text made safe without changing its value. */
export function safeJson(text: string): string {
  return text.replace(STEERING, (char) =>
    [...Array(char.length).keys()].map((at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""),
  );
}

/** Parts of our own messages that look like a secret but are not. */
const OURS = /(:\/\/USER:PASSWORD@|first pass: )/;

/** Text without passwords, tokens and keys. */
export function masked(text: string): string {
  return text
    .split(OURS)
    .map((part, at) => (at % 2 === 1 ? part : redactText(part)))
    .join("");
}

function withoutSpace(json: string): string {
  return json.replace(/\s/g, "");
}

/** JSON text for people: indented where that changes no value, secret fields masked. */
export function readableJson(text: string): string {
  const safe = redactJson(text);
  try {
    const value: unknown = JSON.parse(safe);
    // Numbers beyond what JavaScript can hold would change; such a text stays unformatted.
    if (withoutSpace(JSON.stringify(value)) === withoutSpace(safe)) return safeText(JSON.stringify(value, null, 2));
  } catch {
    // Damaged in the store: shown unformatted.
  }
  return safeText(safe);
}

/** A word for a shell, quoted where needed. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
