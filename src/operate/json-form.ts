// JSON for callers: times as ISO 8601, and stored JSON byte for byte as it is.

/** JSON text that goes into a document unchanged. */
export class RawJson {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** A value as JSON text; like `JSON.stringify`, except for texts that are already JSON. */
export function jsonText(value: unknown): string {
  if (value instanceof RawJson) return value.text;
  if (Array.isArray(value)) return `[${value.map(jsonText).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const fields = Object.entries(value).filter(([, field]) => field !== undefined);
    return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${jsonText(field)}`).join(",")}}`;
  }
  return JSON.stringify(value ?? null);
}

/** Stored JSON text; a damaged text becomes a string. */
export function rawJson(text: string | null): RawJson | null {
  if (text === null) return null;
  try {
    JSON.parse(text);
    return new RawJson(text);
  } catch {
    return new RawJson(JSON.stringify(text));
  }
}

/** The last instant of a Date, before and after 1970. */
const LAST_MS = 8.64e15;

/** A time as ISO 8601; an impossible time in a damaged row becomes the nearest possible one. */
export function isoTime(ms: number): string;
export function isoTime(ms: number | null): string | null;
export function isoTime(ms: number | null): string | null {
  return ms === null ? null : new Date(Math.min(LAST_MS, Math.max(-LAST_MS, ms)) || 0).toISOString();
}
