// What the errors of Postgres and of the network mean for us: retry at once, retry later, or refuse until the operator
// fixes something.
import { isRedriveError, RedriveError } from "../../core/errors.ts";
import { NOT_POSTGRES } from "./protocol-check.ts";

/** A row with the same key exists. */
const REPEATED = "23505";
const MISSING = "23502";
/** The wait for another transaction ended. */
const LOCKED = "55P03";
/** Deadlock and serialisation failure: nothing was written, and the same transaction can be retried. */
const TRY_AGAIN: ReadonlySet<string> = new Set(["40001", "40P01"]);

/** True if the same transaction can simply be retried. */
export function isTryAgain(error: unknown): boolean {
  return TRY_AGAIN.has(codeOf(error));
}

/** True for our error that another transaction holds what is wanted. */
export function isLocked(error: unknown): boolean {
  return isRedriveError(error) && codeOf(error.cause) === LOCKED;
}

/** True for our error that a row with this key exists already. */
export function isRepeated(error: unknown): boolean {
  return isRedriveError(error) && codeOf(error.cause) === REPEATED;
}

/** True for our error that a required column has no value. */
export function isMissing(error: unknown): boolean {
  return isRedriveError(error) && codeOf(error.cause) === MISSING;
}

/** True if no answer came within our limit; `pg` tells so only by this text. */
export function isSilence(error: unknown): boolean {
  return error instanceof Error && error.message === "Query read timeout";
}

/** Conditions that pass: the server starts, stops, is full, or has too many connections. */
const PASSING = /^(08|53|57P|40|58|XX)/;
/** A value that Postgres cannot store. */
const BAD_VALUE = /^22/;
/** The same for its characters. */
const BAD_TEXT: ReadonlySet<string> = new Set(["22021", "22P02", "22P05"]);

/** The meaning of an error for people, with what they can do. */
type Meaning = (error: Error, place: string) => string;

const pooled: Meaning = (error, place) =>
  `Postgres at ${place} says: ${error.message}. A pooler in transaction mode seems to be in between; set pooler: true, or pooler=true in the store URL.`;

const UNUSABLE: Readonly<Record<string, Meaning>> = {
  "28P01": (_, place) => `Postgres at ${place} refused the password. Check user and password of the store URL.`,
  "28000": (error, place) =>
    `Postgres at ${place} refused the login: ${error.message}. Check the user of the store URL.`,
  "3D000": (error, place) =>
    `Postgres at ${place} says: ${error.message}. Create it (createdb), or name another one in the store URL.`,
  "42501": (error, place) =>
    `Postgres at ${place} says: ${error.message}. ${detailOf(error)}Create the schema for the role (create schema NAME authorization ROLE), or let its owner run \`redrive migrate\` and grant the role USAGE on the schema and all rights on its tables and sequences.`,
  "42P01": (error, place) =>
    `Postgres at ${place} says: ${error.message}. The tables of Redrive are gone; run \`redrive migrate\`.`,
  "3F000": (error, place) =>
    `Postgres at ${place} says: ${error.message}. The schema is gone; run \`redrive migrate\`.`,
  [NOT_POSTGRES]: (error, place) =>
    `What answers at ${place} is not Postgres: ${error.message}. Check host and port of the store URL.`,
  "26000": pooled,
  "42P05": pooled,
};

const again: Meaning = (error, place) =>
  `Postgres at ${place} aborted this transaction in favour of another one: ${error.message}. Nothing of it was written; run your transaction again.`;

/** Conditions that pass, or end with the transaction. */
const UNAVAILABLE: Readonly<Record<string, Meaning>> = {
  "57014": (error, place) =>
    `Postgres at ${place} ended a statement that took too long: ${error.message}. Nothing of it was written. Check pg_stat_activity for what keeps the server busy, and try again.`,
  "40001": again,
  "40P01": again,
  "25006": (error, place) =>
    `Postgres at ${place} is read-only: ${error.message}. Begin your transaction without READ ONLY, or connect to the primary if this is a standby.`,
  "25P02": (error) =>
    `The transaction had already failed: ${error.message}. Roll it back, check the error of the statement that failed first, and run it again.`,
};

/** How Node names problems with a certificate. */
const UNTRUSTED = /^(?!ERR_SSL_)(.*CERT|UNABLE_TO_|INVALID_|HOSTNAME_MISMATCH)/;
/** A file that does not exist, may not be read, or is a folder. */
const NO_FILE = /^E(NOENT|ACCES|ISDIR)$/;

const untrusted: Meaning = (error, place) =>
  `The certificate of Postgres at ${place} is not trusted (${codeOf(error)}: ${error.message}). Give the server a valid one for this host, name its issuer with sslrootcert=FILE in the store URL, or set sslmode=no-verify&insecure=true there to accept an unverified server.`;

const unencrypted: Meaning = (_, place) =>
  `Postgres at ${place} does not encrypt connections. Set up TLS on the server, or set insecure=true without sslmode in the store URL to accept an unencrypted connection.`;

const unreadable: Meaning = (error, place) =>
  `A file for the connection to Postgres at ${place} cannot be read (${error.message}). Check sslrootcert, sslcert and sslkey of the store URL.`;

/** Turns any error of the driver into a RedriveError. */
export function translate(error: unknown, place: string): RedriveError {
  if (isRedriveError(error)) return error;
  const cause = error instanceof Error ? error : new Error(String(error));
  const code = codeOf(cause);
  const unusable = UNUSABLE[code] ?? unusableByNode(cause, code) ?? unusableByText(cause.message);
  if (unusable) return new RedriveError("store_unusable", unusable(cause, place), { cause });
  const unavailable = UNAVAILABLE[code];
  if (unavailable) return new RedriveError("store_unavailable", unavailable(cause, place), { cause });
  if (BAD_VALUE.test(code)) {
    const remedy = BAD_TEXT.has(code) ? "Send well-formed text without U+0000" : "Send one that fits";
    const message = `Postgres cannot store a value: ${cause.message}. ${remedy}; nothing was changed.`;
    return new RedriveError("invalid_argument", message, { cause });
  }
  if (code === LOCKED) {
    const what = isAboutKey(cause) ? "A key is being taken" : "Rows of Redrive are held";
    const message = `${what} by another transaction that is still open. Try again when that transaction has ended.`;
    return new RedriveError("store_unavailable", message, { cause, details: { key: "locked" } });
  }
  if (code === "" || PASSING.test(code) || /^E[A-Z]+/.test(code)) {
    const why = code.startsWith("E") ? `${code}: ${cause.message}` : cause.message;
    const message = `Postgres at ${place} does not answer (${why || code}). Try again when it is back; if it never was, check the store URL.`;
    return new RedriveError("store_unavailable", message, { cause });
  }
  if (code.startsWith("42") && "severity" in cause && cause.severity === "FATAL") {
    const message = `Postgres at ${place} refused the connection: ${cause.message}. Check the options of the store URL.`;
    return new RedriveError("store_unusable", message, { cause });
  }
  if (code.startsWith("42")) {
    const message = `Postgres at ${place} says: ${cause.message}. The schema differs from what this version of Redrive creates; run \`redrive doctor\`, or name another schema.`;
    return new RedriveError("store_unusable", message, { cause });
  }
  if (code.startsWith("23")) {
    const message = `Postgres at ${place} refused a write: ${cause.message}. The schema differs from what this version expects; run \`redrive doctor\`.`;
    return new RedriveError("illegal_transition", message, { cause });
  }
  return new RedriveError("store_unavailable", `Postgres at ${place}: ${cause.message}.`, { cause });
}

/** Adds the name of the statement to its error. */
export function named(error: unknown, { name }: { readonly name?: string }): unknown {
  return error instanceof Error && name !== undefined ? Object.assign(error, { statement: name }) : error;
}

/** True if the wait was for rows of keys. The server names their table only to the first that waits for a row. */
function isAboutKey(error: Error): boolean {
  const { where, statement } = error as { readonly where?: string; readonly statement?: string };
  return where === undefined ? (statement?.startsWith("key_") ?? false) : where.includes('"job_key');
}

/** Details that the server adds to some errors, such as the missing right. */
function detailOf(error: Error): string {
  return "detail" in error && typeof error.detail === "string" ? `${error.detail} ` : "";
}

/** Errors that occur before Postgres answers. */
function unusableByNode(error: Error, code: string): Meaning | undefined {
  if (UNTRUSTED.test(code)) return untrusted;
  // A missing socket is another matter: its server may come back.
  return NO_FILE.test(code) && "syscall" in error && error.syscall !== "connect" ? unreadable : undefined;
}

/** Errors without a code, or with one that says too little. */
function unusableByText(message: string): Meaning | undefined {
  if (message.includes("unsupported startup parameter")) return pooled;
  if (message === "The server does not support SSL connections") return unencrypted;
  if (/^SASL: .*password must be/.test(message))
    return (_, place) => `Postgres at ${place} asks for a password. Add it to the store URL.`;
  return undefined;
}

/** The five characters of SQLSTATE, the code of a system error, or empty. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "";
  // Several addresses were tried, and each failed separately.
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  return "code" in error && typeof error.code === "string" ? error.code : "";
}
