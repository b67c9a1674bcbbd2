// A bound on a wait for the server, for our own connections outside a pool.
import type { System } from "../../system/system.ts";

/** The answer, or an error if it does not come within this time; the work itself is not stopped. */
export async function inTime<T>(work: Promise<T>, ms: number, system: Pick<System, "sleep">): Promise<T> {
  const answered = new AbortController();
  const refuse = (): Promise<never> => Promise.reject(new Error(`no answer within ${ms} ms`));
  try {
    return await Promise.race([work, system.sleep(ms, answered.signal).then(refuse)]);
  } finally {
    answered.abort();
  }
}
