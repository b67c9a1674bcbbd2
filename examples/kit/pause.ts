// Waiting that an abort ends early, without an error: the caller looks at the signal next.
import { setTimeout as sleep } from "node:timers/promises";

/** Waits so long, or until the signal fires. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await sleep(ms, undefined, signal && { signal }).catch(() => undefined);
}
