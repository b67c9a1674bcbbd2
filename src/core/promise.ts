// Tells promises from plain values, because awaiting a plain value costs more than most uses of it.

/** True for a promise of any library. */
export function isPromise(value: unknown): value is Promise<unknown> {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === "function";
}
