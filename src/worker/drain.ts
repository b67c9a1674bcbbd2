// Decides when a drain is done: no job held, none due, none due within the grace. It waits for the runs of a dead
// worker, at most one lease and with a log line, until the reaper takes them over.
import type { Store, WorkerRecord } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import { lostProcesses } from "../upkeep/expired-runs.ts";
import type { WorkerCounts } from "../report/reporter.ts";
import type { Look } from "../core/next-step.ts";
import type { Contact } from "../store/store-contact.ts";
import type { WorkerIdentity } from "./dependencies.ts";
import type { InFlight } from "./in-flight.ts";
import type { Reaping } from "./reaping.ts";
import type { Settler } from "./settler.ts";
import type { WakeableSleep } from "./wakeable-sleep.ts";
import type { WorkerSettings } from "./settings.ts";

/** What a drain watches. */
export interface DrainOptions {
  readonly store: Store;
  readonly system: System;
  readonly contact: Contact;
  readonly settings: WorkerSettings;
  readonly log: Log;
  readonly self: Readonly<Pick<WorkerIdentity, "id">>;
  readonly loop: { readonly look: Look | null };
  readonly inFlight: Pick<InFlight, "isSpent" | "jobs">;
  readonly settler: Pick<Settler, "size">;
  readonly reaping: Pick<Reaping, "isolated">;
  readonly process: { readonly host: string; readonly isAlive: (pid: number) => boolean };
  readonly sleep: Pick<WakeableSleep, "wake">;
  readonly counts: Readonly<Pick<WorkerCounts, "claimed">>;
  /** Fires when the worker is stopped during the drain. */
  readonly signal: AbortSignal;
}

const CHECK_EVERY_MS = 20;

/** Resolves when there is nothing left to do. */
export async function drained(options: DrainOptions, graceMs: number): Promise<void> {
  const { system, settings, log, inFlight, loop } = options;
  let orphansSince: number | null = null;
  while (!options.signal.aborted) {
    await system.sleep(CHECK_EVERY_MS, options.signal);
    const seen = loop.look;
    if (inFlight.isSpent && busy(options) === 0)
      return log.error({}, "drain ended early: every slot is lost to a handler that ignores its abort signal");
    if (!seen || busy(options) > 0 || seen.due) continue;
    if (seen.nextRunAt !== null && seen.nextRunAt - seen.now <= graceMs) continue;
    const lost = await options.contact.attempt("drain", () =>
      lostWorkers(options.store, options.self.id, options.process),
    );
    if (lost === null) continue;
    if (lost.length > 0) {
      const runs = lost.reduce((sum, { running }) => sum + running, 0);
      if (orphansSince === null)
        log.warn({ runs }, "waiting for runs whose worker seems to have died, at most one lease");
      orphansSince ??= system.monotonic();
      // The reaper takes over the runs of a worker only after that worker's lease.
      const patience = Math.max(settings.leaseMs, ...lost.map(leaseOf)) + 2_000;
      if (system.monotonic() - orphansSince < patience) continue;
    }
    if (await staysQuiet(options, graceMs)) return;
  }
}

/** Jobs and verdicts in progress. */
function busy({ inFlight, settler, reaping }: DrainOptions): number {
  return inFlight.jobs + settler.size + reaping.isolated;
}

/**
 * True if a fresh look at the lanes finds nothing either. A look is fresh if it began while this worker held nothing, and
 * this worker has claimed nothing since: during a run the job behind it in its group is not due. The look in progress may
 * have begun before, so only the second one counts.
 */
async function staysQuiet(options: DrainOptions, graceMs: number): Promise<boolean> {
  const { loop, sleep, counts, system, signal } = options;
  const { claimed } = counts;
  const isBusy = (): boolean => busy(options) > 0 || counts.claimed !== claimed;
  let last = loop.look;
  let looks = 0;
  sleep.wake();
  for (let waited = 0; waited < 5_000 && !isBusy() && !signal.aborted; waited += 5) {
    const seen = loop.look;
    if (seen && seen !== last) {
      const soon = seen.nextRunAt !== null && seen.nextRunAt - seen.now <= graceMs;
      if (seen.due || soon) return false;
      looks += 1;
      if (looks === 2) return true;
      last = seen;
      sleep.wake();
    }
    await system.sleep(5);
  }
  return false;
}

/** A heartbeat comes at least three times per lease, so a worker that is silent for this part of it has missed one. */
const SILENT = 5 / 12;

const leaseOf = ({ leaseEnd, beatAt }: WorkerRecord): number => leaseEnd - beatAt;

/** Workers with runs that have missed their heartbeats, were given up, or whose process is gone. */
export async function lostWorkers(
  store: Pick<Store, "workers" | "control">,
  self: string,
  process: DrainOptions["process"],
): Promise<WorkerRecord[]> {
  const [workers, { now }] = await Promise.all([store.workers(), store.control()]);
  const others = workers.filter((worker) => worker.id !== self && worker.running > 0);
  const gone = new Set(lostProcesses(others, { ...process, self }));
  const isLate = (worker: WorkerRecord): boolean => now - worker.beatAt > leaseOf(worker) * SILENT;
  return others.filter((worker) => worker.givenUp || gone.has(worker.id) || isLate(worker));
}
