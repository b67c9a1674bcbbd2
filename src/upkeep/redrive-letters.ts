// The letters that a redrive run sends next: the picks of a canary, or the next of the walk in the order of enqueue. What
// a pause, a breaker or a service that asked to wait would hold back is not sent; one letter is, as the probe, where a
// breaker is due for one and no other job could be it.
import { pausesOf, holdUntilOf, type Holding } from "../core/holding.ts";
import type { DeadLetter } from "../core/job.ts";
import { firstOfGroups, pickCanary } from "../core/recovery/canary.ts";
import type { HeldRun, RedriveRun } from "../core/recovery/run.ts";
import { filterOf, type FrozenSelection } from "../core/recovery/selection.ts";
import { BREAKER_WORDS, initialRecord, mayProbe, type ServiceRecord, withoutBreaker } from "../core/service-record.ts";
import type { Limits } from "../core/service.ts";
import { livingAmong, readHolding, settingsFrom, settingsOfServices } from "../services/holding.ts";
import type { Store } from "../store/store.ts";

/** What finding letters needs. */
export interface LetterSource {
  readonly store: Store;
  readonly limits: Limits;
}

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
/** Pages that a canary looks through at a time for letters that may be sent. */
const CANARY_PAGES = 10;
/** Letters by id that are read at the same time. */
const AT_ONCE = 20;
/** Lanes read with one call, and calls to find out whether work of a service is due. */
const LANES = 1_000;
const LANE_PAGES = 5;

/** The next letters of a selection in the order of enqueue. */
export async function walkLetters(
  store: Pick<Store, "deadLetters">,
  selection: FrozenSelection,
  { cursor, limit, payloads }: { readonly cursor: string | null; readonly limit: number; readonly payloads: boolean },
): Promise<LetterWalk> {
  if (selection.ids) return walkIds(store, selection, selection.ids, { cursor, limit, payloads });
  const { through } = selection;
  const query = { ...filterOf(selection), through, sort: "enqueued", lookAt: LOOK_AT, payloads } as const;
  const { items, next } = await store.deadLetters({ ...query, cursor, limit: Math.min(limit, PAGE) });
  return { letters: items, next };
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

/** The next letters of the rest, at most `n`, up to the first that is held back. */
export async function nextOfRest(source: LetterSource, run: RedriveRun, n: number): Promise<NextLetters> {
  const read = (limit: number): Promise<LetterWalk> =>
    walkLetters(source.store, run.selection, { cursor: run.cursor, limit, payloads: run.patch !== null });
  let page = await read(n);
  const gate = await openGate(source);
  const at = page.letters.findIndex((letter) => isMeant(run)(letter) && gate.held(letter) !== null);
  let held: HeldRun | null = null;
  if (at >= 0) {
    const first = page.letters[at] as DeadLetter;
    held = gate.held(first);
    const isProbe = at === 0 && (await gate.mayProbe(first));
    if (at === 0 && !isProbe) return { letters: [], cursor: run.cursor, walked: false, held };
    // The cursor of a page is its end, so the page must end there.
    page = await read(isProbe ? 1 : at);
  }
  return { letters: page.letters.filter(isMeant(run)), cursor: page.next, walked: page.next === null, held };
}

/**
 * Letters for the canary, at most `n`, picked among the oldest and the newest. The cursor passes only letters that the
 * run does not send: the walk of the rest begins there.
 */
export async function nextOfCanary(source: LetterSource, run: RedriveRun, n: number): Promise<NextLetters> {
  const { found, cursor, isEnd } = await firstCandidates(source, run);
  if (found.length === 0) return { letters: [], cursor, walked: isEnd, held: null };
  const gate = await openGate(source);
  const newest = isEnd ? [] : await newestCandidates(source, run, new Set(found.map(({ job }) => job.id)));
  const candidates = [...found, ...newest].map((letter) => {
    const { type, tenant, group } = letter.job;
    return { letter, type, tenant, group, diedAt: letter.diedAt };
  });
  const free = firstOfGroups(candidates).filter(({ letter }) => gate.held(letter) === null);
  const picked = pickCanary(free, n).map(({ letter }) => letter);
  if (picked.length > 0) return { letters: picked, cursor, walked: false, held: null };
  const first = found[0] as DeadLetter;
  const letters = (await gate.mayProbe(first)) ? [first] : [];
  return { letters, cursor, walked: false, held: gate.held(first) };
}

/** The first letters that the run may send, in the order of enqueue, and the cursor of the page that has the first. */
async function firstCandidates(
  { store }: LetterSource,
  run: RedriveRun,
): Promise<{ readonly found: readonly DeadLetter[]; readonly cursor: string | null; readonly isEnd: boolean }> {
  const found: DeadLetter[] = [];
  let [cursor, at] = [run.cursor, run.cursor];
  for (let page = 0; page < CANARY_PAGES && found.length < PAGE; page++) {
    const walk = await walkLetters(store, run.selection, { cursor: at, limit: PAGE, payloads: run.patch !== null });
    found.push(...walk.letters.filter(isMeant(run)));
    if (walk.next === null) return { found, cursor, isEnd: true };
    at = walk.next;
    if (found.length === 0) cursor = at;
  }
  return { found, cursor, isEnd: false };
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

interface Gate {
  /** What would hold the letter's job back; null for nothing. */
  held(letter: DeadLetter): HeldRun | null;
  /** True if the letter may be sent although its breaker is not closed: it is the probe that closes it. */
  mayProbe(letter: DeadLetter): Promise<boolean>;
}

async function openGate({ store, limits }: LetterSource): Promise<Gate> {
  const holding = await readHolding(store, limits);
  return {
    held: ({ job }) => heldBy(job, holding, limits),
    async mayProbe({ job }) {
      const { service } = job;
      if (service === null || pausesOf(job, holding).length > 0 || holdUntilOf(job, holding) !== null) return false;
      const record = holding.services.get(service);
      if (!record || !(await isProbeDue(store, limits, service, record, holding.now))) return false;
      return !(await hasDueWork(store, service));
    },
  };
}

function heldBy(job: DeadLetter["job"], holding: Holding, limits: Limits): HeldRun | null {
  const [pause] = pausesOf(job, holding);
  if (pause) return { why: `the ${pause.kind} ${pause.name} is paused`, until: pause.until };
  const { service } = job;
  if (service === null) return null;
  const { breaker } = recordOf(service, holding, limits);
  if (breaker.state !== "closed") {
    const until = "until" in breaker ? breaker.until : null;
    return { why: `the breaker of ${service} is ${BREAKER_WORDS[breaker.state]}`, until };
  }
  const hold = holdUntilOf(job, holding);
  return hold === null ? null : { why: `${service} asked to wait`, until: hold };
}

/** The record of a service; where this program knows that it has no breaker, only an opening by hand counts. */
function recordOf(service: string, holding: Holding, limits: Limits): ServiceRecord {
  const record = holding.services.get(service) ?? initialRecord;
  return limits.service(service).breaker === null ? withoutBreaker(record, holding.now) : record;
}

async function isProbeDue(
  store: Store,
  limits: Limits,
  service: string,
  record: ServiceRecord,
  now: number,
): Promise<boolean> {
  const [{ cells }, workers] = await Promise.all([store.cells(settingsOfServices([service])), store.workers()]);
  const { breaker } = settingsFrom(cells, limits, livingAmong(workers, now)).service(service);
  return breaker !== null && mayProbe(record, breaker, now);
}

/** True if a job of the service is due that could be the probe, as far as was looked. */
async function hasDueWork(store: Pick<Store, "lanes">, service: string): Promise<boolean> {
  for (let after: number | null = null, page = 0; page < LANE_PAGES; page++) {
    const { lanes, next } = await store.lanes(after, LANES);
    if (lanes.some((lane) => lane.service === service)) return true;
    if (next === null) return false;
    after = next;
  }
  return true;
}
