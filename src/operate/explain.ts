// Reads everything from a store that an explanation of one job needs; core interprets it.
import { valueOf } from "./limit-views.ts";
import { type Explanation, explain, type LivingWorker, type Snapshot, type SpreadLimit } from "../core/explain.ts";
import { witnessFrom } from "../core/evidence.ts";
import type { Holding } from "../core/holding.ts";
import type { Job } from "../core/job.ts";
import type { ActiveLane } from "../core/lane.ts";
import { loadFrom, slotsTaken, type WorkerLoad } from "../core/load.ts";
import type { RateBucket } from "../core/rate.ts";
import type { Limits } from "../core/service.ts";
import { initialRecord } from "../core/service-record.ts";
import type { Cell, CellQuery, Store, WorkerRecord } from "../store/store.ts";
import { ISOLATED_HOST } from "../worker/isolation.ts";
import { holdingFrom, livingAmong, type SaidSettings, settingsFrom } from "../services/holding.ts";
import { everyItem, PAGE } from "../enqueue/paging.ts";

/** Lanes read with one call, and calls for one explanation. */
const LANES = 1_000;
const PAGES = 20;
/** Most running jobs of a type that are counted. */
const RUNNING_MOST = 2_000;

/** Why the job is not running. */
export async function explainJob(store: Store, job: Job, limits: Limits): Promise<Explanation> {
  const [control, workers, { cells }] = await Promise.all([
    store.control(),
    store.workers(),
    store.cells(queriesFor(job)),
  ]);
  const living = livingAmong(workers, control.now);
  const settings = settingsFrom(cells, limits, living);
  const holding = holdingFrom(control, settings);
  const isWaiting = job.state === "queued";
  return explain(job, {
    ...holding,
    rates: ratesOf(job, holding, settings, cells),
    budget: budgetOf(job, settings, cells),
    workers: isWaiting ? await livingWorkers(store, job, living.filter(isOpen), cells) : [],
    holders: isWaiting && job.group !== null ? await store.holders({ type: job.type, group: job.group }) : [],
    lanes: isWaiting ? await lanesBefore(store, job) : [],
    leaseEnd: living.find(({ id }) => id === job.worker)?.leaseEnd ?? null,
  });
}

/** True for a worker that takes more than the one job it was started for. */
function isOpen({ host }: WorkerRecord): boolean {
  return !host.endsWith(ISOLATED_HOST);
}

function queriesFor({ type, service, tenant }: Job): CellQuery[] {
  const of = (kind: string, name: string): CellQuery => ({ kind, name });
  return [
    { kind: "load" },
    // Of all names, because others may come before it.
    { kind: "settings" },
    of("rate", `type:${type}`),
    ...(service === null ? [] : [of("rate", `service:${service}`), of("budget", service), of("evidence", service)]),
    ...(tenant === null ? [] : [of("rate", `tenant:${tenant}`)]),
  ];
}

function valueIn<T>(cells: readonly Cell[], kind: string, name: string): T | null {
  return valueOf<T>(cells.find((each) => each.kind === kind && each.name === name));
}

/** The rate limits of a job, and the ramp of its service. */
function ratesOf(job: Job, holding: Holding, settings: SaidSettings, cells: readonly Cell[]): SpreadLimit[] {
  const { type, tenant, service } = job;
  const limited = (name: string, rate: SpreadLimit["rate"]): SpreadLimit => {
    return { name, rate, bucket: valueIn<RateBucket>(cells, "rate", name) };
  };
  const [ofType, ofTenant] = [settings.type(type), tenant === null ? null : settings.tenant(tenant).rate];
  const rates = [
    ...(ofType ? [limited(`type:${type}`, ofType)] : []),
    ...(ofTenant ? [limited(`tenant:${tenant}`, ofTenant)] : []),
  ];
  if (service === null) return rates;
  const { rate, breaker: thresholds } = settings.service(service);
  const { breaker } = holding.services.get(service) ?? initialRecord;
  const isRamping = thresholds !== null && breaker.state === "closed" && breaker.rampUntil > holding.now;
  return rate || isRamping ? [...rates, limited(`service:${service}`, isRamping ? null : rate)] : rates;
}

function budgetOf({ service }: Job, settings: SaidSettings, cells: readonly Cell[]): Snapshot["budget"] {
  const budget = service === null ? null : settings.service(service).budget;
  return service === null || !budget ? null : { settings: budget, budget: valueIn(cells, "budget", service) };
}

async function livingWorkers(
  store: Store,
  job: Job,
  living: readonly WorkerRecord[],
  cells: readonly Cell[],
): Promise<LivingWorker[]> {
  const loads = new Map<string, WorkerLoad | null>();
  for (const { kind, holder, value } of cells) if (kind === "load") loads.set(holder, loadFrom(value));
  const types = new Set<string>();
  for (const { id } of living)
    for (const { type, concurrency, batch } of loads.get(id)?.types ?? [])
      if (batch !== undefined || (type === job.type && concurrency !== null)) types.add(type);
  const counts = new Map<string, ReadonlyMap<string, number> | null>();
  for (const type of types) counts.set(type, await runningOf(store, type));
  const sick = new Map<string, number>();
  for (const { kind, holder, value } of cells)
    if (kind === "evidence")
      for (const { evidence } of witnessFrom(holder, value)) sick.set(holder, evidence.sickUntil);
  return living.map(({ id, running }) => {
    const load = loads.get(id) ?? null;
    // For a type with too many to count, all of them may be of this type.
    const ofType = new Map([...counts].map(([type, by]) => [type, by ? (by.get(id) ?? 0) : running] as const));
    const taken = load ? slotsTaken(load, running, ofType) : running;
    const own = counts.get(job.type)?.get(id) ?? 0;
    const takenByType = load ? slotsTaken(load, own, new Map([[job.type, own]])) : own;
    return { id, taken, takenByType, load, sickUntil: sick.get(id) ?? 0 };
  });
}

/** How many jobs of a type run, by worker; null if there are too many to count. */
async function runningOf(store: Store, type: string): Promise<ReadonlyMap<string, number> | null> {
  const counts = new Map<string, number>();
  let seen = 0;
  for await (const { worker } of everyItem((cursor) => store.list({ state: "running", type, limit: PAGE, cursor }))) {
    if (worker !== null) counts.set(worker, (counts.get(worker) ?? 0) + 1);
    if (++seen >= RUNNING_MOST) return null;
  }
  return counts;
}

/** Lanes with due work that are served before the job's lane, or in turn with it; highest priority first. */
async function lanesBefore(store: Store, { priority }: Job): Promise<ActiveLane[]> {
  const found: ActiveLane[] = [];
  for (let after: number | null = null, page = 0; page < PAGES; page++) {
    const { lanes, next } = await store.lanes(after, LANES);
    found.push(...lanes.filter((lane) => lane.priority >= priority));
    if (next === null || lanes.some((lane) => lane.priority < priority)) break;
    after = next;
  }
  return found;
}
