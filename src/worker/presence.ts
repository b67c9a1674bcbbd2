// A worker's presence in the store: registered, with a notice of what it serves, beating, told what to cancel, and coming
// back under a new id when the others have given it up.
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

/** Whom presence speaks for and to. */
export interface PresenceOptions extends PublishedLoadOptions {
  readonly store: Store;
  readonly system: System;
  readonly contact: Contact;
  readonly settings: WorkerSettings;
  readonly log: Log;
  readonly process: { readonly pid: number; readonly host: string };
  readonly events: WorkerEvents;
  /** Gets a new id when the others have given us up. */
  readonly self: WorkerIdentity;
  readonly hands: InFlight;
  readonly settler: Pick<Settler, "isSettling">;
  readonly services: Pick<Services, "renew">;
  readonly ending: AbortSignal;
}

const BEATS_HERE =
  "the pool connects by a stream or certificates that cannot go to a thread: a handler that blocks the event loop for longer than the lease loses its job";

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
   * Registers and begins to beat; waits for the store until the signal fires. One that is unusable at the very start is told:
   * nobody has worked with it yet, so it will not be mended by waiting.
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
    // Stopped while we waited: what was written must not outlive us.
    if (ending.aborted) return void (await contact.attempt("leave", () => store.leave(id)));
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
    // Nobody waits for it: whoever is given up meanwhile must be able to come back.
    void this.#notice.begin();
  }

  /** Begins again as somebody new; callers that come together share one beginning. */
  comeBack(): Promise<void> {
    this.#comingBack ??= this.#comeBack().finally(() => {
      this.#comingBack = null;
    });
    return this.#comingBack;
  }

  /** Stops beating and leaves; what the worker still holds will be found by others. */
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
      "this worker was given up by the others: its runs are aborted, it comes back under a new id",
    );
    this.#heartbeat?.stop();
    void this.#notice?.end();
    events.emit({ kind: "worker.given_up", worker: self.id });
    this.#stopAll("lease_lost");
    self.id = system.workerId();
    if (!ending.aborted) await this.begin({ isStart: false, until: ending });
  }

  /** True while our own beats are answered in time. Whoever cannot beat must not judge others by their beats. */
  get isHeard(): boolean {
    return this.#options.system.monotonic() - this.#heardAt < this.#options.settings.leaseMs / 2;
  }

  #hear({ alive, cancel }: BeatAnswer): void {
    const { contact, system, services, hands } = this.#options;
    if (!this.isHeard) contact.heldUp(system.monotonic() - this.#heardAt);
    this.#heardAt = system.monotonic();
    if (!alive) this.comeBack().catch((error: unknown) => contact.complain("register", error));
    else {
      services.renew();
      if (cancel.length > 0) hands.cancel(cancel);
      void this.#stopRevoked();
    }
  }

  /** Runs that somebody gave up are told so with the next beat. */
  async #stopRevoked(): Promise<void> {
    const { store, system, settings, contact, self, hands, settler } = this.#options;
    const beganBefore = system.monotonic() - 2 * settings.heartbeatMs;
    const { isSettling } = settler;
    const look = { store, worker: self.id, runs: hands.running, beganBefore, isSettling };
    await contact.attempt("held", () => stopRevoked(look)).catch((error: unknown) => contact.complain("held", error));
  }

  /** Contact was lost for almost a lease: others may soon have our jobs. */
  #silent(): void {
    const { settings, log, self } = this.#options;
    if (settings.onContactLost === "continue") return;
    log.warn({ worker: self.id }, "no contact with the store for almost a lease: runs are aborted");
    this.#stopAll("contact_lost");
  }

  #stopAll(reason: StopReason): void {
    this.#options.hands.releaseAhead();
    this.#options.hands.stop(reason);
  }

  /** Counts as a broken contact; what is no outage is a defect and said so. */
  async #complain(error: unknown): Promise<void> {
    const { contact, log } = this.#options;
    try {
      await contact.attempt("beat", () => Promise.reject(error));
    } catch (defect) {
      log.error({ error: String(defect) }, "the heartbeat failed");
    }
  }
}
