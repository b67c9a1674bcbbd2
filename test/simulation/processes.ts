// The processes of the world as hosts know them: a process id for every worker actor, and who on the same host is gone.
// Now and then a new process gets the id of the one before it, as in containers that are started again.
import type { Scribe } from "../support/history/scribe.ts";
import type { Actor } from "./world.ts";

/** What a worker knows of processes. */
export interface OwnProcess {
  readonly pid: number;
  readonly host: string;
  readonly isAlive: (pid: number) => boolean;
  /** Remembers an id under which this process is a worker. */
  signs(worker: string): void;
}

interface Entry {
  readonly actor: Actor;
  readonly workers: string[];
}

const HOSTS = 2;
const SAME_PID = 0.3;

/** Every process that ever was. */
export class Processes {
  readonly #scribe: Scribe;
  readonly #entries = new Map<number, Entry>();
  readonly #lastPids = new Map<string, number>();
  #next = 1;

  constructor(scribe: Scribe) {
    this.#scribe = scribe;
  }

  /** Makes an actor a process. Every life of one name is on the same host. */
  enter(actor: Actor): OwnProcess {
    const name = actor.name.replace(/\.\d+$/, "");
    const before = this.#lastPids.get(name);
    const pid = before !== undefined && actor.dice.chance(SAME_PID) ? before : this.#next++;
    // Whoever had the id before is as gone as this one once this one is.
    const entry = { actor, workers: [...(this.#entries.get(pid)?.workers ?? [])] };
    this.#lastPids.set(name, pid);
    this.#entries.set(pid, entry);
    actor.onEnd(() => this.#scribe.write(actor.name, "mark", "ok", { answer: "ended" }));
    const number = Number(/\d+$/.exec(name)?.[0] ?? 0);
    return {
      pid,
      host: `host-${number % HOSTS}`,
      isAlive: (other) => this.#isAlive(other, actor),
      signs: (worker) => void entry.workers.push(worker),
    };
  }

  /** Whoever asks may act on a no, so the history must know that it is true. */
  #isAlive(pid: number, asker: Actor): boolean {
    const entry = this.#entries.get(pid);
    if (entry === undefined) throw new Error(`No process ever had the id ${pid}.`);
    if (entry.actor.alive) return true;
    for (const worker of entry.workers.splice(0)) this.#scribe.write(asker.name, "gone", "ok", { worker });
    return false;
  }
}
