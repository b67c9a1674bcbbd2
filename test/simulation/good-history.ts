// Makes histories in which nothing is wrong, with every kind of answer that may be missing, of any length and without a
// store. The checker must pass all of them; they also measure how fast it reads.
import type { State } from "../../src/core/job.ts";
import { Checker } from "../support/history/check.ts";
import {
  type FinalDump,
  type FinalJob,
  type HistoryEvent,
  type Line,
  makeEvent,
  type Op,
  type Phase,
  type Report,
} from "../support/history/event.ts";
import { createDice, type Dice } from "./dice.ts";

const LEASE_MS = 1000;
const MAX_ATTEMPTS = 5;

interface ModelJob {
  readonly id: string;
  readonly key: string | null;
  readonly payloadHash: number;
  state: State | "new" | "void";
  epoch: number;
  generation: number;
  attempts: number;
  crashes: number;
  runAt: number;
  nonce: string | null;
  worker: string;
  observed: boolean;
  letters: boolean[];
}

/** A history in the making: pull the events, then the dump that goes with them. */
export class GoodHistory {
  readonly #dice: Dice;
  readonly #jobs: number;
  readonly #finals: FinalJob[] = [];
  readonly #letters: { job: string; generation: number; redriven: boolean }[] = [];
  #pending: HistoryEvent[] = [];
  #seq = 0;
  #time = 1_000_000;
  #made = 0;
  #created = 0;
  /** Workers that were given up so far; each claims under the name of the next one. */
  #life = 0;

  constructor(seed: number, jobs: number) {
    this.#dice = createDice(seed, "good history");
    this.#jobs = jobs;
  }

  /** The events, a few jobs always under way at once. */
  *events(): Generator<HistoryEvent> {
    const live: ModelJob[] = [];
    while (this.#made < this.#jobs || live.length > 0) {
      while (live.length < 16 && this.#made < this.#jobs) live.push(this.#newJob());
      const at = this.#dice.between(0, live.length - 1);
      const job = live[at] as ModelJob;
      this.#time += this.#dice.between(0, 20);
      if (!this.#step(job)) {
        live[at] = live.at(-1) as ModelJob;
        live.pop();
        this.#keep(job);
      }
      yield* this.#pending;
      this.#pending = [];
    }
  }

  /** Lets a checker read all of it. */
  check(): Report {
    const checker = new Checker();
    for (const event of this.events()) checker.read(event);
    return checker.finish(this.dump());
  }

  /** What the store holds after all events were pulled. */
  dump(): FinalDump {
    return { jobs: this.#finals, letters: this.#letters, workers: [], storeTime: this.#time, drained: true };
  }

  #keep(job: ModelJob): void {
    if (job.state === "void") return;
    this.#finals.push(finalOf(job));
    for (const [i, redriven] of job.letters.entries()) this.#letters.push({ job: job.id, generation: i + 1, redriven });
  }

  #newJob(): ModelJob {
    const n = ++this.#made;
    const key = this.#dice.chance(0.2) ? `mail/${n}` : null;
    const counters = { epoch: 0, generation: 1, attempts: 0, crashes: 0, runAt: 0 };
    return {
      ...counters,
      id: `job-${n}`,
      key,
      payloadHash: n,
      state: "new",
      nonce: null,
      worker: "",
      observed: false,
      letters: [],
    };
  }

  #write(op: Op, phase: Phase, line: Line, since = -1): number {
    const seq = ++this.#seq;
    this.#pending.push(makeEvent(seq, since === -1 ? seq : since, "a", op, phase, line));
    return seq;
  }

  /** Does one thing with a job; false once it has come to its end. */
  #step(job: ModelJob): boolean {
    switch (job.state) {
      case "new":
        this.#enqueue(job);
        return true;
      case "queued":
        if (this.#dice.chance(0.02)) this.#cancel(job);
        else this.#claim(job);
        return true;
      case "running":
        if (this.#dice.chance(0.9) && job.observed) this.#settleByWorker(job);
        else this.#reap(job);
        return true;
      case "dead":
        if (this.#dice.chance(0.3) && job.generation < 3) {
          this.#redrive(job);
          return true;
        }
        this.#observe(job, 1);
        return false;
      default:
        if (this.#dice.chance(0.1)) this.#observe(job, -1);
        return false;
    }
  }

  #enqueue(job: ModelJob): void {
    const { id, key, payloadHash } = job;
    const line = { job: id, key, payloadHash, delayMs: this.#dice.pick([0, 0, 50]) };
    const send = (): number => this.#write("enqueue", "invoke", line);
    const roll = this.#dice.random();
    job.state = "queued";
    job.runAt = this.#time + line.delayMs;
    this.#created++;
    if (roll < 0.03) {
      this.#write("enqueue", "unknown", line, send());
      if (this.#dice.chance(0.3)) return this.#forget(job);
      this.#write("enqueue", "ok", { ...line, asked: id, answer: "duplicate", storeTime: this.#time }, send());
    } else this.#write("enqueue", "ok", { ...line, asked: id, answer: "created", storeTime: this.#time }, send());
    if (key !== null && this.#dice.chance(0.3)) this.#enqueueAgain(job);
    if (this.#dice.chance(0.01)) this.#count();
  }

  /** An enqueue that nobody heard of again and that never reached the store. */
  #forget(job: ModelJob): void {
    job.state = "void";
    this.#created--;
  }

  #enqueueAgain({ id, key, payloadHash }: ModelJob): void {
    const same = this.#dice.chance(0.7);
    const asked = `${id}-again-${this.#seq}`;
    const line = { key, payloadHash: same ? payloadHash : payloadHash + 1_000_000_000, storeTime: this.#time };
    const since = this.#write("enqueue", "invoke", { ...line, job: asked });
    this.#write("enqueue", "ok", { ...line, job: id, asked, answer: same ? "duplicate" : "conflict" }, since);
  }

  #claim(job: ModelJob): void {
    this.#time = Math.max(this.#time, job.runAt);
    job.epoch++;
    job.nonce = `${job.id}:${job.epoch}`;
    job.state = "running";
    job.worker = `w${this.#life}`;
    const whole = { worker: job.worker, nonce: job.nonce };
    const since = this.#write("claim", "invoke", whole);
    job.observed = !this.#dice.chance(0.02);
    if (!job.observed) return void this.#write("claim", "unknown", whole, since);
    this.#write("claim", "ok", { ...this.#lineOf(job), storeTime: this.#time, runAt: job.runAt }, since);
    this.#write("claim", "ok", { ...whole, answer: "taken" }, since);
    this.#write("run", "invoke", this.#lineOf(job));
  }

  #lineOf(job: ModelJob): Line {
    const { id, epoch, nonce, generation, attempts, crashes, payloadHash, worker } = job;
    const counters = { epoch, generation, attempts, crashes, maxAttempts: MAX_ATTEMPTS };
    return { ...counters, job: id, nonce, payloadHash, worker };
  }

  #settleByWorker(job: ModelJob): void {
    const last = job.attempts + 1 >= MAX_ATTEMPTS;
    const roll = this.#dice.random();
    const answer = roll < 0.6 ? "complete" : roll < 0.7 ? "release" : last || roll > 0.95 ? "dead" : "retry";
    const charge = answer === "retry" || answer === "dead" ? 1 : 0;
    const delayMs = answer === "retry" || answer === "release" ? this.#dice.between(0, 100) : -1;
    const line = { ...this.#leaseOf(job), answer, charge, crash: 0, delayMs, worker: job.worker };
    const fate = this.#dice.random();
    if (fate < 0.02) {
      // The answer is lost; whether it counted shows when the worker asks again.
      this.#write("settle", "unknown", line, this.#write("settle", "invoke", line));
      const again = this.#write("settle", "invoke", line);
      if (this.#dice.chance(0.5)) this.#write("settle", "fail", { ...line, answer: "lease_lost" }, again);
      else this.#write("settle", "ok", { ...line, storeTime: this.#time }, again);
    } else {
      const since = this.#write("settle", "invoke", line);
      if (fate < 0.03) this.#write("settle", "fail", line, since);
      if (fate < 0.03) return;
      this.#write("settle", "ok", { ...line, storeTime: this.#time }, since);
    }
    this.#apply(job, answer, charge, 0, delayMs);
  }

  #leaseOf({ id, epoch, nonce, generation }: ModelJob): Line {
    return { job: id, epoch, nonce, generation };
  }

  /** The worker died, or seems to have; a late answer of its own is refused. */
  #reap(job: ModelJob): void {
    this.#time += 2 * LEASE_MS;
    this.#life++;
    const listed = this.#write("expired", "invoke", {});
    this.#write("expired", "ok", { ...this.#lineOf(job), started: true, storeTime: this.#time }, listed);
    const dead = job.attempts + 1 >= MAX_ATTEMPTS || job.crashes >= 2;
    const answer = dead ? "dead" : "retry";
    const line = { ...this.#leaseOf(job), answer, charge: 1, crash: 1, delayMs: dead ? -1 : 0 };
    const since = this.#write("settle", "invoke", line);
    this.#write("settle", "ok", { ...line, storeTime: this.#time }, since);
    if (job.observed && this.#dice.chance(0.5)) {
      const late = { ...this.#leaseOf(job), answer: "complete", charge: 0, crash: 0, worker: job.worker };
      this.#write("settle", "fail", { ...late, answer: "lease_lost" }, this.#write("settle", "invoke", late));
    }
    this.#apply(job, answer, 1, 1, 0);
  }

  #apply(job: ModelJob, answer: string, charge: number, crash: number, delayMs: number): void {
    job.attempts += charge;
    job.crashes += crash;
    job.nonce = null;
    if (answer === "dead") job.letters.push(false);
    job.state = answer === "complete" ? "completed" : answer === "dead" ? "dead" : "queued";
    job.runAt = this.#time + Math.max(0, delayMs);
  }

  #cancel(job: ModelJob): void {
    const since = this.#write("cancel", "invoke", { job: job.id });
    this.#write("cancel", "ok", { job: job.id, answer: "cancelled", storeTime: this.#time }, since);
    job.state = "cancelled";
  }

  #redrive(job: ModelJob): void {
    const line = { job: job.id, generation: job.generation, delayMs: 0 };
    const since = this.#write("redrive", "invoke", line);
    if (this.#dice.chance(0.1)) this.#write("redrive", "unknown", line, since);
    else this.#write("redrive", "ok", { ...line, answer: "redriven", storeTime: this.#time }, since);
    this.#write("redrive", "ok", { ...line, answer: "refused" }, this.#write("redrive", "invoke", line));
    job.letters[job.generation - 1] = true;
    Object.assign(job, { generation: job.generation + 1, attempts: 0, crashes: 0, state: "queued", runAt: this.#time });
  }

  #observe({ id, state, generation }: ModelJob, count: number): void {
    const since = this.#write("observe", "invoke", { job: id });
    this.#write("observe", "ok", { job: id, answer: state, generation, count }, since);
  }

  #count(): void {
    const since = this.#write("count", "invoke", {});
    const counts = { queued: this.#created, running: 0, completed: 0, dead: 0, cancelled: 0 };
    this.#write("count", "ok", { counts }, since);
  }
}

function finalOf(job: ModelJob): FinalJob {
  const { id, key, epoch, generation, attempts, crashes, runAt, payloadHash } = job;
  const counters = { epoch, generation, attempts, crashes, maxAttempts: MAX_ATTEMPTS };
  return { ...counters, id, key, state: job.state as State, runAt, payloadHash };
}
