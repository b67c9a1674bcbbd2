// What holds work back, read from a store: pauses, the records of services, and the settings that workers published.
// Settings of living workers override those of this program.
import { fieldsFrom } from "../core/options.ts";
import type { Holding } from "../core/holding.ts";
import {
  type Limits,
  resolveLimits,
  type NamedSettings,
  type ServiceSettings,
  type TenantSettings,
} from "../core/service.ts";
import { recordFrom } from "../core/service-record.ts";
import type { RateSettings } from "../core/rate.ts";
import type { Cell, CellQuery, Control, Store, WorkerRecord } from "../store/store.ts";

/** Settings by name as workers published them. */
export type SaidSettings = Pick<Limits, "service" | "tenant" | "type" | "said">;

/** The settings of a program without configuration. */
export const NO_LIMITS: Limits = resolveLimits({});

/** The workers that are alive. */
export function livingAmong(workers: readonly WorkerRecord[], now: number): WorkerRecord[] {
  return workers.filter(({ givenUp, leaseEnd }) => !givenUp && leaseEnd > now);
}

/** The settings that living workers published in these cells, the latest for each name, above those of this program. */
export function settingsFrom(
  cells: readonly Cell[],
  limits: Limits,
  living: readonly Pick<WorkerRecord, "id">[],
): SaidSettings {
  const said = new Map(limits.said);
  const speakers = new Set(living.map(({ id }) => id));
  for (const { kind, name, holder, value } of cells.toSorted((a, b) => a.at - b.at)) {
    const own = kind === "settings" && speakers.has(holder) ? saidFrom(value) : null;
    if (own) said.set(name, own);
  }
  const find = (kind: string, name: string): NamedSettings | undefined =>
    said.get(`${kind}:${name}`) ?? said.get(`${kind}:*`);
  return {
    said,
    service: (name) => (find("service", name) as ServiceSettings | undefined) ?? limits.service(name),
    tenant: (name) => (find("tenant", name) as TenantSettings | undefined) ?? limits.tenant(name),
    type: (name) => (said.get(`type:${name}`) as { readonly rate: RateSettings } | undefined)?.rate ?? null,
  };
}

/** The cells that may hold settings of these services. */
export function settingsOfServices(names: Iterable<string>): CellQuery[] {
  return ["*", ...names].map((name) => ({ kind: "settings", name: `service:${name}` }));
}

/** The Holding of a control, with what happens to work whose breaker is open. */
export function holdingFrom({ now, pauses, services }: Control, settings: SaidSettings): Holding {
  return {
    now,
    pauses,
    services: new Map(services.map(({ name, value }) => [name, recordFrom(value)])),
    whenOpen: (service) => settings.service(service).whenOpen,
  };
}

/** Everything that holds work back now. */
export async function readHolding(
  store: Pick<Store, "control" | "cells" | "workers">,
  limits: Limits = NO_LIMITS,
): Promise<Holding> {
  const control = await store.control();
  const holding = holdingFrom(control, limits);
  const open = [...holding.services].filter(([, { breaker }]) => breaker.state !== "closed").map(([name]) => name);
  if (open.length === 0) return holding;
  const [{ cells }, workers] = await Promise.all([store.cells(settingsOfServices(open)), store.workers()]);
  return holdingFrom(control, settingsFrom(cells, limits, livingAmong(workers, control.now)));
}

/** The settings in a cell; null for a cell that another version wrote in another form. */
function saidFrom(value: string): NamedSettings | null {
  const said = fieldsFrom(value);
  return "rate" in said ? (said as unknown as NamedSettings) : null;
}
