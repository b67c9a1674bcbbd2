// The configuration of an outside service, a tenant or a job type: breaker, retry budget, rate limit, weight. Options
// are checked and completed once; code below sees no optional value.
import { type BreakerOptions, type BreakerSettings, resolveBreaker } from "./breaker.ts";
import { type BudgetOptions, type BudgetSettings, resolveBudget } from "./budget.ts";
import { type Duration, parseDuration } from "./duration.ts";
import { checkName, checkText } from "./new-job.ts";
import { invalid, objectOf, parseNumber, namesOf, parseOptions } from "./options.ts";
import { type RateOptions, type RateSettings, resolveRate } from "./rate.ts";

/** What happens to work whose breaker is open. */
export const WHEN_OPEN = ["park", "dead-letter", "fail"] as const;
/** One of `WHEN_OPEN`. */
export type WhenOpen = (typeof WHEN_OPEN)[number];

/** Options of a service; the name `"*"` stands for every service that is not named. */
export interface ServiceOptions {
  /** Thresholds of its breaker, or false for no breaker; default those of `BreakerOptions`. */
  readonly breaker?: BreakerOptions | false;
  /**
   * What becomes of jobs that are due while the breaker is open: they wait without using an attempt (`park`), become
   * dead letters (`dead-letter`), or use an attempt (`fail`); default `park`.
   */
  readonly whenOpen?: WhenOpen;
  /**
   * How long a service that came back gets a growing share of its load instead of all at once; default 20 s, at most 1
   * d, 0 for not at all.
   */
  readonly ramp?: Duration;
  /** Retries allowed in relation to successes; default no limit. */
  readonly budget?: BudgetOptions;
  /** Starts allowed for the whole fleet; default no limit. */
  readonly rateLimit?: RateOptions;
}

/** Options of a tenant; the name `"*"` stands for every tenant that is not named. */
export interface TenantOptions {
  /** Its share of turns beside the others; default 1, from 0.01 to 100. */
  readonly weight?: number;
  /** Starts allowed for the whole fleet; default no limit. */
  readonly rateLimit?: RateOptions;
}

/** Complete settings of a service. */
export interface ServiceSettings {
  readonly breaker: BreakerSettings | null;
  readonly whenOpen: WhenOpen;
  readonly rampMs: number;
  readonly budget: BudgetSettings | null;
  readonly rate: RateSettings | null;
}

/** Complete settings of a tenant. */
export interface TenantSettings {
  readonly weight: number;
  readonly rate: RateSettings | null;
}

/** The settings of one name. */
export type NamedSettings = ServiceSettings | TenantSettings | { readonly rate: RateSettings };

/** Settings by name, with the defaults for other names. */
export interface Limits {
  readonly service: (name: string) => ServiceSettings;
  readonly tenant: (name: string) => TenantSettings;
  readonly type: (name: string) => RateSettings | null;
  /** Whether any rate limit or budget is configured. */
  readonly areSpread: boolean;
  /** The settings of each configured name, for people: `service:pricing`, `tenant:*`, `type:mail`. */
  readonly said: ReadonlyMap<string, NamedSettings>;
}

const SERVICE_FIELDS = namesOf<ServiceOptions>()(["breaker", "whenOpen", "ramp", "budget", "rateLimit"]);
const TENANT_FIELDS = namesOf<TenantOptions>()(["weight", "rateLimit"]);
const RAMP = "20s";

/** Complete settings of a service; throws `invalid_argument` for a bad value. */
export function resolveService(options: unknown, name: string): ServiceSettings {
  const given = parseOptions(options, SERVICE_FIELDS, name);
  const { breaker, whenOpen = "park", ramp = RAMP, budget, rateLimit } = given;
  const known = WHEN_OPEN.find((each) => each === whenOpen);
  if (known === undefined) throw invalid(`${name}.whenOpen`, WHEN_OPEN.join(", "), whenOpen, "use one of these");
  return Object.freeze({
    breaker: breaker === false ? null : resolveBreaker(breaker as BreakerOptions | undefined, `${name}.breaker`),
    whenOpen: known,
    rampMs: parseDuration(ramp, `${name}.ramp`, { maxMs: 86_400_000 }),
    budget: budget === undefined ? null : resolveBudget(budget as BudgetOptions, `${name}.budget`),
    rate: rateLimit === undefined ? null : resolveRate(rateLimit, `${name}.rateLimit`),
  });
}

function resolveTenant(options: unknown, name: string): TenantSettings {
  const { weight = 1, rateLimit } = parseOptions(options, TENANT_FIELDS, name);
  return Object.freeze({
    weight: parseNumber(weight, `${name}.weight`, { min: 0.01, max: 100 }),
    rate: rateLimit === undefined ? null : resolveRate(rateLimit, `${name}.rateLimit`),
  });
}

/** Everything configured, by name. */
export function resolveLimits(given: {
  readonly services?: Readonly<Record<string, ServiceOptions>> | undefined;
  readonly tenants?: Readonly<Record<string, TenantOptions>> | undefined;
  readonly types?: readonly { readonly type: string; readonly rate: RateSettings | null }[];
}): Limits {
  const services = resolveEach(given.services ?? {}, "services", resolveService, (name) => checkName("services", name));
  const tenants = resolveEach(given.tenants ?? {}, "tenants", resolveTenant, (name) => checkText("tenants", name));
  const types = new Map((given.types ?? []).flatMap(({ type, rate }) => (rate ? [[type, rate] as const] : [])));
  const anyService = services.get("*") ?? resolveService({}, "services");
  const anyTenant = tenants.get("*") ?? resolveTenant({}, "tenants");
  return {
    service: (name) => services.get(name) ?? anyService,
    tenant: (name) => tenants.get(name) ?? anyTenant,
    type: (name) => types.get(name) ?? null,
    areSpread: [...services.values(), ...tenants.values()].some(isSpread) || types.size > 0,
    said: new Map<string, NamedSettings>([
      ...[...services].map(([name, settings]) => [`service:${name}`, settings] as const),
      ...[...tenants].map(([name, settings]) => [`tenant:${name}`, settings] as const),
      ...[...types].map(([name, rate]) => [`type:${name}`, { rate }] as const),
    ]),
  };
}

function isSpread(said: ServiceSettings | TenantSettings): boolean {
  return said.rate !== null || ("budget" in said && said.budget !== null);
}

function resolveEach<T>(
  options: Readonly<Record<string, unknown>>,
  field: string,
  resolve: (options: unknown, name: string) => T,
  check: (name: string) => void,
): Map<string, T> {
  const all = new Map<string, T>();
  for (const [name, own] of Object.entries(objectOf(options, field))) {
    if (name !== "*") check(name);
    all.set(name, resolve(own, `${field}.${name}`));
  }
  return all;
}
