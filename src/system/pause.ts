// Waits, in any JavaScript platform: for the client, which runs in browsers too.

/** Resolves after this long. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
