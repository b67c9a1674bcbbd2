// The line between an actor and the store: late, unreliable, and written down. Hints that work is due come over it too,
// some of them never, and heartbeats that the store sends for its actor.
import { isRedriveError, RedriveError } from "../../src/core/errors.ts";
import type { ExpiredRequest, Pulse, PulseListener, PulseRequest, Store } from "../../src/store/store.ts";
import { type Verb, VERB_NAMES } from "../../src/store/verb-facts.ts";
import type { OpenCall, Scribe } from "../support/history/scribe.ts";
import { type FaultPlan, isOut, rollFault, type StoreClock } from "./faults.ts";
import type { Actor, World } from "./world.ts";

/** What a line is laid through. */
export interface Ground {
  readonly world: World;
  readonly faults: FaultPlan;
  readonly scribe: Scribe;
  readonly clock: StoreClock;
}

const LATENCY_MS = 6;
const LOST_HINTS = 0.2;
const UNWRITTEN: OpenCall = { answered: () => {}, failed: () => {}, lost: () => {} };

/** The store as one actor reaches it. */
export function reachStore(store: Store, actor: Actor, ground: Ground): Store {
  const { world, faults: plan, scribe, clock } = ground;
  const dice = world.dice(`line:${actor.name}`);
  const open = new Set<OpenCall>();
  let brokenAt = world.now;
  actor.onEnd(() => {
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
    if (verb === "expired") markJudging(args[0] as unknown as ExpiredRequest, actor, ground, brokenAt);
    const call = scribe.sent(actor.name, verb, args as unknown as Parameters<Store[Verb]>) ?? UNWRITTEN;
    if (call !== UNWRITTEN) open.add(call);
    const fault = rollFault(plan, dice, verb, world.now);
    const answer = (act: () => void): void => {
      if (fault === "pause-after") actor.pause(beyondLease());
      actor.later(latency(), () => {
        open.delete(call);
        act();
      });
    };
    const refuse = (error: unknown, note: (code: string) => void): void => {
      if (!isRedriveError(error)) return world.fail(error);
      answer(() => {
        brokenAt = world.now;
        note(error.code);
        reject(error);
      });
    };
    const reach = (): void => {
      const storeTime = clock.now();
      const work = (store[verb] as (...given: never[]) => Promise<unknown>)(...args);
      world.hold(work).then(
        (result) => {
          if (fault === "crash-after") return actor.crash();
          if (fault === "error-after") return refuse(unavailable(), call.lost);
          answer(() => {
            call.answered(result, storeTime);
            resolve(result);
          });
        },
        (error: unknown) => refuse(error, call.failed),
      );
    };
    if (fault === "crash-before") return actor.crash();
    if (fault === "error-before") return refuse(unavailable(), call.failed);
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
  const verbs = Object.fromEntries(VERB_NAMES.map((name) => [name, verb(name)])) as unknown as Pick<Store, Verb>;
  const onWake: Store["onWake"] = (listener) => {
    let coming = false;
    const quiet = store.onWake(() => {
      if (coming || !actor.alive || isOut(plan, world.now) || dice.chance(LOST_HINTS)) return;
      coming = true;
      actor.later(latency(), () => {
        coming = false;
        listener();
      });
    });
    actor.onEnd(quiet);
    return quiet;
  };
  return { ...verbs, name: store.name, remote: store.remote, describe: store.describe, onWake, close: async () => {} };
}

/** The same line to a store that beats for its actor and that is far away, as Postgres does and is. */
export function withPulse(store: Store, { system }: Actor): Store {
  const pulse = ({ worker, leaseMs, everyMs, stallMs }: PulseRequest, listener: PulseListener): Pulse => {
    let shown = system.monotonic();
    let startedThrough = 0;
    let takeBack = system.after(everyMs, beat);
    let stopped = false;
    function beat(): void {
      if (system.monotonic() - shown > stallMs) return again();
      store.beat({ worker, leaseMs, startedThrough }).then(
        (answer) => again(() => listener.answer(answer)),
        (error: Error) => again(() => listener.failure(error)),
      );
    }
    function again(tell = (): void => {}): void {
      if (stopped) return;
      takeBack = system.after(everyMs, beat);
      tell();
    }
    return {
      show(through) {
        shown = system.monotonic();
        startedThrough = through;
      },
      stop() {
        stopped = true;
        takeBack();
      },
    };
  };
  return { ...store, remote: true, pulse };
}

/** Writes down for how long a reaper that is about to judge leases has been in contact, by a clock that did not step. */
function markJudging(
  { lapsedBy = 0, after = 0, late }: ExpiredRequest,
  actor: Actor,
  ground: Ground,
  brokenAt: number,
): void {
  // One that names no worker by its lease judges none: it finds runs of workers that others gave up.
  if (after > 0 || late?.length === 0) return;
  const { world, scribe, faults, clock } = ground;
  const steppedAt = clock.step && lapsedBy > clock.step.from ? clock.step.at : 0;
  scribe.write(actor.name, "mark", "ok", {
    answer: "judging",
    delayMs: world.now - Math.max(brokenAt, steppedAt),
    leaseMs: faults.leaseMs,
  });
}

function unavailable(): RedriveError {
  return new RedriveError("store_unavailable", "The simulated store does not answer.");
}
