// The shape of a new job, and the checks that every store makes before it writes one. No value is clamped or repaired;
// a bad value is refused with its legal range, and nothing is written.
import { didYouMean, invalid } from "./options.ts";
import { RedriveError } from "./errors.ts";
import { GROUP_CONCURRENCY } from "./group.ts";
import {
  type Belonging,
  type JobKeep,
  type JobLimits,
  LATEST_INSTANT,
  type State,
  TERM_NAMES,
  TERMS,
  type Terms,
} from "./job.ts";

/**
 * What happens when the key of a new job is taken. `key`: the same payload is a duplicate, another one a conflict.
 * `queued` and `active`: a duplicate, whatever its payload, while the job that holds the key waits (or runs).
 * `replace`: a waiting holder gets the new payload. `debounce`: it also gets the new due time. Where the holder is in
 * another state, the new job is created and takes over the key.
 */
export const UNIQUE_MODES = ["key", "queued", "active", "replace", "debounce"] as const;
/** One of `UNIQUE_MODES`. */
export type UniqueMode = (typeof UNIQUE_MODES)[number];

/** A job to be stored. The caller makes the id, so that a store recognises a repeated write. */
export interface NewJob extends Belonging, JobLimits, JobKeep {
  readonly id: string;
  /** JSON text. */
  readonly payload: string;
  /** The version of the payload's form. */
  readonly version: number;
  /** Unique per (type, key); null for none. */
  readonly key: string | null;
  /** What happens where the key is taken; without a key it has no effect. */
  readonly unique: UniqueMode;
  /** Digest of the payload; with a key, the same digest means the same payload. */
  readonly digest: string | null;
  /** Wait before it is due, counted from `runAt`, or from the store's clock where that is null. */
  readonly delayMs: number;
  readonly runAt: number | null;
  /** The trace context of its enqueue; null without one. */
  readonly trace: string | null;
}

/** The job that holds a key; its state is null where the job is deleted. */
export interface KeyHolder {
  readonly id: string;
  readonly digest: string;
  readonly state: State | null;
}

/** What happens to a new job whose key is taken, by its mode and by the job that holds the key. */
export function meetHolder(job: NewJob, holder: KeyHolder): "duplicate" | "conflict" | "replace" | "create" {
  if (job.unique === "key") return job.digest === holder.digest ? "duplicate" : "conflict";
  // The repeated write of a deleted job is recognised by its id alone.
  if (job.id === holder.id) return "duplicate";
  if (holder.state === "running") return job.unique === "active" ? "duplicate" : "create";
  if (holder.state !== "queued") return "create";
  return job.unique === "replace" || job.unique === "debounce" ? "replace" : "duplicate";
}

/** What a producer is told whose key is taken by a job with another payload. */
export function conflictText({ type, key }: Pick<NewJob, "type" | "key">, id: string): string {
  return `The key ${JSON.stringify(key)} of ${type} is taken by job ${id}, which has another payload. Use another key, or unique: "replace".`;
}

/** Limits of what a job may carry, in bytes, levels and milliseconds. */
export const JOB_BOUNDS = {
  payloadBytes: 1_048_576,
  payloadBytesMost: 16_777_216,
  payloadDepth: 64,
  keyBytes: 255,
  traceBytes: 1_024,
  version: 1_000_000,
  delayMs: TERMS.deadlineMs.most,
  resultBytes: 65_536,
  keepMs: TERMS.keepDeadMs.most,
} as const;

/** Most UTF-8 bytes per UTF-16 unit. */
const BYTES_PER_UNIT = 3;
/** The form of a name of a queue, job type or service. */
export const NAME = /^[A-Za-z0-9._:-]{1,128}$/;
/** The form of the id of a job. */
export const ID = /^[A-Za-z0-9_-]{1,64}$/;
/** True for text that can be the id of a job. */
export function isJobId(id: unknown): id is string {
  return typeof id === "string" && ID.test(id);
}

/** Throws `invalid_argument` or `payload_too_large` unless the job may be stored. */
export function checkNewJob(job: NewJob): void {
  if (typeof job !== "object" || job === null) refuse("job", "a job", job);
  if (!isJobId(job.id)) refuse("id", "1 to 64 letters, digits, _ or -", job.id);
  checkName("type", job.type);
  checkName("queue", job.queue);
  if (job.service !== null) checkName("service", job.service);
  if (job.tenant !== null) checkText("tenant", job.tenant);
  checkGroup(job);
  if (job.key !== null) checkText("key", job.key);
  if (job.key !== null && job.digest === null)
    refuse("digest", "the digest of the payload, because the job has a key", null);
  checkOneOf("unique", job.unique, UNIQUE_MODES);
  checkInteger("version", job.version, 1, JOB_BOUNDS.version);
  checkPriority(job.priority);
  checkTerms(job);
  if (typeof job.limited !== "boolean") refuse("limited", "true or false", job.limited);
  checkDelay(job.delayMs);
  if (job.runAt !== null) checkInteger("runAt", job.runAt, 0, LATEST_INSTANT);
  if (job.trace !== null) checkText("trace", job.trace, JOB_BOUNDS.traceBytes);
  checkPayload(job.payload);
}

/** Throws unless the text may be the payload of a job. */
export function checkPayload(payload: unknown): void {
  if (typeof payload !== "string" || !payload.isWellFormed())
    return refuse("payload", "well-formed JSON text, lone surrogates escaped", payload);
  checkBytes("payload", payload, JOB_BOUNDS.payloadBytesMost);
}

const TERM_CHECKS = TERM_NAMES.map((name) => TERMS[name]);

/** Throws unless a job may have these terms. */
export function checkTerms(terms: Terms): void {
  for (const { option, least, most, mayBeNull, of } of TERM_CHECKS) {
    const value = of(terms);
    if (value !== null || !mayBeNull) checkInteger(option, value, least, most);
  }
  if (terms.stuckMs !== null) return;
  const none = "null, because no run of the job is ever stuck";
  if (terms.stuckRetryMs !== null) refuse(TERMS.stuckRetryMs.option, none, terms.stuckRetryMs);
  if (terms.stuckLimit !== null) refuse(TERMS.stuckLimit.option, none, terms.stuckLimit);
}

function checkGroup({ group, groupConcurrency }: NewJob): void {
  const { least, most } = GROUP_CONCURRENCY;
  if (group === null && groupConcurrency === null) return;
  if (group === null) refuse("groupConcurrency", "null, because the job has no group", groupConcurrency);
  checkText("group", group);
  checkInteger("groupConcurrency", groupConcurrency, least, most);
}

/** Throws unless the value is a name of a queue, job type or service. */
export function checkName(field: string, value: unknown): void {
  if (typeof value !== "string" || !NAME.test(value)) {
    refuse(field, "1 to 128 letters, digits, dots, colons, dashes or underscores", value);
  }
}

/** Throws unless the value is a priority. */
export function checkPriority(value: unknown): void {
  checkInteger("priority", value, 0, 9);
}

/** Throws unless the value is a delay in milliseconds. */
export function checkDelay(value: unknown): void {
  checkInteger("delay", value, 0, JOB_BOUNDS.delayMs);
}

/** Throws unless the value is a whole number within the range. */
export function checkInteger(field: string, value: unknown, least: number, most: number): void {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < least || value > most) {
    refuse(field, `a whole number from ${least} to ${most}`, value);
  }
}

/** Throws unless the value is a known one. */
export function checkOneOf(field: string, value: unknown, known: readonly string[]): void {
  if (known.includes(value as string)) return;
  refuse(field, `one of ${known.join(", ")}`, value, didYouMean(value, known, "use one of these"));
}

/** Bytes of a text as UTF-8, without encoding it. */
export function byteLength(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) continue;
    // A surrogate pair is two units and four bytes; a lone one is written as three.
    const pair = unit >= 0xd800 && unit < 0xdc00 && isLow(text.charCodeAt(i + 1));
    bytes += unit < 0x800 ? 1 : 2;
    if (pair) i += 1;
  }
  return bytes;
}

/** Throws `payload_too_large` for a text over its byte limit; a text far below the limit is not counted. */
export function checkBytes(field: string, text: string, most: number): void {
  if (text.length * BYTES_PER_UNIT > most && byteLength(text) > most) throw tooLarge(field, most, byteLength(text));
}

/** The error for something over its byte limit. */
export function tooLarge(field: string, most: number, came: number): RedriveError {
  const advice = "Store the data elsewhere and enqueue a reference to it.";
  return new RedriveError("payload_too_large", `${field} may have at most ${most} bytes; got ${came}. ${advice}`);
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000;
}

/** Throws unless the value is a short text that every store can store. */
export function checkText(field: string, value: unknown, most: number = JOB_BOUNDS.keyBytes): void {
  const legal = typeof value === "string" && value !== "" && byteLength(value) <= most;
  if (!legal || value.includes("\0") || !value.isWellFormed()) {
    refuse(field, `well-formed text of 1 to ${most} bytes without U+0000`, value);
  }
}

function refuse(field: string, expected: string, came: unknown, remedy = "correct it"): never {
  throw invalid(field, expected, came, `${remedy}; nothing was written`);
}
