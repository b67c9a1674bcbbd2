// One process's view of the services that the fleet shares: their records as last read, what this process saw of them,
// and the exchange of both with the store. Workers and the shared breakers of `retryable` use it; the rules are in
// core.
import {
  credible,
  type Evidence,
  confirmation,
  CONFIRMATION_MS,
  isSick,
  noEvidence,
  observe,
  outage,
  type Witness,
  witnessFrom,
} from "../core/evidence.ts";
import { breakerChanged } from "../core/event-log.ts";
import type { Limits } from "../core/service.ts";
import { initialRecord, opened, recordFrom, type ServiceRecord } from "../core/service-record.ts";
import { groupCommit } from "../store/group-commit.ts";
import type { Control, Pause, Store } from "../store/store.ts";
import type { System } from "../system/system.ts";
import { livingAmong } from "./holding.ts";

/** What a watch needs. */
export interface ServiceWatchOptions {
  readonly store: Pick<Store, "control" | "setService" | "cells" | "setCells" | "workers" | "record">;
  readonly system: System;
  readonly limits: Limits;
  /** The name under which evidence is written. */
  readonly holder: () => string;
  /** Calls the store; null if it could not answer. */
  readonly attempt: <T>(what: string, call: () => Promise<T>) => Promise<T | null>;
  /** Called for every record that has changed. */
  readonly onChange: (service: string, record: ServiceRecord, before: ServiceRecord) => void;
  /** Called when this process fails with a service that others reach. */
  readonly onSick: (service: string, until: number) => void;
  /** Called when this process starts or stops to stand back from a service that it alone finds down. */
  readonly onStandBack: (service: string, isOn: boolean) => void;
}

/** How often successes are published; failures are published at once, but no more often than the second value. */
const TELL_MS = 250;
const TELL_FAILURES_MS = 20;
/** Most attempts to change a record that others change too. */
const TRIES = 5;
const GROUP = 1_000;

interface Seen {
  evidence: Evidence;
  /** How often the breaker has closed since this process knows it. */
  period: number;
  /** Successes not yet added to the evidence. */
  successes: number;
  /** The version of the cell that holds the evidence; null where it is not known. */
  version: number | null;
  confirmation: Confirmation | null;
}

/** Only this process finds a service down, and it waits for the evidence of others. */
interface Confirmation {
  /** Its beginning, by our own clock. */
  readonly fromMs: number;
  /** Until about when this process stands back for it; 0 when it no longer does. */
  standsBackUntil: number;
  readonly cancel: () => void;
}

/** A watch over services. */
export class ServiceWatch {
  readonly #options: ServiceWatchOptions;
  readonly #records = new Map<string, { readonly version: number; readonly record: ServiceRecord }>();
  readonly #seen = new Map<string, Seen>();
  readonly #telling: ReturnType<typeof groupCommit<readonly [string, () => void]>>;
  #control: Control | null = null;
  #controlMs = 0;
  #toldMs = Number.NEGATIVE_INFINITY;
  #forget: (() => void) | null = null;
  #isStopped = false;

  constructor(options: ServiceWatchOptions) {
    this.#options = options;
    this.#telling = groupCommit((group) => this.#tell(group), GROUP);
  }

  /** The store's time, as far as it is known. */
  get now(): number {
    const { system } = this.#options;
    return this.#control ? this.#control.now + Math.round(system.monotonic() - this.#controlMs) : system.now();
  }

  /** The version of the last control read. */
  get version(): number {
    return this.#control?.version ?? 0;
  }

  /** Stores the last control read. */
  see(control: Control): void {
    if (this.#control && control.now <= this.#control.now && control.version <= this.#control.version) return;
    this.#control = control;
    this.#controlMs = this.#options.system.monotonic();
    for (const { name, version, value } of control.services) {
      const before = this.#records.get(name);
      if (before?.version === version) continue;
      const record = recordFrom(value);
      this.#records.set(name, { version, record });
      const seen = this.#seen.get(name);
      const { breaker } = record;
      if (seen && breaker.state === "closed" && seen.evidence.since !== breaker.since) {
        seen.evidence = noEvidence(breaker.since);
        // A record read for the first time is not a change.
        if (before) seen.period += 1;
        seen.confirmation?.cancel();
        seen.confirmation = null;
      }
      this.#options.onChange(name, record, before?.record ?? initialRecord);
    }
  }

  /** Reads the control from the store. */
  async look(): Promise<void> {
    const control = await this.#options.attempt("control", () => this.#options.store.control());
    if (control) this.see(control);
  }

  /** Pauses as last read. */
  get pauses(): readonly Pause[] {
    return this.#control?.pauses ?? [];
  }

  /** The services that have a record, or that this process has called. */
  services(): Set<string> {
    return new Set([...this.#records.keys(), ...this.#seen.keys()]);
  }

  record(service: string): ServiceRecord {
    return this.#records.get(service)?.record ?? initialRecord;
  }

  /** What this process saw of the service. */
  evidence(service: string): Evidence {
    return this.#seenOf(service).evidence;
  }

  /** Until when this process avoids the service, because only its own calls fail. */
  sickUntil(service: string): number {
    return this.#seen.get(service)?.evidence.sickUntil ?? 0;
  }

  /**
   * Until about when this process stands back, so that others try the service that it alone finds down; 0 for not at
   * all.
   */
  standsBackUntil(service: string): number {
    return this.#seen.get(service)?.confirmation?.standsBackUntil ?? 0;
  }

  /** The period in which a call begins; its result counts until the breaker closes the next time. */
  period(service: string): number {
    return this.#seenOf(service).period;
  }

  /** Counts an answered call, if it is of this period. */
  succeeded(service: string, period: number): void {
    const seen = this.#seenOf(service);
    if (period !== seen.period) return;
    seen.successes += 1;
    if (seen.evidence.streak > 0) this.#fold(service, seen, 0);
    this.#forget ??= this.#options.system.after(TELL_MS, () => {
      this.#forget = null;
      for (const [name, { successes }] of this.#seen) if (successes > 0) this.#telling.add([name, () => undefined]);
    });
  }

  /** Counts a failure against the service, if of this period; resolves when the evidence of the fleet was read. */
  async failed(service: string, period: number): Promise<void> {
    const seen = this.#seenOf(service);
    if (period !== seen.period) return;
    this.#fold(service, seen, 1);
    return new Promise((resolve) => this.#telling.add([service, resolve]));
  }

  /** Changes the record of a service to what `next` returns; resolves when that is written, or was not needed. */
  async change(service: string, next: (record: ServiceRecord, now: number) => ServiceRecord): Promise<boolean> {
    const { store, attempt } = this.#options;
    if (!this.#control) await this.look();
    for (let tries = 0; tries < TRIES && this.#control; tries++) {
      const { version, record } = this.#records.get(service) ?? { version: 0, record: initialRecord };
      const after = next(record, this.now);
      if (after === record) return false;
      const written = await attempt("service", () => store.setService(service, version, JSON.stringify(after)));
      if (written) this.#record(service, record, after);
      await this.look();
      if (written) return true;
      if (written === null) return false;
    }
    return false;
  }

  /** Writes a change to the event log, which no call waits for. */
  #record(service: string, before: ServiceRecord, after: ServiceRecord): void {
    const { store, attempt, holder } = this.#options;
    const event = breakerChanged(service, before.breaker, after.breaker, holder());
    if (event) void attempt("record", () => store.record([event]));
  }

  /** Stops publishing. */
  stop(): void {
    this.#isStopped = true;
    this.#forget?.();
    for (const seen of this.#seen.values()) seen.confirmation?.cancel();
  }

  #seenOf(service: string): Seen {
    const known = this.#seen.get(service);
    if (known) return known;
    const { breaker } = this.record(service);
    const evidence = noEvidence(breaker.state === "closed" ? breaker.since : 0);
    const seen = { evidence, period: 0, successes: 0, version: 0, confirmation: null };
    this.#seen.set(service, seen);
    return seen;
  }

  #fold(service: string, seen: Seen, failures: number): void {
    const settings = this.#options.limits.service(service).breaker;
    const calls = { successes: seen.successes, failures };
    if (settings) seen.evidence = observe(seen.evidence, calls, settings, this.now);
    seen.successes = 0;
  }

  /** Writes what was seen, reads what others saw where a call failed, and opens breakers of services that are down. */
  async #tell(group: readonly (readonly [string, () => void])[]): Promise<void> {
    const { system } = this.#options;
    try {
      const early = this.#toldMs + TELL_FAILURES_MS - system.monotonic();
      if (early > 0) await system.sleep(early);
      this.#toldMs = system.monotonic();
      const services = [...new Set(group.map(([service]) => service))].sort();
      for (const name of services) this.#fold(name, this.#seenOf(name), 0);
      await this.#publish(services);
      const failing = services.filter((name) => this.#seenOf(name).evidence.streak > 0);
      if (failing.length > 0) await this.#judge(failing);
    } finally {
      for (const [, done] of group) done();
    }
  }

  /**
   * Each write names the cell's version, so it does not wait for a cell that another transaction holds: that one is
   * written the next time.
   */
  async #publish(services: readonly string[]): Promise<void> {
    const { attempt, store, holder } = this.#options;
    const unsure = services.filter((name) => this.#seenOf(name).version === null);
    if (unsure.length > 0) {
      const queries = unsure.map((name) => ({ kind: "evidence", name }));
      const answer = await attempt("evidence", () => store.cells(queries));
      if (!answer) return;
      const own = new Map(
        answer.cells.filter((cell) => cell.holder === holder()).map((cell) => [cell.name, cell.version]),
      );
      for (const name of unsure) this.#seenOf(name).version = own.get(name) ?? 0;
    }
    const changes = services.map((name) => {
      const { evidence, version } = this.#seenOf(name);
      return { kind: "evidence", name, holder: holder(), version, value: JSON.stringify(evidence) };
    });
    const written = await attempt("evidence", () => store.setCells(changes));
    for (const [at, { name, version }] of changes.entries())
      this.#seenOf(name).version = written?.[at] ? (version ?? 0) + 1 : null;
  }

  async #judge(services: readonly string[]): Promise<void> {
    const { attempt, store, limits, holder, onSick } = this.#options;
    const queries = services.map((name) => ({ kind: "evidence", name }));
    // An operator may have opened it by hand meanwhile.
    const [answer] = await Promise.all([attempt("evidence", () => store.cells(queries)), this.look()]);
    for (const service of answer ? services : []) {
      const { breaker } = limits.service(service);
      const seen = this.#seenOf(service);
      const own: Witness = { worker: holder(), evidence: seen.evidence };
      const others = (answer?.cells ?? []).filter((cell) => cell.name === service && cell.holder !== own.worker);
      const witnesses = [own, ...others.flatMap(({ holder: worker, value }) => witnessFrom(worker, value))];
      const { state } = this.record(service).breaker;
      if (!breaker || state !== "closed") continue;
      const { since } = seen.evidence;
      const judged = (heard: readonly Witness[]) => outage(heard, breaker, since, this.now, this.#confirmingMs(seen));
      const living = judged(witnesses) && (await this.#living());
      const heard = living ? credible(witnesses, own, living) : [];
      let found = judged(heard);
      if (living && found && !found.isSure) {
        this.#hear(service, seen, living);
        found = judged(heard);
      }
      if (found?.isSure) {
        const { reason } = found;
        await this.change(service, (record, now) =>
          record.breaker.state === "closed" && record.breaker.since === since
            ? opened(record, reason, breaker, now)
            : record,
        );
      } else if (seen.evidence.sickUntil < this.now && isSick(own, witnesses, breaker)) {
        seen.evidence = { ...seen.evidence, sickUntil: this.now + breaker.openMs };
        onSick(service, seen.evidence.sickUntil);
        this.#telling.add([service, () => undefined]);
      }
    }
  }

  #confirmingMs({ confirmation: held }: Seen): number | null {
    return held ? this.#options.system.monotonic() - held.fromMs : null;
  }

  /** The living workers, without this process; null if the store could not answer. */
  async #living(): Promise<Set<string> | null> {
    const { store, attempt, holder } = this.#options;
    const workers = await attempt("workers", () => store.workers());
    return workers && new Set(livingAmong(workers, this.now).flatMap(({ id }) => (id === holder() ? [] : [id])));
  }

  /**
   * Waits for the evidence of the others, which get the work while this process stands back; without others that ends
   * at once.
   */
  #hear(service: string, seen: Seen, others: ReadonlySet<string>): void {
    const { system, onStandBack } = this.#options;
    if (this.#isStopped || confirmation(this.#confirmingMs(seen)) !== "none") return;
    const fromMs = system.monotonic();
    if (others.size === 0) {
      seen.confirmation = { fromMs: fromMs - CONFIRMATION_MS, standsBackUntil: 0, cancel: () => undefined };
      return;
    }
    const held: Confirmation = {
      fromMs,
      standsBackUntil: this.now + CONFIRMATION_MS,
      // A timer may be a moment early.
      cancel: system.after(CONFIRMATION_MS + 1, () =>
        this.#telling.add([
          service,
          () => {
            held.standsBackUntil = 0;
            onStandBack(service, false);
          },
        ]),
      ),
    };
    seen.confirmation = held;
    onStandBack(service, true);
  }
}
