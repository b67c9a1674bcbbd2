// Everything a worker knows about outside services and limits, in one object: the watch over the fleet's records, the
// gate that holds work back, and the allowances that spread it over time.
import { isRedriveError } from "../core/errors.ts";
import type { Job } from "../core/job.ts";
import type { ActiveLane } from "../core/lane.ts";
import { pausedMs } from "../core/paused.ts";
import { isOpen } from "../core/claim-plan.ts";
import type { Limits } from "../core/service.ts";
import { BREAKER_WORDS, parkedSpans, type ServiceRecord } from "../core/service-record.ts";
import type { Outcome } from "../core/verdict.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { ServiceWatch } from "./service-watch.ts";
import type { ClaimedJob, Control, Store } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import { Allowances } from "./allowances.ts";
import type { Contact } from "../store/store-contact.ts";
import { Gate } from "./service-gate.ts";
import { grantsOf } from "./grants.ts";
import type { WorkerEvents } from "../report/reporter.ts";

/** What services need. */
export interface ServicesOptions {
  readonly store: Store;
  readonly system: System;
  readonly contact: Contact;
  readonly log: Log;
  readonly events: WorkerEvents;
  readonly limits: Limits;
  readonly jobs: readonly JobDefinition[];
  /** Jobs that can start within moments. */
  readonly soon: () => number;
  /** Jobs of a type that the worker holds. */
  readonly countOf: (type: string) => number;
  readonly worker: () => string;
  readonly leaseMs: number;
  /** Called when work of the service may no longer start. */
  readonly onHeldBack: (service: string) => void;
  /** Called when it may start again. */
  readonly onReleased: () => void;
}

/** The services of one worker. */
export class Services implements Pick<Gate, "start" | "heard"> {
  readonly #watch: ServiceWatch;
  readonly #options: ServicesOptions;
  readonly #gate: Gate;
  readonly #allowances: Allowances;

  constructor(options: ServicesOptions) {
    const { store, system, contact, limits, worker, leaseMs, log, events } = options;
    this.#options = options;
    this.#watch = new ServiceWatch({
      store,
      system,
      limits,
      holder: worker,
      // No caller awaits these calls, so an error is logged and the exchange continues.
      attempt: (what, call) =>
        contact
          .attempt(what, () => unlessHeld(call, (error) => contact.isAway(what, error)))
          .catch((error: unknown) => {
            contact.complain(what, error);
            return null;
          }),
      onChange: (service, record, before) => this.#changed(service, record, before),
      onSick: (service, until) => {
        log.warn({ service }, `only this worker fails with ${service}: it takes no jobs of the service for a while`);
        events.emit({ kind: "worker.sick", worker: worker(), service, until });
        options.onHeldBack(service);
      },
      onStandBack: (service, isOn) => (isOn ? options.onHeldBack(service) : options.onReleased()),
    });
    this.#gate = new Gate({ watch: this.#watch, limits, worker, probeMs: leaseMs, system });
    this.#allowances = new Allowances({ store, watch: this.#watch, limits, soon: options.soon });
  }

  /** What may be taken: zero for paused and parked work; for types with a concurrency limit what their slots allow. */
  grants(control: Control): Map<string, number> {
    this.#watch.see(control);
    const grants = grantsOf(control, this.#options.jobs, this.#options.countOf);
    for (const service of this.#watch.services()) {
      const grant = this.#gate.grant(service);
      const name = `service:${service}`;
      if (grant !== null) grants.set(name, Math.min(grants.get(name) ?? grant, grant));
    }
    return grants;
  }

  /** Takes probes for services whose time has come, if these lanes have work for them that nothing else holds back. */
  probe(lanes: readonly ActiveLane[], control: Control): Promise<void> {
    const grants = grantsOf(control, this.#options.jobs, this.#options.countOf);
    return this.#gate.probe(lanes.filter((lane) => isOpen(lane, grants)));
  }

  /** True if nothing has changed since this version, as far as is known. */
  isCurrent(control: number): boolean {
    return this.#watch.version === control;
  }

  /** Extends the probes, because the worker lives. */
  renew(): void {
    void this.#gate.renew();
  }

  /** The allowances; null while nothing is limited. */
  spread(): Allowances | null {
    return this.#allowances.areNeeded() ? this.#allowances : null;
  }

  /** How long until more of these lanes may start; null where no limit holds them back. */
  nextMs(lanes: readonly ActiveLane[]): number | null {
    const waits = [this.#gate.nextMs(lanes), this.#allowances.nextMs()].filter((ms) => ms !== null);
    return waits.length === 0 ? null : Math.min(...waits);
  }

  /** Records what was claimed. */
  claimed(jobs: Parameters<Allowances["spend"]>[0]): void {
    this.#allowances.spend(jobs);
  }

  start(job: Pick<ClaimedJob, "service">): Outcome | null {
    return this.#gate.start(job);
  }

  heard(job: Pick<ClaimedJob, "service">, outcome: Outcome): Outcome | Promise<Outcome> {
    if (outcome.kind === "completed" && job.service !== null) this.#allowances.earn(job.service);
    return this.#gate.heard(job, outcome);
  }

  /** How long a job was paused or parked since it became due, as far as is known. */
  heldMs(job: Job, until: number): number {
    const { service, dueAt } = job;
    const parked = service === null ? [] : parkedSpans(this.#watch.record(service), service);
    return pausedMs([...this.#watch.pauses, ...parked], job, dueAt, until);
  }

  stop(): void {
    this.#watch.stop();
  }

  #changed(service: string, { breaker, holdUntil }: ServiceRecord, before: ServiceRecord): void {
    const { log, events, onHeldBack, onReleased } = this.#options;
    if (breaker.state !== before.breaker.state) {
      this.#allowances.forget(service);
      const why = "reason" in breaker ? `: ${breaker.reason}` : "";
      const level = breaker.state === "open" || breaker.state === "isolated" ? "warn" : "info";
      log[level]({ service }, `the breaker of ${service} is ${BREAKER_WORDS[breaker.state]}${why}`);
      events.emit({ kind: "breaker.changed", service, state: breaker.state, before: before.breaker.state });
    }
    if (breaker.state !== "closed" || holdUntil > this.#watch.now) onHeldBack(service);
    else onReleased();
  }
}

/**
 * The answer of a call; null, and the error is reported, where another transaction holds a row: the store itself is
 * available.
 */
async function unlessHeld<T>(call: () => Promise<T>, tell: (error: unknown) => void): Promise<T | null> {
  try {
    return await call();
  } catch (error) {
    if (!isRedriveError(error, "store_unavailable") || error.details.key !== "locked") throw error;
    tell(error);
    return null;
  }
}
