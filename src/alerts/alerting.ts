// The alerts of a program: its settings, checked, and what each of its workers does about them.
import { resolveHealth } from "../core/health.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import type { Store } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import { LOOK_EVERY_MS } from "./look.ts";
import { openWorkerAlerts, type WorkerAlerts } from "./service.ts";
import { type FleetAlertSettings, resolveFleetAlerts } from "./sink-options.ts";
import { eventSink, openSink } from "./sinks.ts";

/** What the alerts of a worker need of it. */
export interface AlertedWorker {
  readonly store: Store;
  readonly system: System;
  readonly log: Log;
  readonly jobs: readonly JobDefinition[];
  /** The id of the worker. */
  readonly process: () => string;
  /** How many of its verdicts the store has refused. */
  readonly staleWrites: () => number;
  /** True for an error that says that the store is away. */
  readonly isAway: (what: string, error: unknown) => boolean;
}

/** The alerts of a program. */
export interface Alerting {
  readonly settings: FleetAlertSettings;
  /** Opens those of a worker. */
  open(worker: AlertedWorker): WorkerAlerts;
}

/** How often the fleet looks, and how long a process that tells keeps others from it; for tests of many kills. */
export interface AlertPace {
  readonly everyMs: number;
  readonly claimMs: number;
}

/** Checks the options of alerts and of health. */
export function openAlerting(options: unknown, healthOptions: unknown, pace: Partial<AlertPace> = {}): Alerting {
  const health = resolveHealth(healthOptions);
  const settings = resolveFleetAlerts(options, health);
  return {
    settings,
    open(worker) {
      const sinks = [eventSink(worker.store), ...settings.sinks.map((each) => openSink(each, worker))];
      return openWorkerAlerts({ everyMs: LOOK_EVERY_MS, ...pace, ...worker, rules: settings.rules, health, sinks });
    },
  };
}
