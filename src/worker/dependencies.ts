// What a worker is made of; whoever composes one (the command line, a test, the simulation) brings these.
import type { Limits } from "../core/service.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import type { Store } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import type { Records } from "../upkeep/upkeep-records.ts";
import type { Isolation } from "./isolation.ts";
import type { WorkerEvents } from "../report/reporter.ts";
import type { WorkerSettings } from "./settings.ts";

/** What every part of a worker says of it when it writes: one record that all of them share. */
export interface WorkerIdentity {
  /** Its present id; one that was given up comes back under a new one. */
  id: string;
  /** Every run up to this ticket may have started. */
  startedThrough: number;
  /** It begins nothing more. */
  isStopping: boolean;
}

/** What a worker is made of. */
export interface WorkerDependencies {
  readonly store: Store;
  readonly system: System;
  readonly jobs: readonly JobDefinition[];
  readonly settings: WorkerSettings;
  /** What is configured for services, tenants and job types. */
  readonly limits: Limits;
  readonly log: Log;
  readonly events: WorkerEvents;
  /** Hears of what upkeep does; absent where nobody asks. */
  readonly records?: Records;
  readonly process: { readonly pid: number; readonly host: string; readonly isAlive: (pid: number) => boolean };
  /** Runs jobs with their last crash left in a child process; null where there is no way to: they run alone here. */
  readonly isolation: Isolation | null;
}
