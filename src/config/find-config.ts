// Finds the config file: the one that is named, else the one in the working directory. Most calls have none, and then
// the code that reads one is not loaded.
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { FleetAlertOptions } from "../alerts/sink-options.ts";
import type { AlertOptions } from "../core/alerts.ts";
import type { HealthOptions } from "../core/health.ts";
import { RedriveError } from "../core/errors.ts";
import type { PolicyOptions } from "../core/policy.ts";
import type { ServiceOptions, TenantOptions } from "../core/service.ts";
import { whyRefused } from "../system/trusted-file.ts";
import type { WorkerConfig } from "./redrive-config.ts";
import type { StoreAddress } from "../store/inspection.ts";

/** A config file, checked. */
export interface Config {
  /** Its path; null where there is none. */
  readonly file: string | null;
  readonly store: StoreAddress | null;
  /** Absolute paths of files with job definitions. */
  readonly jobs: readonly string[];
  readonly defaults: PolicyOptions;
  /** Breakers, retry budgets and rate limits by service, and weights and rate limits by tenant. */
  readonly services: Readonly<Record<string, ServiceOptions>>;
  readonly tenants: Readonly<Record<string, TenantOptions>>;
  /** Whether spans are made, and how. */
  readonly traces: boolean | "link";
  /** Limits for the figures of `drain`. */
  readonly alerts: AlertOptions;
  /** The alerts of the fleet; null where the file has no `alerts`. */
  readonly fleetAlerts: FleetAlertOptions | null;
  /** Limits for `health`. */
  readonly health: HealthOptions;
  readonly worker: WorkerConfig;
}

/** No config file. */
export const NO_CONFIG: Config = {
  file: null,
  store: null,
  jobs: [],
  defaults: {},
  services: {},
  tenants: {},
  traces: false,
  alerts: {},
  fleetAlerts: null,
  health: {},
  worker: {},
};

/** The names under which a config file is found. */
export const CONFIG_NAMES = ["ts", "js", "mjs", "yaml", "yml"].map((ending) => `redrive.config.${ending}`);

/** The config file to use: the one named, else the one in the folder, else null. */
export function findConfig(named: string | undefined, folder: string): string | null {
  if (named !== undefined) {
    const path = resolve(folder, named);
    if (named !== "" && isThere(path)) return path;
    throw refused(`config: expected a file; got ${JSON.stringify(named)}, which does not exist; check the path`);
  }
  const found = CONFIG_NAMES.filter((name) => isThere(join(folder, name)));
  if (found.length > 1) {
    throw refused(
      `config: expected one config file; found ${found.join(" and ")}; remove one, or name it with --config`,
    );
  }
  return found[0] === undefined ? null : join(folder, found[0]);
}

/** True also for a link that leads nowhere: it is refused, not skipped. */
function isThere(path: string): boolean {
  return existsSync(path) || whyRefused(path) !== null;
}

function refused(message: string): RedriveError {
  return new RedriveError("config_refused", message);
}
