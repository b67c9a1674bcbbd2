// Runs the reaper once a second, and starts the child process for jobs with one crash left.
import { textOf } from "../core/failure.ts";
import type { ActiveLane } from "../core/lane.ts";
import type { Outcome } from "../core/verdict.ts";
import { type JobDefinition, retryPolicyOf } from "../jobs/define-job.ts";
import type { Signs, Store, WorkerRecord } from "../store/store.ts";
import type { System } from "../system/system.ts";
import type { Log } from "../system/log.ts";
import { lostProcesses, reap, type ReaperOptions } from "../upkeep/expired-runs.ts";
import type { Records } from "../upkeep/upkeep-records.ts";
import type { Contact } from "../store/store-contact.ts";
import type { WorkerDependencies, WorkerIdentity } from "./dependencies.ts";
import type { LastSigns } from "./last-signs.ts";
import type { Reporter } from "../report/reporter.ts";
import { evidenceOf, type Isolation, reportsOf } from "./isolation.ts";
import type { Presence } from "./presence.ts";
import type { Services } from "../services/services.ts";
import type { WakeableSleep } from "./wakeable-sleep.ts";
import type { WorkerSettings } from "./settings.ts";

/** What reaping works with. */
export interface ReapingOptions {
  readonly store: Store;
  readonly system: System;
  readonly contact: Contact;
  /** The signs of the last look. */
  readonly signs: Pick<LastSigns, "read">;
  readonly log: Log;
  readonly settings: WorkerSettings;
  readonly self: Readonly<Pick<WorkerIdentity, "id">>;
  readonly presence: Pick<Presence, "isHeard">;
  readonly process: WorkerDependencies["process"];
  readonly definitions: ReadonlyMap<string, JobDefinition>;
  readonly isolation: Isolation | null;
  readonly services: Pick<Services, "isCurrent" | "claimed" | "start" | "heard">;
  readonly report: Reporter;
  readonly records?: Records;
  /** Fires when the worker has ended. */
  readonly ending: AbortSignal;
  /** Woken where work may have become due. */
  readonly sleep: Pick<WakeableSleep, "wake">;
}

const REAP_EVERY_MS = 1_000;
/** Whatever the signs say, the store is read this often. */
const REAP_ANYWAY_MS = 120_000;
/** If a child died before it took its job (it could not even load), the next one waits, twice as long each time. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/** A run without a report: its child died, or found nothing to do. It says nothing about its service. */
const UNHEARD: Outcome = { kind: "released", reason: "not_started", delayMs: 0 };

/** A child that runs a job with one crash left. */
interface Child {
  readonly end: AbortController;
  readonly ended: Promise<void>;
  /** It had registered at the last check. */
  seen: boolean;
}

/** Handles dead workers and jobs with one crash left. */
export class Reaping {
  readonly #options: ReapingOptions;
  readonly #children = new Map<string, Child>();
  readonly #stopped = new AbortController();
  /** What the last reap saw, once others had time for a heartbeat; null before. */
  #seen: { readonly at: number; readonly mark: string; readonly workers: readonly WorkerRecord[] } | null = null;
  #pauseMs = 0;
  #notBefore = 0;

  constructor(options: ReapingOptions) {
    this.#options = options;
  }

  /** Children that are running now. */
  get isolated(): number {
    return this.#children.size;
  }

  /** True if a child may be started now. */
  get mayIsolate(): boolean {
    return this.isolated === 0 && this.#options.system.monotonic() >= this.#notBefore;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { system, contact, settings, sleep, records } = this.#options;
    const waitMs = Math.min(settings.heartbeatMs, REAP_EVERY_MS);
    for (let last = system.now(); ; last = system.now()) {
      await system.sleep(waitMs, signal);
      if (signal.aborted) return;
      const from = system.monotonic();
      const note = (error: string | null): void =>
        records?.note("expired runs", { ms: Math.round(system.monotonic() - from), error, waitMs });
      // A jump of our own clock (a stopped process, a sleeping machine) means that other workers may also just be
      // waking.
      contact.heldUp(Math.abs(system.now() - last - waitMs));
      if (this.#isQuiet()) {
        note(null);
        continue;
      }
      try {
        const settled = await contact.attempt("reap", () => this.#reap());
        if (settled !== null && settled > 0) sleep.wake();
        if (this.isolated > 0) await contact.attempt("reap", () => this.#endLostChildren());
        if (settled !== null) note(null);
      } catch (error) {
        contact.complain("reap", error);
        note(textOf(error));
      }
    }
  }

  /** Reaps, and remembers the workers it saw, with the signs from before. */
  async #reap(): Promise<number> {
    const { contact, settings, signs, system } = this.#options;
    const told = signs.read();
    const lasted = contact.hasLasted(settings.leaseMs);
    let workers: readonly WorkerRecord[] = [];
    const settled = await reap({ ...this.#reaper(), onSeen: (all) => (workers = all) });
    this.#seen = told && lasted ? { at: system.monotonic(), mark: markOf(told), workers } : null;
    return settled;
  }

  /** True if no worker came or went since the last reap, no lease has ended and no process of this host is gone. */
  #isQuiet(): boolean {
    const { contact, settings, signs, system } = this.#options;
    const [seen, told] = [this.#seen, signs.read()];
    if (!seen || !told || this.isolated > 0 || !contact.hasLasted(settings.leaseMs)) return false;
    if (system.monotonic() - seen.at >= REAP_ANYWAY_MS || markOf(told) !== seen.mark) return false;
    if (told.lapseAt !== null && told.lapseAt <= told.storeTime) return false;
    return lostProcesses(seen.workers, this.#reaper()).length === 0;
  }

  /** A child that was given up (it hangs) has lost its job; its process has no further use. */
  async #endLostChildren(): Promise<void> {
    const workers = await this.#options.store.workers();
    for (const [id, child] of this.#children) {
      const found = workers.find((worker) => worker.id === id);
      if (child.seen && (!found || found.givenUp)) child.end.abort();
      child.seen ||= found !== undefined;
    }
  }

  /**
   * Runs one job of the lane in a child process; it costs as much as any other retry. False where `control` is
   * outdated.
   */
  isolate(lane: ActiveLane, control: number): boolean {
    const { services, system, log, sleep } = this.#options;
    // The store would refuse the child's claim, and a probe would be lost with it.
    if (!services.isCurrent(control)) return false;
    const run = { service: lane.service };
    const held = services.start(run);
    // A job that must wait waits here too.
    if (held?.kind === "released") return true;
    const worker = system.workerId();
    const end = new AbortController();
    services.claimed([{ ...lane, attempts: 1 }]);
    const ended = this.#runChild({
      worker,
      lane: lane.lane,
      control,
      held,
      signal: end.signal,
      stop: this.#stopped.signal,
    })
      .catch((error: unknown) => {
        log.error({ error: textOf(error) }, "a job with one crash left could not run in a child process");
      })
      .then((heard) => {
        if (held === null) void services.heard(run, heard ?? UNHEARD);
        this.#children.delete(worker);
        sleep.wake();
      });
    this.#children.set(worker, { end, ended, seen: false });
    return true;
  }

  /** Lets the children release what they hold. */
  stop(): void {
    this.#stopped.abort();
  }

  /** Resolves when no child runs any more. */
  async empty(): Promise<void> {
    await Promise.all([...this.#children.values()].map(({ ended }) => ended));
  }

  #reaper(): ReaperOptions {
    const { store, system, process, settings, self, contact, presence, definitions, report } = this.#options;
    return {
      store,
      system,
      leaseMs: settings.leaseMs,
      self: self.id,
      host: process.host,
      isAlive: process.isAlive,
      policyOf: (type) => retryPolicyOf(definitions.get(type)),
      hasLasted: (leaseMs) => presence.isHeard && contact.hasLasted(leaseMs),
      onTold: (reading) => contact.told(reading),
      report,
    };
  }

  /** If the child dies, only its job is charged, with the child's end as evidence. Answers how its run ended. */
  async #runChild(request: Parameters<Isolation>[0]): Promise<Outcome | null> {
    const { system, contact, log, isolation } = this.#options;
    if (!isolation) return null;
    const { worker, signal: end } = request;
    const ending = await isolation(request);
    const reports = reportsOf(ending);
    for (const { job, verdict, settled } of reports) this.#options.report(job, verdict, settled);
    const evidence = evidenceOf(ending);
    // A child that ended well without a report found no job: the next one need not hurry either.
    const blamed = evidence
      ? await contact.insist("reap", () => reap(this.#reaper(), new Map([[worker, evidence]])), this.#options.ending)
      : 0;
    // A child that we ended ourselves had taken its job; another worker has already judged it.
    const took = blamed !== 0 || end.aborted || reports.length > 0;
    const longer = evidence ? this.#pauseMs * 2 : 0;
    this.#pauseMs = took ? 0 : Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, longer));
    this.#notBefore = system.monotonic() + this.#pauseMs;
    const about = { output: ending.output, pauseMs: this.#pauseMs };
    if (!took && evidence)
      log.error(about, "the child process for a job with one crash left died before it took the job");
    return reports[0]?.heard ?? null;
  }
}

/** A text that changes with every worker that comes or goes. */
function markOf({ workers, newest }: Signs): string {
  return `${workers} ${newest}`;
}
