// The breaker of one process, for one function of `retryable` or shared by several: a fleet of one, which keeps its
// record in a variable and has no other workers to hear.
//
// A closed breaker admits every call with the same number, which changes with the period: reports of calls from an
// earlier period do not count. Every probe has its own number, so that a slow call from before the opening is not taken
// for a probe.
import { type BreakerOptions, type BreakerSettings, countsAgainstService, resolveBreaker } from "../core/breaker.ts";
import { type Evidence, CONFIRMATION_MS, noEvidence, observe, outage } from "../core/evidence.ts";
import type { FailureClass } from "../core/job.ts";
import { checkName } from "../core/new-job.ts";
import { initialRecord, mayProbe, opened, probed, type ServiceRecord, withProbe } from "../core/service-record.ts";
import { realSystem } from "../system/real.ts";
import type { System } from "../system/system.ts";
import { type CircuitBreaker, RecordedBreaker, REFUSED } from "./call-breaker.ts";

/** Successes are counted in groups, this many to a window: the cost of a breaker while all is well. */
const GROUPS = 60;
/** How long a probe may take. */
const PROBE_MS = 300_000;

/** Makes a breaker that several functions can share; the name is that of the service it guards. */
export function createBreaker(name: string, options: BreakerOptions = {}): CircuitBreaker {
  return breakerOn(realSystem)(name, options);
}

/** `createBreaker` with another clock than the machine's. */
export function breakerOn(system: System): typeof createBreaker {
  return (name: string, options?: BreakerOptions) => {
    checkName("breaker.name", name);
    return new ProcessBreaker(name, resolveBreaker(options), system);
  };
}

/** A breaker of this process. Admission and success are on the path of every call, so they allocate nothing. */
export class ProcessBreaker extends RecordedBreaker {
  protected readonly title: string;
  protected readonly settings: { readonly breaker: BreakerSettings; readonly rampMs: 0 };
  readonly #groupMs: number;
  #record = initialRecord;
  #evidence = noEvidence(0);
  /** The number that admits every call while it is closed, else `REFUSED`; and the last number used. */
  #admission = 0;
  #last = 0;
  /** Successes not yet added to the evidence, and when the first of them was. */
  #successes = 0;
  #since = 0;

  constructor(name: string, breaker: BreakerSettings, system: System) {
    super(name, system);
    this.title = `breaker ${name}`;
    this.settings = { breaker, rampMs: 0 };
    this.#groupMs = breaker.windowMs / GROUPS;
  }

  admit(): number {
    if (this.#admission >= 0) return this.#admission;
    if (!mayProbe(this.#record, this.settings.breaker, this.now)) {
      this.refused++;
      return REFUSED;
    }
    const probe = ++this.#last;
    this.change((record, now) => withProbe(record, `${probe}`, PROBE_MS, now));
    return probe;
  }

  succeeded(admission: number): void {
    if (admission !== this.#admission) return this.#probed(admission, "success");
    const now = this.system.now();
    if (this.#successes > 0 && now - this.#since >= this.#groupMs) this.#addSuccesses();
    if (this.#successes++ === 0) this.#since = now;
  }

  failed(admission: number, found: FailureClass): void {
    const speaks = countsAgainstService(found);
    if (admission !== this.#admission) return this.#probed(admission, speaks ? "failure" : "neutral");
    if (!speaks) return;
    const { breaker } = this.settings;
    const { now } = this;
    this.#addSuccesses();
    const evidence = observe(this.#evidence, { successes: 0, failures: 1 }, breaker, now);
    this.#evidence = evidence;
    const down = outage([{ worker: this.name, evidence }], breaker, evidence.since, now, CONFIRMATION_MS);
    if (down) this.change((record) => opened(record, down.reason, breaker, now));
  }

  lost(admission: number): void {
    if (admission !== this.#admission) this.#probed(admission, "neutral");
  }

  protected get record(): ServiceRecord {
    return this.#record;
  }

  protected get evidence(): Evidence {
    this.#addSuccesses();
    return this.#evidence;
  }

  protected get now(): number {
    return this.system.now();
  }

  protected change(next: (record: ServiceRecord, now: number) => ServiceRecord): void {
    const before = this.#record;
    const after = next(before, this.now);
    this.#record = after;
    if (after === before || (after.breaker.state === "half_open" && before.breaker.state === "half_open")) return;
    this.#admission = after.breaker.state === "closed" ? ++this.#last : REFUSED;
    this.#successes = 0;
    this.#evidence = noEvidence(after.breaker.since);
  }

  #probed(admission: number, result: "success" | "failure" | "neutral"): void {
    this.change((record, now) => probed(record, `${admission}`, result, this.settings, now));
  }

  #addSuccesses(): void {
    if (this.#successes === 0) return;
    const calls = { successes: this.#successes, failures: 0 };
    this.#evidence = observe(this.#evidence, calls, this.settings.breaker, this.#since);
    this.#successes = 0;
  }
}
