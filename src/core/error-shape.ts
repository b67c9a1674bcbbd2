// Reads thrown values. Anything can be thrown: proxies, getters that throw, cycles, values that are no objects. So
// every property is read through `read`, and nothing here throws or walks without a bound.

const MAX_LINKS = 8;
const MAX_PREVIEW_KEYS = 16;

/** The property, or undefined where there is none or reading it throws. */
export function read(value: unknown, key: PropertyKey): unknown {
  if ((typeof value !== "object" || value === null) && typeof value !== "function") return undefined;
  try {
    // Classes are found by many such reads; Reflect.get would take several times as long.
    return (value as Readonly<Record<PropertyKey, unknown>>)[key];
  } catch {
    return undefined;
  }
}

/** The property at the end of a path. */
export function readPath(value: unknown, ...path: readonly PropertyKey[]): unknown {
  let found = value;
  for (const key of path) found = read(found, key);
  return found;
}

/** The text of a property that is a string, else undefined. */
export function readText(value: unknown, key: PropertyKey): string | undefined {
  const text = read(value, key);
  return typeof text === "string" ? text : undefined;
}

/** The members of a property that is an array, at most 16 of them. */
export function readMembers(value: unknown, key: PropertyKey): unknown[] {
  const list = read(value, key);
  try {
    return Array.isArray(list) ? list.slice(0, 16) : [];
  } catch {
    return [];
  }
}

/** The thrown value and its causes, outermost first; at most 8, cycles cut. */
export function linksOf(thrown: unknown): unknown[] {
  const links = [thrown];
  for (let cause = read(thrown, "cause"); links.length < MAX_LINKS; cause = read(cause, "cause")) {
    if (cause === undefined || cause === null || links.includes(cause)) break;
    links.push(cause);
  }
  return links;
}

/** `instanceof` that survives a revoked proxy. */
export function isA(value: unknown, type: abstract new (...args: never[]) => unknown): boolean {
  try {
    return value instanceof type;
  } catch {
    return false;
  }
}

/**
 * What an error carries beside name, message, stack and cause: nothing, at most what the runtime gives an error of the
 * system (a code, a call, an address), or more. Whatever cannot be told, such as a proxy, carries more.
 */
export type Carried = "nothing" | "code" | "more";

const TEXT_KEYS: ReadonlySet<PropertyKey> = new Set(["stack", "message", "name", "cause"]);
const SYSTEM_KEYS: ReadonlySet<PropertyKey> = new Set("code errno syscall address port hostname path dest".split(" "));
const CLASS_KEYS: ReadonlySet<PropertyKey> = new Set(["constructor", "name", "message", "toString"]);
const BUILT_IN: ReadonlySet<unknown> = new Set(
  [Error, TypeError, RangeError, SyntaxError, ReferenceError, URIError, EvalError].map(({ prototype }) => prototype),
);
const MAX_CLASSES = 4;

/** What the error carries. Most errors carry nothing, and then most rules about fields need not be asked. */
export function carriedBy(error: unknown): Carried {
  if (typeof error !== "object" || error === null) return "more";
  try {
    if (!isOfPlainClass(error)) return "more";
    let found: Carried = "nothing";
    for (const key of Reflect.ownKeys(error)) {
      if (TEXT_KEYS.has(key)) continue;
      if (!SYSTEM_KEYS.has(key)) return "more";
      found = "code";
    }
    // A proxy may answer with fields that it does not list; it has no tag of its own.
    return Object.prototype.toString.call(error) === "[object Error]" ? found : "more";
  } catch {
    return "more";
  }
}

/** True for an error of the language, or of classes that add no field by their prototype. */
function isOfPlainClass(error: object): boolean {
  let prototype: unknown = Object.getPrototypeOf(error);
  for (let depth = 0; depth < MAX_CLASSES && !BUILT_IN.has(prototype); depth++) {
    if (typeof prototype !== "object" || prototype === null) return false;
    if (!Reflect.ownKeys(prototype).every((key) => CLASS_KEYS.has(key))) return false;
    prototype = Object.getPrototypeOf(prototype);
  }
  return BUILT_IN.has(prototype);
}

/** The error's name: its own, its constructor's, or its type. */
export function nameOf(thrown: unknown): string {
  if (thrown === null) return "null";
  if (typeof thrown !== "object" && typeof thrown !== "function") return typeof thrown;
  if (typeof thrown === "function") return "function";
  return readText(thrown, "name") || readText(read(thrown, "constructor"), "name") || "Object";
}

/** The error's message as text: its own where it has one, else a short preview of the value. */
export function messageOf(thrown: unknown): string {
  if ((typeof thrown !== "object" || thrown === null) && typeof thrown !== "function") return textOf(thrown);
  const message = read(thrown, "message");
  if (message !== undefined && message !== null) return textOf(message);
  const status = read(thrown, "status");
  if (typeof status === "number") return `HTTP ${status} ${readText(thrown, "statusText") ?? ""}`.trimEnd();
  return textOf(thrown);
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "function") return `function ${readText(value, "name") || "(anonymous)"}`;
  return typeof value === "object" && value !== null ? preview(value) : String(value);
}

/** One level of an object, a few keys, without calling the user's `toString` or `toJSON`. */
function preview(value: object): string {
  try {
    const keys = Object.keys(value);
    const isList = Array.isArray(value);
    const parts = keys.slice(0, MAX_PREVIEW_KEYS).map((key) => {
      const inner = read(value, key);
      const text = typeof inner === "object" && inner !== null ? (Array.isArray(inner) ? "[…]" : "{…}") : textOf(inner);
      return isList ? text.slice(0, 200) : `${key.slice(0, 200)}: ${text.slice(0, 200)}`;
    });
    if (keys.length > MAX_PREVIEW_KEYS) parts.push("…");
    return isList ? `[${parts.join(", ")}]` : `{ ${parts.join(", ")} }`;
  } catch {
    return "an object that cannot be read";
  }
}
