// Handles a claim whose answer was lost: the store may have given us jobs that we do not know of, and our own heartbeat
// would keep them forever.
import { unstartedVerdict } from "../core/verdict.ts";
import type { Lease, Store } from "../store/store.ts";
import type { Log } from "../system/log.ts";

/** Releases, uncharged, the jobs that the worker holds without knowing; they have not run. */
export async function releaseLost(
  store: Store,
  worker: string,
  log: Log,
  knows: (lease: Lease) => boolean,
): Promise<void> {
  const held = async (): Promise<Lease[]> => (await store.held(worker)).filter((lease) => !knows(lease));
  const first = new Set((await held()).map(({ nonce }) => nonce));
  if (first.size === 0) return;
  // A run may have ended while the answer was on its way; then it is no longer held.
  const unknown = (await held()).filter(({ nonce }) => first.has(nonce));
  if (unknown.length === 0) return;
  log.warn({ jobs: unknown.length }, "the answer to a claim was lost; its jobs are released uncharged");
  const verdict = unstartedVerdict();
  // A lease does not tell its generation; the store finds out which were sent back to work.
  await store.settle({ settlements: unknown.map((lease) => ({ ...lease, verdict, redriven: true })) });
}
