// What can go wrong between an actor and its store. Every call is a fault point: it may fail before or after its
// effect, arrive late, or meet the crash or the pause of its actor. Faults end at a given time, so that the world heals.
import { isRedriveError, RedriveError } from "../../src/core/errors.ts";
import type { Store } from "../../src/store/store.ts";
import type { Verb } from "../../src/store/verbs.ts";
import type { Scribe } from "../support/history/scribe.ts";
import type { Dice } from "./dice.ts";
import type { Actor, World } from "./world.ts";

const KINDS = [
  "error-before",
  "error-after",
  "delay",
  "crash-before",
  "crash-after",
  "pause-before",
  "pause-after",
] as const;
/** What goes wrong with one call. */
export type Fault = (typeof KINDS)[number];

/** The clock of the store, which can be put ahead or back. */
export interface StoreClock {
  ahead: number;
  now(): number;
}

/** How much goes wrong, and until when. */
export interface FaultPlan {
  /** Probability of each fault at each call. */
  readonly rates: Readonly<Record<Fault, number>>;
  /** Times at which the store answers nobody. */
  readonly outages: readonly { readonly from: number; readonly until: number }[];
  /** Times at which the clock of the store steps, and how far. */
  readonly clockSteps: readonly { readonly at: number; readonly ms: number }[];
  /** Nothing goes wrong from here on. */
  readonly until: number;
  /** Delays and pauses reach beyond this. */
  readonly leaseMs: number;
}

const VERBS = Object.keys({
  migrate: 0,
  enqueue: 0,
  get: 0,
  list: 0,
  count: 0,
  cancel: 0,
  reschedule: 0,
  lanes: 0,
  claim: 0,
  settle: 0,
  register: 0,
  beat: 0,
  expired: 0,
  leave: 0,
  workers: 0,
  deadLetters: 0,
  history: 0,
  redrive: 0,
  remove: 0,
  control: 0,
  pause: 0,
  resume: 0,
  setService: 0,
  prune: 0,
} satisfies Record<Verb, 0>) as Verb[];

const LATENCY_MS = 6;

/** A plan that follows from the dice: some worlds are calm, some are wild, some lose their store for a while. */
export function rollFaultPlan(dice: Dice, from: number, until: number, leaseMs: number): FaultPlan {
  const level = dice.pick([0, 0.004, 0.01, 0.02, 0.04]);
  const weight: Record<Fault, number> = {
    "error-before": 1,
    "error-after": 1,
    delay: 0.2,
    "crash-before": 0.12,
    "crash-after": 0.12,
    "pause-before": 0.08,
    "pause-after": 0.08,
  };
  const rates = Object.fromEntries(KINDS.map((kind) => [kind, level * weight[kind]])) as Record<Fault, number>;
  const outages = Array.from({ length: level === 0 ? 0 : dice.pick([0, 0, 1, 2]) }, () => {
    const start = dice.between(from, until);
    return { from: start, until: Math.min(until, start + dice.between(100, 3 * leaseMs)) };
  });
  const clockSteps = Array.from({ length: level > 0 && dice.chance(0.25) ? 3 : 0 }, () => {
    return { at: dice.between(from, until), ms: dice.between(-2 * leaseMs, 2 * leaseMs) };
  });
  return { rates, outages, clockSteps, until, leaseMs };
}

/** What lies between actors and the store. */
export interface Line {
  readonly world: World;
  readonly plan: FaultPlan;
  readonly scribe: Scribe;
  readonly clock: StoreClock;
}

/** Makes the clock of the store step when the plan says so. */
export function stepClock({ world, plan, clock, scribe }: Line): void {
  for (const { at, ms } of plan.clockSteps) {
    world.later(at - world.now, () => {
      clock.ahead += ms;
      if (ms < 0) scribe.write("test", "mark", "ok", { answer: "clock_back" });
    });
  }
}

/** The store as one actor reaches it: late, unreliable, and written down. */
export function reachStore(store: Store, actor: Actor, line: Line): Store {
  const { world, plan, scribe, clock } = line;
  const dice = world.dice(`line:${actor.name}`);
  const open = new Set<{ lost(): void }>();
  actor.onCrash(() => {
    for (const call of open) call.lost();
  });
  const latency = (): number => dice.between(0, LATENCY_MS);
  const beyondLease = (): number => dice.between(plan.leaseMs, 2.5 * plan.leaseMs);

  const send = (
    verb: Verb,
    args: never[],
    resolve: (answer: unknown) => void,
    reject: (error: unknown) => void,
  ): void => {
    const call = scribe.sent(actor.name, verb, args as unknown as Parameters<Store[Verb]>) ?? {
      answered: () => {},
      failed: () => {},
      lost: () => {},
    };
    open.add(call);
    const fault = rollFault(plan, dice, world.now);
    const answer = (act: () => void): void => {
      if (fault === "pause-after") actor.pause(beyondLease());
      actor.later(latency(), () => {
        open.delete(call);
        act();
      });
    };
    const refuse = (error: unknown): void => {
      if (!isRedriveError(error)) return world.fail(error);
      answer(() => {
        call.failed(error.code);
        reject(error);
      });
    };
    const reach = (): void => {
      const storeTime = clock.now();
      const work = (store[verb] as (...given: never[]) => Promise<unknown>)(...args);
      world.hold(work).then((result) => {
        if (fault === "crash-after") return actor.crash();
        answer(() => {
          if (fault === "error-after") {
            call.lost();
            return reject(unavailable());
          }
          call.answered(result, storeTime);
          resolve(result);
        });
      }, refuse);
    };
    if (fault === "crash-before") return actor.crash();
    if (fault === "error-before") return refuse(unavailable());
    if (fault === "pause-before") {
      actor.pause(beyondLease());
      actor.later(latency(), reach);
    } else world.later(fault === "delay" ? beyondLease() : latency(), reach);
  };

  const verb =
    (name: Verb) =>
    (...args: never[]): Promise<unknown> =>
      new Promise((resolve, reject) => {
        if (actor.alive) send(name, args, resolve, reject);
      });
  const verbs = Object.fromEntries(VERBS.map((name) => [name, verb(name)])) as unknown as Pick<Store, Verb>;
  return { ...verbs, name: store.name, onWake: () => () => {}, close: async () => {} };
}

function rollFault(plan: FaultPlan, dice: Dice, now: number): Fault | null {
  if (now >= plan.until) return null;
  if (plan.outages.some((outage) => outage.from <= now && now < outage.until)) return "error-before";
  let roll = dice.random();
  for (const kind of KINDS) {
    roll -= plan.rates[kind];
    if (roll < 0) return kind;
  }
  return null;
}

function unavailable(): RedriveError {
  return new RedriveError("store_unavailable", "The simulated store does not answer.");
}
