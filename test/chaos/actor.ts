// The program of every actor process: `actor.js NAME ROLE [PREDECESSOR]`. It plays its role until the conductor says
// `calm`, ends when the role is over, and never outlives the conductor or the time of the run.
import { openStore } from "../../src/open-store.ts";
import type { Store } from "../../src/store/store.ts";
import { createDice, type Dice } from "../simulation/dice.ts";
import type { Busy } from "./busy.ts";
import { operate } from "./operator.ts";
import { produce } from "./producer.ts";
import { told } from "./told.ts";
import { work } from "./work.ts";

/** What a role is played with. */
export interface Stage {
  readonly store: Store;
  readonly dice: Dice;
  readonly name: string;
  /** The name of the life before this one, where there was one. */
  readonly predecessor: string | null;
  /** Fires when faults are over and the role should come to its end. */
  readonly calm: AbortSignal;
  /** Tells the conductor that the role has begun. */
  readonly ready: () => void;
  /** Tells the conductor that a claim which was sent then has taken work. */
  readonly busy: (sentAt: number) => void;
}

const ROLES = { worker: work, producer: produce, operator: operate };
/** A role of an actor process. */
export type Role = keyof typeof ROLES;

const [, , name = "", role = "", predecessor = ""] = process.argv;
const calm = new AbortController();
process.on("message", () => calm.abort());
process.once("disconnect", () => process.exit(3));
setTimeout(() => process.exit(4), Math.max(1, Number(told("until")) - Date.now())).unref();

const store = await openStore(told("store"));
await ROLES[role as Role]({
  store,
  name,
  dice: createDice(Number(told("seed")), name),
  predecessor: predecessor === "" ? null : predecessor,
  calm: calm.signal,
  ready: () => void process.send?.("ready"),
  busy: (sentAt) => void process.send?.({ sentAt, answeredAt: Date.now() } satisfies Busy),
});
await store.close();
process.exit(0);
