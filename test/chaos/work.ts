// The worker of a chaos run: the real one on a short lease, so that pauses reach beyond it. Most run suspects in a child
// process, as with a jobs file; every third has none and runs them alone.
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
import { sayingMayHold } from "../support/history/in-hand.ts";
import { ownScribe } from "./file-scribe.ts";
import { fragile, invoice, mail } from "./jobs.ts";
import { told } from "./told.ts";

/** The leases of workers; most have the short one. */
const LEASES_MS = [1_500, 1_500, 3_000];
/** The longest of them. */
export const LONGEST_LEASE_MS = 3_000;
const CONCURRENCY = 10;
const HEARTBEAT_MS = 250;
const STOP_WITHIN_MS = 5_000;

/** Works until it is calm, then stops as a deploy would stop it. */
export async function work({ store, name, dice, calm, ready, busy }: Stage): Promise<void> {
  const leaseMs = dice.pick(LEASES_MS);
  const file = fileURLToPath(new URL("./jobs.js", import.meta.url));
  const scribe = ownScribe();
  const recorded = sayingMayHold(store, {
    slots: CONCURRENCY,
    monotonic: realSystem.monotonic,
    write: (line) => void scribe.write(scribe.actor, "mark", "ok", line),
  });
  const worker = createWorker({
    limits: resolveLimits({}),
    store: {
      ...recorded,
      async claim(request) {
        const sentAt = Date.now();
        const answer = await recorded.claim(request);
        if (answer.jobs.length > 0) busy(sentAt);
        return answer;
      },
    },
    system: realSystem,
    jobs: (await loadJobs(file)).filter(({ type }) => programOf(name).includes(type)),
    settings: resolveWorker({
      concurrency: CONCURRENCY,
      lease: leaseMs,
      heartbeat: HEARTBEAT_MS,
      poll: 200,
      abortGrace: 1_000,
    }),
    log: lineLog("warn"),
    events: { emit: () => undefined },
    process: { pid: process.pid, host: hostId(), isAlive },
    isolation: isIsolating(name)
      ? childIsolation({ store: told("store"), jobs: file, leaseMs, heartbeatMs: HEARTBEAT_MS })
      : null,
  });
  await worker.start();
  ready();
  if (!calm.aborted) await once(calm, "abort");
  await worker.stop({ withinMs: STOP_WITHIN_MS });
}

/** Whether a worker runs suspects in a child process; told by the name of any of its lives. */
export function isIsolating(worker: string): boolean {
  return numberOf(worker) % 3 !== 0 || numberOf(worker) === 0;
}

function numberOf(worker: string): number {
  return Number(/^worker-(\d+)/.exec(worker)?.[1] ?? 0);
}

/** Two programs share the store, and the workers of each know only its own types and the one that both have. */
function programOf(worker: string): readonly string[] {
  return [fragile.type, numberOf(worker) % 2 === 0 ? mail.type : invoice.type];
}
