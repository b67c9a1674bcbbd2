// The type of a config file in TypeScript; the same code checks YAML and TypeScript.
import type { FleetAlertOptions } from "../alerts/sink-options.ts";
import type { AlertOptions } from "../core/alerts.ts";
import type { HealthOptions } from "../core/health.ts";
import type { PolicyOptions } from "../core/policy.ts";
import type { ServiceOptions, TenantOptions } from "../core/service.ts";
import type { RedriveWorkerOptions } from "../worker/redrive-worker-api.ts";

/** The options of workers in a config file. */
export type WorkerConfig = Omit<RedriveWorkerOptions, "isolation" | "jobsFile">;

/**
 * The default export of `redrive.config.ts`; `redrive.config.yaml` has the same fields. Relative paths start at the
 * folder of the file.
 */
export interface RedriveConfig {
  /** Database of the jobs: `sqlite:PATH` or `postgres://…`; default `sqlite:./redrive.db` in the working directory. */
  readonly store?: string;
  /** The file or files with job definitions; default none. */
  readonly jobs?: string | readonly string[];
  /** Defaults for every job type; default those of the preset `default`. */
  readonly defaults?: PolicyOptions;
  /**
   * Breakers, retry budgets and rate limits by the name of the service, `"*"` for all that are not named; default as in
   * `RedriveOptions`.
   */
  readonly services?: Readonly<Record<string, ServiceOptions>>;
  /**
   * Weights and rate limits by the name of the tenant, `"*"` for all that are not named; default as in
   * `RedriveOptions`.
   */
  readonly tenants?: Readonly<Record<string, TenantOptions>>;
  /** Makes OpenTelemetry spans, as `traces` of `RedriveOptions`; default false. */
  readonly traces?: boolean | "link";
  /**
   * Alerts of the whole fleet, and limits on the figures of one `drain`, which reports what is over them and exits with 1.
   * `{}` for the rules as they are, told in the log. Default none.
   */
  readonly alerts?: AlertOptions & FleetAlertOptions;
  /** From when on `health` reports trouble; default as in `HealthOptions`. */
  readonly health?: HealthOptions;
  /** Options of workers; default those of `WorkerOptions`. */
  readonly worker?: WorkerConfig;
}
