// A worker as users of the library see it: durations as users write them, with upkeep and a health port.
import { existsSync } from "node:fs";
import type { Alerting } from "./alerts/alerting.ts";
import type { WorkerAlerts } from "./alerts/service.ts";
import { parseDuration } from "./core/duration.ts";
import { RedriveError } from "./core/errors.ts";
import { textOf } from "./core/failure.ts";
import { checkInteger, checkText } from "./core/new-job.ts";
import { invalid, objectOf, parseOptions } from "./core/options.ts";
import { type PolicyOptions, PRESETS, resolvePolicy } from "./core/policy.ts";
import type { Limits } from "./core/service.ts";
import type { JobDefinition } from "./jobs/define-job.ts";
import type { Events } from "./report/events.ts";
import type { ProcessMeter, SlotCounts } from "./metrics/meter.ts";
import type { FlowMeter } from "./store/flow-meter.ts";
import type { Store } from "./store/store.ts";
import type { Log } from "./system/log.ts";
import type { System } from "./system/system.ts";
import { archiveTo } from "./operate/archive.ts";
import { driverOf } from "./operate/redrives.ts";
import { causesService } from "./upkeep/causes.ts";
import { countBriefly, countsService } from "./upkeep/counts.ts";
import { noteDrain } from "./upkeep/drains.ts";
import { openRecords } from "./upkeep/upkeep-records.ts";
import { fingerprintService } from "./upkeep/fingerprints.ts";
import { applyBriefly, type RetentionOptions, retentionService } from "./upkeep/retention.ts";
import { type RedriveDriver, redriveService } from "./upkeep/redrives.ts";
import { scheduleService } from "./schedules/schedule-service.ts";
import { stuckService } from "./upkeep/stuck-runs.ts";
import { type Service, startUpkeep, type UpkeepOptions } from "./upkeep/upkeep.ts";
import { childIsolation } from "./child-isolation.ts";
import { type HealthPort, type HealthPortOptions, serveHealth } from "./worker/health-port.ts";
import type { Isolation } from "./worker/isolation.ts";
import type { WorkerDependencies } from "./worker/dependencies.ts";
import { openReporter } from "./report/reporter.ts";
import type { Traces } from "./report/traces.ts";
import type { RedriveWorker, RedriveWorkerOptions } from "./worker/redrive-worker-api.ts";
import { resolveWorker, type WorkerSettings } from "./worker/settings.ts";
import { withTypeLimits } from "./worker/type-limits.ts";
import { atMost, LAST_WORDS_MS, STOP_WITHIN_MS } from "./worker/wind-down.ts";
import { createWorker, type QueueWorker } from "./worker/worker.ts";

/** What the worker shares with its Redrive. */
export interface WorkerSurroundings {
  readonly store: Store;
  readonly system: System;
  readonly log: Log;
  /** Counts new jobs and runs for the store; absent where they are not counted. */
  readonly flow?: FlowMeter;
  /** Counts runs for metrics; absent where they are not counted. */
  readonly meter?: ProcessMeter;
  /** Makes spans; absent where no traces are made. */
  readonly traces?: Traces | null;
  /** Looks at the alerts of the fleet; absent where there are none. */
  readonly alerting?: Alerting | null;
  readonly events: Events;
  readonly jobs: readonly JobDefinition[];
  readonly defaults: PolicyOptions;
  readonly limits: Limits;
  readonly process: WorkerDependencies["process"];
  /** False where it drives no redrive runs; default true. */
  readonly drives?: boolean;
  /** The address of the store; null for one that the user opened. */
  readonly url: string | null;
  /** Called when a worker begins to work; may refuse it; returns a function to call when it has stopped. */
  readonly onBegin: (worker: RedriveWorker) => () => void;
}

const DRAIN_GRACE_MS = 1_000;
/** How long a drain that ends waits for the sinks of its alerts. */
const ALERTS_WITHIN_MS = 6_000;

/** Composes a worker. */
export function openWorker(options: RedriveWorkerOptions = {}, around: WorkerSurroundings): RedriveWorker {
  objectOf(options, "worker");
  const { health, archive, jobsFile, isolation = fromFile(jobsFile, around.url), ...rest } = options;
  const settings = resolveWorker(rest);
  checkBeside(options);
  const store = withTypeLimits(around.store, around.jobs);
  const records = openRecords({ ...around, worker: () => worker.id });
  const worker = createWorker({ ...around, store, settings, records, isolation: isolation?.(settings) ?? null });
  const life = openLife(around, () => ({ api, slots: worker.slots }));
  const probes = { isLive: () => !life.isSpent, isReady: () => worker.isReady, ...servedBy(around) };
  const driver = driverOf(around, () => worker.id, worker.signs);
  const services = [stuckCheck({ ...around, store }, settings, worker), ...signedServices(around, worker, driver)];
  const alerts = alertsFor({ ...around, store }, worker);
  const beside = { ...around, records, contact: worker.contact, driver, alerts };
  const companions = openCompanions(beside, retention(around, archive), services, health && { ...health, ...probes });
  const api: RedriveWorker = {
    get id() {
      return worker.id;
    },
    counts: worker.counts,
    get healthPort() {
      return companions.healthPort;
    },
    get isReady() {
      return worker.isReady;
    },
    get isSpent() {
      return life.isSpent;
    },
    async start() {
      life.begin();
      await companions.start().catch(life.failed);
      await worker.start();
    },
    async stop(stopOptions = {}) {
      const { within = STOP_WITHIN_MS } = parseOptions(stopOptions, ["within"], "stop");
      const withinMs = parseDuration(within, "within");
      life.ending();
      await worker.stop({ withinMs });
      await companions.stop();
      life.end();
    },
    async drain(drainOptions = {}) {
      const { grace = DRAIN_GRACE_MS } = parseOptions(drainOptions, ["grace"], "drain");
      const graceMs = parseDuration(grace, "grace");
      life.begin();
      await companions.look();
      await companions.start().catch(life.failed);
      const counts = await worker.drain({ graceMs });
      // A worker that was stopped meanwhile does not clean up: its store may be closed by now.
      if (life.ending()) await companions.tidy();
      await companions.stop();
      life.end();
      return counts;
    },
    [Symbol.asyncDispose]: () => api.stop(),
  };
  return api;
}

/** What the health port serves besides the probes: the text is loaded when a monitor first asks. */
function servedBy({ meter, log }: WorkerSurroundings): Pick<HealthPortOptions, "metrics" | "log"> {
  if (!meter) return { log };
  const metrics: HealthPortOptions["metrics"] = async (accept) => {
    const { formatFor, MEDIA_TYPES, metricsText } = await import("./metrics/text.ts");
    const format = formatFor(accept);
    return { mediaType: MEDIA_TYPES[format], text: metricsText(meter.read(), format) };
  };
  return { metrics, log };
}

function checkBeside({ health, archive }: RedriveWorkerOptions): void {
  if (health !== undefined) {
    const { port, metricsToken } = parseOptions(health, ["port", "host", "metricsToken"], "worker.health");
    checkInteger("health.port", port, 0, 65_535);
    if (metricsToken !== undefined) checkText("worker.health.metricsToken", metricsToken);
  }
  if (archive !== undefined) checkText("worker.archive", archive);
}

/**
 * The one life of a worker, and its registration with its Redrive: added when it begins to work, removed when it has
 * ended.
 */
function openLife(
  { events, onBegin, meter }: WorkerSurroundings,
  of: () => { readonly api: RedriveWorker; readonly slots: SlotCounts },
) {
  const worker = (): RedriveWorker => of().api;
  const watch = (): (() => void) => meter?.watch(() => of().slots) ?? (() => undefined);
  let ties: (() => void)[] = [];
  let isOver = false;
  let isSpent = false;
  const onSpent = (event: { readonly worker: string }): void => void (isSpent ||= event.worker === worker().id);
  const end = (): void => ties.splice(0).forEach((cut) => cut());
  return {
    get isSpent() {
      return isSpent;
    },
    begin() {
      if (isOver)
        throw new RedriveError("closed", "This worker has stopped. Make a new one with redrive.worker() to continue.");
      if (ties.length === 0) ties = [onBegin(worker()), events.on("worker.spent", onSpent), watch()];
    },
    /** The start failed; it may be tried again. */
    failed(error: unknown): never {
      end();
      throw error;
    },
    /** True for the first call. */
    ending: () => !isOver && (isOver = true),
    end,
  };
}

function fromFile(jobs: string | undefined, url: string | null): ((settings: WorkerSettings) => Isolation) | undefined {
  if (jobs === undefined) return undefined;
  if (typeof jobs !== "string" || !existsSync(jobs))
    throw invalid("worker.jobsFile", "the path of a file that exports job definitions", jobs, "check the path");
  const elsewhere = "a store that another process can open, given by its URL";
  if (url === null) throw invalid("worker.jobsFile", elsewhere, "an opened one", "leave jobsFile out");
  if (url === "memory:") throw invalid("worker.jobsFile", elsewhere, url, "leave jobsFile out");
  return (settings) => childIsolation({ store: url, jobs, ...settings });
}

/** What lives as long as a worker: upkeep, and a health port where one is wanted. */
interface Companions {
  readonly healthPort: number | null;
  start(): Promise<void>;
  /** Notes that a drain begins, and makes the jobs of ticks and redrive runs that are due: it must not end before it has seen them. */
  look(): Promise<void>;
  /** Cleans up once, briefly, because a drain ends before upkeep would; notes its end. */
  tidy(): Promise<void>;
  stop(): Promise<void>;
}

type CompanionParts = WorkerSurroundings &
  Pick<UpkeepOptions, "records" | "contact"> & { readonly driver: RedriveDriver; readonly alerts: WorkerAlerts | null };

function openCompanions(
  around: CompanionParts,
  retained: RetentionOptions,
  services: readonly Service[],
  health: HealthPortOptions | undefined,
): Companions {
  let port: HealthPort | null = null;
  let upkeep: { stop(): Promise<void> } | null = null;
  let begun: Promise<void> | null = null;
  let noteEnd = async (): Promise<void> => undefined;
  const begin = async (): Promise<void> => {
    const { store, log } = around;
    const { name, notice } = store.describe();
    if (notice !== null) log.warn({ store: name }, notice);
    if (health) port = await serveHealth(health);
    const shared = [
      retentionService(retained),
      countsService(around),
      fingerprintService(around),
      causesService(around),
      ...(around.alerts ? [around.alerts.service] : []),
    ];
    upkeep = startUpkeep([...shared, ...services], around);
  };
  return {
    get healthPort() {
      return port?.port ?? null;
    },
    start: () =>
      (begun ??= begin().catch((error: unknown) => {
        begun = null;
        throw error;
      })),
    async look() {
      noteEnd = await noteDrain(around);
      // A failure here is retried, and reported, by the service that starts next.
      await scheduleService(around)
        .step(new AbortController().signal)
        .catch(() => undefined);
      if (around.drives !== false) await around.driver.stepAll().catch(() => undefined);
    },
    tidy: () => tidyUp(around, retained, () => noteEnd()),
    async stop() {
      // The caller of a failed start already has its error.
      await begun?.catch(() => undefined);
      const released = Promise.resolve(upkeep?.stop()).then(() => around.driver.release().catch(() => undefined));
      const ending = Promise.all([released, port?.close()]).then(() => around.records.end());
      upkeep = port = null;
      // A store that does not answer now must not hold us up; the next step does what this one missed.
      await atMost(around.system, ending, LAST_WORDS_MS);
    },
  };
}

async function tidyUp(around: CompanionParts, retained: RetentionOptions, noteEnd: () => Promise<void>): Promise<void> {
  const failed = (what: string) => (error: unknown) => around.log.warn({ error: textOf(error) }, what);
  await applyBriefly(retained).catch(failed("expired jobs could not be removed now"));
  await countBriefly(around).catch(failed("the counts of causes could not be folded now"));
  const look = causesService(around).step(new AbortController().signal);
  await look.catch(failed("the worker could not look at the causes now"));
  await noteEnd();
  await around.alerts?.briefly(ALERTS_WITHIN_MS).catch(failed("the worker could not look at the alerts now"));
}

/** The alerts of a worker; null where there are none. */
function alertsFor({ alerting, ...around }: WorkerSurroundings, worker: QueueWorker): WorkerAlerts | null {
  const { counts, contact } = worker;
  const isAway = contact.isAway;
  return alerting?.open({ ...around, process: () => worker.id, staleWrites: () => counts.stale, isAway }) ?? null;
}

/** The services that learn of changes by the signs of the worker's looks. */
function signedServices(around: WorkerSurroundings, { signs }: QueueWorker, driver: RedriveDriver): Service[] {
  const schedules = scheduleService({ ...around, sign: () => signs.read() });
  return around.drives !== false ? [schedules, redriveService(driver)] : [schedules];
}

/** Finds stuck runs of the whole fleet; reports and counts them as this worker's. */
function stuckCheck(around: WorkerSurroundings, settings: WorkerSettings, worker: QueueWorker): Service {
  const { system, jobs } = around;
  const definitions = new Map(jobs.map((definition) => [definition.type, definition]));
  return stuckService({
    ...around,
    graceMs: settings.abortGraceMs + settings.heartbeatMs,
    workers: () => worker.signs.read()?.workers ?? 1,
    nothingRuns: () => worker.held === 0 && worker.signs.read()?.workers === 1,
    policyOf: (type) => definitions.get(type)?.policy ?? PRESETS.default,
    report: openReporter({ ...around, counts: worker.counts, definitions, now: system.now }),
  });
}

function retention(around: WorkerSurroundings, archive?: string): RetentionOptions {
  const { store, system, log, events, jobs, defaults } = around;
  return {
    store,
    system,
    jobs,
    policy: resolvePolicy({ library: defaults }).policy,
    archive: archive === undefined ? null : archiveTo(archive, store),
    onPruned(pruned) {
      log.info(pruned, `removed expired jobs${archive ? `; dead letters are in ${archive}` : ""}`);
      events.emit({ kind: "jobs.pruned", archive: archive ?? null, ...pruned });
    },
  };
}
