// Puts a worker together as the command line does, for the actors of the benchmarks.
import { fileURLToPath } from "node:url";
import { childIsolation } from "../../dist/child-isolation.js";
import { lineLog } from "../../dist/system/log.js";
import { resolveLimits } from "../../dist/core/service.js";
import { hostId, isAlive } from "../../dist/system/processes.js";
import { realSystem } from "../../dist/system/real.js";
import { createWorker } from "../../dist/worker/worker.js";
import { resolveWorker } from "../../dist/worker/settings.js";
import * as jobs from "./jobs.mjs";

const definitions = [jobs.bench, jobs.flaky, jobs.deadly];

/** A worker over the store, whose URL its children open, with default settings but for the options; `completed` hears of every completed job. */
export function openWorker(store, url, options = {}, completed = () => undefined) {
  const settings = resolveWorker(options);
  const { leaseMs, heartbeatMs } = settings;
  const file = fileURLToPath(new URL("./jobs.mjs", import.meta.url));
  return createWorker({
    store,
    system: realSystem,
    jobs: definitions,
    settings,
    limits: resolveLimits({}),
    log: lineLog("error"),
    events: { emit: ({ kind }) => kind === "job.completed" && completed() },
    process: { pid: process.pid, host: hostId(), isAlive },
    isolation: childIsolation({ store: url, jobs: file, leaseMs, heartbeatMs }),
  });
}
