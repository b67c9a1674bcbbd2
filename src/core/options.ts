// Parses the values of options: numbers, keys, and the error for a bad one. Every value is checked once, on entry, and
// refused with what was expected, what came and what to do.

import { RedriveError } from "./errors.ts";

/** A number option within its range; throws `invalid_argument` otherwise. */
export function parseNumber(
  value: unknown,
  name: string,
  range: { min: number; max: number; integer?: boolean; infinite?: boolean },
): number {
  const { min, max, integer = false, infinite = false } = range;
  if (infinite && value === Number.POSITIVE_INFINITY) return value;
  const legal = typeof value === "number" && value >= min && value <= max && (!integer || Number.isSafeInteger(value));
  if (legal) return value;
  const kind = integer ? "a whole number" : "a number";
  throw invalid(name, `${kind} from ${min} to ${max}${infinite ? ", or Infinity for never" : ""}`, value, "change it");
}

/**
 * The options as an object without prototype, undefined ones left out; an unknown key is refused with the nearest known
 * key.
 */
export function parseOptions<K extends string>(
  value: unknown,
  known: readonly K[],
  name: string,
): { readonly [key in K]?: unknown } {
  const expected = (): string => `an object with ${known.join(", ")}`;
  if (!isObject(value)) {
    throw invalid(name, expected(), value, "pass an object, or nothing for the defaults");
  }
  const options: { [key in K]?: unknown } = Object.create(null);
  for (const key of Object.keys(value)) {
    const match = known.find((candidate) => candidate === key);
    if (match === undefined) {
      throw invalid(name, expected(), key, `did you mean "${nearest(key, known)}"?`);
    }
    const option = (value as Record<string, unknown>)[key];
    if (option !== undefined) options[match] = option;
  }
  return options;
}

/**
 * The names of the options, tied to their type: `namesOf<Options>()(["a", "b"])` does not compile if a name is missing or
 * the type does not have it.
 */
export function namesOf<T>() {
  return <const Names extends readonly (keyof T)[]>(
    names: Names &
      ([Exclude<keyof T, Names[number]>] extends [never] ? unknown : { missing: Exclude<keyof T, Names[number]> }),
  ): Names => names;
}

/** The value itself if it is an object; throws otherwise. */
export function objectOf<T extends object>(value: T, name: string): T {
  if (isObject(value)) return value;
  throw invalid(name, "an object", value, "pass one, or nothing where it is optional");
}

/** False for objects that do not keep their content in fields, such as a Map: they would count as empty. */
function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && kindOf(value) === null;
}

/** The name of an object type whose content is not in its fields; null for all others. */
function kindOf(value: object): string | null {
  if (Array.isArray(value)) return "an array";
  if ("then" in value && typeof value.then === "function") return "a Promise";
  const kind = Object.prototype.toString.call(value).slice("[object ".length, -1);
  if (kind === "Object" || kind === "Module") return null;
  return `${/^[AEIOU]/.test(kind) ? "an" : "a"} ${kind}`;
}

/** The fields of a JSON text from the store; none for a text that is not an object. */
export function fieldsFrom(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** True for an object that has a number in each of these fields. */
export function hasNumbers(value: unknown, fields: readonly string[]): boolean {
  return (
    typeof value === "object" && value !== null && fields.every((each) => Number.isFinite(Reflect.get(value, each)))
  );
}

/** The `invalid_argument` error in the house form: expected, what came, what to do. */
export function invalid(name: string, expected: string, came: unknown, remedy: string): RedriveError {
  return new RedriveError("invalid_argument", `${name}: expected ${expected}; got ${shown(came)}; ${remedy}`);
}

function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
  if (typeof value === "bigint") return `the bigint ${value}`;
  if (typeof value === "object" && value !== null) return kindOf(value) ?? "an object";
  return typeof value === "function" ? "a function" : String(value);
}

/** `did you mean "x"?` for a word close to a known one; else `otherwise`. */
export function didYouMean(word: unknown, known: readonly string[], otherwise = ""): string {
  if (typeof word !== "string" || known.length === 0) return otherwise;
  const candidate = nearest(word, known);
  const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
  // Two swapped letters are two edits.
  const most = word.length < 4 ? 1 : Math.max(2, Math.floor(word.length / 3));
  return distance <= most ? `did you mean "${candidate}"?` : otherwise;
}

function nearest(key: string, known: readonly string[]): string {
  const ranked = known.map((candidate) => ({
    candidate,
    distance: editDistance(key.toLowerCase(), candidate.toLowerCase()),
  }));
  return ranked.sort((a, b) => a.distance - b.distance)[0]?.candidate ?? "";
}

function editDistance(a: string, b: string): number {
  const from = a.slice(0, 40);
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
