// Conducts the bad day: opens the service, starts two workers, enqueues, kills one worker in the middle, replaces it, and
// waits until every job has come to an end. What it saw goes to the board; what it counted, to the books.
import { createRedrive, type Redrive, RedriveError, type State } from "redrive";
import { pause } from "../kit/pause.ts";
import { Board } from "./board.ts";
import type { BooksEvidence } from "./books.ts";
import { DemoBreakers } from "./breakers.ts";
import { type Clock, openClock } from "./clock.ts";
import { type Evening, spendEvening } from "./evening.ts";
import { Crew, type CrewMember, type CrewReport } from "./crew.ts";
import { DEMO_JOBS, OPENS_AFTER } from "./jobs.ts";
import { narrate, narrateRepeat } from "./narrator.ts";
import { News } from "./news.ts";
import { planOrders, type PlannedJob, SERVICE_OF } from "./orders.ts";
import { type Answered, type DemoService, openService } from "./service.ts";
import { Spells } from "./spells.ts";
import { KILL_AT, NOTICED_BY } from "./weather.ts";

/** What a day is made of. */
export interface DayOptions {
  /** URL of the store; it must be empty. */
  readonly store: string;
  readonly jobs: number;
  readonly seed: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Ends the day at once. */
  readonly signal: AbortSignal;
}

/** A day that goes by. */
export interface Day {
  readonly board: Board;
  /** Resolves when every job has come to an end, or time is up; rejects if a worker cannot be started. */
  run(): Promise<BooksEvidence>;
}

/** No day is longer than this, whatever happens. */
export const HARD_STOP_MS = 60_000;
const LOOK_EVERY_MS = 100;
/** After this time the day goes on although no breaker has opened. */
const NOTICED_MOST_MS = 25_000;
/** How long the others are alone with the work of the killed one. */
const REPLACE_AFTER_MS = 1_200;

/** Prepares a day; nothing happens before `run`. */
export function planDay(options: DayOptions): Day {
  const clock = openClock(options.jobs);
  const news = new News(clock.elapsedMs);
  const board = new Board({ total: options.jobs, seed: options.seed, news, elapsed: clock.elapsedMs });
  return { board, run: () => new Conductor(options, board, clock).run() };
}

/** The jobs a killed worker left behind, as the others report them. */
interface Wreck {
  readonly pid: number;
  readonly killedMs: number;
  readonly jobs: Map<string, { readonly started: boolean }>;
  lastMs: number;
}

class Conductor {
  readonly #options: DayOptions;
  readonly #board: Board;
  readonly #clock: Clock;
  readonly #plan: readonly PlannedJob[];
  readonly #enqueued: string[] = [];
  readonly #completions = new Map<string, number>();
  readonly #over = new AbortController();
  #wreck: Wreck | null = null;
  /** Attempts charged because of the outage. */
  #charged = 0;
  #evening: Evening | null = null;
  /** The last words of a worker process that ended by itself. */
  #failure: string | null = null;

  constructor(options: DayOptions, board: Board, clock: Clock) {
    this.#options = options;
    this.#board = board;
    this.#clock = clock;
    this.#plan = planOrders(options.jobs, options.seed);
  }

  /** Slots of each worker. */
  get #concurrency(): number {
    return Math.min(50, Math.max(4, Math.ceil(this.#options.jobs / 60)));
  }

  async run(): Promise<BooksEvidence> {
    const { store, seed } = this.#options;
    const redrive = await createRedrive({ store, log: "silent" });
    try {
      const onAnswer = (answered: Answered): void => {
        this.#board.answered(answered);
        narrateRepeat(this.#board.news, answered);
      };
      const service = await openService({ plan: this.#plan, seed, at: () => this.#clock.at(), onAnswer });
      try {
        return await this.#conduct(redrive, service);
      } finally {
        await service.close();
      }
    } finally {
      await redrive.close();
    }
  }

  async #conduct(redrive: Redrive, service: DemoService): Promise<BooksEvidence> {
    const { store, env, signal } = this.#options;
    const stopAt = performance.now() + HARD_STOP_MS;
    const crew = new Crew({
      task: { store, concurrency: this.#concurrency },
      service: service.url,
      env,
      onReport: (report, by) => this.#heard(report, by),
      onFailure: (_member, { output }) => {
        this.#failure = output.trim().split("\n").at(-1) ?? "";
        this.#over.abort();
      },
    });
    this.#board.members = crew.members;
    const stop = (): void => this.#over.abort();
    signal.addEventListener("abort", stop);
    try {
      if (!signal.aborted) await this.#work(redrive, service, crew, stopAt);
      if (!signal.aborted) await this.#spendEvening(redrive, service, crew, stopAt);
      if (!signal.aborted) await crew.stop();
      await crew.end();
      this.#board.news.tick(() => true);
      return await this.#evidence(redrive, service);
    } finally {
      signal.removeEventListener("abort", stop);
      this.#over.abort();
      await crew.end();
    }
  }

  async #work(redrive: Redrive, service: DemoService, crew: Crew, stopAt: number): Promise<void> {
    const { news } = this.#board;
    await this.#enqueueDue(redrive);
    const hands = await Promise.all([crew.hire(), crew.hire()]);
    this.#checkCrew();
    this.#clock.begin();
    const pids = hands.map(({ pid }) => pid).join(" and ");
    news.tell("info", `${this.#enqueued.length} jobs wait, more come in; workers ${pids} begin`);
    const rest = [this.#produce(redrive), this.#sabotage(service, crew)];
    await this.#watch(redrive, rest, stopAt);
    this.#over.abort();
    await Promise.all(rest);
    this.#checkCrew();
  }

  /** Sends the letters of the bug back to work, before and after its fix. */
  async #spendEvening(redrive: Redrive, service: DemoService, crew: Crew, stopAt: number): Promise<void> {
    service.calmDown();
    const late = AbortSignal.timeout(Math.max(1, Math.round(stopAt - performance.now())));
    const signal = AbortSignal.any([this.#options.signal, late]);
    try {
      this.#evening = await spendEvening({ redrive, crew, news: this.#board.news, signal });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    this.#board.counts = await redrive.jobs.count();
    this.#checkCrew();
  }

  /** Throws if a worker process ended without having been asked to. */
  #checkCrew(): void {
    if (this.#failure === null) return;
    throw new RedriveError("store_unusable", `A worker process of the demo ended by itself: ${this.#failure}`);
  }

  /** Enqueues what is due by the plan. */
  async #enqueueDue(redrive: Redrive): Promise<void> {
    const at = this.#clock.at();
    const due = this.#plan.slice(this.#board.enqueued).filter((job) => job.at <= at);
    this.#board.enqueued += due.length;
    await Promise.all(
      due.map(async (job) => {
        const id = await enqueueOne(redrive, job);
        this.#enqueued.push(id);
        this.#board.entered(id, SERVICE_OF[job.type]);
      }),
    );
  }

  async #produce(redrive: Redrive): Promise<void> {
    while (this.#board.enqueued < this.#plan.length && !this.#over.signal.aborted) {
      await pause(LOOK_EVERY_MS / 2, this.#over.signal);
      await this.#enqueueDue(redrive);
    }
  }

  /** Kills the busiest worker with `kill -9`, and starts another one a little later. */
  async #sabotage(service: DemoService, crew: Crew): Promise<void> {
    const { news } = this.#board;
    const over = this.#over.signal;
    const busiest = (): CrewMember | undefined =>
      crew.members
        .filter(({ state, pid }) => state === "working" && service.inFlight(pid) > 0)
        .sort((a, b) => service.inFlight(b.pid) - service.inFlight(a.pid))[0];
    while (!over.aborted && this.#clock.at() < KILL_AT) await pause(LOOK_EVERY_MS / 2, over);
    let victim = busiest();
    while (!over.aborted && (!victim || service.inFlight(victim.pid) < 2)) {
      const { enqueued, total, counts } = this.#board;
      // Too few jobs to catch a worker at two of them: one will do, and none is no reason to wait for ever.
      if (enqueued === total && (victim || counts.queued + counts.running === 0)) break;
      await pause(5, over);
      victim = busiest();
    }
    if (!victim || over.aborted) return;
    const calls = service.inFlight(victim.pid);
    this.#wreck = { pid: victim.pid, killedMs: performance.now(), jobs: new Map(), lastMs: performance.now() };
    crew.kill(victim);
    news.tell("kill", `kill -9 for worker ${victim.pid}, in the middle of ${calls} calls`);
    await pause(REPLACE_AFTER_MS, over);
    if (over.aborted) return;
    const member = await crew.hire();
    if (member.state === "working") news.tell("info", `worker ${member.pid} takes the place of ${victim.pid}`);
  }

  /** Looks at the store until everything has come to an end. */
  async #watch(redrive: Redrive, rest: readonly Promise<void>[], stopAt: number): Promise<void> {
    let settled = false;
    void Promise.allSettled(rest).then(() => (settled = true));
    const spells = new Spells(this.#board);
    const breakers = new DemoBreakers(this.#board);
    while (!this.#over.signal.aborted && performance.now() < stopAt) {
      this.#board.counts = await redrive.jobs.count();
      this.#board.news.tick();
      breakers.tick(await redrive.breakers.list());
      const isNoticed = this.#board.breakers.payments !== undefined || this.#clock.elapsedMs() > NOTICED_MOST_MS;
      this.#clock.holdAt = isNoticed ? null : NOTICED_BY;
      spells.tick(this.#clock.at());
      const { queued, running } = this.#board.counts;
      if (settled && queued + running === 0) return;
      await pause(LOOK_EVERY_MS, this.#over.signal);
    }
  }

  #heard(report: CrewReport, by: CrewMember): void {
    this.#board.reported(report);
    const { outcome, id, failure } = report;
    // Only the outage answers so.
    if (failure?.code === "503" && (outcome === "retried" || outcome === "dead")) this.#charged += 1;
    if (outcome === "completed") {
      by.completed += 1;
      this.#completions.set(id, (this.#completions.get(id) ?? 0) + 1);
    }
    if (outcome === "retried") by.retried += 1;
    if (outcome === "dead") by.dead += 1;
    if (report.crashed) this.#takenOver(report, by);
    narrate(this.#board.news, report);
  }

  #takenOver({ id, started }: CrewReport, by: CrewMember): void {
    const wreck = this.#wreck;
    if (!wreck) return;
    by.tookOver += 1;
    wreck.jobs.set(id, { started });
    wreck.lastMs = performance.now();
    this.#board.news.gather("takeover", "good", started, (all) => {
      const ms = Math.round(wreck.lastMs - wreck.killedMs);
      const running = all.filter(Boolean).length;
      return `worker ${by.pid} took over its ${all.length} jobs after ${ms} ms, ${running} were in mid-run`;
    });
  }

  async #evidence(redrive: Redrive, { ledger }: DemoService): Promise<BooksEvidence> {
    const jobs: { id: string; state: State }[] = [];
    for await (const { id, state } of redrive.jobs.all({ all: true })) jobs.push({ id, state });
    const deadLetters: string[] = [];
    for await (const { job } of redrive.deadLetters.all({ all: true })) deadLetters.push(job.id);
    const wreck = this.#wreck;
    return {
      planned: this.#plan.length,
      enqueued: this.#enqueued,
      jobs,
      deadLetters,
      completions: this.#completions,
      effects: ledger.effects,
      repeats: ledger.repeats,
      // What opens the breaker, seen by each of the two workers, and what they ran at that moment.
      outage: { calls: ledger.down, charged: this.#charged, most: 2 * (OPENS_AFTER + this.#concurrency) },
      evening: this.#evening,
      takeover: wreck && {
        pid: wreck.pid,
        jobs: [...wreck.jobs.keys()],
        started: [...wreck.jobs.values()].filter(({ started }) => started).length,
        ms: Math.round(wreck.lastMs - wreck.killedMs),
      },
    };
  }
}

/** Enqueues one job of the plan by the name of its type: the shop does not know the schema, so some payloads are broken. */
async function enqueueOne(redrive: Redrive, planned: PlannedJob): Promise<string> {
  const definition = DEMO_JOBS.find(({ type }) => type === planned.type) ?? DEMO_JOBS[0];
  const { maxAttempts = definition.policy.maxAttempts } = planned;
  const { customer: tenant, order, payload } = planned;
  const options = { tenant, key: `order-${order}`, maxAttempts, service: SERVICE_OF[planned.type] };
  const { id } = await redrive.enqueue(planned.type, payload, options);
  return id;
}
