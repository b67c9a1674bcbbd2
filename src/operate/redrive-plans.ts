// Makes the plan of a redrive: looks at the letters that it means, at most at the first 10,000 unless a limit or a patch
// needs all, counts the others, and reads what the fleet says about their services and types.
import { pausesOf, type Holding } from "../core/holding.ts";
import { isRedriveError, RedriveError } from "../core/errors.ts";
import { HOUR } from "../core/flow.ts";
import type { Belonging, DeadLetter, Job } from "../core/job.ts";
import { loadFrom } from "../core/load.ts";
import { invalid } from "../core/options.ts";
import { openPatch } from "../core/recovery/merge-patch.ts";
import { type FleetFacts, lastBusyHour, type PlanFacts } from "../core/recovery/plan.ts";
import { type AskedSelection, freeze, type FrozenSelection, filterOf } from "../core/recovery/selection.ts";
import type { Limits } from "../core/service.ts";
import { everyItem, PAGE } from "../enqueue/paging.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { isMisfit, validated } from "../jobs/schema.ts";
import { countLetters, LOOKED_MOST } from "./letter-counts.ts";
import { holdingFrom, livingAmong, settingsFrom } from "../services/holding.ts";
import type { Store } from "../store/store.ts";
import { type LetterWalk, walkLetters } from "../upkeep/redrive-letters.ts";

/** What gathering needs. */
export interface PlanSource {
  readonly store: Store;
  readonly jobs: readonly JobDefinition[];
  readonly limits: Limits;
}

/** What was found about the letters of a selection. */
export interface Gathered {
  readonly selection: FrozenSelection;
  readonly facts: PlanFacts;
  readonly misfits: readonly string[];
  /** A job of each kind of work among them, for what holds it back. */
  readonly samples: readonly Belonging[];
}

/** Names that are counted one by one; beyond, they count together. */
const NAMES_MOST = 10_000;
/** Kinds of work whose holds are looked at. */
const SAMPLES_MOST = 1_000;
/** Misfits that a run can leave out: their ids are part of its record. */
const MISFITS_MOST = 1_000;
/** Pages of completed jobs that are looked at for groups that ran on. */
const GROUP_PAGES = 10;
/** Hours of the past in which a busy one is looked for. */
const HOURS = 7 * 24;

/** Looks at the letters of a selection, and counts them. */
export async function gatherLetters(
  source: PlanSource,
  asked: AskedSelection,
  { now, patch }: { readonly now: number; readonly patch: string | null },
): Promise<Gathered> {
  const selection = await frozen(source.store, asked, now);
  const sum = new LetterSum();
  const fits = patch === null ? null : fittingBy(source.jobs, patch);
  const misfits: string[] = [];
  // The end of a limit has to be found, and every patched payload checked.
  const isBounded = selection.limit === undefined && patch === null;
  const most = isBounded ? LOOKED_MOST : (selection.limit ?? Number.POSITIVE_INFINITY);
  let cursor: string | null = null;
  for (let more = true; more && sum.looked < most; more = cursor !== null) {
    const left = Math.min(PAGE, most - sum.looked);
    const page: LetterWalk = await walkLetters(source.store, selection, {
      cursor,
      limit: left,
      payloads: fits !== null,
    });
    const { letters } = page;
    for (const letter of letters) {
      sum.add(letter);
      if (fits && !(await fits(letter))) misfits.push(letter.job.id);
      if (misfits.length > MISFITS_MOST) throw tooManyMisfits();
    }
    cursor = page.next;
  }
  const { samples } = sum;
  const facts = await sum.facts(source.store);
  if (cursor === null || selection.ids) return { selection, facts, misfits, samples };
  // Letters behind the limit are not of the run.
  if (!isBounded) return { selection: { ...selection, upTo: cursor }, facts, misfits, samples };
  return { selection, facts: await withOthers(source.store, selection, facts, now), misfits, samples };
}

/** The facts about the first letters, with the number of all and the death of the newest. */
async function withOthers(store: Store, selection: FrozenSelection, facts: PlanFacts, now: number): Promise<PlanFacts> {
  const query = { ...filterOf(selection), limit: 1, lookAt: LOOKED_MOST, payloads: false };
  const [{ count }, { items }] = await Promise.all([
    countLetters(store, selection, now, null),
    store.deadLetters(query),
  ]);
  const lastDiedAt = Math.max(facts.lastDiedAt ?? 0, items[0]?.diedAt ?? 0);
  return { ...facts, count: Math.max(facts.count, count), lastDiedAt };
}

async function frozen(store: Store, asked: AskedSelection, now: number): Promise<FrozenSelection> {
  const filter = filterOf(freeze(asked, now, 0));
  const { through = 0 } = await store.deadLetters({ ...filter, sort: "enqueued", limit: 1, payloads: false });
  const selection = freeze(asked, now, through);
  if (!asked.ids) return selection;
  const { letters } = await walkLetters(store, selection, { cursor: null, limit: asked.ids.length, payloads: false });
  const inOrder = letters.map(({ job }) => job).toSorted((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
  // By ids there is no order of enqueue to walk in, so they are put in it here.
  return { ...selection, ids: inOrder.slice(0, asked.limit).map(({ id }) => id) };
}

class LetterSum {
  looked = 0;
  readonly samples: Belonging[] = [];
  readonly #types = new Map<string, number>();
  readonly #services = new Map<string, number>();
  readonly #tenants = new Set<string>();
  /** The oldest letter of each group. */
  readonly #groups = new Map<string, Job>();
  readonly #superseded = new Map<string, number>();
  readonly #kinds = new Set<string>();
  #first: number | null = null;
  #last: number | null = null;

  add({ job, diedAt, supersededBy }: DeadLetter): void {
    const { type, service, tenant, group, queue } = job;
    this.looked += 1;
    addTo(this.#types, type);
    if (service !== null) addTo(this.#services, service);
    if (tenant !== null && this.#tenants.size < NAMES_MOST) this.#tenants.add(tenant);
    const name = group === null ? null : `${type}\0${group}`;
    if (name !== null && !this.#groups.has(name) && this.#groups.size < NAMES_MOST) this.#groups.set(name, job);
    if (supersededBy !== null) addTo(this.#superseded, supersededBy.state ?? "gone");
    this.#first = Math.min(this.#first ?? diedAt, diedAt);
    this.#last = Math.max(this.#last ?? diedAt, diedAt);
    const kind = [type, service, tenant, queue].join("\0");
    if (this.#kinds.has(kind) || this.#kinds.size >= SAMPLES_MOST) return;
    this.#kinds.add(kind);
    this.samples.push(job);
  }

  async facts(store: Store): Promise<PlanFacts> {
    return {
      count: this.looked,
      looked: this.looked,
      types: Object.fromEntries(this.#types),
      services: Object.fromEntries(this.#services),
      tenants: this.#tenants.size,
      groups: this.#groups.size,
      groupsRanOn: await ranOn(store, this.#groups),
      superseded: Object.fromEntries(this.#superseded),
      firstDiedAt: this.#first,
      lastDiedAt: this.#last,
    };
  }
}

function addTo(counts: Map<string, number>, name: string): void {
  if (counts.has(name) || counts.size < NAMES_MOST) counts.set(name, (counts.get(name) ?? 0) + 1);
}

/** How many of these groups have completed a job that was enqueued after their oldest letter, among the newest jobs. */
async function ranOn(store: Store, groups: ReadonlyMap<string, Job>): Promise<number> {
  const found = new Set<string>();
  for (const type of new Set([...groups.values()].map((job) => job.type))) {
    let seen = 0;
    const query = { type, state: "completed", limit: PAGE, payloads: false, lookAt: PAGE * GROUP_PAGES } as const;
    for await (const job of everyItem((cursor) => store.list({ ...query, cursor }))) {
      const name = `${type}\0${job.group}`;
      if (job.group !== null && job.createdAt > (groups.get(name)?.createdAt ?? Number.POSITIVE_INFINITY))
        found.add(name);
      if (++seen >= PAGE * GROUP_PAGES) break;
    }
  }
  return found.size;
}

/** True for letters whose patched payload fits their type. */
function fittingBy(jobs: readonly JobDefinition[], patch: string): (letter: DeadLetter) => Promise<boolean> {
  const apply = openPatch(patch);
  const definitions = new Map(jobs.map((definition) => [definition.type, definition]));
  return async ({ job }) => {
    const definition = definitions.get(job.type);
    if (!definition) throw unknownType(job.type);
    try {
      const payload: unknown = JSON.parse(apply(job.payload));
      if (definition.input) await validated(definition.input, payload, job.type);
      return true;
    } catch (error) {
      if (isMisfit(error, job.type) || isRedriveError(error, "payload_too_large")) return false;
      throw error;
    }
  };
}

function unknownType(type: string): RedriveError {
  return invalid(
    "plan.patch",
    "letters of types that this program defines",
    type,
    "plan it where its jobs are defined",
  );
}

function tooManyMisfits(): RedriveError {
  const message = `plan.patch: expected at most ${MISFITS_MOST} letters that do not fit their type with it; got more; change the patch, or select fewer letters`;
  return new RedriveError("invalid_argument", message);
}

/** What the fleet says about the letters. */
export async function gatherFleet(
  { store, limits }: PlanSource,
  { facts, samples, misfits }: Gathered,
  now: number,
): Promise<FleetFacts> {
  const [control, workers, { cells }] = await Promise.all([
    store.control(),
    store.workers(),
    store.cells([{ kind: "settings" }, { kind: "load" }]),
  ]);
  const living = livingAmong(workers, now);
  const settings = settingsFrom(cells, limits, living);
  const holding = holdingFrom(control, settings);
  const loads = living.map(({ id }) =>
    loadFrom(cells.find(({ kind, holder }) => kind === "load" && holder === id)?.value ?? ""),
  );
  const isServed = Object.keys(facts.types).some((type) =>
    loads.some((load) => load === null || load.types.some((served) => served.type === type)),
  );
  const services = Object.keys(facts.services);
  return {
    open: openAmong(services, holding),
    pauses: [...new Set(samples.flatMap((job) => pausesOf(job, holding).map(({ kind, name }) => `${kind} ${name}`)))],
    isServed: isServed || facts.count === 0,
    limits: services.flatMap((service) => {
      const { rate } = settings.service(service);
      return rate ? [{ service, perSecond: (rate.limit * 1_000) / rate.perMs }] : [];
    }),
    completed: await completedBy(store, Object.keys(facts.types), now),
    misfits,
  };
}

/** The services among these whose breaker is not closed. */
export function openAmong(services: readonly string[], holding: Holding): FleetFacts["open"] {
  return services.flatMap((service) => {
    const state = holding.services.get(service)?.breaker.state ?? "closed";
    return state === "closed" ? [] : [{ service, state }];
  });
}

/** What each type completed a second in its last busy hour. */
async function completedBy(store: Store, types: readonly string[], now: number): Promise<FleetFacts["completed"]> {
  const from = now - HOURS * HOUR;
  const trends = await Promise.all(
    types.slice(0, 20).map(async (type) => {
      const points = await store.trend({ type, from, until: now, stepMs: HOUR });
      return { type, perSecond: lastBusyHour(points.map(({ counts }) => ({ completed: counts["completed"] ?? 0 }))) };
    }),
  );
  return trends.flatMap(({ type, perSecond }) => (perSecond === null ? [] : [{ type, perSecond }]));
}
