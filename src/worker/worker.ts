// A worker: one process that takes work. Puts the parts together (claim loop, hands, settler, presence, reaping) and
// owns their common life: start, stop, drain.
import { textOf } from "../core/failure.ts";
import { type JobDefinition, retryPolicyOf } from "../jobs/define-job.ts";
import type { ReaperOptions } from "../upkeep/expired-runs.ts";
import { AloneReservation } from "./alone-reservation.ts";
import { ClaimLoop } from "./claim-loop.ts";
import type { Look } from "./claim-options.ts";
import { type Contact, openContact } from "../store/store-contact.ts";
import { drained } from "./drain.ts";
import { InFlight } from "./in-flight.ts";
import { LastSigns } from "./last-signs.ts";
import type { WorkerDependencies } from "./dependencies.ts";
import { Presence } from "./presence.ts";
import { Reaping } from "./reaping.ts";
import { openReporter, type Reporter, unbreakable, type WorkerCounts, zeroCounts } from "../report/reporter.ts";
import { openSettler, type Settler } from "./settler.ts";
import { Services } from "../services/services.ts";
import { releaseLost } from "./lost-claim.ts";
import { atMost, LAST_WORDS_MS, STOP_WITHIN_MS, windDown } from "./wind-down.ts";

/** A worker. Nothing happens before `start`; `start` and `stop` may be called twice. */
export class QueueWorker {
  /** What it has done so far. */
  readonly counts: WorkerCounts = zeroCounts();
  /** Its contact with the store, shared with whoever works beside it. */
  readonly contact: Contact;
  /** The signs of its last look, for whoever works beside it. */
  readonly signs: LastSigns;
  readonly #parts: WorkerDependencies;
  readonly #definitions: ReadonlyMap<string, JobDefinition>;
  readonly #report: Reporter;
  readonly #settler: Settler;
  readonly #services: Services;
  readonly #hands: InFlight;
  readonly #presence: Presence;
  readonly #reaping: Reaping;
  readonly #alone: AloneReservation;
  readonly #loop: ClaimLoop;
  readonly #claiming = new AbortController();
  readonly #ending = new AbortController();
  readonly #hurry = new AbortController();
  #look: Look | null = null;
  #claimed: Promise<void> = Promise.resolve();
  #reaped: Promise<void> = Promise.resolve();
  #started: Promise<void> | null = null;
  #stopping: Promise<void> | null = null;

  constructor(parts: WorkerDependencies) {
    const { system, log, events, jobs } = parts;
    this.#parts = { ...parts, events: unbreakable(events, log) };
    this.#definitions = new Map(jobs.map((definition) => [definition.type, definition]));
    this.contact = openContact(system, log);
    this.signs = new LastSigns(system);
    this.#report = openReporter({ log, events, counts: this.counts, definitions: this.#definitions, now: system.now });
    this.#settler = this.#openSettler();
    this.#services = this.#openServices();
    this.#hands = this.#openHands();
    this.#presence = this.#openPresence();
    this.#reaping = this.#openReaping();
    this.#alone = new AloneReservation({ ...this.#parts, worker: () => this.id, hands: this.#hands });
    this.#loop = this.#openLoop();
  }

  /** Its present id; a worker that was given up comes back under a new one. */
  get id(): string {
    return this.#presence.id;
  }

  /** In contact with the store and taking work. */
  get isReady(): boolean {
    return this.#look !== null && !this.#claiming.signal.aborted && this.contact.isUp();
  }

  start(): Promise<void> {
    // Stopped before it began: it does not begin.
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
    this.#stopping ??= this.#started ? this.#stop(withinMs) : Promise.resolve();
    return this.#stopping;
  }

  /** Whoever asks again with less time is in a hurry. */
  #hurryUp(withinMs: number, stopping: Promise<void>): void {
    const forget = this.#parts.system.after(withinMs, () => this.#hurry.abort());
    void stopping.finally(forget);
  }

  /** Works until nothing is held, nothing is due and nothing falls due within the grace; then stops. */
  async drain({ graceMs }: { readonly graceMs: number }): Promise<WorkerCounts> {
    const { store, system, settings, log } = this.#parts;
    await this.start();
    await drained(
      {
        store,
        system,
        contact: this.contact,
        settings,
        log,
        look: () => this.#look,
        isSpent: () => this.#hands.isSpent,
        busy: () => this.#hands.held + this.#settler.size + this.#reaping.isolated,
        self: () => this.id,
        process: this.#parts.process,
        wake: () => this.#loop.wake(),
        signal: this.#claiming.signal,
      },
      graceMs,
    );
    await this.stop();
    return this.counts;
  }

  async #start(): Promise<void> {
    this.contact.heldUp();
    await this.#presence.begin({ isStart: true, until: this.#claiming.signal });
    if (this.#claiming.signal.aborted) return;
    const { store, log } = this.#parts;
    const onDeaf = (why: string): void => log.warn({ worker: this.id }, why);
    const quiet = store.onWake(() => this.#loop.wake(), onDeaf);
    this.#claimed = this.#loop.run(this.#claiming.signal).finally(quiet);
    this.#reaped = this.#reaping.run(this.#ending.signal);
    this.#parts.events.emit({ kind: "worker.started", worker: this.id });
  }

  async #stop(withinMs: number): Promise<void> {
    const { system, events } = this.#parts;
    // The start and a claim may be under way; what the claim brings is released as it comes.
    const claimed = Promise.resolve(this.#started).then(() => this.#claimed);
    const parts = {
      hands: this.#hands,
      reaping: this.#reaping,
      settler: this.#settler,
      claimed,
    };
    await windDown(parts, { system, withinMs, hurry: this.#hurry.signal });
    this.#ending.abort();
    this.#services.stop();
    // A store that does not answer now does not keep us; what we hold will be found by others.
    await atMost(system, Promise.all([this.#claimed, this.#reaped]), LAST_WORDS_MS);
    await atMost(
      system,
      this.#alone.letGo().catch(() => undefined),
      LAST_WORDS_MS,
    );
    await atMost(system, this.#presence.end(), LAST_WORDS_MS);
    events.emit({ kind: "worker.stopped", worker: this.id });
  }

  #openSettler(): Settler {
    const { log } = this.#parts;
    return openSettler({
      ...this.#parts,
      contact: this.contact,
      worker: () => this.id,
      startedThrough: () => this.#hands.startedThrough,
      giveUp: this.#ending.signal,
      onError: (error) => log.error({ error: textOf(error) }, "a verdict could not be written"),
    });
  }

  #openServices(): Services {
    return new Services({
      ...this.#parts,
      contact: this.contact,
      worker: () => this.id,
      leaseMs: this.#parts.settings.leaseMs,
      countOf: (type) => this.#hands.countOf(type),
      soon: () => this.#hands.soon,
      onHeldBack: (service) => this.#hands.releaseAhead(service),
      onReleased: () => this.#loop.wake(),
    });
  }

  #openHands(): InFlight {
    const { system, log, settings, events, store } = this.#parts;
    const { concurrency, abortGraceMs } = settings;
    return new InFlight({
      system,
      concurrency,
      isRemote: store.remote,
      definitions: this.#definitions,
      settlingMs: this.#settler.settlingMs,
      writingMs: this.#settler.writingMs,
      executor: {
        system,
        log,
        abortGraceMs,
        settle: this.#settler.settle,
        store,
        report: this.#report,
        gate: this.#services,
        heldMs: (job, until) => this.#services.heldMs(job, until),
        isStopping: () => this.#stopping !== null,
      },
      isAwaited: () => this.#loop.handsFull,
      onFree: (special) => (special ? this.#loop.ring() : this.#loop.nudge()),
      onLeak: (job, leaked) => {
        this.counts.leaked += 1;
        log.error({ job: job.id, type: job.type }, "the handler ignored its abort; its slot is lost until it returns");
        if (leaked * 2 >= concurrency) events.emit({ kind: "worker.spent", worker: this.id, leaked });
      },
    });
  }

  #openPresence(): Presence {
    const { settings, log, events } = this.#parts;
    const stopAll = (reason: "contact_lost" | "lease_lost"): void => {
      this.#hands.releaseAhead();
      this.#hands.stop(reason);
    };
    return new Presence({
      ...this.#parts,
      contact: this.contact,
      startedThrough: () => this.#hands.startedThrough,
      runs: this.#hands.running,
      isSettling: this.#settler.isSettling,
      slots: () => this.#hands.slots,
      ending: this.#ending.signal,
      onBeat: () => this.#services.renew(),
      onCancel: (leases) => this.#hands.cancel(leases),
      onGivenUp: (worker) => {
        events.emit({ kind: "worker.given_up", worker });
        stopAll("lease_lost");
      },
      onSilence: () => {
        if (settings.onContactLost === "continue") return;
        log.warn({ worker: this.id }, "no contact with the store for almost a lease: runs are aborted");
        stopAll("contact_lost");
      },
    });
  }

  #openReaping(): Reaping {
    return new Reaping({
      ...this.#parts,
      contact: this.contact,
      signs: this.signs,
      wake: () => this.#loop.wake(),
      report: this.#report,
      ending: this.#ending.signal,
      services: this.#services,
      reaper: () => this.#reaper(),
    });
  }

  #reaper(): ReaperOptions {
    const { store, system, process, settings } = this.#parts;
    return {
      store,
      system,
      leaseMs: settings.leaseMs,
      self: this.id,
      host: process.host,
      isAlive: process.isAlive,
      policyOf: (type) => retryPolicyOf(this.#definitions.get(type)),
      hasLasted: (leaseMs) => this.#presence.isHeard && this.contact.hasLasted(leaseMs),
      onTold: (reading) => this.contact.told(reading),
      report: this.#report,
    };
  }

  #openLoop(): ClaimLoop {
    const { store, system, settings, isolation, log } = this.#parts;
    const hands = this.#hands;
    const served = { serves: new Set(this.#definitions.keys()), queues: settings.queues };
    // A job with its last crash left that must run in this process runs alone, in one worker of the fleet at a time.
    const alone = this.#alone;
    const isReserved = (): boolean => isolation === null && alone.isReserved;
    return new ClaimLoop({
      store,
      system,
      contact: this.contact,
      signs: this.signs,
      settings,
      worker: () => this.id,
      isReserved,
      want: () => (isReserved() ? 0 : hands.want()),
      wantSuspect: () => ({
        suspect: hands.mayTakeSuspect && !isReserved(),
        last: isolation ? this.#reaping.mayIsolate : alone.mayTake,
      }),
      served: () => served,
      appetite: (control) => ({
        grants: this.#services.grants(control),
        weightOf: (tenant) => this.#parts.limits.tenant(tenant).weight,
        perSlot: (type) => hands.perSlot(type),
      }),
      probe: (lanes, control) => this.#services.probe(lanes, control),
      spread: () => this.#services.spread(),
      nextGrantMs: (lanes) => this.#services.nextMs(lanes),
      tickets: (limit, quotas) => hands.tickets(limit, quotas),
      startedThrough: () => hands.startedThrough,
      accept: (jobs, single) => {
        this.counts.claimed += jobs.length;
        this.#services.claimed(jobs);
        if (single && jobs.some(({ crashes, maxCrashes }) => crashes >= maxCrashes - 1)) alone.taken();
        hands.accept(jobs, single, this.#claiming.signal.aborted);
      },
      isolate: isolation && ((lane, control) => this.#reaping.isolate(lane, control)),
      onUnknown: () =>
        releaseLost(store, this.id, log, (lease) => hands.holds(lease) || this.#settler.isSettling(lease)),
      onGivenUp: () => this.#presence.comeBack(),
      onLook: async (look) => {
        this.#look = look;
        hands.reserve(look.suspect ? 1 : 0);
        if (isolation === null) await alone.look(look.lastDueMs, look.now);
      },
    });
  }
}

/** Puts a worker together. */
export function createWorker(parts: WorkerDependencies): QueueWorker {
  return new QueueWorker(parts);
}
