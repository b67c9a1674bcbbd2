// Several schedulers on one store, on a clock in the test's hands: each looks when it says it will, any of them can die
// at any call of the store, before or after the call is carried out, and the store's clock can be stepped.
import type { System } from "../../src/system/system.ts";
import type { Job } from "../../src/core/job.ts";
import { openEventLog } from "../../src/report/event-log.ts";
import { openEvents } from "../../src/report/events.ts";
import { openSchedules, type Schedules } from "../../src/schedules/schedules.ts";
import type { Store } from "../../src/store/store.ts";
import { realSystem } from "../../src/system/real.ts";
import { collectLog } from "../../src/testing/collect-log.ts";
import { scheduleService } from "../../src/schedules/schedule-service.ts";
import type { Service } from "../../src/upkeep/upkeep.ts";
import type { World } from "../conformance/suite.ts";
import { createDice, type Dice } from "../simulation/dice.ts";

const VERBS = ["cells", "setCells", "enqueue", "get", "cancel"] as const;
type Verb = (typeof VERBS)[number];

/** When a scheduler dies: at its n-th call, or at its next call of a verb; before it is carried out, or after. */
export interface Death {
  readonly at: number | Verb;
  readonly after: boolean;
}

interface Member {
  readonly service: Service;
  readonly store: Mortal;
  wakeAt: number;
}

/** A fleet of schedulers. */
export class Fleet {
  readonly schedules: Schedules;
  readonly log = collectLog();
  /** The jobs of which members told that they are cancelled. */
  readonly cancelled: string[] = [];
  readonly dice: Dice;
  readonly #world: World;
  readonly #system: System;
  readonly #members: Member[] = [];
  /** Time that passed; the store's clock goes with it and can be stepped beside. */
  #passed = 0;

  constructor(world: World, seed = 1) {
    this.#world = world;
    this.dice = createDice(seed, "fleet");
    this.#system = { ...realSystem, monotonic: () => this.#passed, random: () => this.dice.random() };
    const events = openEvents(this.log);
    const eventLog = openEventLog({ store: world.store, log: this.log, actor: "test" });
    const parts = { store: world.store, system: this.#system, events, eventLog, jobs: [], defaults: {} };
    this.schedules = openSchedules(parts);
  }

  get size(): number {
    return this.#members.length;
  }

  /** One more scheduler, as another process has it. */
  async join(death: Death | null = null): Promise<void> {
    const store = new Mortal(await this.#world.peer(), death);
    const { log } = this;
    const events = openEvents(log);
    events.on("job.cancelled", ({ job }) => this.cancelled.push(job.id));
    const parts = { store, system: this.#system, log, events, jobs: [], defaults: {} };
    this.#members.push({ service: scheduleService(parts), store, wakeAt: this.#passed });
  }

  /** Lets one die within its next calls. */
  doom(): void {
    const living = this.#members.filter(({ store }) => store.death === null);
    if (living.length > 0)
      this.dice.pick(living).store.death = { at: this.dice.between(1, 8), after: this.dice.chance(0.5) };
  }

  /** Steps the store's clock. */
  step(ms: number): void {
    this.#world.clock.now += ms;
  }

  /** Lets time pass; `everyMs` makes all of them look that often, whatever they say. */
  async pass(ms: number, everyMs?: number): Promise<void> {
    const end = this.#passed + ms;
    while (this.#passed < end) {
      const next =
        everyMs === undefined ? Math.min(...this.#members.map(({ wakeAt }) => wakeAt)) : this.#passed + everyMs;
      const to = Math.min(end, Math.max(next, this.#passed));
      this.#world.clock.now += to - this.#passed;
      this.#passed = to;
      await Promise.all(
        this.#members.filter(({ wakeAt }) => everyMs !== undefined || wakeAt <= to).map((m) => this.#wake(m)),
      );
    }
  }

  async #wake(member: Member): Promise<void> {
    try {
      const waitMs = await member.service.step(new AbortController().signal);
      member.wakeAt = this.#passed + Math.max(1, Math.ceil(waitMs));
    } catch (error) {
      if (!member.store.isDead) throw error;
      this.#members.splice(this.#members.indexOf(member), 1);
    }
  }
}

/** The store of a process that dies: it is never answered again. */
class Mortal implements Pick<Store, Verb> {
  death: Death | null;
  isDead = false;
  readonly cells: Store["cells"];
  readonly setCells: Store["setCells"];
  readonly enqueue: Store["enqueue"];
  readonly get: Store["get"];
  readonly cancel: Store["cancel"];

  constructor(store: Store, death: Death | null) {
    this.death = death;
    const around = <A extends unknown[], R>(verb: Verb, call: (...args: A) => Promise<R>) => {
      return async (...args: A): Promise<R> => {
        if (this.#diesAt(verb)) {
          this.isDead = true;
          if (this.death?.after) await call(...args);
        }
        if (this.isDead) throw new Error("killed");
        return call(...args);
      };
    };
    this.cells = around("cells", store.cells);
    this.setCells = around("setCells", store.setCells);
    this.enqueue = around("enqueue", store.enqueue);
    this.get = around("get", store.get);
    this.cancel = around("cancel", store.cancel);
  }

  #diesAt(verb: Verb): boolean {
    if (this.isDead || this.death === null) return false;
    if (typeof this.death.at === "string") return this.death.at === verb;
    this.death = { ...this.death, at: this.death.at - 1 };
    return this.death.at === 0;
  }
}

/** Every job in the store, oldest tick first. */
export async function booked(store: Store): Promise<Job[]> {
  const jobs: Job[] = [];
  for (let cursor: string | null = null; ; ) {
    const page: Awaited<ReturnType<Store["list"]>> = await store.list({ limit: 200, cursor });
    jobs.push(...page.items);
    if (page.next === null) return jobs.toSorted((a, b) => ((a.key ?? a.id) < (b.key ?? b.id) ? -1 : 1));
    cursor = page.next;
  }
}

/** The ticks in the books, by their keys. */
export async function firings(store: Store, name = "s"): Promise<string[]> {
  const keys = (await booked(store)).map(({ key }) => key ?? "");
  return keys.filter((key) => key.startsWith(`schedule:${name}:`)).map((key) => key.slice(`schedule:${name}:`.length));
}
