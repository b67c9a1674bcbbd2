// What the actors of one simulation share: the world, the store behind its unreliable lines, the settings, and what
// producers have told operators about. Also the supervisor that starts a crashed actor again.
import { exponential } from "../../src/core/backoff.ts";
import { isRedriveError } from "../../src/core/errors.ts";
import type { RetryPolicy } from "../../src/core/verdict.ts";
import type { Store } from "../../src/store/store.ts";
import type { Scribe } from "../support/history/scribe.ts";
import { type FaultPlan, reachStore, type StoreClock } from "./faults.ts";
import type { Actor, World } from "./world.ts";

/** How long everything takes, in virtual milliseconds, and how many of each there are. */
export interface Settings {
  readonly leaseMs: number;
  readonly beatMs: number;
  readonly pollMs: number;
  readonly concurrency: number;
  readonly prefetch: number;
  readonly producers: number;
  readonly workers: number;
  readonly reapers: number;
  readonly operators: number;
  /** Requests that each producer makes. */
  readonly requests: number;
  /** How long faults last. */
  readonly stormMs: number;
  /** How long the world may take to heal afterwards. */
  readonly healMs: number;
}

/** A size that shows everything and still takes a fraction of a second. */
export const SETTINGS: Settings = {
  leaseMs: 2000,
  beatMs: 500,
  pollMs: 250,
  concurrency: 3,
  prefetch: 3,
  producers: 2,
  workers: 3,
  reapers: 2,
  operators: 2,
  requests: 16,
  stormMs: 15_000,
  healMs: 90_000,
};

/** What one simulation is played with. */
export interface Scene {
  readonly world: World;
  readonly scribe: Scribe;
  readonly store: Store;
  readonly clock: StoreClock;
  readonly faults: FaultPlan;
  readonly settings: Settings;
  readonly policy: RetryPolicy;
  /** When faults end. */
  readonly calmAt: number;
  /** Ids that were enqueued, for operators and observers. */
  readonly known: string[];
  /** Ids whose enqueue was confirmed; only these may be removed, because a repeated enqueue would bring others back. */
  readonly confirmed: string[];
  /** Workers whose process is known to be gone. */
  readonly gone: Set<string>;
  /** Actors that still have something to do before the world can come to rest. */
  busy: number;
}

/** Job types, queues, tenants and services of the simulation. */
export const NAMES = {
  types: ["mail", "thumbnail", "invoice"],
  queues: ["default", "bulk"],
  tenants: [null, "acme", "zeta"],
  services: [null, "media"],
} as const;

/** Delays short enough that a job can use up its attempts within a storm. */
export const POLICY: RetryPolicy = {
  backoff: exponential({ initial: 100, multiplier: 2, max: 1500, jitter: "full" }),
  stuckRetryMs: null,
};

/** A body that an actor plays, with the store as that actor reaches it. */
export type Role = (actor: Actor, store: Store, scene: Scene) => Promise<void>;

/** Plays a role, and again under a new name each time the actor crashes. */
export function play(scene: Scene, name: string, role: Role, life = 1): void {
  const { world, store, faults: plan, scribe, clock } = scene;
  world.spawn(`${name}.${life}`, (actor) => {
    // Supervisors take their time; a crash of one role never waits for another.
    actor.onCrash(() =>
      world.later(actor.dice.between(20, 2 * scene.settings.leaseMs), () => play(scene, name, role, life + 1)),
    );
    if (actor.dice.chance(0.3)) actor.skew(actor.dice.between(-3_600_000, 3_600_000));
    return role(actor, reachStore(store, actor, { world, plan, scribe, clock }), scene);
  });
}

/** Repeats a call until it is answered. */
export async function persist<T>(actor: Actor, call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isRedriveError(error, "store_unavailable")) throw error;
      await actor.system.sleep(actor.dice.between(50, 400));
    }
  }
}

/** The answer, or null when there was none. */
export async function attempt<T>(call: () => Promise<T>): Promise<T | null> {
  try {
    return await call();
  } catch (error) {
    if (!isRedriveError(error, "store_unavailable")) throw error;
    return null;
  }
}
