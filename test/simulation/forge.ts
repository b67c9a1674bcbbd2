// Tools to forge histories: each call writes what an honest actor would write, keeps the dump in step, and can be told
// to lie in any field.
import type { State } from "../../src/core/job.ts";
import { check } from "../support/history/check.ts";
import type { FinalDump, FinalJob, FinalRun, Line, Op, Phase, Report } from "../support/history/event.ts";
import { Scribe } from "../support/history/scribe.ts";

type Final = { -readonly [K in keyof FinalJob]: FinalJob[K] };

/** A run to be settled. */
export interface ForgedLease {
  readonly job: string;
  readonly epoch: number;
  readonly nonce: string;
  readonly generation: number;
}

/** A history under the hammer. */
export class Forge {
  readonly scribe = new Scribe();
  readonly jobs = new Map<string, Final>();
  readonly letters: { job: string; generation: number; redriven: boolean }[] = [];
  readonly workers: { id: string; leaseEnd: number; running: number }[] = [];
  /** Jobs put into the dump beside the honest ones. */
  readonly extra: FinalJob[] = [];
  redrives: readonly FinalRun[] = [];
  drained = true;
  time = 10_000;

  /** Writes an invoke and its answer; returns the place of the answer. */
  call(op: Op, sent: Line, phase: Phase, answered: Line): number {
    const since = this.scribe.write("forger", op, "invoke", sent);
    return this.scribe.write("forger", op, phase, { ...sent, storeTime: this.time, ...answered }, since);
  }

  enqueue(id: string, more: Line = {}, phase: Phase = "ok"): void {
    const line = { job: id, payloadHash: 7, delayMs: 0, ...more };
    this.call("enqueue", line, phase, { asked: id, answer: "created", ...more });
    const counters = { epoch: 0, generation: 1, attempts: 0, crashes: 0, maxAttempts: 3 };
    const base = { id, key: line.key ?? null, state: "queued" as State, runAt: this.time };
    this.jobs.set(id, { ...base, ...counters, payloadHash: line.payloadHash });
  }

  claim(id: string, more: Line = {}, since = 0): ForgedLease {
    const job = this.job(id);
    job.epoch++;
    job.state = "running";
    const nonce = `${id}:${job.epoch}`;
    const { epoch, generation, attempts, crashes, maxAttempts, payloadHash, runAt } = job;
    const whole = { nonce, worker: more.worker ?? "w" };
    const sent = this.scribe.write("forger", "claim", "invoke", whole);
    const line = { job: id, epoch, generation, attempts, crashes, maxAttempts, payloadHash, runAt, ...whole };
    this.scribe.write("forger", "claim", "ok", { ...line, storeTime: this.time, ...more }, since || sent);
    this.scribe.write("forger", "claim", "ok", { ...whole, answer: "taken" }, sent);
    return { job: id, epoch, nonce, generation };
  }

  settle(lease: ForgedLease, answer: string, more: Line = {}, phase: Phase = "ok"): void {
    const bad = answer === "retry" || answer === "dead";
    const delayMs = answer === "retry" || answer === "release" ? 0 : -1;
    const line = { ...lease, answer, charge: bad ? 1 : 0, crash: 0, delayMs, worker: "w", ...more };
    this.call("settle", line, phase, {});
    if (phase !== "ok") return;
    const job = this.job(lease.job);
    job.attempts += line.charge;
    job.crashes += line.crash;
    job.state = STATE_AFTER[answer] ?? job.state;
    job.runAt = this.time;
    if (answer === "dead") this.letters.push({ job: lease.job, generation: lease.generation, redriven: false });
  }

  stale(lease: ForgedLease, answer: string): void {
    this.call("settle", { ...lease, answer, charge: 0, crash: 0, worker: "w" }, "fail", { answer: "lease_lost" });
  }

  listed(lease: ForgedLease, more: Line = {}): void {
    const { attempts, crashes } = this.job(lease.job);
    this.call("expired", {}, "ok", { ...lease, attempts, crashes, worker: "w", started: true, ...more });
  }

  beat(worker: string): void {
    this.call("beat", { worker, leaseMs: 1000, startedThrough: 0 }, "ok", { answer: "alive" });
  }

  redrive(id: string, answer = "redriven", more: Line = {}): void {
    const job = this.job(id);
    this.call("redrive", { job: id, generation: job.generation, delayMs: 0, ...more }, "ok", { answer });
    for (const letter of this.letters) if (letter.job === id) letter.redriven = true;
    Object.assign(job, { generation: job.generation + 1, attempts: 0, crashes: 0, state: "queued", runAt: this.time });
  }

  cancel(id: string, answer = "cancelled"): void {
    this.call("cancel", { job: id }, "ok", { answer });
    if (answer === "cancelled") this.job(id).state = "cancelled";
  }

  observe(id: string, state: string, more: Line = {}): void {
    this.call("observe", { job: id }, "ok", { answer: state, generation: this.job(id).generation, ...more });
  }

  job(id: string): Final {
    const job = this.jobs.get(id);
    if (job === undefined) throw new Error(`The forger knows no job ${id}.`);
    return job;
  }

  /** A job from enqueue to completion. */
  whole(id: string, more: Line = {}): void {
    this.enqueue(id, more);
    this.settle(this.claim(id), "complete");
  }

  /** A job that died at its first run. */
  dead(id: string): void {
    this.enqueue(id);
    this.settle(this.claim(id), "dead");
  }

  check(): Report {
    const jobs = [...this.jobs.values(), ...this.extra];
    const { letters, workers, redrives, time: storeTime, drained } = this;
    const dump: FinalDump = { jobs, letters, workers, redrives, storeTime, drained };
    return check(this.scribe.events, dump);
  }
}

const STATE_AFTER: Readonly<Record<string, State>> = {
  complete: "completed",
  retry: "queued",
  release: "queued",
  dead: "dead",
  cancel: "cancelled",
};
