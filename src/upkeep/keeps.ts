// How long each type keeps its ended jobs, known to all programs on a store: a note per type with the value last
// applied, and one per type whose dead letters must go through an archive. So a program that does not define a type
// still deletes nothing of it too early.
import { fieldsFrom } from "../core/options.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import type { Cell, CellChange, Keep, Store, TypeKeep } from "../store/store.ts";

const KEEP_CELLS = "keep";
const ARCHIVE_CELLS = "archive";
/** Jobs read in one step of a move. */
const STEP = 1_000;

/** What is known of the types on a store. */
export interface KnownKeeps {
  readonly keeps: ReadonlyMap<string, NotedKeep>;
  /** Types whose dead letters must go through an archive, and when a worker with that archive was last here. */
  readonly archived: ReadonlyMap<string, number>;
  readonly now: number;
}

/** How long a type keeps its ended jobs. */
export type SaidKeep = Keep & { readonly deadMs: number };

/** The same as it was noted, and when. */
export interface NotedKeep extends SaidKeep {
  readonly at: number;
}

/** Reads the notes. */
export async function readKeeps(store: Pick<Store, "cells">): Promise<KnownKeeps> {
  const { cells, now } = await store.cells([{ kind: KEEP_CELLS }, { kind: ARCHIVE_CELLS }]);
  const of = (wanted: string): Cell[] => cells.filter(({ kind }) => kind === wanted);
  const keeps = of(KEEP_CELLS).flatMap(({ name, value, at }) => {
    const keep = keepFrom(value);
    return keep ? [[name, { ...keep, at }] as const] : [];
  });
  return { keeps: new Map(keeps), archived: new Map(of(ARCHIVE_CELLS).map(({ name, at }) => [name, at])), now };
}

/**
 * Moves the expiry of ended jobs of these types to what their definitions say, where the note said something else, and
 * updates the note. True when all is done; an interrupted move begins again.
 */
export async function applyKeeps(
  store: Pick<Store, "cells" | "setCells" | "retain">,
  jobs: readonly JobDefinition[],
  signal?: AbortSignal,
): Promise<boolean> {
  const { keeps } = await readKeeps(store);
  const types = jobs.map(typeKeep).filter((own) => !isSame(own, keeps.get(own.type)));
  if (types.length === 0) return true;
  for (let after: number | null = 0; after !== null; ) {
    if (signal?.aborted) return false;
    after = (await store.retain({ types, after, limit: STEP })).next;
  }
  await store.setCells(types.map(noteOf));
  return true;
}

/** Notes are deleted after a month without a write; while a worker of the type lives, it rewrites its note by then. */
const REFRESH_MS = 86_400_000;

/** Rewrites the notes of these types that are a day old or missing. A value set by another program since stays. */
export async function refreshKeeps(
  store: Pick<Store, "setCells">,
  jobs: readonly JobDefinition[],
  { keeps, now }: KnownKeeps,
): Promise<void> {
  const old = jobs.map(typeKeep).filter(({ type }) => now - (keeps.get(type)?.at ?? 0) >= REFRESH_MS);
  if (old.length > 0) await store.setCells(old.map((own) => noteOf({ ...own, ...keeps.get(own.type) })));
}

function noteOf({ type, finishedMs, deadMs }: SaidKeep & { readonly type: string }): CellChange {
  const value = JSON.stringify({ finishedMs, deadMs });
  return { kind: KEEP_CELLS, name: type, holder: "", version: null, value };
}

/** Notes that the dead letters of these types have an archive, and that a worker with it is here. */
export async function noteArchive(store: Pick<Store, "setCells">, jobs: readonly JobDefinition[]): Promise<void> {
  await store.setCells(
    jobs.map(({ type }) => ({ kind: ARCHIVE_CELLS, name: type, holder: "", version: null, value: "{}" })),
  );
}

/** A worker with an archive notes it at least every ten minutes; after this long it counts as away. */
const AWAY_MS = 3_600_000;

/** Expired dead letters of a type that only an archive may release. */
export interface UnarchivedLetters {
  readonly type: string;
  readonly count: number;
}

/** The types for which no worker with their archive has been here for an hour. */
export async function unarchivedLetters(store: Pick<Store, "cells" | "tally">): Promise<UnarchivedLetters[]> {
  const [{ byType }, { archived, now }] = await Promise.all([store.tally({ aside: true }), readKeeps(store)]);
  const isAway = (type: string): boolean => now - (archived.get(type) ?? 0) >= AWAY_MS;
  return Object.entries(byType).flatMap(([type, count]) => (isAway(type) ? [{ type, count }] : []));
}

/** How long a definition keeps its ended jobs. */
export function typeKeep({ type, policy }: JobDefinition): SaidKeep & { readonly type: string } {
  return { type, finishedMs: policy.keepFinishedMs, deadMs: policy.keepDeadMs };
}

/**
 * How a prune treats jobs that ended without an expiry: by their own type, else by the longest time of any type. Dead
 * ones of a type with an archive are never left to a prune.
 */
export function retentionBy(
  { keeps, archived }: KnownKeeps,
  jobs: readonly JobDefinition[],
  usual: SaidKeep,
): { readonly keep: Keep; readonly types: readonly TypeKeep[] } {
  const said = new Map<string, SaidKeep>(keeps);
  for (const job of jobs) said.set(job.type, typeKeep(job));
  const all = [usual, ...said.values()];
  const longest = {
    finishedMs: Math.max(...all.map(({ finishedMs }) => finishedMs)),
    deadMs: Math.max(...all.map(({ deadMs }) => deadMs)),
  };
  const types = [...new Set([...said.keys(), ...archived.keys()])].map((type) => {
    const { finishedMs, deadMs } = said.get(type) ?? longest;
    return { type, finishedMs, deadMs: archived.has(type) ? null : deadMs };
  });
  return { keep: longest, types };
}

function isSame(a: SaidKeep, b: SaidKeep | undefined): boolean {
  return a.finishedMs === b?.finishedMs && a.deadMs === b.deadMs;
}

/** The content of a note; null for one that another version wrote in another form. */
function keepFrom(text: string): SaidKeep | null {
  const { finishedMs, deadMs } = fieldsFrom(text);
  const isSpan = (ms: unknown): ms is number => Number.isSafeInteger(ms) && (ms as number) >= 0;
  return isSpan(finishedMs) && isSpan(deadMs) ? { finishedMs, deadMs } : null;
}
