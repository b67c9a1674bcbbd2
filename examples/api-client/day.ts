// The story of a run: the troubles of the service one after the other, and what Redrive makes of them, told as it happens.
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { createRedrive, type Redrive } from "redrive";
import { type Board, panelLines, shortLine } from "./board.ts";
import { balance, type Run } from "./books.ts";
import type { PriceRequest } from "./client.ts";
import { countStock, PACE, QUEUE, refreshPrice, SERVICES } from "./jobs.ts";
import { check, heading, panel, panelDone, quote, tell } from "../kit/screen.ts";
import { openPriceService, type PriceService } from "./service.ts";
import { receiveVisitors } from "./visitors.ts";

/** What a run is told. */
export interface DayOptions {
  readonly store: string;
  readonly size: "small" | "full";
}

/** Jobs, over how long they come in, and the troubles as parts of that time. */
const SIZES = { small: { jobs: 130, ms: 6_000 }, full: { jobs: 480, ms: 20_000 } } as const;
const BUSY = { from: 0.12, lasts: 0.1 };
const DOWN = { from: 0.4, lasts: 0.4 };
/** What part of the jobs may have come in before each step of the story is over, so that some are left for the next. */
const COME = [0.3, 0.3, 0.5, 0.9, 1];
const CUSTOMERS = ["acme", "globex", "initech", "umbrella"];
/** The customer whose key has expired. */
const EXPIRED = "globex";
/** Slots of each of the two workers. */
const CONCURRENCY = 8;
/** Jobs that need no service and must get done while the breaker is open. */
const MEANWHILE = 5;
const LOOK_MS = 100;
const LONGEST_MS = 90_000;

/** Runs the whole story; true if the books balance. */
export async function startDay({ store, size }: DayOptions): Promise<boolean> {
  heading("A price service has a bad day: rate limits, an outage, an expired key");
  const service = await openPriceService();
  try {
    const jobs = [refreshPrice(service.url), countStock];
    await using redrive = await createRedrive({ store, jobs, services: SERVICES, log: "silent" });
    const day = new Day(redrive, service, { store, ...SIZES[size] });
    await day.prepare();
    await day.work();
    await day.recover();
    panelDone();
    heading("The books");
    const checks = await balance(redrive, day.run);
    for (const { ok, text } of checks) check(ok, text);
    return checks.every(({ ok }) => ok);
  } finally {
    panelDone();
    await service.close();
  }
}

class Day {
  readonly run: Run;
  readonly #redrive: Redrive;
  readonly #service: PriceService;
  readonly #options: { readonly store: string; readonly jobs: number; readonly ms: number };
  // Sets the jobs of this run apart, because a Postgres may hold those of others.
  readonly #name = `run-${new Date().toISOString().replace(/\D/g, "").slice(2, 14)}`;
  readonly #visitorsGone = new AbortController();
  readonly #board: Board;
  #visitors: Promise<void> = Promise.resolve();
  #startedMs = 0;
  /** Before, while and after it is busy; while and after it is down. */
  #step = 0;
  #stepPart = 0;
  #isOpeningTold = false;

  constructor(redrive: Redrive, service: PriceService, options: Day["options"]) {
    this.#redrive = redrive;
    this.#service = service;
    this.#options = options;
    const now = (): number => service.now() / 1_000;
    this.run = {
      service,
      requests: new Map(),
      expired: `${EXPIRED}.${this.#name}`,
      slots: 2 * CONCURRENCY,
      visits: { started: 0, answered: 0, retries: 0, fromCache: 0, failed: 0 },
      stock: [],
      charged: 0,
      openedAt: null,
      closedAt: null,
      meanwhile: 0,
      waitingAtClose: 0,
      redriven: 0,
    };
    this.#board = {
      get seconds() {
        return now();
      },
      calls: service.calls,
      breaker: redrive.breaker("pricing"),
      tally: { total: options.jobs, enqueued: 0, completed: 0, dead: 0, retries: 0 },
      visits: this.run.visits,
    };
  }

  get options() {
    return this.#options;
  }

  /** Clears what an earlier run left, listens, and starts two workers. */
  async prepare(): Promise<void> {
    await this.#redrive.jobs.cancel({ queue: QUEUE });
    this.#board.breaker.reset();
    this.#service.accept(this.run.expired, false);
    this.#listen();
    for (let workers = 0; workers < 2; workers += 1)
      await this.#redrive.worker({ concurrency: CONCURRENCY, queues: [QUEUE], poll: "200ms" }).start();
    this.#tell("info", `2 workers, at most ${PACE} calls a second together; ${this.#options.jobs} jobs come in`);
    this.#startedMs = this.#service.now();
    const { url } = this.#service;
    this.#visitors = receiveVisitors(this.#redrive, url, this.run.visits, this.#visitorsGone.signal);
  }

  /** Lets jobs come in while the service has its troubles, until every one has come to an end. */
  async work(): Promise<void> {
    const { jobs, ms } = this.#options;
    const job = refreshPrice(this.#service.url);
    const until = this.#service.now() + LONGEST_MS;
    const { tally } = this.#board;
    while (this.#service.now() < until) {
      const part = (this.#service.now() - this.#startedMs) / ms;
      this.#weather(part);
      this.#tellOpening();
      const come = Math.min(part, COME[this.#step] ?? 1) * jobs;
      for (; tally.enqueued < come; tally.enqueued += 1) {
        const request = this.#request(tally.enqueued);
        const { id } = await this.#redrive.enqueue(job, request, { key: request.request, tenant: request.customer });
        this.run.requests.set(id, request);
      }
      this.run.stock.push(await this.#countStock(tally.enqueued));
      panel(panelLines(this.#board), () => shortLine(this.#board));
      if (tally.enqueued === jobs && tally.completed + tally.dead >= jobs) break;
      await sleep(LOOK_MS);
    }
    this.#visitorsGone.abort();
    await this.#visitors;
  }

  /** What a person does afterwards: a new key, and exactly the jobs that the old one broke go back to work. */
  async recover(): Promise<void> {
    const { expired } = this.run;
    const stats = await this.#redrive.deadLetters.stats({ tenant: expired });
    this.#tell("bad", `${stats.total} dead letters of ${EXPIRED}: ${stats.causes[0]?.message ?? "none"}`);
    await this.#health();
    this.#service.accept(expired, true);
    const { redriven } = await this.#redrive.deadLetters.retry({ class: "authentication", tenant: expired });
    this.run.redriven = redriven;
    this.#board.tally.dead -= redriven;
    this.#tell("good", `${EXPIRED} has a new key: its ${redriven} dead letters are redriven`);
    const { jobs } = this.#options;
    const { tally } = this.#board;
    for (let waitedMs = 0; waitedMs < LONGEST_MS && tally.completed + tally.dead < jobs; waitedMs += LOOK_MS) {
      panel(panelLines(this.#board), () => shortLine(this.#board));
      await sleep(LOOK_MS);
    }
    await this.#health();
  }

  #tell(mark: Parameters<typeof tell>[1], text: string): void {
    tell(this.#service.now() / 1_000, mark, text);
  }

  /** One request in four is for the customer with the expired key; two ask for what does not exist. */
  #request(n: number): PriceRequest {
    const customer = `${CUSTOMERS[n % CUSTOMERS.length] ?? ""}.${this.#name}`;
    return { item: n === 10 || n === 90 ? -1 : n, customer, request: `${this.#name}-${n}` };
  }

  async #countStock(item: number): Promise<string> {
    const { id } = await this.#redrive.enqueue(countStock, { item });
    return id;
  }

  /** The troubles, one after the other; each lasts until it was noticed, on a slow machine too. */
  #weather(part: number): void {
    const { calls } = this.#service;
    const called = (status: number): number =>
      calls.findLastIndex((call) => call.from === "job" && call.status === status);
    const lasted = part - this.#stepPart;
    const isOver = [
      part >= BUSY.from && called(200) >= 0,
      lasted >= BUSY.lasts && called(429) >= 0,
      part >= DOWN.from && called(200) > called(429),
      lasted >= DOWN.lasts && this.run.meanwhile >= MEANWHILE,
      false,
    ][this.#step];
    if (!isOver) return;
    this.#step += 1;
    this.#stepPart = part;
    this.#service.trouble = this.#step === 1 ? "busy" : this.#step === 3 ? "down" : "none";
    if (this.#step === 1) this.#tell("wait", "the service is busy: 429 with Retry-After 1 for every call");
    if (this.#step === 3) this.#tell("bad", "the service goes down: 503 for every call");
    if (this.#step === 4) this.#tell("info", "the service is up again; no worker knows yet");
  }

  #listen(): void {
    const { tally } = this.#board;
    const isOurs = (id: string): boolean => this.run.requests.has(id);
    const { run } = this;
    this.#redrive.on("*", (event) => {
      if (event.kind === "breaker.changed" && event.service === "pricing") return this.#breakerChanged(event.state);
      if (!("verdict" in event)) return;
      const { job, verdict } = event;
      const isOpen = run.openedAt !== null && run.closedAt === null;
      if (job.type === "count-stock" && event.kind === "job.completed" && isOpen) run.meanwhile += 1;
      if (job.type !== "refresh-price") return;
      // Only the outage answers so.
      if ("failure" in verdict && verdict.failure.code === "503") run.charged += verdict.charge.attempts;
      if (event.kind === "job.retried") tally.retries += 1;
      if (event.kind === "job.completed" && isOurs(job.id)) tally.completed += 1;
      if (event.kind === "job.dead" && isOurs(job.id)) tally.dead += 1;
    });
  }

  /** Both workers tell of it; the first word counts. */
  #breakerChanged(state: string): void {
    const { run } = this;
    const { tally } = this.#board;
    if (state === "open" && this.#step === 3) run.openedAt ??= this.#service.now();
    if (state === "closed" && this.#step === 4 && run.closedAt === null) {
      run.closedAt = this.#service.now();
      run.waitingAtClose = tally.enqueued - tally.completed - tally.dead;
      this.#tell("good", `probes succeed, the breaker closes: ${run.waitingAtClose} jobs return on a ramp`);
    }
  }

  /** The opening with its reason, as soon as that is known here. */
  #tellOpening(): void {
    const { reason, state } = this.#board.breaker;
    if (this.#isOpeningTold || this.run.openedAt === null || state !== "open" || reason === null) return;
    this.#isOpeningTold = true;
    this.#tell("bad", `the breaker opens, ${reason}: jobs are parked`);
  }

  /** What `redrive health` says. */
  async #health(): Promise<void> {
    const program = join(dirname(createRequire(import.meta.url).resolve("redrive/package.json")), "bin", "redrive.js");
    const args = [program, "health", "--store", this.#options.store];
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 30_000 });
    quote(`\n$ redrive health\n${stdout.trim()}\n`, "dim");
  }
}
