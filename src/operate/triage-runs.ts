// What runs tell triage: those of the types of a cause before, during and since its last failures, from the counts per
// minute; and those that are like its letters, from a bounded look at the newest jobs.
import { DAY, HOUR, MINUTE } from "../core/flow.ts";
import type { DeadLetter, FailureClass, Job } from "../core/job.ts";
import type { RunCounts, TriageFacts } from "../core/recovery/triage-facts.ts";
import type { Store } from "../store/store.ts";
import { causeTrend, flowTrend } from "./cause-trend.ts";
import { namesIn } from "./cause-letters.ts";

/** Types of a cause that are asked about. */
const TYPES = 5;
/** Minutes are kept for six hours and hours for two weeks; the rest is for counts that are folded late. */
const MINUTES_MS = 5 * HOUR;
const HOURS_MS = 13 * DAY;
/** Failures further apart do not belong together. */
const PAUSE_MS = 30 * MINUTE;
const LOOK = { limit: 200, lookAt: 2_000, payloads: false } as const;

/** A span of time, from an instant and before another. */
interface Span {
  readonly from: number;
  readonly until: number;
}

/** The finest step in which the store has counts of this instant. */
function stepAt(at: number, now: number): number {
  return now - at < MINUTES_MS ? MINUTE : now - at < HOURS_MS ? HOUR : DAY;
}

/** When the last failures of a cause began: those with no long pause between them. */
export async function boutOf(
  store: Store,
  cause: { readonly fingerprint: string; readonly firstAt: number; readonly lastAt: number },
  now: number,
): Promise<number> {
  const { fingerprint, firstAt, lastAt } = cause;
  if (lastAt - firstAt <= PAUSE_MS) return firstAt;
  const stepMs = stepAt(lastAt, now);
  const from = Math.max(firstAt, lastAt - 300 * stepMs);
  const steps = await causeTrend(store, { fingerprint, from, until: lastAt + 1, stepMs });
  let bout = lastAt;
  for (const { at } of steps.filter(({ failures }) => failures > 0).toReversed()) {
    if (bout - at > Math.max(PAUSE_MS, stepMs)) break;
    bout = Math.min(bout, at);
  }
  return Math.max(firstAt, bout);
}

/** Runs of these types since the last failure, and the class of most failures among them where they are the most. */
export async function runsSince(
  store: Store,
  types: readonly string[],
  lastAt: number,
  now: number,
): Promise<TriageFacts["since"]> {
  const [from, until] = [lastAt + MINUTE, now + 1];
  const stepMs = [MINUTE, HOUR, DAY].find((size) => (until - from) / size <= 900) ?? 7 * DAY;
  // A step that began before the last failure counts runs from before it.
  const counts = await runsIn(store, types, { from: Math.ceil(from / stepMs) * stepMs, until }, stepMs);
  return { ...counts, class: counts.failed > counts.completed ? await classSince(store, types, from) : null };
}

/** The class of most of the newest failures of these types since this time. */
async function classSince(store: Store, types: readonly string[], from: number): Promise<FailureClass | null> {
  const pages = types.slice(0, TYPES).map(async (type) => {
    const [letters, waiting] = await Promise.all([
      store.deadLetters({ ...LOOK, type, from, redriven: true, limit: 50 }),
      store.list({ ...LOOK, type, state: "queued", tried: true, limit: 50 }),
    ]);
    const retried = waiting.items.filter(({ startedAt }) => (startedAt ?? 0) >= from);
    return [...letters.items, ...retried].map(({ failure }) => failure?.class ?? null);
  });
  const [most] = namesIn((await Promise.all(pages)).flat());
  return (most?.name ?? null) as FailureClass | null;
}

/**
 * Runs of these types while the failures went on. The first and the last minute have runs from before and after, so they
 * count only where there is no other; null where nothing was counted, or no step lies within.
 */
export async function runsDuring(
  store: Store,
  types: readonly string[],
  { from, until: lastAt }: Span,
  now: number,
): Promise<RunCounts | null> {
  const stepMs = stepAt(from, now);
  const inner = {
    from: Math.ceil((from + MINUTE) / stepMs) * stepMs,
    until: Math.floor(lastAt / stepMs) * stepMs,
  };
  const within = await runsIn(store, types, inner, stepMs);
  if (within.completed + within.failed > 0) return within;
  if (stepMs > MINUTE) return null;
  const whole = await runsIn(store, types, { from, until: lastAt + MINUTE }, MINUTE);
  return whole.completed + whole.failed > 0 ? whole : null;
}

/** Runs of these types that completed between the first sight of a release and the first failure, of a day at most. */
export async function runsBefore(
  store: Store,
  types: readonly string[],
  { from: seenAt, until: boutAt }: Span,
  now: number,
): Promise<number> {
  const from = Math.max(seenAt, boutAt - DAY);
  const stepMs = stepAt(from, now);
  const span = { from: Math.ceil(from / stepMs) * stepMs, until: Math.floor(boutAt / stepMs) * stepMs };
  return (await runsIn(store, types, span, stepMs)).completed;
}

async function runsIn(store: Store, types: readonly string[], span: Span, stepMs: number): Promise<RunCounts> {
  if (span.from >= span.until) return { completed: 0, failed: 0 };
  const flows = await Promise.all(types.slice(0, TYPES).map((type) => flowTrend(store, { ...span, type, stepMs })));
  const sum = (of: (step: (typeof flows)[0][number]) => number): number =>
    flows.flat().reduce((total, step) => total + of(step), 0);
  return { completed: sum(({ completed }) => completed), failed: sum(({ retried, dead }) => retried + dead) };
}

/** Reads the newest completed jobs of a type; asks once for each. */
export function completedReader(store: Store): (type: string) => Promise<readonly Job[]> {
  const known = new Map<string, Promise<readonly Job[]>>();
  return (type) => {
    const found = known.get(type) ?? store.list({ ...LOOK, type, state: "completed" }).then(({ items }) => items);
    known.set(type, found);
    return found;
  };
}

/** How far these completed jobs are like the letters. */
export function likeLetters(letters: readonly DeadLetter[], completed: readonly Job[]): TriageFacts["alike"] {
  const placeOf = ({ type, service }: Job): string => JSON.stringify([type, service]);
  const tenantOf = ({ type, tenant }: Job): string => JSON.stringify([type, tenant]);
  const places = new Map(letters.map(({ job }) => [placeOf(job), 0]));
  for (const job of completed) {
    const count = places.get(placeOf(job));
    if (count !== undefined) places.set(placeOf(job), count + 1);
  }
  const tenants = new Set(completed.map(tenantOf));
  const had = letters.filter(({ job }) => tenants.has(tenantOf(job))).length;
  return {
    looked: completed.length,
    least: Math.min(...places.values(), completed.length),
    tenants: had / Math.max(1, letters.length),
  };
}
