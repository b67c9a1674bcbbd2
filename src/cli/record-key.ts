// Takes the key of a record from one of its fields.
import { RedriveError } from "../core/errors.ts";
import { byteLength, JOB_BOUNDS } from "../core/new-job.ts";

/** The field as a key; throws with the place or the option to correct. */
export function keyIn(record: unknown, field: string, { place, remedy }: { place: string; remedy: string }): string {
  const has = typeof record === "object" && record !== null && Object.hasOwn(record, field);
  const key: unknown = has ? record[field as never] : null;
  const refuse = (expected: string, came: string | number, then: string): RedriveError =>
    new RedriveError(
      "invalid_argument",
      `${place}: expected ${expected} in ${JSON.stringify(field)}; got ${came}; ${then}`,
    );
  const bytes = typeof key === "string" ? byteLength(key) : 0;
  if (bytes > JOB_BOUNDS.keyBytes)
    throw refuse(`at most ${JOB_BOUNDS.keyBytes} bytes`, bytes, "shorten it, or use a hash of it");
  // Larger numbers lose their last digits when parsed, and two records would share a key.
  if (bytes > 0 || Number.isSafeInteger(key)) return String(key);
  const came = key === null ? "none" : key === "" ? "empty text" : typeof key;
  throw refuse("text or a whole number below 2^53", came, remedy);
}
