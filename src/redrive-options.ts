// The options of a queue, checked and completed once.
import type { FleetAlertOptions } from "./alerts/sink-options.ts";
import { checkActor } from "./core/event-log.ts";
import type { HealthOptions } from "./core/health.ts";
import { checkInteger, JOB_BOUNDS } from "./core/new-job.ts";
import { invalid, namesOf, parseOptions } from "./core/options.ts";
import { type PolicyOptions, resolvePolicy } from "./core/policy.ts";
import { DEFAULT_STORE, STORE_URLS } from "./core/store-urls.ts";
import { type TraceMode, traceMode } from "./core/trace.ts";
import { type Limits, resolveLimits, type ServiceOptions, type TenantOptions } from "./core/service.ts";
import { isJobDefinition, type JobDefinition, withDefaults } from "./jobs/define-job.ts";
import { type Middleware, wrapped } from "./jobs/middleware.ts";
import type { Store } from "./store/store.ts";
import { type Log, LOG_LEVELS, type LogLevel, lineLog } from "./system/log.ts";

/** Options of a queue. */
export interface RedriveOptions {
  /** `sqlite:PATH`, `postgres://…`, `memory:`, or a store that you opened, and close, yourself. */
  readonly store: string | Store;
  /** The job types of this program; default none. */
  readonly jobs?: readonly JobDefinition[];
  /** Defaults for every job type; default those of the preset `default`. */
  readonly defaults?: PolicyOptions;
  /**
   * Breakers, retry budgets and rate limits by the name of the service, `"*"` for all that are not named; default each
   * service has a breaker with its default thresholds, and nothing else is limited.
   */
  readonly services?: Readonly<Record<string, ServiceOptions>>;
  /**
   * Weights and rate limits by the name of the tenant, `"*"` for all that are not named; default equal weights and no
   * limits.
   */
  readonly tenants?: Readonly<Record<string, TenantOptions>>;
  /** From when on `health()` reports trouble; default as in `HealthOptions`. */
  readonly health?: HealthOptions;
  /**
   * Alerts of the whole fleet, told once by whichever worker or drain sees them: `{}` for the rules as they are, told in
   * the log. Default none.
   */
  readonly alerts?: FleetAlertOptions;
  /** Wrapped around every run, the first one outermost; default none. */
  readonly middleware?: readonly Middleware[];
  /** A logger with the methods of pino, or the level of the built-in one, which writes to stderr; default `warn`. */
  readonly log?: Log | LogLevel;
  /** The largest payload in bytes, 1 to 16 MiB; default 1 MiB. */
  readonly maxPayloadBytes?: number;
  /**
   * Makes OpenTelemetry spans through `@opentelemetry/api`: `true` makes the first run of a job a child of its enqueue and
   * links later ones to it, `"link"` links all; default `false`, and the package is not loaded.
   */
  readonly traces?: boolean | "link";
  /** Who acts, for the event log; default the variable `REDRIVE_ACTOR`, else the user and the host, as `ada@web-1`. */
  readonly actor?: string;
}

/** The complete settings of a queue. */
export interface RedriveSettings {
  readonly store: string | Store;
  readonly jobs: readonly JobDefinition[];
  readonly defaults: PolicyOptions;
  readonly limits: Limits;
  /** As the user gave it; what reads the health checks it. */
  readonly health: HealthOptions;
  readonly log: Log;
  readonly maxPayloadBytes: number;
  /** Null where no traces are made. */
  readonly traceMode: TraceMode | null;
  /** Null where the system says who acts. */
  readonly actor: string | null;
}

const FIELDS = namesOf<RedriveOptions>()([
  "store",
  "jobs",
  "defaults",
  "services",
  "tenants",
  "health",
  "alerts",
  "middleware",
  "log",
  "maxPayloadBytes",
  "traces",
  "actor",
]);

/** Checks and completes the options. */
export function resolveRedrive(options: RedriveOptions): RedriveSettings {
  const given = parseOptions(options, FIELDS, "createRedrive");
  const { store, jobs = [], middleware = [], defaults = {}, services, tenants, health = {}, log = "warn" } = given;
  if (typeof store !== "string" && typeof (store as Store | undefined)?.enqueue !== "function")
    throw invalid(
      "store",
      `"${[...STORE_URLS, "memory:"].join('", "')}" or a store`,
      store,
      `for example "${DEFAULT_STORE}"`,
    );
  if (!Array.isArray(jobs) || !jobs.every(isJobDefinition))
    throw invalid("jobs", "an array of what defineJob returned", jobs, "pass the definitions");
  const twice = jobs.find(({ type }, at) => jobs.findIndex((other) => other.type === type) !== at);
  if (twice) throw invalid("jobs", "one definition per type", `two of ${twice.type}`, "remove one");
  if (!Array.isArray(middleware) || middleware.some((layer) => typeof layer !== "function"))
    throw invalid("middleware", "an array of functions", middleware, "pass (run, next) => next()");
  const library = defaults as PolicyOptions;
  resolvePolicy({ library });
  const { maxPayloadBytes = JOB_BOUNDS.payloadBytes } = given;
  checkInteger("maxPayloadBytes", maxPayloadBytes, 1, JOB_BOUNDS.payloadBytesMost);
  const { actor = null } = given;
  if (actor !== null) checkActor("actor", actor);
  return {
    store: store as string | Store,
    jobs: jobs.map((job: JobDefinition) => wrapped(withDefaults(job, library), middleware)),
    defaults: library,
    limits: resolveLimits({ services, tenants, types: jobs } as Parameters<typeof resolveLimits>[0]),
    health: health as HealthOptions,
    log: logOf(log),
    maxPayloadBytes: maxPayloadBytes as number,
    traceMode: traceMode(given.traces),
    actor: actor as string | null,
  };
}

function logOf(log: unknown): Log {
  const level = LOG_LEVELS.find((known) => known === log);
  if (level !== undefined) return lineLog(level);
  const isLog = ["debug", "info", "warn", "error"].every(
    (name) => typeof (log as Record<string, unknown> | null)?.[name] === "function",
  );
  if (isLog) return log as Log;
  throw invalid("log", `${LOG_LEVELS.join(", ")}, or a logger such as pino`, log, "use one of these");
}
