// Collects what the store knows of causes, and asks core what to do about their dead letters. Every look at letters and
// jobs is bounded: a cause with a million letters is judged by its newest.
import type { DeadLetter, DeathReason, FailureClass, Job, LetterOutcome } from "../core/job.ts";
import { MINUTE } from "../core/flow.ts";
import type { SeenRelease } from "../core/recovery/cause-state.ts";
import { type Triage, triage } from "../core/recovery/triage.ts";
import type { TriageFacts } from "../core/recovery/triage-facts.ts";
import { livingAmong } from "../services/holding.ts";
import type { Store } from "../store/store.ts";
import { releaseReader } from "../upkeep/cause-news.ts";
import type { Breakers } from "./breakers.ts";
import { namesIn, newestLetters } from "./cause-letters.ts";
import type { Causes, CauseView } from "./causes.ts";
import { boutOf, completedReader, likeLetters, runsBefore, runsDuring, runsSince } from "./triage-runs.ts";

/** A cause, the advice, and what the advice rests on. */
export interface TriagedCause extends Triage {
  readonly cause: CauseView;
  readonly facts: TriageFacts;
}

/** What triage reads. */
export interface TriageDependencies {
  readonly store: Store;
  readonly causes: Causes;
  readonly breakers: Breakers;
}

/** Letters of a cause that are looked at: the newest, and of each outcome. */
const LETTERS = 200;
const LOOK_AT = 10_000;
const TYPES = 5;
/** Services of its letters whose breakers are looked at. */
const SERVICES = 5;

/** The advice for one cause, or for those with the most dead letters. */
export async function triageCauses(
  sources: TriageDependencies,
  { fingerprint, limit = 50 }: { readonly fingerprint?: string; readonly limit?: number } = {},
): Promise<TriagedCause[]> {
  const { causes, store } = sources;
  const views = fingerprint === undefined ? (await causes.list({ limit })).items : [await causes.get(fingerprint)];
  const [seen, running] = await Promise.all([releaseReader(store)(), runningReleases(store)]);
  const fleet = { seen, running, completed: completedReader(store) };
  const found: TriagedCause[] = [];
  // One after the other: a page of causes asks many questions, and jobs are claimed meanwhile.
  for (const cause of views) {
    const facts = await gatherTriage(sources, cause, fleet);
    found.push({ cause, facts, ...triage(facts) });
  }
  return found;
}

/** What all causes share. */
interface FleetFacts {
  /** The releases in the order in which the store saw them first. */
  readonly seen: readonly SeenRelease[];
  /** Those of the living workers. */
  readonly running: readonly string[];
  /** The newest completed jobs of a type. */
  completed(type: string): Promise<readonly Job[]>;
}

/** The releases of the living workers; none where one of them has no release. */
async function runningReleases(store: Store): Promise<string[]> {
  const [workers, { now }] = await Promise.all([store.workers(), store.control()]);
  const living = [...new Set(livingAmong(workers, now).map(({ release }) => release))];
  return living.every((release) => release !== null) ? living : [];
}

/** The facts about a cause. */
async function gatherTriage(
  { store, breakers }: Pick<TriageDependencies, "store" | "breakers">,
  cause: CauseView,
  { seen, running, completed }: FleetFacts,
): Promise<TriageFacts> {
  const { fingerprint, state, deaths, dead, types, fixedIn } = cause;
  const [letters, { now }] = await Promise.all([newestLetters(store, fingerprint, LETTERS), store.control()]);
  const lastAt = cause.lastAt ?? now;
  const firstAt = cause.firstAt ?? lastAt;
  const boutAt = await boutOf(store, { fingerprint, firstAt, lastAt }, now);
  const names = seen.map(({ release }) => release);
  const failing = failingReleases(cause, names);
  const [service, during, since, { redriven, sent }, suspect, ...ended] = await Promise.all([
    serviceOf(breakers, letters),
    runsDuring(store, types, { from: boutAt, until: lastAt }, now),
    runsSince(store, types, lastAt, now),
    // Letters that all still wait were never sent back, and need no look.
    dead === deaths ? NONE_SENT : sentBackOf(store, fingerprint, seen.at(-1)?.at ?? 0),
    suspectOf(store, { types, boutAt, failing: failedIn(letters, boutAt, failing) }, seen, now),
    ...types.slice(0, TYPES).map(completed),
  ]);
  const done = new Map([...ended.flat(), ...sent].map((job) => [job.id, job]));
  const after = [...done.values()].filter(({ finishedAt }) => (finishedAt ?? 0) >= lastAt + MINUTE);
  const found = (mostOf(letters.map(({ failure }) => failure.class)) ?? "transient") as FailureClass;
  return {
    class: found,
    name: mostOf(letters.map(({ failure }) => failure.name)) ?? "",
    code: mostOf(letters.map(({ failure }) => failure.code ?? null)),
    reason: (mostOf(letters.map(({ reason }) => reason)) ?? "exhausted") as DeathReason,
    live: dead,
    deaths,
    firstAt,
    lastAt,
    boutAt,
    now,
    state,
    fixedIn: state === "fixed" || state === "regressed" ? fixedIn : null,
    releases: { failing, seen: names, running, suspect },
    service,
    during,
    since,
    alike: likeLetters(letters, after),
    redriven,
    payloadBound: found === "validation",
  };
}

function mostOf(names: readonly (string | null)[]): string | null {
  return namesIn(names)[0]?.name ?? null;
}

/** The releases that fail by the cause, the newest first seen first; of a fixed cause those that do not have the fix. */
function failingReleases({ releases, state, fixedIn }: CauseView, seen: readonly string[]): string[] {
  const from = state === "fixed" && fixedIn !== null ? seen.indexOf(fixedIn) : -1;
  return releases
    .map(({ release }) => release)
    .filter((release) => release !== "" && (from < 0 || seen.indexOf(release) < from))
    .toSorted((a, b) => seen.indexOf(b) - seen.indexOf(a));
}

/** The releases of the letters that died in the last failures; all that fail by the cause where these tell none. */
function failedIn(letters: readonly DeadLetter[], boutAt: number, failing: readonly string[]): readonly string[] {
  const found = letters.flatMap(({ release, diedAt }) => (release !== null && diedAt >= boutAt ? [release] : []));
  return found.length > 0 ? [...new Set(found)] : failing;
}

/** The one release that failed in the last failures, if the store knows a release before it. */
async function suspectOf(
  store: Store,
  cause: { readonly types: readonly string[]; readonly boutAt: number; readonly failing: readonly string[] },
  seen: readonly SeenRelease[],
  now: number,
): Promise<TriageFacts["releases"]["suspect"]> {
  const { types, boutAt, failing } = cause;
  const at = seen.findIndex(({ release }) => release === failing[0]);
  const found = seen[at];
  if (failing.length !== 1 || at < 1 || !found) return null;
  const completed = await runsBefore(store, types, { from: found.at, until: boutAt }, now);
  return { name: found.release, ageMs: Math.max(0, boutAt - found.at), completed };
}

/** The service of the letters with its breaker, of several the one that is least well; null where most have none. */
async function serviceOf(breakers: Breakers, letters: readonly DeadLetter[]): Promise<TriageFacts["service"]> {
  const services = namesIn(letters.map(({ job }) => job.service)).slice(0, SERVICES);
  if (services.reduce((sum, { count }) => sum + count, 0) * 2 < letters.length) return null;
  const views = await Promise.all(services.map(({ name }) => breakers.get(name)));
  const found = views.map(({ service: name, state, since, calls, failures, holdUntil }) => {
    const isClosed = state === "closed" && holdUntil === null;
    const breaker = isClosed ? "closed" : state === "half_open" ? "half_open" : "open";
    return { name, breaker, closedAt: isClosed && since > 0 ? since : null, successes: calls - failures } as const;
  });
  const order = ["open", "half_open", "closed"];
  const [worst = null] = found.toSorted(
    (a, b) => order.indexOf(a.breaker) - order.indexOf(b.breaker) || a.successes - b.successes,
  );
  return worst;
}

/** Counts of letters that were sent back, and the jobs of those that completed. */
interface SentBack {
  readonly redriven: TriageFacts["redriven"];
  readonly sent: readonly Job[];
}

const NONE_SENT: SentBack = { redriven: { completed: 0, failing: 0, dead: 0, none: 0 }, sent: [] };

/**
 * What became of letters that were sent back since a job last died of the cause for the first time, and since the newest
 * release was first seen.
 */
async function sentBackOf(store: Store, fingerprint: string, releasedAt: number): Promise<SentBack> {
  const look = { fingerprint, redriven: true, payloads: false, lookAt: LOOK_AT, limit: LETTERS };
  const newest = await store.deadLetters({ ...look, limit: 50 });
  const lastNew = newest.items.find(({ generation }) => generation === 1)?.diedAt ?? 0;
  const of = async (outcome: LetterOutcome | "none", from: number): Promise<Job[]> => {
    const { items } = await store.deadLetters({ ...look, outcome });
    return items.filter(({ redrivenAt }) => redrivenAt !== null && redrivenAt >= from).map(({ job }) => job);
  };
  const from = Math.max(lastNew, releasedAt);
  const [completed, failing, dead, none] = await Promise.all([
    of("completed", from),
    of("failing", from),
    of("dead", from),
    of("none", lastNew),
  ]);
  const counts = { completed: completed.length, failing: failing.length, dead: dead.length, none: none.length };
  return { redriven: counts, sent: completed.filter(({ state }) => state === "completed") };
}
