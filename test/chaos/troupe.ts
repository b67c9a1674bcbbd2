// The actors of a chaos run as processes: starts them, stops and continues them, kills them, starts them again, and knows
// whether an end was wanted. Each life of an actor has a name and a history file of its own.
import { type ChildProcess, fork } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Role } from "./actor.ts";
import type { Busy } from "./busy.ts";
import type { FileScribe } from "./file-scribe.ts";

const PROGRAM = fileURLToPath(new URL("./actor.js", import.meta.url));
const LIVES_MOST = 5_000;

/** One actor through all its lives. */
export interface Actor {
  readonly role: Role;
  readonly name: string;
  life: number;
  child: ChildProcess | null;
  /** The role has begun. */
  ready: boolean;
  /** Between SIGSTOP and SIGCONT. */
  halted: boolean;
  /** The conductor killed this life. */
  doomed: boolean;
  /** It came to the end of its role. */
  over: boolean;
}

/** All actors of a run. */
export class Troupe {
  readonly actors: Actor[] = [];
  /** Ends that nobody wanted. */
  readonly accidents: string[] = [];
  /** Workers that the conductor killed. */
  workersKilled = 0;
  /** Processes that a job took along. */
  killedByJobs = 0;
  calm = false;
  closed = false;
  readonly #folder: string;
  readonly #scribe: FileScribe;
  readonly #restartMs: () => number;
  readonly #onBusy: (name: string, busy: Busy) => void;
  #lives = 0;

  constructor(folder: string, scribe: FileScribe, restartMs: () => number, onBusy: (name: string, busy: Busy) => void) {
    this.#folder = folder;
    this.#scribe = scribe;
    this.#restartMs = restartMs;
    this.#onBusy = onBusy;
  }

  add(role: Role, count: number): void {
    for (let n = 1; n <= count; n++) {
      const life = { life: 0, child: null, ready: false, halted: false, doomed: false, over: false };
      const actor: Actor = { role, name: `${role}-${n}`, ...life };
      this.actors.push(actor);
      this.#start(actor);
    }
  }

  /** Those that are up now. */
  up(role?: Role): Actor[] {
    return this.actors.filter((actor) => actor.child !== null && actor.ready && (!role || actor.role === role));
  }

  kill(actor: Actor): boolean {
    if (actor.child === null) return false;
    actor.doomed = true;
    // Said first: from now on others may rightly find that the process is gone.
    this.#scribe.write("conductor", "gone", "ok", { answer: lifeName(actor) });
    if (actor.role === "worker") this.workersKilled += 1;
    return actor.child.kill("SIGKILL");
  }

  halt(actor: Actor): boolean {
    this.#scribe.write("conductor", "mark", "ok", { answer: `halt ${lifeName(actor)}` });
    actor.halted = actor.child?.kill("SIGSTOP") ?? false;
    return actor.halted;
  }

  /** True if the process was still there to go on. */
  goOn(actor: Actor, life: number): boolean {
    if (actor.life !== life || actor.child === null) return false;
    actor.halted = false;
    this.#scribe.write("conductor", "mark", "ok", { answer: `go on ${lifeName(actor)}` });
    return actor.child.kill("SIGCONT");
  }

  /** Tells actors of these roles, and all later lives of theirs, that faults are over. */
  tell(roles: readonly Role[]): void {
    for (const { role, child } of this.actors) if (roles.includes(role) && child) sayCalm(child);
  }

  /** Kills whatever is left; nothing is started again. */
  close(): void {
    this.closed = true;
    for (const actor of this.actors) actor.child?.kill("SIGKILL");
  }

  #start(actor: Actor): void {
    if (this.closed || this.#lives++ > LIVES_MOST) return;
    const predecessor = actor.life === 0 ? "" : lifeName(actor);
    actor.life += 1;
    Object.assign(actor, { ready: false, halted: false, doomed: false });
    const log = openSync(join(this.#folder, `${lifeName(actor)}.log`), "a", 0o600);
    const args = [lifeName(actor), actor.role, predecessor];
    const child = fork(PROGRAM, args, { stdio: ["ignore", log, log, "ipc"], execArgv: [] });
    closeSync(log);
    actor.child = child;
    this.#scribe.write("conductor", "mark", "ok", { answer: `start ${lifeName(actor)} as ${child.pid}` });
    child.on("message", (word) => {
      if (word !== "ready") return this.#onBusy(actor.name, word as Busy);
      actor.ready = true;
      if (this.calm && actor.role !== "worker") sayCalm(child);
    });
    child.on("error", (error) => this.accidents.push(`${lifeName(actor)}: ${error.message}`));
    child.on("exit", (code, signal) => this.#onExit(actor, code, signal));
  }

  #onExit(actor: Actor, code: number | null, signal: string | null): void {
    actor.child = null;
    if (this.closed) return;
    if (code === 0) {
      actor.over = true;
      return;
    }
    if (!actor.doomed && signal === "SIGKILL" && actor.role === "worker") this.killedByJobs += 1;
    else if (!actor.doomed) this.accidents.push(`${lifeName(actor)} ended by itself with ${signal ?? `code ${code}`}`);
    setTimeout(() => this.#start(actor), this.#restartMs());
  }
}

/** One that has just died without being missed yet hears nothing, which is no accident. */
function sayCalm(child: ChildProcess): void {
  if (child.connected) child.send("calm", () => undefined);
}

function lifeName({ name, life }: Actor): string {
  return `${name}.${life}`;
}
