// Failures of one cause get one fingerprint, also after a rebuild of the program that threw them: in another folder, by
// another bundler, with minified names. So what a message says counts first, and names of functions only where it says
// too little. Every pass is linear and its input bounded.
//
//   what was thrown                              what counts, beside code and message
//   no stack                                     name and class
//   Python, Java                                 name, own function, heads of the causes: nothing renames these
//   JavaScript, a network error                  heads of the causes; the address in the message tells the service
//   JavaScript, a message that tells its cause   heads of the causes: minifiers rename classes and functions
//   JavaScript, any other message                name, own function, heads of the causes

import type { FailureClass } from "./job.ts";
import { isTelling, normalizeMessage } from "./message-shape.ts";
import { causeHeads, LANGUAGE_ERROR, languageOf, ownFunction } from "./stack-shape.ts";

const MAX_STACK = 8192;

/** Grows with every change of the rules; upkeep then gives stored failures their new fingerprint. */
export const FINGERPRINT_VERSION = 2;

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
  const text = normalizeMessage(message);
  return hash64(
    [code ?? "", text, ...(stack === null ? [title(name), found] : partsOf(name, text, stack, code))].join("\n"),
  );
}

function partsOf(name: string, text: string, whole: string, code: string | undefined): readonly string[] {
  const stack = whole.slice(0, MAX_STACK);
  const language = languageOf(stack);
  const heads = unique(causeHeads(stack, language).map((head) => headPart(head, language)));
  const isEnough =
    language === "javascript" && (isNetwork(code, text) || isTelling(text, code, LANGUAGE_ERROR.test(name)));
  if (isEnough) return heads;
  const [own = ""] = stack.split("\nCaused by: ", 1);
  return [title(name), ownFunction(own, language, name), ...heads];
}

function unique(texts: readonly string[]): readonly string[] {
  return texts.length < 2 ? texts : [...new Set(texts)];
}

/** Errors of sockets and of `fetch`, whose stacks hold the caller in some versions of Node only. */
function isNetwork(code: string | undefined, text: string): boolean {
  return /^(?:ECONN|ENOTFOUND|ETIMEDOUT|EAI_|EPIPE|EHOST|ENET|UND_ERR)/.test(code ?? "") || NETWORK.test(text);
}
const NETWORK = /^(?:fetch failed|The operation was aborted)/;

/** A class without package, outer class and a bundler's number (`Busy$1`, `Busy2`); "Error" for a minified one. */
function title(name: string): string {
  const [bare = ""] = name
    .slice(0, 128)
    .replace(/\$?\d+$/, "")
    .split(/[.$]/)
    .slice(-1);
  return bare.length <= 3 ? "Error" : bare.replace(/^_+/, "");
}

/** The message of a cause; its name too where nothing renames it. */
function headPart(head: string, language: string): string {
  const at = head.search(/(?: \[\w+\])?: /);
  const name = at < 0 ? head : head.slice(0, at);
  if (at < 0 || /\s/.test(name)) return normalizeMessage(head);
  const text = normalizeMessage(head.slice(head.indexOf(": ", at) + 2));
  return language === "javascript" ? text : `${title(name)}: ${text}`;
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
