// Text from outside on its way to a terminal: nothing in it may steer the terminal, and secrets are masked.
import { redactJson, redactText } from "../core/redact.ts";

/** Control characters, those of C1 and the marks that turn the direction of text; tab and line break are handled apart. */
// oxlint-disable-next-line no-control-regex
const STEERING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** The text with everything made visible that could steer a terminal; line breaks and tabs stay. */
export function safeText(text: string): string {
  return text.replace(STEERING, (char) => {
    const code = char.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return code === 0x7f ? "␡" : "�";
  });
}

/** The same on one line. */
export function safeLine(text: string): string {
  return safeText(text.replace(/\s*[\r\n]+\s*/g, " ⏎ ").replaceAll("\t", " "));
}

/** Several lines as one. */
export function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, " ").trim();
}

/** What our own messages call a password, which is none. */
const PLACEHOLDER = "://USER:PASSWORD@";

/** Connection strings without their passwords. */
export function masked(text: string): string {
  return text.split(PLACEHOLDER).map(redactText).join(PLACEHOLDER);
}

function withoutSpace(json: string): string {
  return json.replace(/\s/g, "");
}

/** JSON text for people: indented where that changes no value, fields that sound like secrets masked. */
export function readableJson(text: string): string {
  const safe = redactJson(text);
  try {
    const value: unknown = JSON.parse(safe);
    // Numbers beyond what JavaScript holds would come out as others; such a text is shown as it is.
    if (withoutSpace(JSON.stringify(value)) === withoutSpace(safe)) return safeText(JSON.stringify(value, null, 2));
  } catch {
    // Damaged in the store: shown as it is.
  }
  return safeText(safe);
}
