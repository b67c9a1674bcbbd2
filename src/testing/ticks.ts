// Schedules on the fake clock: when the next tick is, and how its jobs are made. The upkeep code itself makes them.
import { scheduleFrom } from "../core/schedule.ts";
import { SCHEDULE_CELLS } from "../schedules/schedule-jobs.ts";
import { scheduleService, type SchedulerOptions } from "../schedules/schedule-service.ts";
import type { Service } from "../upkeep/upkeep.ts";
import type { ObservedStore } from "./observed-store.ts";

/** The ticks of a test. */
export class Ticks {
  readonly #observed: ObservedStore;
  readonly #service: Service;

  constructor(observed: ObservedStore, parts: Omit<SchedulerOptions, "store">) {
    this.#observed = observed;
    this.#service = scheduleService({ ...parts, store: observed.store });
  }

  /** When the next tick is; Infinity if there is none. */
  get nextAt(): number {
    const { cells } = this.#observed.verbs.cells([{ kind: SCHEDULE_CELLS }]);
    const times = cells.map(({ value }) => {
      const state = scheduleFrom(value)?.state;
      return state === undefined || state.paused ? null : state.next;
    });
    return Math.min(...times.map((at) => at ?? Number.POSITIVE_INFINITY));
  }

  /** Makes the jobs of due ticks; false if that changed nothing. */
  async look(): Promise<boolean> {
    const before = this.nextAt;
    await this.#service.step(new AbortController().signal);
    return this.nextAt !== before;
  }
}
