// Collects what the store knows of causes, and asks core what to do about their dead letters. Every look at letters is
// bounded: a cause with a million of them is judged by its newest.
import type { DeathReason, FailureClass, LetterOutcome } from "../core/job.ts";
import { DAY, HOUR, MINUTE } from "../core/flow.ts";
import { type Triage, triage, type TriageFacts } from "../core/recovery/triage.ts";
import type { Store } from "../store/store.ts";
import { releaseReader } from "../upkeep/cause-news.ts";
import type { Breakers } from "./breakers.ts";
import { flowTrend } from "./cause-trend.ts";
import { type LettersSeen, lettersOfCause } from "./cause-letters.ts";
import type { Causes, CauseView } from "./causes.ts";

/** A cause, the advice, and what the advice rests on. */
export interface TriagedCause extends Triage {
  readonly cause: CauseView;
  readonly facts: TriageFacts;
}

/** What triage reads. */
export interface TriageSources {
  readonly store: Store;
  readonly causes: Causes;
  readonly breakers: Breakers;
}

/** Letters of a cause that are looked at: for its class, reason and service, and of each outcome. */
const LETTERS = 200;
const LOOK_AT = 10_000;
const TYPES = 5;

/** The advice for one cause, or for those with the most dead letters. */
export async function triageCauses(
  sources: TriageSources,
  { fingerprint, limit = 50 }: { readonly fingerprint?: string; readonly limit?: number } = {},
): Promise<TriagedCause[]> {
  const { causes, store } = sources;
  const views = fingerprint === undefined ? (await causes.list({ limit })).items : [await causes.get(fingerprint)];
  const seen = (await releaseReader(store)()).map(({ release }) => release);
  const found: TriagedCause[] = [];
  // One after the other: a page of causes asks many questions, and jobs are claimed meanwhile.
  for (const cause of views) {
    const facts = await gatherTriage(sources, cause, seen);
    found.push({ cause, facts, ...triage(facts) });
  }
  return found;
}

/** The facts about a cause; `seen` are the releases in the order in which the store saw them first. */
export async function gatherTriage(
  { store, breakers }: Pick<TriageSources, "store" | "breakers">,
  cause: CauseView,
  seen: readonly string[],
): Promise<TriageFacts> {
  const { fingerprint, state, deaths, dead, types, fixedIn } = cause;
  const [letters, { now }] = await Promise.all([lettersOfCause(store, fingerprint, LETTERS), store.control()]);
  const lastAt = cause.lastAt ?? now;
  const mostly = (names: LettersSeen["classes"]): string | undefined => names[0]?.name;
  const [service, since, redriven] = await Promise.all([
    serviceOf(breakers, letters),
    runsSince(store, types, lastAt, now),
    sentBackOf(store, fingerprint),
  ]);
  const found = (mostly(letters.classes) ?? "transient") as FailureClass;
  return {
    class: found,
    reason: (mostly(letters.reasons) ?? "exhausted") as DeathReason,
    live: dead,
    deaths,
    firstAt: cause.firstAt ?? lastAt,
    lastAt,
    now,
    state,
    fixedIn: state === "fixed" || state === "regressed" ? fixedIn : null,
    releases: { failing: failingReleases(cause, seen), seen },
    service,
    since,
    redriven,
    payloadBound: found === "validation",
  };
}

/** The releases that fail by the cause, the newest first seen first; of a fixed cause those that do not have the fix. */
function failingReleases({ releases, state, fixedIn }: CauseView, seen: readonly string[]): string[] {
  const from = state === "fixed" && fixedIn !== null ? seen.indexOf(fixedIn) : -1;
  return releases
    .map(({ release }) => release)
    .filter((release) => release !== "" && (from < 0 || seen.indexOf(release) < from))
    .toSorted((a, b) => seen.indexOf(b) - seen.indexOf(a));
}

/** The service of most letters, with its breaker; null where most have none. */
async function serviceOf(breakers: Breakers, { looked, services }: LettersSeen): Promise<TriageFacts["service"]> {
  const [most] = services;
  if (!most || most.count * 2 < looked) return null;
  const { state, since, calls, failures, holdUntil } = await breakers.get(most.name);
  const isClosed = state === "closed" && holdUntil === null;
  return {
    name: most.name,
    breaker: isClosed ? "closed" : state === "half_open" ? "half_open" : "open",
    closedAt: isClosed && since > 0 ? since : null,
    successes: calls - failures,
  };
}

/** Runs of these types in the minutes after the last failure. */
async function runsSince(
  store: Store,
  types: readonly string[],
  lastAt: number,
  now: number,
): Promise<TriageFacts["since"]> {
  const [from, until] = [lastAt + MINUTE, now + 1];
  if (until <= from) return { completed: 0, failed: 0 };
  const stepMs = [MINUTE, HOUR, DAY].find((size) => (until - from) / size <= 900) ?? 7 * DAY;
  // A step that began before the last failure counts runs from before it.
  const start = Math.ceil(from / stepMs) * stepMs;
  if (start >= until) return { completed: 0, failed: 0 };
  const flows = await Promise.all(
    types.slice(0, TYPES).map((type) => flowTrend(store, { type, from: start, until, stepMs })),
  );
  const sum = (of: (step: (typeof flows)[0][number]) => number): number =>
    flows.flat().reduce((total, step) => total + of(step), 0);
  return { completed: sum(({ completed }) => completed), failed: sum(({ retried, dead }) => retried + dead) };
}

/** What became of letters that were sent back since a job last died of the cause for the first time. */
async function sentBackOf(store: Store, fingerprint: string): Promise<TriageFacts["redriven"]> {
  const look = { fingerprint, redriven: true, payloads: false, lookAt: LOOK_AT, limit: LETTERS };
  const newest = await store.deadLetters({ ...look, limit: 50 });
  const lastNew = newest.items.find(({ generation }) => generation === 1)?.diedAt ?? 0;
  const count = async (outcome: LetterOutcome | "none"): Promise<number> => {
    const { items } = await store.deadLetters({ ...look, outcome });
    return items.filter(({ redrivenAt }) => redrivenAt !== null && redrivenAt >= lastNew).length;
  };
  const [completed, failing, dead, none] = await Promise.all([
    count("completed"),
    count("failing"),
    count("dead"),
    count("none"),
  ]);
  return { completed, failing, dead, none };
}
