// The health of a queue: one pure judgement over a few facts, and the code that reads them. Users cannot set thresholds
// yet: these are those of the old systems.
import type { State } from "../core/job.ts";
import { formatDuration } from "../core/duration.ts";
import { type Holding, pausesInForce } from "../core/holding.ts";
import { readHolding } from "../services/holding.ts";
import type { Store } from "../store/store.ts";
import { COUNTED_TO, countText } from "./counts.ts";
import { type DueLane, dueLanes, pacedLanes } from "./due-work.ts";
import { type UnarchivedLetters, unarchivedLetters } from "../upkeep/keeps.ts";
import { gatherUpkeep, type UpkeepFacts, upkeepTroubles } from "./upkeep-health.ts";
import { livingAmong } from "../services/holding.ts";

/** The facts that the judgement uses. */
export interface HealthFacts {
  readonly jobs: Readonly<Record<State, number>>;
  /** Workers with a lease in force. */
  readonly workers: number;
  /** Runs of workers whose lease has ended. */
  readonly orphans: number;
  /**
   * How long the oldest job that nothing holds back (rate limits and retry budgets included) has been due; null if none
   * is due.
   */
  readonly oldestDueMs: number | null;
  /** Types with work that is due, not held back, and has waited for a minute. */
  readonly waitingTypes: readonly string[];
  /** What is paused now. */
  readonly paused: readonly string[];
  /** Services whose breaker is not closed. */
  readonly breakers: readonly string[];
  readonly deadLetters: number;
  /** The dead letters among them that wait for an archive which no worker has. */
  readonly unarchived: readonly UnarchivedLetters[];
  /** Whether upkeep runs. */
  readonly upkeep: UpkeepFacts;
}

/** The judgement, for people and probes. */
export interface Health {
  readonly status: "healthy" | "degraded" | "unhealthy";
  /** From 0 to 1. */
  readonly score: number;
  /** Always null (unknown): completed jobs are deleted sooner than dead ones, so the stored jobs do not tell it. */
  readonly successRate: null;
  /** Why it is not 1, the worst first. */
  readonly reasons: readonly string[];
}

const LATE_MS = 60_000;
const VERY_LATE_MS = 300_000;
const MANY_DEAD = 100;
const BACKLOG = 1_000;
/** Most types that are named; of the rest only the number. */
const NAMED = 10;

/** The judgement: a score that each problem lowers; below 0.8 degraded, below 0.5 unhealthy. */
export function judgeHealth(facts: HealthFacts): Health {
  const { jobs, workers, orphans, oldestDueMs, breakers, deadLetters } = facts;
  const troubles: [cost: number, reason: string][] = upkeepTroubles(facts.upkeep);
  const due = oldestDueMs === null ? "" : `a job has been due for ${formatDuration(oldestDueMs)}`;
  if (oldestDueMs !== null && workers === 0)
    troubles.push([oldestDueMs >= LATE_MS ? 0.6 : 0.3, `no worker is alive and ${due}`]);
  else if (oldestDueMs !== null && oldestDueMs >= VERY_LATE_MS) troubles.push([0.5, due]);
  else if (oldestDueMs !== null && oldestDueMs >= LATE_MS) troubles.push([0.25, due]);
  if (orphans > 0) troubles.push([0.25, `${orphans} runs belong to workers that do not respond`]);
  if (breakers.length > 0)
    troubles.push([0.25, `the breakers of these services are not closed: ${breakers.join(", ")}`]);
  if (facts.unarchived.length > 0) troubles.push([0.1, unarchivedText(facts.unarchived)]);
  if (deadLetters > MANY_DEAD) troubles.push([0.25, `${countText(deadLetters)} dead letters`]);
  if (jobs.queued > BACKLOG && oldestDueMs !== null && oldestDueMs >= LATE_MS)
    troubles.push([0.1, `${countText(jobs.queued)} jobs wait`]);
  troubles.sort(([a], [b]) => b - a);
  const score =
    Math.round(
      100 *
        Math.max(
          0,
          troubles.reduce((left, [cost]) => left - cost, 1),
        ),
    ) / 100;
  const status = score >= 0.8 ? "healthy" : score >= 0.5 ? "degraded" : "unhealthy";
  return { status, score, successRate: null, reasons: troubles.map(([, reason]) => reason) };
}

/** A sentence about letters that wait for their archive. */
export function unarchivedText(letters: readonly UnarchivedLetters[]): string {
  const count = letters.reduce((sum, each) => sum + each.count, 0);
  const types = letters.map(({ type }) => type).toSorted();
  const more = types.length > NAMED ? ` and ${types.length - NAMED} more types` : "";
  const what = count === 1 ? "1 dead letter waits" : `${count} dead letters wait`;
  return `${what} for an archive that no worker has opened for an hour: ${types.slice(0, NAMED).join(", ")}${more}`;
}

/** Reads the facts from a store. */
export async function gatherHealth(store: Store): Promise<HealthFacts> {
  const [jobs, workers, holding] = await Promise.all([store.count(COUNTED_TO), store.workers(), readHolding(store)]);
  const { now, services } = holding;
  const alive = livingAmong(workers, now);
  const lost = workers.filter((worker) => !alive.includes(worker));
  const orphans = lost.reduce((sum, { running }) => sum + running, 0);
  const finished = jobs.completed + jobs.cancelled + jobs.dead;
  return {
    jobs,
    workers: alive.length,
    orphans,
    ...(await gatherLate(store, holding, alive.length > 0)),
    paused: pausesInForce(holding).map(({ kind, name }) => `${kind} ${name}`),
    breakers: [...services].filter(([, { breaker }]) => breaker.state !== "closed").map(([name]) => name),
    deadLetters: jobs.dead,
    unarchived: await unarchivedLetters(store),
    upkeep: await gatherUpkeep(store, { alive: new Set(alive.map(({ id }) => id)), orphans, finished }),
  };
}

/** How long work has been due; work that a limit or budget delays is not late, if there is a worker to take it. */
async function gatherLate(
  store: Store,
  holding: Holding,
  isAttended: boolean,
): Promise<Pick<HealthFacts, "oldestDueMs" | "waitingTypes">> {
  let oldestDueMs: number | null = null;
  const waitingTypes = new Set<string>();
  let isPaced: ((lane: DueLane) => boolean) | null = null;
  for await (const lane of dueLanes(store, holding)) {
    const isLate = lane.dueMs >= LATE_MS;
    if (isLate && isAttended) isPaced ??= await pacedLanes(store);
    if (isLate && isPaced?.(lane)) continue;
    oldestDueMs = Math.max(oldestDueMs ?? 0, lane.dueMs);
    if (isLate) waitingTypes.add(lane.type);
  }
  return { oldestDueMs, waitingTypes: [...waitingTypes] };
}
