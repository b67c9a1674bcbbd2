// The faults of a chaos run, in bursts in which they follow and meet each other, at times that follow from the seed:
// processes are killed and halted, the clock of the store steps, and where there is a server it is killed and the network
// before it fails.
import type { Dice } from "../simulation/dice.ts";
import { ownScribe } from "./file-scribe.ts";
import { networkFaults } from "./network-faults.ts";
import type { Scene } from "./scene.ts";
import { sleep } from "./told.ts";
import type { Actor, Troupe } from "./troupe.ts";
import { LONGEST_LEASE_MS } from "./work.ts";

/** How many faults of each kind are wanted. */
export interface Wanted {
  readonly kills: number;
  readonly pauses: number;
  readonly serverKills: number;
  readonly proxyFaults: number;
  readonly clockSteps: number;
}

/** A kind of fault. */
export interface Fault {
  readonly kind: string;
  /** How many are wanted. */
  readonly wanted: number;
  /** Faults of one place do not overlap; null for those that may. */
  readonly place: string | null;
  /** Begins and ends one; false if there was nothing to hit. */
  happen(): Promise<boolean>;
}

/** What a storm needs. */
export interface StormOptions {
  readonly wanted: Wanted;
  readonly troupe: Troupe;
  readonly scene: Scene;
  readonly dice: Dice;
  /** When to stop although there were not enough. */
  readonly until: number;
  /** A fault of this kind is over. */
  readonly onOver: (kind: string) => void;
  /** Resolves when everybody has come back to work, or will not. */
  readonly calm: () => Promise<void>;
}

/** Faults in a burst. */
const BURST_MOST = 6;

/** How many faults there were of each kind, by the names of the kinds. */
export type Done = Readonly<Record<string, number>>;

/** Faults until there were enough of them, or the time is up: bursts of a few, each followed by calm. */
export async function storm(options: StormOptions): Promise<Done> {
  const { wanted, scene, dice, until, calm } = options;
  const faults = [
    ...processFaults(options),
    clockFault(options),
    ...(scene.server ? networkFaults(wanted, scene.server, dice) : []),
  ];
  const done = new Map(faults.map(({ kind }) => [kind, 0]));
  const left = ({ kind, wanted: most }: Fault): number => most - (done.get(kind) ?? 0);
  while (faults.some((fault) => left(fault) > 0) && Date.now() < until) {
    const underWay = new Map<Promise<void>, Fault>();
    for (let most = dice.between(1, BURST_MOST); most > 0; most--) {
      await sleep(dice.between(100, 1_400));
      const begun = [...underWay.values()];
      const open = (fault: Fault): number => left(fault) - begun.filter((other) => other === fault).length;
      const fault = chosen(faults, (each) => (mayBegin(each, begun) ? open(each) : 0), dice);
      if (fault === null) continue;
      const over: Promise<void> = happen(fault, done, options).finally(() => underWay.delete(over));
      underWay.set(over, fault);
    }
    await Promise.all(underWay.keys());
    await calm();
  }
  return Object.fromEntries(done);
}

async function happen({ kind, happen: begin }: Fault, done: Map<string, number>, { onOver }: StormOptions) {
  if (!(await begin())) return;
  done.set(kind, (done.get(kind) ?? 0) + 1);
  onOver(kind);
}

/** Some places have room for one fault at a time. */
function mayBegin({ place }: Fault, begun: readonly Fault[]): boolean {
  return place === null || begun.every((other) => other.place !== place);
}

/** A fault of which some are left, the more likely the more there are. */
function chosen(faults: readonly Fault[], left: (fault: Fault) => number, dice: Dice): Fault | null {
  const all = faults.reduce((sum, fault) => sum + Math.max(0, left(fault)), 0);
  let rest = dice.random() * all;
  for (const fault of faults) {
    rest -= Math.max(0, left(fault));
    if (rest < 0) return fault;
  }
  return null;
}

/** Far enough that every lease ends by it, or lasts for twice its time. */
const STEP_MOST_MS = 2 * LONGEST_LEASE_MS;

/** The clock of the store is put ahead or back, never far from the right time. */
function clockFault({ wanted, scene, dice }: StormOptions): Fault {
  let ahead = 0;
  return {
    kind: "clock steps",
    wanted: wanted.clockSteps,
    // A server that is killed meanwhile could not be told.
    place: "server",
    async happen() {
      const next = dice.between(-STEP_MOST_MS, STEP_MOST_MS);
      const mark = (back: string): void => {
        ownScribe().write("conductor", "mark", "ok", { answer: next < ahead ? back : "clock steps ahead" });
      };
      // Twice, because the step lies in between.
      mark("clock_steps_back");
      await scene.stepClock(next);
      mark("clock_back");
      ahead = next;
      return true;
    },
  };
}

function processFaults({ wanted, troupe, dice }: StormOptions): Fault[] {
  return [
    {
      kind: "kills",
      wanted: wanted.kills,
      place: null,
      async happen() {
        const victim = killVictim(troupe, dice);
        return victim !== null && troupe.kill(victim);
      },
    },
    {
      kind: "pauses",
      wanted: wanted.pauses,
      place: null,
      async happen() {
        const victim = pauseVictim(troupe, dice);
        return victim !== null && halt(troupe, victim, dice);
      },
    },
  ];
}

/** Mostly those at work; sometimes one that is only starting, or one that is halted. */
function killVictim(troupe: Troupe, dice: Dice): Actor | null {
  const mortal = troupe.actors.filter(({ child, role, doomed }) => child !== null && !doomed && role !== "operator");
  const likely = mortal.filter(({ ready, halted }) => (ready && !halted) || dice.chance(0.1));
  // Somebody must be left to take over, or the time until that happens says nothing.
  const role = dice.chance(0.8) && awake(troupe).length > 1 ? "worker" : "producer";
  const some = likely.filter((actor) => actor.role === role);
  return some.length === 0 ? null : dice.pick(some);
}

/** A worker, as long as half of them stay awake. */
function pauseVictim(troupe: Troupe, dice: Dice): Actor | null {
  const some = awake(troupe);
  const all = troupe.actors.filter(({ role }) => role === "worker").length;
  return some.length * 2 <= all ? null : dice.pick(some);
}

function awake(troupe: Troupe): Actor[] {
  return troupe.up("worker").filter(({ halted, doomed }) => !halted && !doomed);
}

async function halt(troupe: Troupe, actor: Actor, dice: Dice): Promise<boolean> {
  const { life } = actor;
  const forMs = LONGEST_LEASE_MS + dice.between(400, 2_500);
  if (!troupe.halt(actor)) return false;
  await sleep(forMs);
  return troupe.goOn(actor, life);
}
