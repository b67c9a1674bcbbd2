// The parts of a worker. The composing code (the command line, a test, the simulation) supplies them.
import type { Limits } from "../core/service.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import type { FlowMeter } from "../store/flow-meter.ts";
import type { Store } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import type { Records } from "../upkeep/upkeep-records.ts";
import type { Isolation } from "./isolation.ts";
import type { Meter } from "../report/meter.ts";
import type { WorkerEvents } from "../report/reporter.ts";
import type { Traces } from "../report/traces.ts";
import type { WorkerSettings } from "./settings.ts";

/** The identity of a worker in its writes: one record that all of its parts share. */
export interface WorkerIdentity {
  /** Its present id; a worker that was given up comes back under a new one. */
  id: string;
  /** Every run up to this ticket may have started. */
  startedThrough: number;
  /** The worker starts nothing more. */
  isStopping: boolean;
}

/** The parts of a worker. */
export interface WorkerDependencies {
  readonly store: Store;
  readonly system: System;
  readonly jobs: readonly JobDefinition[];
  readonly settings: WorkerSettings;
  /** The configuration of services, tenants and job types. */
  readonly limits: Limits;
  readonly log: Log;
  readonly events: WorkerEvents;
  /** Counts runs for the store; absent where they are not counted. */
  readonly flow?: FlowMeter;
  /** Counts runs for metrics; absent where they are not counted. */
  readonly meter?: Meter;
  /** Makes spans; absent where no traces are made. */
  readonly traces?: Traces | null;
  /** Records what upkeep does; absent where it is not published. */
  readonly records?: Records;
  readonly process: { readonly pid: number; readonly host: string; readonly isAlive: (pid: number) => boolean };
  /** Runs jobs with one crash left in a child process; null where that is not possible: they run alone here. */
  readonly isolation: Isolation | null;
}
