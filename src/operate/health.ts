// Reads from a store the facts by which its health is judged; core judges them.
import { ALERT_CELLS, notesFrom } from "./alert-cells.ts";
import { DRAIN_CELLS, drainFrom, intervalsByType } from "../core/drains.ts";
import { MINUTE } from "../core/flow.ts";
import {
  endedRuns,
  HEALTH_LIMITS,
  HEALTH_WINDOW_MS,
  type Health,
  type HealthFacts,
  type HealthLimits,
  judgeHealth,
  type MinuteCounts,
} from "../core/health.ts";
import { type Holding, pausesInForce } from "../core/holding.ts";
import { checkName } from "../core/new-job.ts";
import { livingAmong, readHolding } from "../services/holding.ts";
import type { Cell, Store, StoreFigures, WorkerRecord } from "../store/store.ts";
import { CAUSE_CELLS } from "../upkeep/cause-news.ts";
import { unarchivedLetters } from "../upkeep/keeps.ts";
import { COUNTED_TO } from "./counts.ts";
import { type DueLane, dueLanes, pacedLanes } from "./due-work.ts";
import { gatherUpkeep } from "./upkeep-health.ts";

/** How far figures are counted: a few milliseconds, however many jobs there are. */
const FIGURES = { lanes: 10_000, jobs: 20_000, letters: 5_000, notes: CAUSE_CELLS } as const;
/** Health alone needs little more than whether there is any. */
const FEW = { counted: 100, figures: { ...FIGURES, jobs: 1, letters: 1 } } as const;

/** What health and metrics both read. */
export interface StoreState {
  readonly jobs: HealthFacts["jobs"];
  readonly workers: readonly WorkerRecord[];
  readonly holding: Holding;
  readonly figures: StoreFigures;
}

/** Reads it; `isBare` is for health alone, which counts nothing that is not asked for later. */
export async function readState(store: Store, isBare = false): Promise<StoreState> {
  const [jobs, workers, holding, figures] = await Promise.all([
    store.count(isBare ? FEW.counted : COUNTED_TO),
    store.workers(),
    readHolding(store),
    store.figures(isBare ? FEW.figures : FIGURES),
  ]);
  return { jobs, workers, holding, figures };
}

/** What to look at. */
export interface HealthQuery {
  /** Only this type: what concerns the whole queue (orphaned runs, upkeep) is left out. */
  readonly type?: string | null | undefined;
  readonly limits?: HealthLimits;
  /** True for the score only: does not look for the first letter over the limit, which takes a list. */
  readonly brief?: boolean;
}

/** Reads the facts and judges them. */
export async function readHealth(store: Store, query: HealthQuery = {}): Promise<Health> {
  return judgeHealth(await gatherHealth(store, query), query.limits);
}

/** Reads the facts from a store; a state that was read before is used again. */
export async function gatherHealth(
  store: Store,
  query: HealthQuery = {},
  state?: StoreState | Promise<StoreState>,
): Promise<HealthFacts> {
  const { type = null, limits = HEALTH_LIMITS, brief = false } = query;
  if (type !== null) checkName("type", type);
  const [{ jobs, workers, holding, figures }, noted, unarchived] = await Promise.all([
    state ?? readState(store, true),
    store.cells([{ kind: DRAIN_CELLS }, { kind: ALERT_CELLS }]),
    unarchivedLetters(store),
  ]);
  const { now } = holding;
  const alive = livingAmong(workers, now);
  const lost = type === null ? workers.filter((each) => each.running > 0 && !alive.includes(each)) : [];
  const orphans = lost.reduce((sum, { running }) => sum + running, 0);
  const drains = drainIntervals(noted.cells, limits, now);
  const failingSinks = type === null ? failingSinksIn(noted) : [];
  const finished = jobs.completed + jobs.cancelled + jobs.dead;
  const [ended, letters, late, upkeep] = await Promise.all([
    readEnded(store, type, limits, now),
    lettersOf(store, figures, type, limits, brief),
    gatherLate(store, { holding, isAttended: alive.length > 0, type, limits, drains }),
    type === null
      ? gatherUpkeep(store, { alive: new Set(alive.map(({ id }) => id)), orphans, finished }, drains)
      : { toldMs: null, unattended: [], failing: [], late: [] },
  ]);
  return {
    now,
    type,
    jobs,
    workers: alive.length,
    orphans,
    orphansSince: lost.length === 0 ? null : Math.min(...lost.map(({ leaseEnd }) => leaseEnd)),
    ...late,
    backlog: late.waitingTypes.length === 0 ? 0 : dueIn(state ? figures : await store.figures(FIGURES), type),
    paused: pausesInForce(holding).map(({ kind, name }) => `${kind} ${name}`),
    breakers: openBreakers(holding, figures, type),
    ...letters,
    failingSinks,
    unarchived: unarchived.filter((each) => type === null || each.type === type),
    ended,
    upkeep,
  };
}

/** A sink that fails is tried at least once an hour; one that was not is no longer in use. */
const SINK_TRIED_MS = 2 * 3_600_000;

function failingSinksIn(noted: { readonly cells: readonly Cell[]; readonly now: number }): HealthFacts["failingSinks"] {
  return [...notesFrom(noted).sinks.values()].flatMap(({ value: { name, failing }, at }) =>
    failing !== null && noted.now - at < SINK_TRIED_MS ? [{ name, ...failing }] : [],
  );
}

function dueIn({ due }: StoreFigures, type: string | null): number {
  return due.reduce((sum, lane) => sum + (type === null || lane.type === type ? lane.jobs : 0), 0);
}

/** Breakers that are not closed; of one type those that hold its due work back. */
function openBreakers({ services }: Holding, { due }: StoreFigures, type: string | null): HealthFacts["breakers"] {
  const used = new Set(due.filter((lane) => lane.type === type).map(({ service }) => service));
  return [...services]
    .filter(([name, { breaker }]) => breaker.state !== "closed" && (type === null || used.has(name)))
    .map(([service, { breaker }]) => ({ service, since: breaker.since }))
    .toSorted((a, b) => a.since - b.since);
}

/** Most letters that are read to find the first over the limit, and how many are looked at for it. */
const LETTERS_READ = 200;
const LETTERS_LOOK = 1_000;

async function lettersOf(
  store: Store,
  figures: StoreFigures,
  type: string | null,
  { deadLetters: limit }: HealthLimits,
  brief: boolean,
): Promise<Pick<HealthFacts, "deadLetters" | "deadLettersSince">> {
  const deadLetters = figures.letters.reduce(
    (sum, each) => sum + (each.type === (type ?? each.type) ? each.count : 0),
    0,
  );
  if (brief || deadLetters <= limit || limit >= LETTERS_READ) return { deadLetters, deadLettersSince: null };
  const of = type === null ? {} : { type };
  const page = await store.deadLetters({
    ...of,
    oldest: true,
    limit: limit + 1,
    lookAt: LETTERS_LOOK,
    payloads: false,
  });
  return { deadLetters, deadLettersSince: page.items[limit]?.diedAt ?? null };
}

async function readEnded(
  store: Pick<Store, "trend">,
  type: string | null,
  { errorRate }: HealthLimits,
  now: number,
): Promise<HealthFacts["ended"]> {
  const of = type === null ? {} : { type };
  const points = await store.trend({
    ...of,
    from: Math.max(0, now - HEALTH_WINDOW_MS),
    until: now + 1,
    stepMs: MINUTE,
  });
  const minutes = points.map(({ at, counts }): MinuteCounts => {
    const { completed = 0, retried = 0, dead = 0 } = counts;
    return { at, completed, retried, dead };
  });
  return endedRuns(minutes, errorRate, now);
}

/** How long work of each type may have to wait for the next drain. */
function drainIntervals(
  cells: readonly Cell[],
  { drainsEveryMs: everyMs, lateMs }: HealthLimits,
  now: number,
): ReadonlyMap<string, number> {
  const drains = cells.flatMap(({ kind, value }) => (kind === DRAIN_CELLS ? (drainFrom(value) ?? []) : []));
  return intervalsByType(drains, { everyMs, lateMs, now });
}

interface LateOptions {
  readonly holding: Holding;
  readonly isAttended: boolean;
  readonly type: string | null;
  readonly limits: HealthLimits;
  readonly drains: ReadonlyMap<string, number>;
}

/**
 * How long work has been due. Work that a limit or budget delays is not late, if there is a worker to take it; nor is
 * work that the next drain will take.
 */
async function gatherLate(
  store: Store,
  { holding, isAttended, type, limits: { lateMs }, drains }: LateOptions,
): Promise<Pick<HealthFacts, "oldestDueMs" | "waitingTypes">> {
  let oldestDueMs: number | null = null;
  const waitingTypes = new Set<string>();
  let isPaced: ((lane: DueLane) => boolean) | null = null;
  for await (const lane of dueLanes(store, holding)) {
    if (type !== null && lane.type !== type) continue;
    const intervalMs = drains.get(lane.type);
    if (intervalMs !== undefined && lane.dueMs < intervalMs + lateMs) continue;
    const isLate = lane.dueMs >= lateMs;
    if (isLate && isAttended) isPaced ??= await pacedLanes(store);
    if (isLate && isPaced?.(lane)) continue;
    oldestDueMs = Math.max(oldestDueMs ?? 0, lane.dueMs);
    if (isLate) waitingTypes.add(lane.type);
  }
  return { oldestDueMs, waitingTypes: [...waitingTypes] };
}
