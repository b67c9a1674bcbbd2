// A worker: one process that takes work. It composes the parts (claim loop, held jobs, settler, presence, reaping) and
// owns their lifecycle: start, stop, drain.
import { textOf } from "../core/failure.ts";
import { openReporter, unbreakable, type WorkerCounts, zeroCounts } from "../report/reporter.ts";
import { Services } from "../services/services.ts";
import { type Contact, openContact } from "../store/store-contact.ts";
import { AloneReservation } from "./alone-reservation.ts";
import { ClaimLoop, type ClaimLoopDependencies } from "./claim-loop.ts";
import type { WorkerDependencies, WorkerIdentity } from "./dependencies.ts";
import { drained } from "./drain.ts";
import { InFlight } from "./in-flight.ts";
import { LastSigns } from "./last-signs.ts";
import { Presence } from "./presence.ts";
import { Reaping } from "./reaping.ts";
import { openSettler } from "./settler.ts";
import { WakeableSleep } from "./wakeable-sleep.ts";
import { atMost, LAST_WORDS_MS, STOP_WITHIN_MS, windDown } from "./wind-down.ts";

/** A worker. Nothing happens before `start`; `start` and `stop` may be called twice. */
export class QueueWorker {
  /** What it has done so far. */
  readonly counts: WorkerCounts = zeroCounts();
  /** Its contact with the store, shared with the services beside it. */
  readonly contact: Contact;
  /** The signs of its last look, for the services beside it. */
  readonly signs: LastSigns;
  readonly #parts: ClaimLoopDependencies;
  readonly #loop: ClaimLoop;
  readonly #claiming = new AbortController();
  readonly #ending = new AbortController();
  readonly #hurry = new AbortController();
  #claimed: Promise<void> = Promise.resolve();
  #reaped: Promise<void> = Promise.resolve();
  #started: Promise<void> | null = null;
  #stopping: Promise<void> | null = null;

  constructor(given: WorkerDependencies) {
    const { system, log, jobs, settings, flow, meter } = given;
    const events = unbreakable(given.events, log);
    const definitions = new Map(jobs.map((definition) => [definition.type, definition]));
    const self: WorkerIdentity = { id: system.workerId(), startedThrough: 0, isStopping: false };
    this.contact = openContact(system, log);
    this.signs = new LastSigns(system);
    const shared = {
      ...given,
      events,
      definitions,
      self,
      contact: this.contact,
      signs: this.signs,
      counts: this.counts,
      report: openReporter({
        log,
        events: given.events,
        counts: this.counts,
        definitions,
        now: system.now,
        ...(flow && { flow }),
        ...(meter && { meter }),
      }),
      sleep: new WakeableSleep(system),
      claiming: this.#claiming.signal,
      ending: this.#ending.signal,
    };
    const onError = (error: unknown): void => log.error({ error: textOf(error) }, "a verdict could not be written");
    const settler = openSettler({ ...shared, release: settings.release, giveUp: shared.ending, onError });
    // Slots and services depend on each other: services decide what may start, and ask which jobs are held.
    const services: Services = new Services({
      ...shared,
      worker: () => self.id,
      leaseMs: settings.leaseMs,
      countOf: (type) => inFlight.countOf(type),
      soon: () => inFlight.soon,
      onHeldBack: (service) => inFlight.releaseAhead(service),
      onReleased: shared.sleep.wake,
    });
    const inFlight: InFlight = new InFlight({ ...shared, settler, services });
    const presence = new Presence({ ...shared, settler, services, inFlight });
    const reaping = new Reaping({ ...shared, services, presence });
    const alone = new AloneReservation({ ...shared, inFlight });
    this.#parts = { ...shared, settler, services, inFlight, presence, reaping, alone };
    this.#loop = new ClaimLoop(this.#parts);
  }

  /** Its present id; a worker that was given up comes back under a new one. */
  get id(): string {
    return this.#parts.self.id;
  }

  /** What it has claimed and not settled, in slots. */
  get held(): number {
    return this.#parts.inFlight.held;
  }

  /** Its slots; those that are lost to handlers are neither busy nor free. */
  get slots(): { readonly busy: number; readonly free: number; readonly leaked: number } {
    const { concurrency, slots, free } = this.#parts.inFlight;
    return { busy: slots - free, free, leaked: concurrency - slots };
  }

  /** True while in contact with the store and taking work. */
  get isReady(): boolean {
    return this.#loop.look !== null && !this.#claiming.signal.aborted && this.contact.isUp();
  }

  start(): Promise<void> {
    // If it was stopped before it began, it does not begin.
    if (!this.#started && this.#claiming.signal.aborted) return Promise.resolve();
    return (this.#started ??= this.#start().catch((error: unknown) => {
      this.#started = null;
      throw error;
    }));
  }

  /** Stops claiming, lets runs finish within the time, then aborts and releases them uncharged. */
  stop({ withinMs = STOP_WITHIN_MS }: { readonly withinMs?: number } = {}): Promise<void> {
    if (this.#stopping) this.#hurryUp(withinMs, this.#stopping);
    this.#claiming.abort();
    this.#parts.self.isStopping = true;
    this.#stopping ??= this.#started ? this.#stop(withinMs) : Promise.resolve();
    return this.#stopping;
  }

  /** A second stop with less time shortens the first. */
  #hurryUp(withinMs: number, stopping: Promise<void>): void {
    const forget = this.#parts.system.after(withinMs, () => this.#hurry.abort());
    void stopping.finally(forget);
  }

  /** Works until no job is held, none is due and none falls due within the grace; then stops. */
  async drain({ graceMs }: { readonly graceMs: number }): Promise<WorkerCounts> {
    await this.start();
    await drained({ ...this.#parts, loop: this.#loop, signal: this.#claiming.signal }, graceMs);
    await this.stop();
    return this.counts;
  }

  async #start(): Promise<void> {
    const { store, log, events, sleep, presence, reaping } = this.#parts;
    this.contact.heldUp();
    await presence.begin({ isStart: true, until: this.#claiming.signal });
    if (this.#claiming.signal.aborted) return;
    const onDeaf = (why: string): void => log.warn({ worker: this.id }, why);
    const quiet = store.onWake(sleep.wake, onDeaf);
    this.#claimed = this.#loop.run().finally(quiet);
    this.#reaped = reaping.run(this.#ending.signal);
    events.emit({ kind: "worker.started", worker: this.id });
  }

  async #stop(withinMs: number): Promise<void> {
    const { system, events, services, alone, presence } = this.#parts;
    // The start and a claim may be under way; jobs that the claim brings are released as they arrive.
    const claimed = Promise.resolve(this.#started).then(() => this.#claimed);
    await windDown({ ...this.#parts, claimed }, { system, withinMs, hurry: this.#hurry.signal });
    this.#ending.abort();
    services.stop();
    // A store that does not answer now must not hold us up; other workers will find the jobs that we hold.
    await atMost(system, Promise.all([this.#claimed, this.#reaped]), LAST_WORDS_MS);
    await atMost(
      system,
      alone.letGo().catch(() => undefined),
      LAST_WORDS_MS,
    );
    await atMost(system, Promise.all([presence.end(), this.#parts.flow?.end()]), LAST_WORDS_MS);
    events.emit({ kind: "worker.stopped", worker: this.id });
  }
}

/** Composes a worker. */
export function createWorker(parts: WorkerDependencies): QueueWorker {
  return new QueueWorker(parts);
}
