// What a claim loop asks its worker, and what it tells it.
import type { ActiveLane } from "../core/lane.ts";
import type { Appetite, Quota } from "../core/plan.ts";
import type { ClaimedJob, Control, Store } from "../store/store.ts";
import type { System } from "../system/system.ts";
import type { Allowances } from "../services/allowances.ts";
import type { Contact } from "../store/store-contact.ts";
import type { LastSigns } from "./last-signs.ts";
import type { WorkerSettings } from "./settings.ts";

/** What the loop asks its worker. */
export interface ClaimLoopOptions {
  readonly store: Store;
  readonly system: System;
  readonly contact: Contact;
  readonly settings: Pick<WorkerSettings, "pollMs" | "leaseMs">;
  readonly worker: () => string;
  /** Hears the signs of every look. */
  readonly signs: LastSigns;
  /** True while nothing else is taken because a job with its last crash left is to run alone here. */
  readonly isReserved: () => boolean;
  /** How many slots to fill with ordinary jobs now; 0 for none. */
  readonly want: () => number;
  /** Whether a suspect may be taken now, and whether one with its last crash left. */
  readonly wantSuspect: () => { readonly suspect: boolean; readonly last: boolean };
  /** What this worker serves at all. */
  readonly served: () => Pick<Appetite, "serves" | "queues">;
  readonly appetite: (control: Control) => Pick<Appetite, "grants" | "weightOf" | "perSlot">;
  /** Takes probes for services among these lanes whose time has come. */
  readonly probe: (lanes: readonly ActiveLane[], control: Control) => Promise<void>;
  /** What is spread over time by rate limits, ramps and budgets; null while nothing is. */
  readonly spread: () => Pick<Allowances, "withdraw" | "covers" | "lowered" | "spentUp" | "most"> | null;
  /** How long until more may be started of what is spread over time; null where nothing is. */
  readonly nextGrantMs: (lanes: readonly ActiveLane[]) => number | null;
  /** Numbers for a claim of these quotas: its first ticket, and the last one that may have started when it is written. */
  readonly tickets: (
    limit: number,
    quotas: readonly Quota[],
  ) => { readonly ticket: number; readonly startedThrough: number };
  readonly startedThrough: () => number;
  /** Takes over what was claimed; `single` for a suspect, which starts at once. */
  readonly accept: (jobs: readonly ClaimedJob[], single: boolean) => void;
  /**
   * Takes care of a lane of jobs with their last crash left, elsewhere; false where this version of `control` is old. Null where
   * they run alone in this process.
   */
  readonly isolate: ((lane: ActiveLane, control: number) => boolean) | null;
  /** A claim was written or not, nobody knows: hands back what is held without our knowledge. */
  readonly onUnknown: () => Promise<void>;
  /** The store says that this worker was given up; resolves when there is a new one. */
  readonly onGivenUp: () => Promise<void>;
  readonly onLook: (look: Look) => Promise<void> | void;
}

/** What a look at the lanes found. */
export interface Look {
  /** Something is due that this worker serves. */
  readonly due: boolean;
  /** A suspect is due. */
  readonly suspect: boolean;
  /** How long a job with its last crash left has been due; null where none is. */
  readonly lastDueMs: number | null;
  readonly nextRunAt: number | null;
  readonly now: number;
}
