// The letters that a redrive run sends next: the picks of a canary, or the next of the walk in the order of enqueue. What
// a pause, a breaker, a service that asked to wait or a job of its group would hold back is not sent, and does not keep
// others from being sent. One letter is sent as the probe where a breaker is due for one and no other job could be it.
import { groupName } from "../core/group.ts";
import type { DeadLetter } from "../core/job.ts";
import { pickCanary } from "../core/recovery/canary.ts";
import type { HeldRun, RedriveRun } from "../core/recovery/run.ts";
import { filterOf, type FrozenSelection } from "../core/recovery/selection.ts";
import type { LetterFilter, LetterRange, Store } from "../store/store.ts";
import { type LetterGate, type LetterSource, openGate } from "./redrive-gate.ts";

/** What a run sends next. */
export interface NextLetters {
  readonly letters: readonly DeadLetter[];
  /** Where the walk goes on after them. */
  readonly cursor: string | null;
  /** True if there is none behind them. */
  readonly walked: boolean;
  /** What holds back the first that is not sent; null where nothing does. */
  readonly held: HeldRun | null;
}

/** A part of the walk through the letters of a selection. */
export interface LetterWalk {
  readonly letters: readonly DeadLetter[];
  readonly next: string | null;
}

/** Letters of one page. */
const PAGE = 200;
/** The most letters that one page looks at. */
const LOOK_AT = 10_000;
/** Pages that are looked through at a time for letters that may be sent. */
const PAGES = 10;
/** Letters by id that are read at the same time. */
const AT_ONCE = 20;
/** Letters that are asked whether they may be the probe of their service. */
const PROBES = 5;
/** How often a canary is picked again because a group of its picks is blocked. */
const PICKS = 3;

/** The next letters of a selection in the order of enqueue. */
export async function walkLetters(
  store: Pick<Store, "deadLetters">,
  selection: FrozenSelection,
  { cursor, limit, payloads }: { readonly cursor: string | null; readonly limit: number; readonly payloads: boolean },
): Promise<LetterWalk> {
  if (selection.ids) return walkIds(store, selection, selection.ids, { cursor, limit, payloads });
  const query = { ...rangeOf(selection), sort: "enqueued", payloads } as const;
  const { items, next } = await store.deadLetters({ ...query, cursor, limit: Math.min(limit, PAGE) });
  return { letters: items, next };
}

/** The letters of a selection up to its ends, as stores know them. */
export function rangeOf(selection: FrozenSelection): LetterFilter & LetterRange {
  const { through, upTo } = selection;
  return { ...filterOf(selection), through, ...(upTo !== undefined && { upTo }) };
}

/** The same by ids: the cursor is the place of the next one. */
async function walkIds(
  store: Pick<Store, "deadLetters">,
  selection: FrozenSelection,
  ids: readonly string[],
  { cursor, limit, payloads }: { readonly cursor: string | null; readonly limit: number; readonly payloads: boolean },
): Promise<LetterWalk> {
  const letters: DeadLetter[] = [];
  let at = cursor === null ? 0 : Number(cursor);
  while (letters.length < limit && at < ids.length) {
    const part = ids.slice(at, at + Math.min(AT_ONCE, limit - letters.length));
    // A job that has died again since is not of the run.
    const { through } = selection;
    const query = { ...filterOf(selection), sort: "enqueued", through, limit: 1, payloads } as const;
    const pages = await Promise.all(part.map((jobId) => store.deadLetters({ ...query, jobId })));
    letters.push(...pages.flatMap(({ items }) => items));
    at += part.length;
  }
  return { letters, next: at < ids.length ? String(at) : null };
}

/** True for a letter that the run sends. */
export function isMeant(
  run: Pick<RedriveRun, "superseded" | "misfits">,
): (letter: Pick<DeadLetter, "job" | "supersededBy">) => boolean {
  const misfits = new Set(run.misfits);
  return ({ job, supersededBy }) => (run.superseded || supersededBy === null) && !misfits.has(job.id);
}

/**
 * The next letters of the rest, at most `n`: those up to the first that is held back, or, where that is the first, those
 * behind it that are not. The cursor stays before a letter that is held back.
 */
export async function nextOfRest(source: LetterSource, run: RedriveRun, n: number): Promise<NextLetters> {
  const read = (limit: number): Promise<LetterWalk> =>
    walkLetters(source.store, run.selection, { cursor: run.cursor, limit, payloads: run.patch !== null });
  let page = await read(n);
  const gate = await openGate(source);
  await gate.lookAtGroups(page.letters.filter(isMeant(run)));
  const at = page.letters.findIndex((letter) => isMeant(run)(letter) && gate.held(letter) !== null);
  if (at === 0) return behindHeld(source, run, gate, n);
  // The cursor of a page is its end, so the page must end there.
  if (at > 0) page = await read(at);
  return { letters: page.letters.filter(isMeant(run)), cursor: page.next, walked: page.next === null, held: null };
}

async function behindHeld(source: LetterSource, run: RedriveRun, gate: LetterGate, n: number): Promise<NextLetters> {
  const { free, held, probes, isEnd } = await look(source, run, gate, n);
  const letters = free.length > 0 ? free.slice(0, n) : await probeAmong(gate, probes);
  return { letters, cursor: run.cursor, walked: isEnd && letters.length === 0 && held === null, held };
}

/**
 * Letters for the canary, at most `n`, picked among the oldest and the newest. The cursor passes only letters that the
 * run does not send: the walk of the rest begins there.
 */
export async function nextOfCanary(source: LetterSource, run: RedriveRun, n: number): Promise<NextLetters> {
  const gate = await openGate(source);
  const { free, held, probes, cursor, isEnd, seen } = await look(source, run, gate, PAGE);
  if (seen.size === 0) return { letters: [], cursor, walked: isEnd, held: null };
  const newest = isEnd ? [] : await newestCandidates(source, run, seen);
  const candidates = [...free, ...newest].map((letter) => {
    const { type, tenant, group } = letter.job;
    return { letter, type, tenant, group, diedAt: letter.diedAt };
  });
  for (let picks = 0; picks < PICKS; picks++) {
    const picked = pickCanary(
      candidates.filter(({ letter }) => gate.held(letter) === null),
      n,
    ).map(({ letter }) => letter);
    await gate.lookAtGroups(picked);
    const letters = picked.filter((letter) => gate.held(letter) === null);
    if (letters.length > 0) return { letters, cursor, walked: false, held: null };
  }
  const first = held ?? candidates.map(({ letter }) => gate.held(letter)).find((hold) => hold !== null) ?? null;
  return { letters: await probeAmong(gate, probes), cursor, walked: false, held: first };
}

/** The first of these that may go as the probe of its breaker; none where none may. */
async function probeAmong(gate: LetterGate, probes: readonly DeadLetter[]): Promise<DeadLetter[]> {
  for (const letter of probes) if (await gate.mayProbe(letter)) return [letter];
  return [];
}

/** What was found in the first pages of a walk. */
interface Look {
  /** Letters that nothing holds back, in the order of enqueue. */
  readonly free: readonly DeadLetter[];
  /** What holds back the first that is held. */
  readonly held: HeldRun | null;
  /** Letters that may be the probe of their service: of each the first ones, of a group only the first. */
  readonly probes: readonly DeadLetter[];
  /** The jobs of all letters that the run may send. */
  readonly seen: ReadonlySet<string>;
  /** The cursor of the page that has the first of these. */
  readonly cursor: string | null;
  readonly isEnd: boolean;
}

/** Looks from the cursor of the run on for letters that may be sent now; behind a held letter none of its group may. */
async function look({ store }: LetterSource, run: RedriveRun, gate: LetterGate, enough: number): Promise<Look> {
  const found = { free: [] as DeadLetter[], probes: [] as DeadLetter[], seen: new Set<string>() };
  const passed = new Set<string>();
  const probesOf = new Map<string | null, number>();
  let held: HeldRun | null = null;
  let [cursor, at] = [run.cursor, run.cursor];
  for (let page = 0; page < PAGES && found.free.length < enough; page++) {
    const walk = await walkLetters(store, run.selection, { cursor: at, limit: PAGE, payloads: run.patch !== null });
    const meant = walk.letters.filter(isMeant(run));
    await gate.lookAtGroups(meant);
    for (const letter of meant) {
      const { id, service, group } = letter.job;
      const name = group === null ? null : groupName(letter.job);
      found.seen.add(id);
      if (name !== null && passed.has(name)) continue;
      const hold = gate.held(letter);
      if (hold === null) found.free.push(letter);
      else {
        held ??= hold;
        if (name !== null) passed.add(name);
        const asked = probesOf.get(service) ?? 0;
        if (asked < PROBES) found.probes.push(letter);
        probesOf.set(service, asked + 1);
      }
    }
    if (walk.next === null) return { ...found, held, cursor, isEnd: true };
    at = walk.next;
    if (found.seen.size === 0) cursor = at;
  }
  return { ...found, held, cursor, isEnd: false };
}

/** The newest letters without a group: of a group only the oldest may be picked, and these may not be. */
async function newestCandidates(
  { store }: LetterSource,
  run: RedriveRun,
  known: ReadonlySet<string>,
): Promise<DeadLetter[]> {
  if (run.selection.ids || run.selection.limit !== undefined) return [];
  const query = { ...filterOf(run.selection), limit: PAGE, lookAt: LOOK_AT, payloads: run.patch !== null };
  const { items } = await store.deadLetters(query);
  // A job that died after the plan was made is not of this run.
  return items.filter(
    (letter) =>
      letter.job.group === null && letter.diedAt < run.startedAt && !known.has(letter.job.id) && isMeant(run)(letter),
  );
}
