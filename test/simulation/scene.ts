// What the actors of one simulation share: the world, the store behind its unreliable lines, the settings, and what
// producers have told operators about. Also the supervisor that starts an actor again when it crashed or was done.
import { exponential } from "../../src/core/backoff.ts";
import { isRedriveError } from "../../src/core/errors.ts";
import type { Store } from "../../src/store/store.ts";
import type { createWorker } from "../../src/worker/worker.ts";
import type { Dice } from "./dice.ts";
import { type Ground, reachStore } from "./line.ts";
import type { Processes } from "./processes.ts";
import type { Actor } from "./world.ts";

/** How long everything takes, in virtual milliseconds, and how many of each there are. */
export interface Settings {
  readonly leaseMs: number;
  readonly beatMs: number;
  readonly pollMs: number;
  /** What workers are told instead, to plant a defect. */
  readonly workerPollMs?: number;
  readonly concurrency: number;
  readonly producers: number;
  readonly workers: number;
  readonly operators: number;
  /** The share of runs that take long. */
  readonly longRuns: number;
  /** Requests that each producer makes. */
  readonly requests: number;
  /** The share of jobs whose key stands for one of them only while it waits or runs. */
  readonly modes: number;
  /** Programs on the one store; the workers of each know only their own types. */
  readonly programs: 1 | 2;
  /** The share of workers that run a job with its last crash left in a child; the others run it themselves. */
  readonly isolated: number;
  /** Whether the breaker of a service opens after a few failures; otherwise it hardly ever does. */
  readonly fragile: boolean;
  /** Whether a deploy replaces every worker in the storm by one whose breakers need fewer probes. */
  readonly deploys?: boolean;
  /** Whether workers drive redrive runs, and an operator starts, changes and ends them. */
  readonly runs: boolean;
  /** How often the clock of the store steps, ahead or back; without a word the dice of the faults decide. */
  readonly clockSteps?: number;
  /** How long faults last. */
  readonly stormMs: number;
  /** How long the world may take to heal afterwards. */
  readonly healMs: number;
}

/** Worlds of every size, most of them small, so that a thousand take minutes; `more` decides what came later. */
export function rollSettings(dice: Dice, more: Dice): Settings {
  return {
    modes: more.pick([0, 0.3, 0.6]),
    programs: more.pick([1, 1, 2]),
    isolated: more.pick([0, 0, 0.5, 1]),
    fragile: more.chance(0.3),
    runs: more.chance(0.3),
    leaseMs: 2000,
    beatMs: dice.pick([300, 500, 600]),
    pollMs: dice.pick([150, 250, 500]),
    concurrency: dice.pick([1, 2, 3, 5]),
    producers: dice.between(1, 2),
    workers: dice.pick([2, 2, 3, 4]),
    operators: dice.between(1, 2),
    requests: dice.pick([4, 8, 12, 16]),
    stormMs: dice.pick([5000, 8000, 12_000]),
    healMs: 90_000,
    longRuns: 0.06,
  };
}

/** What one simulation is played with. */
export interface Scene extends Ground {
  readonly store: Store;
  readonly settings: Settings;
  readonly processes: Processes;
  /** Makes a worker of its parts. */
  readonly hire: typeof createWorker;
  /** Puts something between a worker and its line, to plant a defect. */
  readonly sabotage: (store: Store, actor: Actor) => Store;
  /** When faults end. */
  readonly calmAt: number;
  /** Ids that were enqueued, for operators and observers. */
  readonly known: string[];
  /** Ids whose enqueue was confirmed; only these may be removed, because a repeated enqueue would bring others back. */
  readonly confirmed: string[];
  /** Actors that still have something to do before the world can come to rest. */
  busy: number;
}

/** Job types, queues, tenants and services of the simulation. */
export const NAMES = {
  types: ["mail", "thumbnail", "invoice"],
  queues: ["default", "bulk"],
  tenants: [null, "acme", "zeta"],
  services: [null, "media"],
  groups: ["a", "b", "two"],
} as const;

/** The types that the workers of a program know. */
export const PROGRAMS: readonly (readonly string[])[] = [
  ["mail", "thumbnail"],
  ["invoice", "killer"],
];

/** The type whose runs kill their process. */
export const KILLER = "killer";

/** Delays short enough that a job can use up its attempts within a storm. */
export const BACKOFF = exponential({ initial: 100, multiplier: 2, max: 1500, jitter: "full" });

/** Says that the actor is done and somebody new is to take its place. */
export type Again = "again";

/** A body that an actor plays, with the store as that actor reaches it. */
export type Role = (actor: Actor, store: Store, scene: Scene) => Promise<void | Again>;

/** Plays a role, and again under a new name each time the actor crashes or asks for it. */
export function play(scene: Scene, name: string, role: Role, life = 1): void {
  const { world, store, settings } = scene;
  world.spawn(`${name}.${life}`, async (actor) => {
    // Supervisors take their time; a crash of one role never waits for another.
    const replace = (): void => {
      scene.busy++;
      world.later(actor.dice.between(20, 2 * settings.leaseMs), () => {
        play(scene, name, role, life + 1);
        scene.busy--;
      });
    };
    actor.onCrash(replace);
    if (actor.dice.chance(0.3)) actor.skew(actor.dice.between(-3_600_000, 3_600_000));
    if ((await role(actor, reachStore(store, actor, scene), scene)) !== "again") return;
    actor.exit();
    replace();
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
