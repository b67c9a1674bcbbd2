// Schedules and redrive runs on the fake clock: when something is to be done next, and doing it. The upkeep code itself
// does it.
import { isDriven, RUN_CELLS } from "../core/recovery/run.ts";
import { scheduleFrom } from "../core/schedule.ts";
import { driverOf } from "../operate/redrives.ts";
import type { Limits } from "../core/service.ts";
import { SCHEDULE_CELLS } from "../schedules/schedule-jobs.ts";
import { scheduleService, type SchedulerOptions } from "../schedules/schedule-service.ts";
import type { RedriveDriver } from "../upkeep/redrives.ts";
import type { Service } from "../upkeep/upkeep.ts";
import { runsIn } from "../upkeep/run-cells.ts";
import type { ObservedStore } from "./observed-store.ts";

/** The ticks of a test. */
export class Ticks {
  readonly #observed: ObservedStore;
  readonly #service: Service;
  readonly #driver: RedriveDriver;
  readonly #now: () => number;
  /** When runs are looked at next, unless their list changes before. */
  #runsAt = 0;
  #listVersion = 0;

  constructor(observed: ObservedStore, parts: Omit<SchedulerOptions, "store"> & { readonly limits: Limits }) {
    this.#observed = observed;
    this.#now = () => parts.system.now();
    this.#service = scheduleService({ ...parts, store: observed.store });
    this.#driver = driverOf({ ...parts, store: observed.store }, "test");
  }

  /** When the next tick is; Infinity if there is none. */
  get nextAt(): number {
    return Math.min(this.#nextTick(), this.#nextRun());
  }

  /** Makes the jobs of due ticks, and does a step of runs that are due; false if there was nothing to do. */
  async look(): Promise<boolean> {
    const before = this.#nextTick();
    if (before <= this.#now()) await this.#service.step(new AbortController().signal);
    const isRunDue = this.#nextRun() <= this.#now();
    if (isRunDue) {
      this.#listVersion = this.#runs().listVersion;
      this.#runsAt = this.#now() + (await this.#driver.stepAll());
    }
    return isRunDue || this.#nextTick() !== before;
  }

  #nextTick(): number {
    const { cells } = this.#observed.verbs.cells([{ kind: SCHEDULE_CELLS }]);
    const times = cells.map(({ value }) => {
      const state = scheduleFrom(value)?.state;
      return state === undefined || state.paused ? null : state.next;
    });
    return Math.min(...times.map((at) => at ?? Number.POSITIVE_INFINITY));
  }

  #nextRun(): number {
    const { verbs } = this.#observed;
    if (verbs.cells([{ kind: RUN_CELLS, name: "" }]).cells.length === 0) return Number.POSITIVE_INFINITY;
    const { listVersion, runs } = this.#runs();
    if (!runs.some(({ run }) => isDriven(run))) return Number.POSITIVE_INFINITY;
    return listVersion === this.#listVersion ? this.#runsAt : 0;
  }

  #runs(): ReturnType<typeof runsIn> {
    const { cells, now } = this.#observed.verbs.cells([{ kind: RUN_CELLS }]);
    return runsIn(cells, now);
  }
}
