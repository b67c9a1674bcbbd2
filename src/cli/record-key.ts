// The key of a record: what stands in one of its fields.
import { RedriveError } from "../core/errors.ts";

/** The field as a key; throws with the place, or the option, that is to be corrected. */
export function keyIn(record: unknown, field: string, { place, remedy }: { place: string; remedy: string }): string {
  const has = typeof record === "object" && record !== null && Object.hasOwn(record, field);
  const key: unknown = has ? record[field as never] : null;
  // Larger numbers lose their last digits when they are read, and two records would share a key.
  if ((typeof key === "string" && key !== "") || Number.isSafeInteger(key)) return String(key);
  const came = key === null ? "none" : typeof key;
  const message = `${place}: expected text or a whole number below 2^53 in ${JSON.stringify(field)}; got ${came}; ${remedy}`;
  throw new RedriveError("invalid_argument", message);
}
