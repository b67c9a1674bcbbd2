// Stands between jobs and the services they depend on: lets work through, holds it back while a breaker is open, sends
// probes, and records how every run ended. Core decides; the gate asks it, and keeps the permits.
import { countsAgainstService } from "../core/breaker.ts";
import type { ActiveLane } from "../core/lane.ts";
import type { Limits } from "../core/service.ts";
import { heldFor, isHeldBack, mayProbe, probed, renewed, withoutBreaker, withProbe } from "../core/service-record.ts";
import { type Outcome, outcomeWhenOpen } from "../core/verdict.ts";
import type { ServiceWatch } from "./service-watch.ts";
import type { ClaimedJob } from "../store/store.ts";
import type { System } from "../system/system.ts";

/** What a gate needs. */
export interface GateOptions {
  readonly watch: ServiceWatch;
  readonly limits: Limits;
  readonly worker: () => string;
  /** How long a probe may take. */
  readonly probeMs: number;
  readonly system: Pick<System, "after">;
}

/** How long other work waits for the store's answer about a probe. */
const ASK_MOST_MS = 250;

/** A gate that is always open, for runs outside a worker. */
export const OPEN_GATE: Pick<Gate, "start" | "heard"> = { start: () => null, heard: (_, outcome) => outcome };

/** The part of a job that the gate needs. */
type Gated = Pick<ClaimedJob, "service">;

/** A permit to probe a service: until when it is valid, and since when the breaker that gave it had been half-open. */
interface Permit {
  readonly until: number;
  readonly halfOpenSince: number;
}

/** The gate of one worker. */
export class Gate {
  readonly #options: GateOptions;
  readonly #permits = new Map<string, Permit[]>();
  /** Services for which a probe is being requested. */
  readonly #asking = new Map<string, Promise<void>>();
  /** The periods in which runs began. */
  readonly #periods = new WeakMap<Gated, number>();
  /** Runs that are probes. */
  readonly #probing = new Set<Gated>();
  /** The run with which this worker tries a service again that it alone could not reach, and how long that may take. */
  readonly #trials = new Map<string, { readonly job: Gated; readonly until: number }>();
  /** The last request to wait (`Retry-After`) of each service, while it is written to the store. */
  readonly #wishes = new Map<string, Promise<boolean>>();

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /** How many jobs of a service may be taken; null for no limit. */
  grant(service: string): number | null {
    const { watch, limits } = this.#options;
    const record = watch.record(service);
    const { now } = watch;
    if (record.holdUntil > now) return 0;
    if (record.breaker.state !== "closed") {
      // Jobs that do not wait for the breaker are taken and get their outcome at start.
      return limits.service(service).whenOpen === "park" ? this.#permitsOf(service, now).length : null;
    }
    if (watch.standsBackUntil(service) > 0) return 0;
    if (watch.sickUntil(service) === 0) return null;
    return this.#mayTry(service, now) ? 1 : 0;
  }

  /**
   * Takes a probe for each service among these lanes whose time has come; a breaker that is switched off is closed
   * instead. If the answer takes long, because another transaction holds the record of the service, other work does not
   * wait for it.
   */
  async probe(lanes: readonly ActiveLane[]): Promise<void> {
    const { watch, system } = this.#options;
    const asked: Promise<void>[] = [];
    for (const service of new Set(lanes.map((lane) => lane.service))) {
      if (service === null || this.#asking.has(service) || watch.record(service).breaker.state === "closed") continue;
      const ask = this.#ask(service).finally(() => this.#asking.delete(service));
      this.#asking.set(service, ask);
      asked.push(ask);
    }
    if (asked.length === 0) return;
    let forget: () => void = () => undefined;
    const late = new Promise<void>((resolve) => (forget = system.after(ASK_MOST_MS, resolve)));
    await Promise.race([Promise.all(asked), late]).finally(forget);
  }

  async #ask(service: string): Promise<void> {
    const { watch, limits, worker, probeMs } = this.#options;
    const { breaker } = limits.service(service);
    if (!breaker) await watch.change(service, withoutBreaker);
    if (!breaker || !mayProbe(watch.record(service), breaker, watch.now)) return;
    if (this.#permitsOf(service, watch.now).length > 0) return;
    const taken = await watch.change(service, (record, now) =>
      mayProbe(record, breaker, now) ? withProbe(record, worker(), probeMs, now) : record,
    );
    if (!taken) return;
    const halfOpenSince = watch.record(service).breaker.since;
    this.#permitsOf(service, watch.now).push({ until: watch.now + probeMs, halfOpenSince });
  }

  /** Extends the time of probes that still run: a probe that takes longer than a lease is not lost. */
  async renew(): Promise<void> {
    const { watch, worker, probeMs } = this.#options;
    const running = new Map<string, number>();
    for (const { service } of this.#probing)
      if (service !== null) running.set(service, (running.get(service) ?? 0) + 1);
    for (const [service, count] of running)
      await watch.change(service, (record, now) => renewed(record, worker(), count, probeMs, now));
  }

  /** How long until one of these services may be tried again; null where none is held back for a known time. */
  nextMs(lanes: readonly ActiveLane[]): number | null {
    const { watch } = this.#options;
    const { now } = watch;
    let next: number | null = null;
    for (const service of new Set(lanes.map((lane) => lane.service))) {
      if (service === null) continue;
      const { breaker, holdUntil } = watch.record(service);
      const until = "until" in breaker ? (breaker.until ?? 0) : 0;
      const own = [watch.sickUntil(service), watch.standsBackUntil(service)];
      for (const at of [until, holdUntil, ...own]) if (at > now) next = Math.min(next ?? at, at);
    }
    return next === null ? null : Math.max(1, next - now);
  }

  /** The outcome of a job that may not start; null if it may. */
  start(job: Gated): Outcome | null {
    if (job.service === null) return null;
    const { watch, limits } = this.#options;
    const record = watch.record(job.service);
    const { now } = watch;
    if (!isHeldBack(record, now)) {
      this.#periods.set(job, watch.period(job.service));
      return watch.sickUntil(job.service) === 0 ? null : this.#try(job, job.service, now);
    }
    if (record.breaker.state === "closed") return { kind: "released", reason: "rate_limit", delayMs: 0 };
    if (this.#permitsOf(job.service, now).pop() !== undefined) {
      this.#probing.add(job);
      return null;
    }
    return outcomeWhenOpen(job.service, record.breaker, limits.service(job.service).whenOpen);
  }

  /** Records how a run ended; answers the outcome that counts now that the fleet knows. */
  heard(job: Gated, outcome: Outcome): Outcome | Promise<Outcome> {
    const { service } = job;
    if (service === null) return outcome;
    const known = this.#judge(job, service, outcome);
    if (outcome.kind !== "failed") return known;
    const { class: found, retryAfterMs = 0 } = outcome.failure;
    return retryAfterMs > 0 || found === "rate_limited" ? this.#afterWish(service, retryAfterMs, known) : known;
  }

  #judge(job: Gated, service: string, outcome: Outcome): Outcome | Promise<Outcome> {
    const { watch, limits } = this.#options;
    const { breaker, rampMs } = limits.service(service);
    if (!breaker) return outcome;
    const speaks = outcome.kind === "failed" && countsAgainstService(outcome.failure.class);
    const result = outcome.kind === "completed" ? "success" : speaks ? "failure" : "neutral";
    if (!speaks) this.#tried(job, service);
    if (this.#probing.delete(job)) {
      const worker = this.#options.worker();
      void watch.change(service, (record, now) => probed(record, worker, result, { breaker, rampMs }, now));
      return result === "failure" ? { kind: "released", reason: "breaker", delayMs: 0 } : outcome;
    }
    if (result === "neutral") return outcome;
    const period = this.#periods.get(job) ?? watch.period(service);
    if (result === "success") {
      watch.succeeded(service, period);
      return outcome;
    }
    return this.#afterFailure(job, service, period, outcome);
  }

  /**
   * Releases the run where its failure is not the job's: the breaker has opened since it began, or this worker stands
   * back from the service.
   */
  async #afterFailure(job: Gated, service: string, period: number, outcome: Outcome): Promise<Outcome> {
    const { watch } = this.#options;
    await watch.failed(service, period);
    this.#tried(job, service);
    const standsBack = watch.standsBackUntil(service) > 0 || watch.sickUntil(service) > watch.now;
    const hasOpened = period !== watch.period(service) || watch.record(service).breaker.state !== "closed";
    return standsBack || hasOpened ? { kind: "released", reason: "breaker", delayMs: 0 } : outcome;
  }

  /**
   * A run that is told to wait while the service already waits began before that was known, and is not charged; the
   * first one is.
   */
  async #afterWish(service: string, ms: number, known: Outcome | Promise<Outcome>): Promise<Outcome> {
    // One after another, because many runs may be told at once: only the first needs to write it.
    const wish = (this.#wishes.get(service) ?? Promise.resolve()).then(() => this.#holds(service, ms));
    this.#wishes.set(service, wish);
    const isKnown = await wish;
    if (this.#wishes.get(service) === wish) this.#wishes.delete(service);
    const outcome = await known;
    return isKnown && outcome.kind === "failed" ? { kind: "released", reason: "rate_limit", delayMs: 0 } : outcome;
  }

  /** Holds the service for so long; true if it was already held. */
  async #holds(service: string, ms: number): Promise<boolean> {
    let isHeld = false;
    await this.#options.watch.change(service, (record, now) => {
      isHeld = record.holdUntil > now;
      return ms > 0 ? heldFor(record, ms, now) : record;
    });
    return isHeld;
  }

  /** Lets one job through to try the service again; other jobs go back. */
  #try(job: Gated, service: string, now: number): Outcome | null {
    if (!this.#mayTry(service, now)) return { kind: "released", reason: "breaker", delayMs: 0 };
    this.#trials.set(service, { job, until: now + this.#options.probeMs });
    return null;
  }

  #mayTry(service: string, now: number): boolean {
    return this.#options.watch.sickUntil(service) <= now && (this.#trials.get(service)?.until ?? 0) <= now;
  }

  #tried(job: Gated, service: string): void {
    if (this.#trials.get(service)?.job === job) this.#trials.delete(service);
  }

  /** A permit ends with the half-open breaker that gave it: one that has opened again lets nothing through. */
  #permitsOf(service: string, now: number): Permit[] {
    const { state, since } = this.#options.watch.record(service).breaker;
    const good = (this.#permits.get(service) ?? []).filter(
      ({ until, halfOpenSince }) => until > now && state === "half_open" && since === halfOpenSince,
    );
    this.#permits.set(service, good);
    return good;
  }
}
