// Loads a config file: TypeScript, JavaScript or YAML. One wrong field refuses the whole file. Relative paths in it
// start at the folder of the file.
import { statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, extname, resolve } from "node:path";
import type { FleetAlertOptions } from "../alerts/sink-options.ts";
import { ALERT_FIELDS, type AlertOptions, resolveAlerts } from "../core/alerts.ts";
import { isRedriveError, RedriveError } from "../core/errors.ts";
import { type HealthOptions, resolveHealth } from "../core/health.ts";
import { checkText } from "../core/new-job.ts";
import { didYouMean, invalid, namesOf, parseOptions } from "../core/options.ts";
import { POLICY_FIELDS, type PolicyOptions, resolvePolicy } from "../core/policy.ts";
import { resolveLimits } from "../core/service.ts";
import { traceMode } from "../core/trace.ts";
import type { Config } from "./find-config.ts";
import type { RedriveConfig, WorkerConfig } from "./redrive-config.ts";
import { whyRefused } from "../system/trusted-file.ts";
import { resolveWorker, WORKER_FIELDS } from "../worker/settings.ts";
import { backoffFromData } from "./config-backoff.ts";
import type { YamlPlace } from "./config-yaml.ts";
import { oneLine } from "../core/safe-text.ts";
import { loadModule } from "./load-module.ts";
import { storeAddress } from "./store-address.ts";

const FIELDS = namesOf<RedriveConfig>()([
  "store",
  "jobs",
  "defaults",
  "services",
  "tenants",
  "traces",
  "alerts",
  "health",
  "worker",
]);
const FORBIDDEN = new Set(["__proto__", "constructor", "prototype"]);
const MOST_DEPTH = 10;
/** A larger file is no config, and would take minutes to read. */
const YAML_MOST = 1_048_576;

/** Loads and checks a config file. */
export async function loadConfig(file: string): Promise<Config> {
  const why = whyRefused(file);
  if (why !== null) throw refused(`config: expected a file that only you or root can change; ${file} ${why}`);
  const { value, placeOf } = await readConfig(file);
  try {
    return await configOf(value, file);
  } catch (error) {
    if (!isRedriveError(error)) throw error;
    const path = (error.details.path as string[] | undefined) ?? pathIn(error.message);
    throw refused(`${file}${placeOf(path)}: ${error.message}`, error);
  }
}

async function readConfig(file: string): Promise<{ value: unknown; placeOf: YamlPlace }> {
  try {
    if ([".yaml", ".yml"].includes(extname(file))) {
      // Loaded only where it is needed: most calls have no YAML to read.
      const { readYaml } = await import("./config-yaml.ts");
      const { size } = statSync(file);
      if (size > YAML_MOST) throw new Error(`it may have at most 1 MiB; got ${size} bytes`);
      return readYaml(await readFile(file, "utf8"));
    }
    const module = await loadModule(file);
    if (!("default" in module)) throw new Error("it has no default export");
    return { value: module.default, placeOf: () => "" };
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    throw refused(`${file}: expected a config file that can be read; ${oneLine(said)}`, cause);
  }
}

/** The path of the field that an error of the library names. */
function pathIn(message: string): string[] {
  const name = /^([\w.]+):/.exec(message)?.[1] ?? "";
  return name.replace(/^library\b/, "defaults").split(".");
}

async function configOf(value: unknown, file: string): Promise<Config> {
  refuseForbidden(value, []);
  const given = parse(value ?? {}, FIELDS, []);
  const folder = dirname(file);
  const { store, jobs = [] } = given;
  const files = Array.isArray(jobs) ? jobs : [jobs];
  if (!files.every((one) => typeof one === "string" && one !== ""))
    throw invalid("jobs", "a file or a list of files", jobs, "for example ./jobs.ts");
  return {
    file,
    store: store === undefined ? null : storeAddress(store, folder),
    jobs: (files as string[]).map((one) => resolve(folder, one)),
    defaults: defaultsOf(given.defaults),
    ...limitsOf(given),
    traces: tracesOf(given.traces),
    ...(await alertsOf(given.alerts, given.health)),
    health: healthOf(given.health),
    worker: workerOf(given.worker, folder),
  };
}

function limitsOf(given: {
  readonly services?: unknown;
  readonly tenants?: unknown;
}): Pick<Config, "services" | "tenants"> {
  const limits = { services: given.services ?? {}, tenants: given.tenants ?? {} } as Pick<
    Config,
    "services" | "tenants"
  >;
  resolveLimits(limits);
  return limits;
}

function tracesOf(value: unknown): boolean | "link" {
  const mode = traceMode(value);
  return mode === "link" ? mode : mode !== null;
}

const ALERT_GROUPS = ["rules", "sinks"] as const;

/** Limits of one drain and the alerts of the fleet; the check of these is loaded only where the file has them. */
async function alertsOf(value: unknown, health: unknown): Promise<Pick<Config, "alerts" | "fleetAlerts">> {
  if (value === undefined) return { alerts: {}, fleetAlerts: null };
  const { rules, sinks, ...alerts } = { ...parse(value ?? {}, [...ALERT_FIELDS, ...ALERT_GROUPS], ["alerts"]) };
  resolveAlerts(alerts);
  const fleetAlerts = { ...(rules !== undefined && { rules }), ...(sinks !== undefined && { sinks }) };
  // Limits of a drain alone do not ask for alerts of the fleet.
  if (Object.keys(alerts).length > 0 && Object.keys(fleetAlerts).length === 0)
    return { alerts: alerts as AlertOptions, fleetAlerts: null };
  (await import("../alerts/sink-options.ts")).resolveFleetAlerts(fleetAlerts, resolveHealth(health));
  return { alerts: alerts as AlertOptions, fleetAlerts: fleetAlerts as FleetAlertOptions };
}

function healthOf(value: unknown): HealthOptions {
  resolveHealth(value);
  return (value ?? {}) as HealthOptions;
}

function defaultsOf(value: unknown): PolicyOptions {
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" || Array.isArray(value))
    throw invalid("defaults", "an object such as { maxAttempts: 5 }", value, "change it");
  const { backoff, ...rest } = value as PolicyOptions;
  const defaults = { ...rest, ...(backoff !== undefined && { backoff: backoffFromData(backoff) }) };
  try {
    resolvePolicy({ library: defaults });
  } catch (error) {
    if (!isRedriveError(error)) throw error;
    const message = error.message.replace(/^library\b/, "defaults");
    throw new RedriveError("invalid_argument", message, { cause: error });
  }
  return defaults;
}

const PORT_FIELDS = namesOf<NonNullable<WorkerConfig["health"]>>()(["port", "host", "metricsToken"]);

function workerOf(value: unknown, folder: string): WorkerConfig {
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" || Array.isArray(value))
    throw invalid("worker", "an object such as { concurrency: 20 }", value, "change it");
  const { health, archive, ...rest } = value as WorkerConfig;
  resolveWorker(rest);
  if (archive !== undefined && (typeof archive !== "string" || archive === ""))
    throw invalid("worker.archive", "the path of a file", archive, "for example ./dead.ndjson");
  if (health !== undefined) {
    const { port, host, metricsToken } = parse(health, PORT_FIELDS, ["worker", "health"]);
    if (!Number.isInteger(port) || (port as number) < 0 || (port as number) > 65_535)
      throw invalid("worker.health.port", "a whole number from 0 to 65535", port, "change it");
    if (host !== undefined && typeof host !== "string") throw invalid("worker.health.host", "text", host, "change it");
    if (metricsToken !== undefined) checkText("worker.health.metricsToken", metricsToken);
  }
  return {
    ...rest,
    ...(health !== undefined && { health }),
    ...(archive !== undefined && { archive: resolve(folder, archive) }),
  };
}

/** Like `parseOptions`, but the error has the position of the field. */
function parse<K extends string>(value: unknown, known: readonly K[], path: readonly string[]): Record<K, unknown> {
  try {
    return parseOptions(value, known, ["config", ...path].join(".")) as Record<K, unknown>;
  } catch (error) {
    if (!isRedriveError(error)) throw error;
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    const wrong = isObject ? Object.keys(value).find((key) => !known.includes(key as K)) : undefined;
    const details = { path: wrong === undefined ? [...path] : [...path, wrong] };
    const message = wrong === undefined ? error.message : withPlace(error.message, wrong, path);
    throw new RedriveError("invalid_argument", message, { cause: error, details });
  }
}

/**
 * Names the right place for a top-level field that belongs to `defaults` or `worker`, because the nearest known name
 * may be far off.
 */
function withPlace(message: string, wrong: string, path: readonly string[]): string {
  if (path.length > 0 || didYouMean(wrong, FIELDS) !== "") return message;
  const places = [POLICY_FIELDS.map((field) => ["defaults", field]), WORKER_FIELDS.map((field) => ["worker", field])];
  const near = places.flat().find(([, field = ""]) => didYouMean(wrong, [field]) !== "");
  const remedy = near ? `did you mean "${near.join(".")}"?` : "use one of these, or leave it out";
  return message.replace(/did you mean "\w+"\?$/, remedy);
}

/** Refuses names that would reach into the prototypes of objects. */
function refuseForbidden(value: unknown, path: readonly string[]): void {
  if (typeof value !== "object" || value === null) return;
  if (path.length > MOST_DEPTH) throw invalid("config", `at most ${MOST_DEPTH} levels`, "more", "make it flatter");
  for (const key of Object.getOwnPropertyNames(value)) {
    if (FORBIDDEN.has(key)) {
      const message = `config: expected no field called ${key}; got one${path.length > 0 ? ` in ${path.join(".")}` : ""}; remove it`;
      throw new RedriveError("invalid_argument", message, { details: { path: [...path, key] } });
    }
    refuseForbidden((value as Record<string, unknown>)[key], [...path, key]);
  }
}

function refused(message: string, cause?: unknown): RedriveError {
  return new RedriveError("config_refused", message, { cause });
}
