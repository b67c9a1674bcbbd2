// A deterministic world: virtual time, seeded dice, and actors that can be crashed, paused and given a wrong clock.
// Time moves only when every actor waits. One thing happens at a time, and everything it sets in motion runs to its
// next wait before the next thing happens; so the same seed always gives the same history.
import type { System } from "../../src/system/system.ts";
import { Agenda, type Entry } from "./agenda.ts";
import { createDice, type Dice } from "./dice.ts";

/** When the world begins: an ordinary day, so that stored instants look like instants. */
export const GENESIS = 1_700_000_000_000;

/** Real time: what takes longer than this hangs. */
const MOST_REAL_MS = 30_000;
/** How many things happen before Node's own event loop has a turn; in between only promises and ticks are served. */
const EVENTS_PER_TURN = 50;

/** One process of the world. */
export interface Actor {
  readonly name: string;
  /** Clock, timers and dice of this actor alone. */
  readonly system: System;
  readonly dice: Dice;
  readonly alive: boolean;
  /** Ends it: nothing it waits for ever happens. */
  crash(): void;
  /** Ends it because it is done; as final as a crash, but none. */
  exit(): void;
  /** Holds everything of this actor for a while. */
  pause(ms: number): void;
  /** Makes its clock wrong by this much. */
  skew(ms: number): void;
  /** Calls back when it crashes. */
  onCrash(callback: () => void): void;
  /** Calls back when it ends, by a crash or by itself. */
  onEnd(callback: () => void): void;
  /** Something that happens to this actor after a delay: late while it is paused, never once it crashed. */
  later(ms: number, act: () => void): () => void;
}

/** The world and its clock. */
export interface World {
  readonly seed: number;
  /** Virtual epoch milliseconds. */
  readonly now: number;
  readonly stats: { events: number; crashes: number; pauses: number };
  dice(name: string): Dice;
  /** Starts an actor; an error that leaves its body fails the run. */
  spawn(name: string, body: (actor: Actor) => Promise<void>): Actor;
  /** Something that happens to nobody in particular. */
  later(ms: number, act: () => void): void;
  /** Holds time still until the promise settles; for real work such as a call into a store. */
  hold<T>(work: Promise<T>): Promise<T>;
  /** Ends the run with this error. */
  fail(error: unknown): void;
  /** Lets time pass up to this instant, or until `done` says so; throws what any actor threw. */
  run(until: number, done?: () => boolean): Promise<void>;
  /** Ends every actor. */
  end(): void;
}

/** A world in which everything follows from the seed. */
export function createWorld(seed: number): World {
  const agenda = new Agenda<ActorState>();
  const actors: ActorState[] = [];
  const stats = { events: 0, crashes: 0, pauses: 0 };
  let now = GENESIS;
  let order = 0;
  let busy = 0;
  let onIdle = (): void => undefined;
  let failure: { readonly error: unknown } | null = null;

  const schedule = (ms: number, owner: ActorState | null, act: () => void): (() => void) => {
    const entry: Entry<ActorState> = {
      at: now + Math.max(0, Math.ceil(ms)),
      order: order++,
      owner,
      act,
      dropped: false,
    };
    agenda.push(entry);
    return () => {
      entry.dropped = true;
    };
  };

  const fail = (error: unknown): void => {
    failure ??= { error };
  };

  /** Resolves when the real work that is under way has ended. */
  const idle = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const late = new Error(`Seed ${seed}: a store call did not finish within ${MOST_REAL_MS} ms.`);
      const timer = setTimeout(() => reject(late), MOST_REAL_MS);
      onIdle = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  /** Runs everything that is ready, then the real work somebody started. */
  const settle = async (): Promise<void> => {
    // A tick comes when no promise has anything left to do, which is far cheaper to wait for than the event loop.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    let hasTurn = stats.events % EVENTS_PER_TURN === 0;
    while (hasTurn || busy > 0) {
      if (busy > 0) await idle();
      // What ended may have set more in motion.
      await new Promise<void>((resolve) => setImmediate(resolve));
      hasTurn = false;
    }
    if (failure) throw failure.error;
  };

  return {
    seed,
    stats,
    get now() {
      return now;
    },
    dice: (name) => createDice(seed, name),
    spawn(name, body) {
      const actor = createActor(name, createDice(seed, name), () => now, schedule, stats);
      actors.push(actor);
      body(actor).catch((error: unknown) => {
        if (actor.alive) fail(error);
      });
      return actor;
    },
    later: (ms, act) => void schedule(ms, null, act),
    fail,
    async hold(work) {
      busy++;
      try {
        return await work;
      } finally {
        if (--busy === 0) onIdle();
      }
    },
    async run(until, done = () => false) {
      await settle();
      while (!done()) {
        const next = agenda.peek();
        if (next === undefined || next.at > until) break;
        agenda.pop();
        if (next.dropped || (next.owner !== null && !next.owner.alive)) continue;
        if (next.owner !== null && next.owner.heldUntil > next.at) {
          next.at = next.owner.heldUntil;
          agenda.push(next);
          continue;
        }
        now = next.at;
        stats.events++;
        next.act();
        await settle();
      }
      if (!done()) now = Math.max(now, until);
    },
    end() {
      for (const actor of actors) actor.stop();
    },
  };
}

interface ActorState extends Actor {
  readonly heldUntil: number;
  stop(): void;
}

type Schedule = (ms: number, owner: ActorState | null, act: () => void) => () => void;

function createActor(
  name: string,
  dice: Dice,
  clock: () => number,
  schedule: Schedule,
  stats: { crashes: number; pauses: number },
): ActorState {
  const crashed: (() => void)[] = [];
  const ended: (() => void)[] = [];
  let alive = true;
  let heldUntil = 0;
  let skewMs = 0;
  const actor: ActorState = {
    name,
    dice,
    get alive() {
      return alive;
    },
    get heldUntil() {
      return heldUntil;
    },
    system: createSystem(
      dice,
      () => clock() + skewMs,
      clock,
      (ms, act) => actor.later(ms, act),
    ),
    crash() {
      if (!alive) return;
      stats.crashes++;
      actor.exit();
      for (const callback of crashed) callback();
    },
    exit() {
      if (!alive) return;
      alive = false;
      for (const callback of ended) callback();
    },
    stop() {
      alive = false;
    },
    pause(ms) {
      stats.pauses++;
      heldUntil = Math.max(heldUntil, clock() + ms);
    },
    skew(ms) {
      skewMs = ms;
    },
    onCrash: (callback) => void crashed.push(callback),
    onEnd: (callback) => void ended.push(callback),
    later: (ms, act) => (alive ? schedule(ms, actor, act) : () => {}),
  };
  return actor;
}

function createSystem(
  dice: Dice,
  now: () => number,
  steady: () => number,
  later: (ms: number, act: () => void) => () => void,
): System {
  const bornAt = steady();
  let lastId = 0;
  return {
    now,
    monotonic: () => steady() - bornAt,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return void later(0, resolve);
        const wake = (): void => {
          drop();
          later(0, resolve);
        };
        const drop = later(ms, () => {
          signal?.removeEventListener("abort", wake);
          resolve();
        });
        signal?.addEventListener("abort", wake, { once: true });
      }),
    after: later,
    random: dice.random,
    jobId() {
      // Ascending within the process even when its clock steps back, as a real version 7 generator does it.
      lastId = Math.max(lastId + 1, now());
      const time = lastId.toString(16).padStart(12, "0");
      return `${time.slice(0, 8)}-${time.slice(8)}-7${dice.hex(3)}-8${dice.hex(3)}-${dice.hex(12)}`;
    },
    nonce: () => dice.hex(32),
    workerId: () => `w-${dice.hex(10)}`,
    actor: () => "simulation",
  };
}
