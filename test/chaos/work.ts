// The worker of a chaos run: the real one with its real isolation, on a short lease so that pauses reach beyond it.
import { resolveLimits } from "../../src/core/service.ts";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { childIsolation } from "../../src/worker/child-isolation.ts";
import { loadJobs } from "../../src/cli/load-jobs.ts";
import { lineLog } from "../../src/system/log.ts";
import { hostId, isAlive } from "../../src/system/processes.ts";
import { realSystem } from "../../src/system/real.ts";
import { resolveWorker } from "../../src/worker/settings.ts";
import { createWorker } from "../../src/worker/worker.ts";
import type { Stage } from "./actor.ts";
import { told } from "./told.ts";

/** The lease of every worker. */
export const LEASE_MS = 1_500;
const HEARTBEAT_MS = 250;
const STOP_WITHIN_MS = 5_000;

/** Works until it is calm, then stops as a deploy would stop it. */
export async function work({ store, calm, ready, busy }: Stage): Promise<void> {
  const file = fileURLToPath(new URL("./jobs.js", import.meta.url));
  const worker = createWorker({
    limits: resolveLimits({}),
    store: {
      ...store,
      async claim(request) {
        const sentAt = Date.now();
        const answer = await store.claim(request);
        if (answer.jobs.length > 0) busy(sentAt);
        return answer;
      },
    },
    system: realSystem,
    jobs: await loadJobs(file),
    settings: resolveWorker({
      concurrency: 10,
      lease: LEASE_MS,
      heartbeat: HEARTBEAT_MS,
      poll: 200,
      abortGrace: 1_000,
    }),
    log: lineLog("warn"),
    events: { emit: () => undefined },
    process: { pid: process.pid, host: hostId(), isAlive },
    isolation: childIsolation({
      store: told("store"),
      jobs: file,
      leaseMs: LEASE_MS,
      heartbeatMs: HEARTBEAT_MS,
    }),
  });
  await worker.start();
  ready();
  if (!calm.aborted) await once(calm, "abort");
  await worker.stop({ withinMs: STOP_WITHIN_MS });
}
