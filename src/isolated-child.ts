// The program of the child process in which a job with one crash left runs alone. Started by `isolation`, never by
// hand; its task is its first message. It cannot harm any other process.
import type { PolicyOptions } from "./core/policy.ts";
import { openStore } from "./open-store.ts";
import { withDefaults } from "./jobs/define-job.ts";
import { firstWord, hostId, onParentStop, tellParent } from "./system/processes.ts";
import { lineLog } from "./system/log.ts";
import { realSystem } from "./system/real.ts";
import { runAlone } from "./worker/alone.ts";
import { ALONE_DONE, ISOLATED_HOST } from "./worker/isolation.ts";
import { withTypeLimits } from "./worker/type-limits.ts";
import { resolveWorker, type WorkerSettings } from "./worker/settings.ts";
import type { IsolatedTask } from "./child-isolation.ts";
import { loadJobs } from "./config/load-jobs.ts";

const stopping = new AbortController();
onParentStop(() => stopping.abort());
const task = (await firstWord()) as IsolatedTask;
const library = await defaultsOf(task);
const jobs = (await loadJobs(task.jobs)).map((job) => withDefaults(job, library));
const told: Promise<void>[] = [];
const store = await openStore(task.store);
try {
  await runAlone({
    store: withTypeLimits(store, jobs),
    system: realSystem,
    worker: task.worker,
    lane: task.lane,
    control: task.control,
    held: task.held,
    stop: stopping.signal,
    jobs,
    settings: settingsOf(task),
    // Its own host name: only the parent, which knows how it ended, may declare this process gone before its lease
    // ends.
    process: { pid: process.pid, host: `${hostId()}${ISOLATED_HOST}` },
    log: lineLog("warn"),
    report: (report) => void told.push(tellParent(report)),
  });
} finally {
  await store.close();
}
await Promise.all(told);
// A child that ends without this message was ended by its job, whatever its exit code.
await tellParent(ALONE_DONE);
// A handler that ignored its abort signal would keep the process alive; its job is settled, so nothing is lost.
process.exit(0);

function settingsOf({ leaseMs, heartbeatMs, stallMs, abortGraceMs, release }: IsolatedTask): WorkerSettings {
  return resolveWorker({
    lease: leaseMs,
    heartbeat: heartbeatMs,
    ...(stallMs !== undefined && { stallLimit: stallMs }),
    ...(abortGraceMs !== undefined && { abortGrace: abortGraceMs }),
    ...(release != null && { release }),
  });
}

/** The defaults of the parent; loaded again, because a config file may contain functions. */
async function defaultsOf({ config = null, environment = null }: IsolatedTask): Promise<PolicyOptions> {
  if (config === null && environment === null) return {};
  const [{ loadConfig }, { mergedDefaults, policyFromEnvironment }] = await Promise.all([
    import("./config/load-config.ts"),
    import("./config/environment.ts"),
  ]);
  const { defaults } = config === null ? { defaults: {} } : await loadConfig(config);
  if (environment === null) return defaults;
  return mergedDefaults(defaults, policyFromEnvironment(process.env, environment));
}
