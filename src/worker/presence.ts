// A worker's presence in the store: it registers, publishes what it serves, sends heartbeats, learns what to cancel,
// and comes back under a new id when the fleet has given it up.
import { releaseSeen } from "../core/event-log.ts";
import { isRedriveError } from "../core/errors.ts";
import type { BeatAnswer, Store } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import type { Contact } from "../store/store-contact.ts";
import type { WorkerEvents } from "../report/reporter.ts";
import type { Services } from "../services/services.ts";
import type { WorkerIdentity } from "./dependencies.ts";
import { type Heartbeat, startHeartbeat } from "./heartbeat.ts";
import type { InFlight } from "./in-flight.ts";
import { stopRevoked } from "./revoked-runs.ts";
import type { StopReason } from "./run.ts";
import type { Settler } from "./settler.ts";
import { PublishedLoad, type PublishedLoadOptions } from "./published-load.ts";
import type { WorkerSettings } from "./settings.ts";

/** What presence needs, and its callbacks. */
export interface PresenceOptions extends PublishedLoadOptions {
  readonly store: Store;
  readonly system: System;
  readonly contact: Contact;
  readonly settings: WorkerSettings;
  readonly log: Log;
  readonly process: { readonly pid: number; readonly host: string };
  readonly events: WorkerEvents;
  /** Gets a new id when the fleet has given us up. */
  readonly self: WorkerIdentity;
  readonly inFlight: InFlight;
  readonly settler: Pick<Settler, "isSettling">;
  readonly services: Pick<Services, "renew">;
  readonly ending: AbortSignal;
}

const BEATS_HERE =
  "the pool connects with a stream or certificates that cannot be passed to a thread: a handler that blocks the event loop for longer than the lease loses its job";

/** The presence of one worker. */
export class Presence {
  readonly #options: PresenceOptions;
  #heartbeat: Heartbeat | null = null;
  #notice: PublishedLoad | null = null;
  #heardAt = 0;
  #comingBack: Promise<void> | null = null;

  constructor(options: PresenceOptions) {
    this.#options = options;
  }

  /**
   * Registers and starts the heartbeat; waits for the store until the signal fires. A store that is unusable at the
   * start is an error: it never worked, so waiting does not help.
   */
  async begin({ isStart, until }: { readonly isStart: boolean; readonly until: AbortSignal }): Promise<void> {
    const { store, system, contact, settings, process, ending, self } = this.#options;
    const { id } = self;
    const { leaseMs, heartbeatMs, stallMs, release } = settings;
    const worker = { id, leaseMs, release, pid: process.pid, host: process.host };
    const register = async (): Promise<{ readonly refused: Error | null }> => {
      try {
        await store.register(worker);
        return { refused: null };
      } catch (error) {
        if (isStart && isRedriveError(error, "store_unusable")) return { refused: error };
        throw error;
      }
    };
    const registered = await contact.insist("register", register, until);
    if (registered?.refused) throw registered.refused;
    if (!registered) return;
    // Stopped while we waited: the registration must not outlive the worker.
    if (ending.aborted) return void (await contact.attempt("leave", () => store.leave(id)));
    if (isStart && release !== null)
      void contact
        .attempt("record", () => store.record([releaseSeen(release, id)]))
        .catch((error: unknown) => contact.complain("record", error));
    this.#heardAt = system.monotonic();
    this.#heartbeat = startHeartbeat({
      store,
      system,
      worker: id,
      leaseMs,
      everyMs: heartbeatMs,
      stallMs,
      startedThrough: () => self.startedThrough,
      onAnswer: (answer) => this.#hear(answer),
      onFailure: (error) => void this.#complain(error),
      onSilence: () => this.#silent(),
    });
    if (isStart && store.remote && !store.pulse) this.#options.log.warn({ worker: id }, BEATS_HERE);
    this.#notice = new PublishedLoad(id, this.#options);
    // Not awaited: a worker that is given up meanwhile must be able to come back.
    void this.#notice.begin();
  }

  /** Registers again under a new id; concurrent callers share one registration. */
  comeBack(): Promise<void> {
    this.#comingBack ??= this.#comeBack().finally(() => {
      this.#comingBack = null;
    });
    return this.#comingBack;
  }

  /** Stops the heartbeat and leaves; other workers will find what this worker still holds. */
  async end(): Promise<void> {
    const { contact, store, self } = this.#options;
    this.#heartbeat?.stop();
    const leaving = contact.attempt("leave", () => store.leave(self.id)).catch(() => null);
    await Promise.all([this.#notice?.end(), leaving]);
  }

  async #comeBack(): Promise<void> {
    const { log, system, ending, events, self } = this.#options;
    log.warn(
      { worker: self.id },
      "the fleet gave up this worker: its runs are aborted, and it comes back under a new id",
    );
    this.#heartbeat?.stop();
    void this.#notice?.end();
    events.emit({ kind: "worker.given_up", worker: self.id });
    this.#stopAll("lease_lost");
    self.id = system.workerId();
    if (!ending.aborted) await this.begin({ isStart: false, until: ending });
  }

  /** True while our heartbeats are answered in time. A worker without heartbeats must not judge others by theirs. */
  get isHeard(): boolean {
    return this.#options.system.monotonic() - this.#heardAt < this.#options.settings.leaseMs / 2;
  }

  #hear({ alive, cancel }: BeatAnswer): void {
    const { contact, system, services, inFlight } = this.#options;
    if (!this.isHeard) contact.heldUp(system.monotonic() - this.#heardAt);
    this.#heardAt = system.monotonic();
    if (!alive) this.comeBack().catch((error: unknown) => contact.complain("register", error));
    else {
      services.renew();
      if (cancel.length > 0) inFlight.cancel(cancel);
      void this.#stopRevoked();
    }
  }

  /** Runs that another process gave up are stopped with the next heartbeat. */
  async #stopRevoked(): Promise<void> {
    const { store, system, settings, contact, self, inFlight, settler } = this.#options;
    const beganBefore = system.monotonic() - 2 * settings.heartbeatMs;
    const { isSettling } = settler;
    const look = { store, worker: self.id, runs: inFlight.running, beganBefore, isSettling };
    await contact.attempt("held", () => stopRevoked(look)).catch((error: unknown) => contact.complain("held", error));
  }

  /** Contact was lost for almost a lease: other workers may soon have our jobs. */
  #silent(): void {
    const { settings, log, self } = this.#options;
    if (settings.onContactLost === "continue") return;
    log.warn({ worker: self.id }, "no contact with the store for almost a lease: runs are aborted");
    this.#stopAll("contact_lost");
  }

  #stopAll(reason: StopReason): void {
    this.#options.inFlight.releaseAhead();
    this.#options.inFlight.stop(reason);
  }

  /** Counts as broken contact; an error that is not an outage is a defect and is logged as one. */
  async #complain(error: unknown): Promise<void> {
    const { contact, log } = this.#options;
    try {
      await contact.attempt("beat", () => Promise.reject(error));
    } catch (defect) {
      log.error({ error: String(defect) }, "the heartbeat failed");
    }
  }
}
