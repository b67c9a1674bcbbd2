// Plans a claim: core makes the quotas from lanes and grants. Of work under rate limits or budgets, only as much is
// planned as was withdrawn for the lanes that the claim can reach.
import type { ActiveLane, LaneKind } from "../core/lane.ts";
import { type Appetite, jobsByLane, jobsIn, planClaim, type Quota } from "../core/claim-plan.ts";
import type { Limits } from "../core/service.ts";
import type { Services } from "../services/services.ts";
import type { Control } from "../store/store.ts";
import type { InFlight } from "./in-flight.ts";

/** The types and queues that a worker serves. */
export type Served = Pick<Appetite, "serves" | "queues">;

/** What planning needs. */
export interface PlanningOptions {
  readonly services: Pick<Services, "grants" | "spread">;
  readonly inFlight: Pick<InFlight, "perSlot">;
  readonly limits: Limits;
  readonly served: Served;
}

type Lower = (grants: ReadonlyMap<string, number>) => ReadonlyMap<string, number>;

/** Most plans in one turn, where the first lanes turn out to be used up. */
const PASSES = 3;

/** The plans of one worker. */
export class Planning {
  /** Pauses and breakers as last read; null where they must be read again: then nothing is planned. */
  control: Control | null = null;
  /** Counts the turns that lanes were given. */
  turn = 0;
  /** Everything asked for is under a limit, and none of it may start now. */
  isSpentUp = false;
  readonly #options: PlanningOptions;
  readonly #weightOf: (tenant: string) => number;
  readonly #perSlot: (type: string) => number;
  /** The grants without what is known to be used up for now. */
  readonly #withoutSpent: Lower = (grants) => this.#options.services.spread()?.spentUp(grants) ?? grants;

  constructor(options: PlanningOptions) {
    this.#options = options;
    this.#weightOf = (tenant) => options.limits.tenant(tenant).weight;
    this.#perSlot = (type) => options.inFlight.perSlot(type);
  }

  /** The quotas for so many slots; slots and tokens of limits are withdrawn first. */
  async quotas(lanes: readonly ActiveLane[], want: number, suspects: number): Promise<Quota[]> {
    const spread = this.#options.services.spread();
    this.isSpentUp = false;
    if (!spread || lanes.length === 0) return this.plan(lanes, want, suspects);
    // Lanes that turn out to be used up must not hide those behind them.
    for (let pass = 0; pass < PASSES; pass++) {
      const wished = this.plan(lanes, want, suspects, this.#withoutSpent);
      const reached = jobsByLane(wished);
      this.isSpentUp = reached.size === 0;
      if (this.isSpentUp) break;
      const within = lanes.filter(({ lane }) => reached.has(lane));
      const most = Math.max(want, jobsIn(wished, want));
      await spread.withdraw(within, reached, most, lanes);
      if (spread.covers(within, reached, most, suspects)) return wished;
      const quotas = this.plan(within, want, suspects, (grants) => spread.lowered(grants, within, suspects));
      if (quotas.length > 0) return quotas;
    }
    return [];
  }

  /** The same without a withdrawal: limited work is included, because its start comes with time. */
  plan(lanes: readonly ActiveLane[], want: number, suspects: number, lower: Lower = (grants) => grants): Quota[] {
    if (!this.control || lanes.length === 0) return [];
    const { served, services } = this.#options;
    return planClaim(lanes, {
      ...served,
      weightOf: this.#weightOf,
      perSlot: this.#perSlot,
      grants: lower(services.grants(this.control)),
      want,
      suspects,
      turn: this.turn,
    });
  }

  /** Since when a suspect of the kind that may start now has been due; null where there is none. */
  dueAt(kind: LaneKind, all: readonly ActiveLane[]): number | null {
    const lanes = all.filter((lane) => lane.kind === kind);
    const open = jobsByLane(this.plan(lanes, lanes.length, lanes.length, this.#withoutSpent));
    const since = lanes.filter(({ lane }) => open.has(lane)).map(({ headRunAt }) => headRunAt);
    return since.length === 0 ? null : Math.min(...since);
  }
}
