// Composes the library: one store, the job types of a program, and the objects that enqueue, read and work. Everything
// else is in the folders; this file only connects them.
import type { Alerting, AlertPace } from "./alerts/alerting.ts";
import type { Alerts } from "./alerts/alerts.ts";
import { checkActor } from "./core/event-log.ts";
import { type Duration, parseDuration } from "./core/duration.ts";
import { RedriveError } from "./core/errors.ts";
import { checkText } from "./core/new-job.ts";
import { invalid, objectOf, parseOptions } from "./core/options.ts";
import { PRESETS } from "./core/policy.ts";
import { openStore } from "./open-store.ts";
import type { Operator, Redrive } from "./redrive-api.ts";
import { openBreakers } from "./operate/breakers.ts";
import { openCauses } from "./operate/causes.ts";
import { openDeadLetters } from "./operate/dead-letters.ts";
import { isJobDefinition, type JobDefinition } from "./jobs/define-job.ts";
import { openEndings } from "./enqueue/endings.ts";
import { type EventLog, openEventLog } from "./report/event-log.ts";
import { type Events, openEvents } from "./report/events.ts";
import { readEvents } from "./operate/event-log.ts";
import { openJobs } from "./operate/jobs.ts";
import { readLimits } from "./operate/limit-views.ts";
import { runToEnd } from "./enqueue/await-job.ts";
import { openProducer, type Producer } from "./enqueue/producer.ts";
import type { OpenModule } from "./operate/recipe.ts";
import { openRuns } from "./operate/runs.ts";
import { openRedrives } from "./operate/redrives.ts";
import { openStuck } from "./operate/stuck.ts";
import { pausing, readPauses, readQueues } from "./operate/queue-views.ts";
import { openSchedules } from "./schedules/schedules.ts";
import { openSharedBreakers } from "./services/shared-breaker.ts";
import type { ProcessMeter } from "./metrics/meter.ts";
import { type FlowMeter, openFlowMeter } from "./store/flow-meter.ts";
import type { Store } from "./store/store.ts";
import { hostId, isAlive } from "./system/processes.ts";
import type { Log } from "./system/log.ts";
import { realSystem } from "./system/real.ts";
import type { System } from "./system/system.ts";
import { drainRecords, type ProcessRecordsOptions, recordsCall } from "./records/process-records.ts";
import { type RedriveOptions, type RedriveSettings, resolveRedrive } from "./redrive-options.ts";
import type { RedriveWorker } from "./worker/redrive-worker-api.ts";
import { openWorker } from "./redrive-worker.ts";
import type { WorkerDependencies } from "./worker/dependencies.ts";
import { openReporter, zeroCounts } from "./report/reporter.ts";
import type { Traces } from "./report/traces.ts";
import { withTypeLimits } from "./worker/type-limits.ts";

/** What differs between production and tests. */
export interface Surroundings {
  readonly system: System;
  readonly process: WorkerDependencies["process"];
  /** The hub of events; default a new one. */
  readonly events?: Events;
  /** False for workers that drive no redrive runs; default true. */
  readonly drives?: boolean;
  /** How often the fleet looks at its alerts; default every 30 s. */
  readonly alertPace?: Partial<AlertPace>;
}

/** Opens a queue and migrates the schema of its store. */
export function createRedrive(options: RedriveOptions): Promise<Redrive> {
  const { pid } = process;
  return assemble(options, { system: realSystem, process: { pid, host: hostId(), isAlive } });
}

/** The counters of the process, loaded here: a program that only imports the library has nothing to count. */
async function meterOf({ jobs }: RedriveSettings, { monotonic }: System): Promise<ProcessMeter> {
  const { openMeter } = await import("./metrics/meter.ts");
  return openMeter(
    jobs.map(({ type }) => type),
    monotonic,
  );
}

/** Checks the options; loads the check of health only where there is something to check. */
async function settingsOf(options: RedriveOptions): Promise<RedriveSettings> {
  const settings = resolveRedrive(options);
  if (options.health !== undefined) (await import("./core/health.ts")).resolveHealth(options.health);
  return settings;
}

/** Loads what makes spans only where traces are asked for. */
async function loadTraces({ traceMode: mode, log }: RedriveSettings): Promise<Traces | null> {
  return mode && (await import("./report/traces.ts")).openTraces(mode, log);
}

/** Checks the options of alerts; loads what looks and tells only where alerts are asked for. */
async function loadAlerting(
  { alerts, health }: RedriveOptions,
  { alertPace }: Pick<Surroundings, "alertPace">,
): Promise<Alerting | null> {
  if (alerts === undefined) return null;
  return (await import("./alerts/alerting.ts")).openAlerting(alerts, health, alertPace);
}

async function migrateStore(store: Store, log: Log, isOurs: boolean): Promise<void> {
  try {
    const notice = await store.migrate();
    if (notice !== null) log.info({ store: store.name }, notice);
  } catch (error) {
    if (isOurs) await store.close();
    throw error;
  }
}

async function partsOf(settings: RedriveSettings, store: Store, { system, events }: Surroundings) {
  const actor = actorOf(settings, system);
  const eventLog = openEventLog({ store, log: settings.log, actor });
  const flow = openFlowMeter(store, system);
  const [meter, traces] = await Promise.all([meterOf(settings, system), loadTraces(settings)]);
  const shared = { system, events: events ?? openEvents(settings.log), eventLog, flow, meter, actor, traces };
  return { ...settings, ...shared, store: meter.timed(store) };
}

/** The same with the caller's clock, randomness and process. */
export async function assemble(options: RedriveOptions, surroundings: Surroundings): Promise<Redrive> {
  const settings = await settingsOf(options);
  const alerting = await loadAlerting(options, surroundings);
  const store = typeof settings.store === "string" ? await openStore(settings.store) : settings.store;
  const isOurs = store !== options.store;
  await migrateStore(store, settings.log, isOurs);
  const parts = { ...(await partsOf(settings, store, surroundings)), alerting };
  const { events, flow } = parts;
  const producer = openProducer(parts);
  // A caller that waits for an answer wants it soon: the limits of the preset `handler` apply where the type sets none.
  const awaited = openProducer({ ...parts, defaults: { preset: "handler", ...parts.defaults } });
  const shared = openSharedBreakers(parts);
  const gone = new AbortController();
  const workers = new Set<RedriveWorker>();
  let closing: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    gone.abort();
    shared.stop();
    await Promise.all([...workers].map((worker) => worker.stop()));
    await Promise.all([producer.idle(), awaited.idle()]);
    await flow.end();
    if (isOurs) await store.close();
  };
  const redrive: Redrive = {
    store,
    types: settings.jobs,
    maxPayloadBytes: settings.maxPayloadBytes,
    runs: openRuns(store),
    ...operating(parts),
    as: (name, asOptions) => operatingAs(parts, name, asOptions),
    ...looks(parts, gone.signal),
    ...waysIn(producer, awaited, parts, gone.signal),
    worker(workerOptions) {
      if (gone.signal.aborted) throw closed();
      return openWorker(workerOptions, {
        ...parts,
        url: typeof settings.store === "string" ? settings.store : null,
        process: surroundings.process,
        drives: surroundings.drives ?? true,
        onBegin: joining(workers, gone.signal),
      });
    },
    processRecords: async (job, records, batchOptions) => {
      const call = recordsCall(job as JobDefinition, records, batchOptions as ProcessRecordsOptions, redrive.worker);
      return drainRecords({ ...parts, producer }, call);
    },
    breaker: shared.of,
    on: events.on,
    close: () => (closing ??= close()),
    [Symbol.asyncDispose]: () => redrive.close(),
  };
  return redrive;
}

/** What people change. */
function operating(parts: Parts & { readonly actor: string }): Operator {
  return {
    jobs: openJobs(parts),
    deadLetters: openDeadLetters({ ...parts, openModule }),
    redrives: openRedrives(parts),
    causes: openCauses(parts),
    stuck: openStuck(stuckParts(parts)),
    breakers: openBreakers(parts),
    schedules: openSchedules(parts),
    alerts: alertsOf(parts),
    ...pausing(parts),
  };
}

/** The alerts as people see them, loaded with the first question. */
function alertsOf(parts: Parts): Alerts {
  const load = async (): Promise<Alerts> => {
    const { openAlerts } = await import("./alerts/alerts.ts");
    return openAlerts({ ...parts, settings: parts.alerting?.settings ?? null });
  };
  return {
    list: async () => (await load()).list(),
    mutes: async () => (await load()).mutes(),
    sinks: async () => (await load()).sinks(),
    mute: async (rule, options) => (await load()).mute(rule, options),
    unmute: async (rule, options) => (await load()).unmute(rule, options),
    test: async () => (await load()).test(),
  };
}

/** The same under the name of another person. */
function operatingAs(parts: Parts, actor: string, options: { readonly request?: string } = {}): Operator {
  checkActor("actor", actor);
  const { request } = parseOptions(options, ["request"], "as");
  if (request !== undefined) checkText("request", request);
  const { store, log } = parts;
  const eventLog = openEventLog({ store, log, actor, request: request as string | undefined });
  return operating({ ...parts, actor, eventLog });
}

/** What people and monitors look at; what monitors ask is loaded with the first question. */
function looks(
  parts: Parts,
  gone: AbortSignal,
): Pick<Redrive, "limits" | "queues" | "pauses" | "events" | "health" | "metrics" | "onMetrics"> {
  const { store, limits, jobs } = parts;
  const load = () => import("./operate/monitoring.ts");
  return {
    limits: () => readLimits(store, limits),
    queues: () => readQueues(store, jobs),
    pauses: () => readPauses(store),
    events: (query) => readEvents(store, query),
    health: async (query = {}) => (await load()).askHealth(parts, query),
    metrics: async () => (await load()).readMetrics(parts),
    onMetrics(listener, options = {}) {
      const stop = new AbortController();
      const everyMs = metricsEveryMs(listener, options);
      const until = AbortSignal.any([gone, stop.signal]);
      void load().then(({ tellMetrics }) => tellMetrics(parts, { listener, everyMs, until }));
      return () => stop.abort();
    },
  };
}

function metricsEveryMs(listener: unknown, options: { readonly every?: Duration }): number {
  if (typeof listener !== "function") throw invalid("listener", "a function (metrics) => …", listener, "pass one");
  const { every = 30_000 } = parseOptions(options, ["every"], "onMetrics");
  return parseDuration(every, "every", { minMs: 1_000, maxMs: 86_400_000 });
}

/** Loads what runs recipes in threads only where a call names one. */
const openModule: OpenModule = async (path) => (await import("./config/load-recipe.ts")).openRecipeModule(path);

/** Only working workers are kept: a program may make any number of them in its life. */
function joining(workers: Set<RedriveWorker>, gone: AbortSignal): (worker: RedriveWorker) => () => void {
  return (worker) => {
    if (gone.aborted) throw closed();
    workers.add(worker);
    return () => workers.delete(worker);
  };
}

/** Who acts through this Redrive. */
function actorOf({ actor }: Pick<RedriveSettings, "actor">, system: System): string {
  if (actor !== null) return actor;
  const found = system.actor();
  checkActor("REDRIVE_ACTOR", found);
  return found;
}

type Parts = Omit<RedriveSettings, "store"> & {
  readonly traces: Traces | null;
  readonly alerting: Alerting | null;
  readonly store: Store;
  readonly system: System;
  readonly events: Events;
  readonly eventLog: EventLog;
  readonly flow: FlowMeter;
  readonly meter: ProcessMeter;
};

/** What stuck runs are judged with; what is done about them is reported as a worker reports it. */
function stuckParts({
  store,
  jobs,
  system,
  log,
  events,
  eventLog,
  flow,
  meter,
}: Parts): Parameters<typeof openStuck>[0] {
  const definitions = new Map(jobs.map((definition) => [definition.type, definition]));
  return {
    store: withTypeLimits(store, jobs),
    system,
    eventLog,
    policyOf: (type) => definitions.get(type)?.policy ?? PRESETS.default,
    report: openReporter({ log, events, counts: zeroCounts(), definitions, now: system.now, flow, meter }),
  };
}

function waysIn(
  producer: Producer,
  awaited: Producer,
  parts: Parts,
  gone: AbortSignal,
): Pick<Redrive, "enqueue" | "enqueueMany" | "enqueueText" | "enqueueEach" | "run"> {
  const endings = openEndings(parts.events);
  // Callers that continue would keep a closing queue from ever being idle.
  const check = (): void => {
    if (gone.aborted) throw closed();
  };
  return {
    async enqueue(job, input, options) {
      check();
      return producer.enqueue(job as JobDefinition | string, input, options);
    },
    async enqueueMany(job, inputs, options) {
      check();
      return producer.enqueueMany(job, inputs, options);
    },
    async enqueueText(job, text, options) {
      check();
      return producer.enqueueText(job, text, options);
    },
    async enqueueEach(jobs) {
      check();
      return producer.enqueueEach(jobs);
    },
    async run(job, input, runOptions = {}) {
      check();
      const { signal, ...options } = objectOf(runOptions, "run");
      if (options.tx !== undefined)
        throw invalid("run.tx", "no transaction: the job could not run before you commit", options.tx, "use enqueue");
      if (signal !== undefined && !(signal instanceof AbortSignal))
        throw invalid("signal", "an AbortSignal", signal, "pass the signal of an AbortController");
      if (signal?.aborted) throw new RedriveError("aborted", "The signal had fired before anything was enqueued.");
      const id = parts.system.jobId();
      const { key = null } = options;
      const type = isJobDefinition(job) ? job.type : String(job);
      return runToEnd({ ...parts, endings, gone }, { id, type, key }, signal, () =>
        awaited.enqueue(job as JobDefinition, input, options, id),
      );
    },
  };
}

function closed(): RedriveError {
  return new RedriveError("closed", "This Redrive was closed. Create a new one to continue.");
}
