// Reads what the alert rules look at: health, the score, causes, the oldest letters of types with an objective, and work
// that no living worker takes. Every question is bounded, so that a look costs the same behind a million jobs.
import type { AlertFacts, CauseFact } from "../core/alerting/rules.ts";
import { cutText } from "../core/failure.ts";
import { type HealthLimits, judgeHealth } from "../core/health.ts";
import { loadFrom } from "../core/load.ts";
import { OTHER_CAUSES } from "../core/flow.ts";
import { masked, safeLine } from "../core/safe-text.ts";
import { gatherHealth, readState, type StoreState } from "../operate/health.ts";
import { livingAmong } from "../services/holding.ts";
import type { Cause, Store } from "../store/store.ts";
import { CAUSE_CELLS, causeRecords } from "../upkeep/cause-news.ts";
import type { AlertNotes } from "../operate/alert-cells.ts";

/** A cause is new for so long. */
const NEW_MS = 86_400_000;
/** A cause that came back without a dead letter is over when it was not seen for so long. */
const ACTIVE_MS = 3_600_000;
const CAUSES = 200;
/** Causes beyond the first page that are asked for one by one. */
const SINGLY = 20;
/** Most types with an objective whose letters are looked at. */
const OBJECTIVES = 50;
const LETTERS_LOOK = 10_000;
const MESSAGE_BYTES = 200;

/** Reads the facts. */
export async function gatherAlertFacts(store: Store, notes: AlertNotes, limits: HealthLimits): Promise<AlertFacts> {
  const state = await readState(store);
  const health = await gatherHealth(store, { limits }, state);
  const { score } = judgeHealth(health, limits);
  const isIdle = state.figures.causes === 0;
  const [causes, objectives, unserved] = await Promise.all([
    isIdle ? { newCauses: [], backCauses: [] } : gatherCauses(store, health.now),
    gatherObjectives(store, notes, state),
    health.workers === 0 || health.waitingTypes.length === 0 ? [] : gatherUnserved(store, state, health.waitingTypes),
  ]);
  return { health, score, ...causes, objectives, unserved, staleWrites: notes.staleWrites };
}

/** Causes with live letters that are new, or came back; those that people have muted or marked are no news. */
async function gatherCauses(store: Store, now: number): Promise<Pick<AlertFacts, "newCauses" | "backCauses">> {
  const [page, { cells }, opened] = await Promise.all([
    store.causes({ limit: CAUSES }),
    store.cells([{ kind: CAUSE_CELLS }]),
    store.events({ kind: "cause.opened", from: now - NEW_MS, limit: CAUSES }),
  ]);
  const records = causeRecords(cells);
  const back = new Map(
    [...records].filter(([, { state }]) => state === "regressed").map(([name, { at }]) => [name, at]),
  );
  const openedAt = new Map(opened.items.map(({ subject, at }) => [(subject ?? "").replace(/^cause:/, ""), at]));
  const live = new Map(page.items.map((cause) => [cause.fingerprint, cause]));
  // One that came back may still try its jobs again, and a page may not have all.
  const wanted = [...back.keys(), ...(page.next === null ? [] : openedAt.keys())];
  const beyond = wanted.filter((name) => !live.has(name));
  for (const fingerprint of beyond.slice(0, SINGLY))
    for (const cause of (await store.causes({ fingerprint, idle: true, limit: 1 })).items) live.set(fingerprint, cause);
  const newCauses: CauseFact[] = [];
  const backCauses: CauseFact[] = [];
  for (const cause of live.values()) {
    const { fingerprint, live: letters, firstAt, lastAt } = cause;
    const isActive = letters > 0 || (back.has(fingerprint) && (lastAt ?? 0) > now - ACTIVE_MS);
    if (fingerprint === OTHER_CAUSES || !isActive) continue;
    const state = records.get(fingerprint)?.state ?? "open";
    const since = openedAt.get(fingerprint) ?? firstAt;
    if (back.has(fingerprint)) backCauses.push(factOf(cause, back.get(fingerprint) ?? now));
    else if (state === "open" && since !== null && since > now - NEW_MS) newCauses.push(factOf(cause, since));
  }
  return { newCauses, backCauses };
}

function factOf({ fingerprint, live, sample }: Cause, since: number): CauseFact {
  const message = safeLine(cutText(masked(sample?.message ?? ""), MESSAGE_BYTES));
  return { fingerprint, name: safeLine(sample?.name ?? "an error"), message, live, since };
}

/** The oldest letters of the types that have an objective and letters. */
async function gatherObjectives(
  store: Store,
  { objectives }: AlertNotes,
  { figures }: StoreState,
): Promise<AlertFacts["objectives"]> {
  const found: AlertFacts["objectives"][number][] = [];
  const types = figures.letters.filter(({ type }) => objectives.has(type)).slice(0, OBJECTIVES);
  for (const { type } of types) {
    const query = { type, oldest: true, limit: 1, lookAt: LETTERS_LOOK, payloads: false } as const;
    const [letter] = (await store.deadLetters(query)).items;
    const objectiveMs = objectives.get(type)?.value ?? 0;
    if (letter && objectiveMs > 0) found.push({ type, objectiveMs, oldestAt: letter.diedAt });
  }
  return found;
}

/** Of the types with late work those that no living worker has a handler for. */
async function gatherUnserved(
  store: Store,
  { workers, holding, figures }: StoreState,
  waiting: readonly string[],
): Promise<AlertFacts["unserved"]> {
  const { cells } = await store.cells([{ kind: "load" }]);
  const living = new Set(livingAmong(workers, holding.now).map(({ id }) => id));
  const loads = cells.flatMap(({ holder, value }) => (living.has(holder) ? (loadFrom(value) ?? []) : []));
  return waiting.flatMap((type) => {
    const lanes = figures.due.filter((lane) => lane.type === type);
    const isTaken = lanes.some(({ queue }) =>
      loads.some(({ types, queues }) => types.some((own) => own.type === type) && (queues?.includes(queue) ?? true)),
    );
    if (lanes.length === 0 || isTaken) return [];
    return [{ type, since: Math.min(...lanes.map(({ headRunAt }) => headRunAt)) }];
  });
}
