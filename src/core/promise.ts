// Telling what has to be waited for from what is there already: a wait costs more than most of what is done with the value.

/** True for a promise, of whatever library. */
export function isPromise(value: unknown): value is Promise<unknown> {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === "function";
}
