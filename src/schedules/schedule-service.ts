// Makes the jobs of schedules. Every worker does this. A worker that finds a tick due writes its decision by
// compare-and-set, so that only one worker decides; then it writes the jobs, then it notes that they are written. If a
// worker dies in between, another finds the tick decided without that note and writes the jobs again: they have the ids
// of the ticks, so a second write is a duplicate.
import { isRedriveError } from "../core/errors.ts";
import { textOf } from "../core/failure.ts";
import { checkNewJob, type NewJob } from "../core/new-job.ts";
import type { PolicyOptions } from "../core/policy.ts";
import { decide, isDue, type NextTick, type Schedule, scheduleFrom, written } from "../core/schedule.ts";
import { asChecked } from "../store/checked-jobs.ts";
import { cancelJobs } from "../enqueue/cancel-jobs.ts";
import { ticksOf } from "./cron.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { aboutJob } from "../report/about-job.ts";
import type { Events } from "../report/events.ts";
import type { Traces } from "../report/traces.ts";
import { type KnownTypes, SCHEDULE_CELLS, scheduledJob, tickId, typesByName } from "./schedule-jobs.ts";
import type { FlowMeter } from "../store/flow-meter.ts";
import type { Cell, CellChange, EnqueueAnswer, Store } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import type { Service } from "../upkeep/upkeep.ts";

/** What making jobs of schedules needs. */
export interface SchedulerOptions {
  readonly store: Pick<Store, "cells" | "setCells" | "enqueue" | "get" | "cancel">;
  readonly system: System;
  readonly log: Log;
  readonly events: Pick<Events, "emit" | "isHeard">;
  /** Counts new jobs for the store; absent where they are not counted. */
  readonly flow?: FlowMeter;
  /** Makes spans; absent where no traces are made. */
  readonly traces?: Traces | null;
  readonly jobs: readonly JobDefinition[];
  readonly defaults: PolicyOptions;
  /** A number that changes with every change of a schedule, and the store's time, where known without asking. */
  readonly sign?: () => { readonly cells: number; readonly storeTime: number } | null;
}

/** How often a scheduler checks for changed schedules. */
const LOOK_MS = 1_000;
/** How often it reads all schedules in any case; less often where it learns of changes without asking. */
const READ_ALL_MS = { asked: 30_000, told: 120_000 } as const;
/** The worker that decided a tick has this long to write its job before others do. */
const TAKE_OVER_MS = 2_000;
/** How soon to look again at a tick that another worker is deciding. */
const SOON_MS = 100;
/** Schedules decided and jobs written at once; a cron expression takes half a millisecond to compute. */
const PAGE = 50;
const RETRY_MS = 1_000;

/** The service: runs as soon as a tick is due, and every second to see changes. */
export function scheduleService(options: SchedulerOptions): Service {
  const scheduler = new Scheduler(options);
  return { name: "schedules", retryMs: RETRY_MS, step: (signal) => scheduler.step(signal) };
}

/** A schedule as read, with the version of its cell. */
interface Held {
  readonly name: string;
  readonly version: number;
  /** When it was last written. */
  readonly since: number;
  readonly schedule: Schedule;
}

class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #known: KnownTypes;
  /** When each schedule is next looked at, in store time. */
  readonly #dueAt = new Map<string, number>();
  /** The version of the cell that marks changes; null before the first look. */
  #changes: number | null = null;
  #readAllAt = 0;
  /** The sign at the last read. */
  #sign: number | null = null;
  /** Store time and our own at the last look. */
  #clock = { now: 0, at: 0 };
  /** Schedules that could not be read or computed, by the version that was reported. */
  readonly #complained = new Map<string, number>();

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#known = typesByName(options.jobs, options.defaults);
  }

  /** Decides what is due and writes its jobs; answers how long to wait. */
  async step(signal: AbortSignal): Promise<number> {
    try {
      const cells = await this.#look();
      for (let from = 0; from < cells.length && !signal.aborted; from += PAGE)
        await this.#handle(cells.slice(from, from + PAGE));
    } catch (error) {
      // The state of this step is unknown, so everything is read again.
      this.#changes = null;
      throw error;
    }
    const next = Math.min(...this.#dueAt.values());
    return Math.min(LOOK_MS, Math.max(0, next - this.#now()));
  }

  /** Store time, as far as it is known. */
  #now(): number {
    return this.#clock.now + this.#options.system.monotonic() - this.#clock.at;
  }

  async #read(queries: Parameters<Store["cells"]>[0]): Promise<readonly Cell[]> {
    const { cells, now } = await this.#options.store.cells(queries);
    this.#clock = { now, at: this.#options.system.monotonic() };
    return cells;
  }

  /** The cells of due schedules; of all schedules after a change, or when the last full read is too old. */
  async #look(): Promise<readonly Cell[]> {
    const { sign, system } = this.#options;
    const told = sign?.() ?? null;
    if (told) this.#clock = { now: told.storeTime, at: system.monotonic() };
    const due = this.#takeDue();
    const isLong = system.monotonic() - this.#readAllAt >= READ_ALL_MS[told ? "told" : "asked"];
    const isAsBefore = this.#changes !== null && told !== null && told.cells === this.#sign;
    if (isAsBefore && due.length === 0 && !isLong) return [];
    this.#sign = told?.cells ?? null;
    const cells = await this.#read(["", ...due].map((name) => ({ kind: SCHEDULE_CELLS, name })));
    if (changesIn(cells) !== this.#changes || isLong) {
      const all = await this.#read([{ kind: SCHEDULE_CELLS }]);
      this.#changes = changesIn(all);
      this.#readAllAt = this.#options.system.monotonic();
      this.#dueAt.clear();
      return all.filter(({ name }) => name !== "");
    }
    // The store's clock may have stepped; schedules that are due by it now were not asked for.
    const late = this.#takeDue().map((name) => ({ kind: SCHEDULE_CELLS, name }));
    const more = late.length === 0 ? [] : await this.#read(late);
    return [...cells.filter(({ name }) => name !== ""), ...more];
  }

  /** The names of due schedules; the caller plans them again. */
  #takeDue(): string[] {
    const now = this.#now();
    const names = [...this.#dueAt].filter(([, at]) => at <= now).map(([name]) => name);
    for (const name of names) this.#dueAt.delete(name);
    return names;
  }

  async #handle(cells: readonly Cell[]): Promise<void> {
    const { now } = this.#clock;
    const held = cells.flatMap((cell) => this.#held(cell));
    const [due, others] = [
      held.filter((each) => isDue(each.schedule, now)),
      held.filter((each) => !isDue(each.schedule, now)),
    ];
    const ours = await this.#decide(due);
    for (const { name } of due) this.#dueAt.set(name, now + SOON_MS);
    const orphaned = others.filter(({ since }) => now - since >= TAKE_OVER_MS);
    for (const each of [...ours, ...others]) this.#plan(each);
    await this.#write([...ours, ...orphaned].filter(({ schedule }) => schedule.state.pending.length > 0));
  }

  /** Decides the ticks of due schedules; answers the schedules that no other worker decided first. */
  async #decide(due: readonly Held[]): Promise<Held[]> {
    const { now } = this.#clock;
    const busy = await this.#busy(due);
    const decided: Held[] = [];
    for (const held of due) {
      const next = await this.#ticks(held);
      if (!next) continue;
      const isBusy = busy.has(held.schedule.state.lastJob ?? "");
      const idOf = (tick: number): string => tickId(held.name, tick);
      decided.push({ ...held, schedule: decide(held.schedule, { now, isBusy, next, idOf }) });
    }
    return this.#put(decided);
  }

  /** When to look at it again: at its next tick, or to check that the jobs of the last ticks are written. */
  #plan({ name, schedule: { state } }: Held): void {
    const takeOver = state.pending.length > 0 ? this.#clock.now + TAKE_OVER_MS : Number.POSITIVE_INFINITY;
    const next = state.paused || state.next === null ? Number.POSITIVE_INFINITY : state.next;
    this.#dueAt.set(name, Math.min(next, takeOver));
  }

  #held({ name, version, value, at }: Cell): Held[] {
    const schedule = scheduleFrom(value);
    if (schedule) return [{ name, version, since: at, schedule }];
    this.#complain(name, version, "the stored schedule is invalid; remove it, or set it again");
    return [];
  }

  async #ticks({ name, version, schedule }: Held): Promise<NextTick | null> {
    try {
      return await ticksOf(schedule.definition, schedule.state.anchor);
    } catch (error) {
      this.#complain(name, version, textOf(error));
      return null;
    }
  }

  #complain(name: string, version: number, error: string): void {
    if (this.#complained.get(name) === version) return;
    this.#complained.set(name, version);
    this.#options.log.error({ schedule: name, error }, "a schedule cannot run");
  }

  /** The last jobs that have not ended, of schedules that need to know. */
  async #busy(due: readonly Held[]): Promise<ReadonlySet<string>> {
    const ids = due.flatMap(({ schedule: { definition, state } }) =>
      definition.overlap === "skip" && state.lastJob !== null ? [state.lastJob] : [],
    );
    const jobs = ids.length === 0 ? [] : await this.#options.store.get(ids);
    return new Set(jobs.flatMap((job) => (job?.state === "queued" || job?.state === "running" ? [job.id] : [])));
  }

  /** Writes schedules back, each unless another worker changed it; answers those written, with their new versions. */
  async #put(changed: readonly Held[]): Promise<Held[]> {
    if (changed.length === 0) return [];
    const changes = changed.map(({ name, version, schedule }): CellChange => {
      return { kind: SCHEDULE_CELLS, name, holder: "", version, value: JSON.stringify(schedule) };
    });
    const answers = await this.#options.store.setCells(changes);
    return changed.filter((_, at) => answers[at]).map((each) => ({ ...each, version: each.version + 1 }));
  }

  /** Writes the jobs of decided ticks, and then that they are written. */
  async #write(held: readonly Held[]): Promise<void> {
    const replacing = held.filter(({ schedule }) => schedule.definition.overlap === "replace");
    for (const each of replacing) await this.#replace(each);
    const others = held.filter((each) => !replacing.includes(each));
    await this.#enqueue(others.flatMap((each) => each.schedule.state.pending.flatMap((tick) => this.#job(each, tick))));
    const after = held.map((each) => ({ ...each, schedule: written(each.schedule, each.schedule.state.pending) }));
    for (const each of await this.#put(after)) this.#plan(each);
  }

  /** Each job cancels the one before it, which is already written, by whichever worker. */
  async #replace(held: Held): Promise<void> {
    let { replaces } = held.schedule.state;
    for (const tick of held.schedule.state.pending) {
      if (replaces !== null) await cancelJobs([replaces], this.#options.store, this.#options.events);
      await this.#enqueue(this.#job(held, tick));
      replaces = tickId(held.name, tick);
    }
  }

  #job({ name, schedule }: Held, tick: number): NewJob[] {
    try {
      const { random } = this.#options.system;
      const job = scheduledJob(name, schedule, { tick }, { known: this.#known, random });
      checkNewJob(job);
      return [job];
    } catch (error) {
      if (!isRedriveError(error)) throw error;
      const about = { schedule: name, tick: new Date(tick).toISOString(), error: error.message };
      this.#options.log.error(about, "the job of a schedule cannot be made; its tick is skipped");
      return [];
    }
  }

  async #enqueue(jobs: readonly NewJob[]): Promise<void> {
    if (jobs.length === 0) return;
    const { store, traces } = this.#options;
    let written = jobs;
    const write = (sent: readonly NewJob[]): Promise<EnqueueAnswer[]> => {
      written = sent;
      return store.enqueue(asChecked(sent));
    };
    const answers = await (traces ? traces.send(jobs, write, { isScheduled: true }) : write(jobs));
    answers.forEach(({ kind, id }, at) => {
      const job = written[at] as NewJob;
      const { type } = job;
      if (kind !== "created") return;
      this.#options.log.debug(aboutJob({ ...job, id }), "a schedule made a job");
      this.#options.events.emit({ kind: "job.enqueued", id, type });
      this.#options.flow?.add(type, "enqueued");
    });
  }
}

function changesIn(cells: readonly Cell[]): number {
  return cells.find(({ name }) => name === "")?.version ?? 0;
}
