// The worker of a chaos run: the real one with its real isolation, on a short lease so that pauses reach beyond it.
import { resolveLimits } from "../../src/core/service.ts";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { childIsolation } from "../../src/child-isolation.ts";
import { loadJobs } from "../../src/config/load-jobs.ts";
import { lineLog } from "../../src/system/log.ts";
import { hostId, isAlive } from "../../src/system/processes.ts";
import { realSystem } from "../../src/system/real.ts";
import { resolveWorker } from "../../src/worker/settings.ts";
import { createWorker } from "../../src/worker/worker.ts";
import type { Stage } from "./actor.ts";
import { fragile, invoice, mail } from "./jobs.ts";
import { told } from "./told.ts";

/** The leases of workers; most have the short one. */
const LEASES_MS = [1_500, 1_500, 3_000];
/** The longest of them. */
export const LONGEST_LEASE_MS = 3_000;
const HEARTBEAT_MS = 250;
const STOP_WITHIN_MS = 5_000;

/** Works until it is calm, then stops as a deploy would stop it. */
export async function work({ store, name, dice, calm, ready, busy }: Stage): Promise<void> {
  const leaseMs = dice.pick(LEASES_MS);
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
    jobs: (await loadJobs(file)).filter(({ type }) => programOf(name).includes(type)),
    settings: resolveWorker({
      concurrency: 10,
      lease: leaseMs,
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
      leaseMs,
      heartbeatMs: HEARTBEAT_MS,
    }),
  });
  await worker.start();
  ready();
  if (!calm.aborted) await once(calm, "abort");
  await worker.stop({ withinMs: STOP_WITHIN_MS });
}

/** Two programs share the store, and the workers of each know only its own types and the one that both have. */
function programOf(worker: string): readonly string[] {
  const number = Number(/\d+/.exec(worker)?.[0] ?? 0);
  return [fragile.type, number % 2 === 0 ? mail.type : invoice.type];
}
