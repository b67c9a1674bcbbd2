// Steps statements against a real server, in an order that dice choose. Every statement of an actor waits before it is sent;
// when all actors wait, have ended, or are blocked by a lock in the server, one of those that wait is let go. So a seed
// plays the same order of statements again, as far as the server lets it.
import { AsyncLocalStorage } from "node:async_hooks";
import pg from "pg";
import type { Dice } from "../simulation/dice.ts";

/** A statement that was let go. */
export interface Step {
  readonly actor: string;
  /** What the actor was doing: a verb of the store. */
  readonly verb: string;
  readonly statement: string;
  /** What was written can be seen by others after it. */
  readonly commits: boolean;
}

/** Changes what is sent, or what comes back, to plant a defect. */
export type Tamper = (statement: string, text: string) => string;

interface Parked extends Step {
  readonly go: () => void;
}

/** Somebody whose statements are stepped. */
interface Actor {
  readonly name: string;
  verb: string;
  isOver: boolean;
  /** Its backends that are in a transaction. */
  readonly within: Set<number>;
  readonly parked: Set<Parked>;
  /** The backends that work on a statement of it, and which one. */
  readonly asking: Map<number, string>;
}

type Query = (this: pg.Client, config: pg.QueryConfig | string, ...rest: unknown[]) => Promise<unknown>;

const acting = new AsyncLocalStorage<{ readonly actor: Actor; readonly stepper: Stepper }>();
const prototype = pg.Client.prototype as unknown as { query: Query };
const original = prototype.query;
prototype.query = function query(config, ...rest) {
  const found = acting.getStore();
  if (!found) return original.call(this, config, ...rest);
  const given = typeof config === "string" ? { text: config } : config;
  return found.stepper.ask(found.actor, this, given, rest);
};

/** What a statement is called: by its name, or by its first words. */
function nameOf({ name, text }: pg.QueryConfig): string {
  if (name !== undefined) return name;
  const words = text.trim().split(/[\s(]+/);
  return words[0] === "insert" || words[0] === "delete"
    ? `${words[0]} ${words[2]?.split(".").at(-1)}`
    : words.slice(0, 2).join(" ");
}

/** Statements that wait for so long in the server are taken for blocked. */
const LOOK_AGAIN_MS = 2;
/** No order of statements takes longer than this. */
const PATIENCE_MS = 60_000;

const BLOCKED = `select w.pid from pg_stat_activity w where w.wait_event_type = 'Lock' and exists (
  select from pg_stat_activity h where h.pid = any (pg_blocking_pids(w.pid)) and h.backend_type = 'client backend')`;

const DEADLOCK = "40P01";

/** Lets statements go one by one. */
export class Stepper {
  readonly steps: Step[] = [];
  /** Statements that the server has ended because transactions waited for each other in a circle. */
  readonly circles: string[] = [];
  readonly #dice: Dice;
  readonly #monitor: pg.Client;
  readonly #tamper: Tamper;
  readonly #actors: Actor[] = [];
  /** Pairs of statements that have followed one another. */
  readonly #followed = new Set<string>();

  constructor(dice: Dice, monitor: pg.Client, tamper: Tamper = (_statement, text) => text) {
    this.#dice = dice;
    this.#monitor = monitor;
    this.#tamper = tamper;
  }

  /** Adds an actor, whose work gets the way to say which verb comes next. */
  act(name: string, work: (say: (verb: string) => void) => Promise<void>): Promise<void> {
    const actor: Actor = { name, verb: "", isOver: false, within: new Set(), parked: new Set(), asking: new Map() };
    this.#actors.push(actor);
    const say = (verb: string): void => {
      actor.verb = verb;
    };
    return acting
      .run({ actor, stepper: this }, () => work(say))
      .finally(() => {
        actor.isOver = true;
      });
  }

  /** Holds a statement of an actor until its turn. */
  async ask(actor: Actor, client: pg.Client, config: pg.QueryConfig, rest: unknown[]): Promise<unknown> {
    const statement = nameOf(config);
    const { processID } = client as unknown as { readonly processID: number };
    const [word] = statement.split(" ");
    if (word === "begin") actor.within.add(processID);
    else if (word === "commit" || word === "rollback") actor.within.delete(processID);
    const commits = !actor.within.has(processID);
    await new Promise<void>((resolve) => {
      const parked: Parked = {
        actor: actor.name,
        verb: actor.verb,
        statement,
        commits,
        go: () => {
          actor.parked.delete(parked);
          resolve();
        },
      };
      actor.parked.add(parked);
    });
    actor.asking.set(processID, statement);
    try {
      return await original.call(client, { ...config, text: this.#tamper(statement, config.text) }, ...rest);
    } catch (error) {
      if ((error as { readonly code?: unknown }).code === DEADLOCK) this.circles.push(`${actor.verb}/${statement}`);
      throw error;
    } finally {
      actor.asking.delete(processID);
    }
  }

  /** Steps until every actor has ended; `after` is called after each step, with those that wait for a lock. */
  async run(after: (step: Step, blocked: readonly Step[]) => Promise<void>): Promise<void> {
    const until = Date.now() + PATIENCE_MS;
    for (;;) {
      const blocked = await this.#quiet(until);
      const last = this.steps.at(-1);
      if (last) await after(last, blocked);
      const parked = this.#actors.flatMap((actor) => [...actor.parked]);
      if (parked.length === 0 && this.#actors.every(({ isOver }) => isOver)) return;
      if (parked.length === 0) {
        // All that is left waits for a lock, which the server ends by itself.
        await pause(LOOK_AGAIN_MS);
        continue;
      }
      const { go, ...step } = this.#next(parked);
      this.steps.push(step);
      go();
    }
  }

  /** One of those that wait; every other time one that follows the last as no statement of another actor did before. */
  #next(parked: readonly Parked[]): Parked {
    const last = this.steps.at(-1);
    const pairOf = (step: Step): string => `${last?.verb}/${last?.statement} → ${step.verb}/${step.statement}`;
    const isNew = (step: Step): boolean => step.actor !== last?.actor && !this.#followed.has(pairOf(step));
    const unmet = this.#dice.chance(0.5) ? parked.filter(isNew) : [];
    const chosen = this.#dice.pick(unmet.length > 0 ? unmet : parked);
    if (chosen.actor !== last?.actor) this.#followed.add(pairOf(chosen));
    return chosen;
  }

  /** Waits until nothing moves by itself; answers who is blocked in the server. */
  async #quiet(until: number): Promise<Step[]> {
    for (;;) {
      if (Date.now() > until) throw new Error(`The actors did not come to rest after ${this.steps.length} steps.`);
      await pause(0);
      if (this.#actors.some(({ isOver, parked, asking }) => !isOver && parked.size + asking.size === 0)) continue;
      const asking = this.#actors.flatMap(({ name: actor, verb, asking: pids }) =>
        [...pids].map(([pid, statement]) => ({ pid, step: { actor, verb, statement, commits: false } })),
      );
      if (asking.length === 0) return [];
      const pids = await this.#blocked();
      if (asking.every(({ pid }) => pids.has(pid))) return asking.map(({ step }) => step);
      await pause(LOOK_AGAIN_MS);
    }
  }

  /** Who waits for a lock that another client holds; the server's own upkeep lets its locks go by itself. */
  async #blocked(): Promise<Set<number>> {
    const { rows } = (await original.call(this.#monitor, { text: BLOCKED })) as { rows: { pid: number }[] };
    return new Set(rows.map(({ pid }) => pid));
  }
}

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => (ms === 0 ? setImmediate(resolve) : setTimeout(resolve, ms)));
