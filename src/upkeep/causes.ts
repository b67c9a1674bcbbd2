// Looks at causes about once a minute, one process at a time: tells the event log of new ones, ends mutes, notices that a
// fixed cause is back, and forgets what was said of causes that were not seen for 90 days. It asks for the causes that
// failed since the last look, so that an idle fleet asks one question a minute.
//
// A change and its event are two writes. The record names the event until it is written, so that a process which finds it
// there writes it, unless the log has it.
import { causeChanged, causeOpened } from "../core/event-log.ts";
import { DAY, MINUTE, OTHER_CAUSES } from "../core/flow.ts";
import { fieldsFrom } from "../core/options.ts";
import { causeFrom, type CauseRecord, causeText, type SeenRelease } from "../core/recovery/cause-state.ts";
import { masked } from "../core/safe-text.ts";
import type { Cause, Cell, Store } from "../store/store.ts";
import type { System } from "../system/system.ts";
import { CAUSE_CELLS, type CauseReads, causeTurn, releaseReader } from "./cause-news.ts";
import type { Service } from "./upkeep.ts";

/** The verbs that the service needs. */
export type CauseStore = CauseReads & Pick<Store, "causes" | "cells" | "setCells" | "record">;

/** When a process last looked, for all of them. */
const LOOK = { kind: "look", name: "causes", holder: "" } as const;
/** The least time between two looks of a fleet. */
const LEAST_MS = 30_000;
/** The first look of a fleet goes back so far. */
const FIRST_MS = 60 * MINUTE;
const PAGE = 200;
/** Pages of one look; where more causes failed, those with a record are asked for one by one. */
const PAGES = 5;
/** What people said of a cause stays so long after it was last seen. */
export const CAUSE_MS = 90 * DAY;

/** The service. */
export function causesService({
  store,
  system,
}: {
  readonly store: CauseStore;
  readonly system: Pick<System, "random">;
}): Service {
  const waitMs = (): number => MINUTE * (0.5 + system.random());
  const memory: LookMemory = { told: new Set(), releases: releaseReader(store) };
  return {
    name: "causes",
    firstMs: waitMs(),
    async step(signal) {
      await lookAtCauses(store, memory, signal);
      return waitMs();
    },
  };
}

/** What a process remembers from look to look. */
export interface LookMemory {
  /** Causes of which the event log has been told. */
  readonly told: Set<string>;
  readonly releases: () => Promise<readonly SeenRelease[]>;
}

/** One look, unless a process has looked just before. */
export async function lookAtCauses(store: CauseStore, memory: LookMemory, signal?: AbortSignal): Promise<void> {
  const { cells, now } = await store.cells([{ kind: CAUSE_CELLS }, { kind: LOOK.kind, name: LOOK.name }]);
  const last = cells.find(({ kind }) => kind === LOOK.kind);
  if (last && now - last.at < LEAST_MS) return;
  const before = lookFrom(last, now);
  const [isOurs] = await store.setCells([{ ...LOOK, version: last?.version ?? 0, value: JSON.stringify(before) }]);
  if (!isOurs) return;
  const { active, isWhole } = await activeCauses(store, before.upTo - MINUTE);
  await tellNew(store, memory, active, now);
  for (const cell of cells.filter(({ kind }) => kind === CAUSE_CELLS)) {
    if (signal?.aborted) return;
    const cause = active.get(cell.name) ?? (isWhole ? null : await causeOf(store, cell.name));
    await lookAtOne(store, memory, cell, cause, now);
  }
  const isDue = now - before.sweptAt >= DAY;
  if (isDue) await forgetOld(store, cells, now);
  const after: Look = { upTo: now, sweptAt: isDue ? now : before.sweptAt };
  await store.setCells([{ ...LOOK, version: null, value: JSON.stringify(after) }]);
}

/** How far the fleet has looked, and when it last forgot old records. */
interface Look {
  readonly upTo: number;
  readonly sweptAt: number;
}

function lookFrom(cell: Cell | undefined, now: number): Look {
  const { upTo, sweptAt } = fieldsFrom(cell?.value ?? "");
  const isTime = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) <= now;
  return { upTo: isTime(upTo) ? upTo : Math.max(MINUTE, now - FIRST_MS), sweptAt: isTime(sweptAt) ? sweptAt : 0 };
}

/** The causes that failed since, by fingerprint. */
async function activeCauses(
  store: CauseStore,
  since: number,
): Promise<{ readonly active: ReadonlyMap<string, Cause>; readonly isWhole: boolean }> {
  const active = new Map<string, Cause>();
  let cursor: string | null = null;
  for (let pages = 0; pages < PAGES; pages++) {
    const page: Awaited<ReturnType<Store["causes"]>> = await store.causes({ since, idle: true, limit: PAGE, cursor });
    for (const cause of page.items) active.set(cause.fingerprint, cause);
    cursor = page.next;
    if (cursor === null) return { active, isWhole: true };
  }
  return { active, isWhole: false };
}

async function causeOf(store: CauseStore, fingerprint: string): Promise<Cause | null> {
  return (await store.causes({ fingerprint, idle: true, limit: 1 })).items[0] ?? null;
}

/**
 * Tells the event log of causes with their first letter. It keeps events as long as it says that a cause is new: the event
 * of an older one may have been deleted.
 */
async function tellNew(
  store: CauseStore,
  { told }: LookMemory,
  active: ReadonlyMap<string, Cause>,
  now: number,
): Promise<void> {
  const isNew = ({ fingerprint, deaths, firstAt }: Cause): boolean =>
    deaths > 0 && !told.has(fingerprint) && fingerprint !== OTHER_CAUSES && (firstAt ?? 0) > now - CAUSE_MS;
  const found = [...active.values()].filter(isNew);
  for (let at = 0; at < found.length; at += PAGE) {
    const some = found.slice(at, at + PAGE);
    await store.record(
      some.map(({ fingerprint, types, sample }) => {
        const { name = "", message = "" } = sample ?? {};
        return causeOpened(fingerprint, { types, name, message: masked(message) });
      }),
    );
    for (const { fingerprint } of some) told.add(fingerprint);
  }
}

/** Ends a mute or a fix where the news say so; null for a cause that did not fail since the last look. */
async function lookAtOne(
  store: CauseStore,
  memory: LookMemory,
  cell: Cell,
  cause: Cause | null,
  now: number,
): Promise<void> {
  const record = causeFrom(cell.value);
  if (record.untold !== null) return tell(store, cell, record);
  const isTimed = record.state === "muted" && record.until !== null && now >= record.until;
  if (cause === null && !isTimed) return;
  const known = cause ?? { ...NO_NEWS, fingerprint: cell.name, deaths: record.deathsAtMute };
  const turn = await causeTurn(store, record, known, memory.releases, now);
  if (turn.change === null) return;
  const [isOurs] = await store.setCells([{ ...keyOf(cell), version: cell.version, value: causeText(turn.cause) }]);
  if (isOurs) await tell(store, { ...cell, version: cell.version + 1 }, turn.cause);
}

const NO_NEWS: Cause = {
  fingerprint: "",
  live: 0,
  deaths: 0,
  failures: 0,
  firstAt: null,
  lastAt: null,
  types: [],
  releases: [],
  byRelease: [],
  sample: null,
};

function keyOf({ kind, name, holder }: Cell): Pick<Cell, "kind" | "name" | "holder"> {
  return { kind, name, holder };
}

/** Writes the event that a record names, unless the log has it, and then the record without it. */
async function tell(store: CauseStore, cell: Cell, record: CauseRecord): Promise<void> {
  const { untold, at, release, back } = record;
  if (untold === null) return;
  const details = untold === "regressed" ? { fixedIn: release, back: back || null } : {};
  const event = causeChanged(cell.name, untold, details);
  const { items } = await store.events({ kind: event.kind, subject: event.subject ?? "", from: at, limit: 1 });
  if (items.length === 0) await store.record([event]);
  const value = causeText({ ...record, untold: null });
  await store.setCells([{ ...keyOf(cell), version: cell.version, value }]);
}

/** Deletes what people said of causes that were not seen, and of which nothing was said, for 90 days. */
async function forgetOld(store: CauseStore, cells: readonly Cell[], now: number): Promise<void> {
  for (const cell of cells.filter(({ kind, at }) => kind === CAUSE_CELLS && now - at >= CAUSE_MS)) {
    const lastAt = (await causeOf(store, cell.name))?.lastAt ?? 0;
    if (now - lastAt >= CAUSE_MS) await store.setCells([{ ...keyOf(cell), version: cell.version, value: null }]);
  }
}
