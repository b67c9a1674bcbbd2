// Reads what a store knows of a cause that people have muted or marked fixed: its record, the releases in the order of
// their first sight, and the failed runs that started after the fix. Every look at jobs and letters is bounded.
import {
  causeAfter,
  causeFrom,
  type CauseRecord,
  type CauseTurn,
  type ReleaseFailures,
  type SeenRelease,
} from "../core/recovery/cause-state.ts";
import type { Cause, Cell, Store } from "../store/store.ts";

/** The kind of the cells with what people have said of a cause; their name is its fingerprint. */
export const CAUSE_CELLS = "cause";

/** The verbs that this needs. */
export type CauseReads = Pick<Store, "events" | "deadLetters" | "list">;

const PAGE = 200;
/** How far letters, and waiting jobs of each type, are searched for a run that breaks a fix. */
const LOOK = { limit: 100, lookAt: 1_000, payloads: false } as const;
const TYPES = 5;

/** The records in cells, by fingerprint. */
export function causeRecords(cells: readonly Cell[]): Map<string, CauseRecord> {
  return new Map(cells.flatMap(({ kind, name, value }) => (kind === CAUSE_CELLS ? [[name, causeFrom(value)]] : [])));
}

/** Reads the releases that a store has seen, in the order of their first sight; asks only for those that it does not know. */
export function releaseReader(store: Pick<Store, "events">): () => Promise<readonly SeenRelease[]> {
  const known: SeenRelease[] = [];
  let cursor: string | null = null;
  return async () => {
    for (let more = true; more; ) {
      const page: Awaited<ReturnType<Store["events"]>> = await store.events({
        kind: "release.seen",
        oldest: true,
        limit: PAGE,
        cursor,
      });
      for (const { subject, at, seq } of page.items) {
        known.push({ release: (subject ?? "").replace(/^release:/, ""), at });
        cursor = String(seq);
      }
      more = page.next !== null;
    }
    return [...known];
  };
}

/** The cause after what the store knows of it now. */
export async function causeTurn(
  store: CauseReads,
  record: CauseRecord,
  cause: Cause,
  releases: () => Promise<readonly SeenRelease[]>,
  now: number,
): Promise<CauseTurn> {
  const news = { deaths: cause.deaths, failures: cause.byRelease, startedSince: 0 };
  if (record.state !== "fixed") return causeAfter(record, news, [], now);
  const seen = await releases();
  const turn = causeAfter(record, news, seen, now);
  if (turn.change !== null || turn.still.length === 0) return turn;
  if (record.release === null)
    return causeAfter(record, { ...news, startedSince: await startedSince(store, cause, record.at) }, seen, now);
  if (turn.still.every(({ release }) => release !== "")) return turn;
  const failures = await diedSince(store, cause, record.at);
  const byLetters = causeAfter({ ...record, before: [] }, { ...news, failures }, seen, now);
  return byLetters.change === null ? turn : byLetters;
}

/**
 * The newest deaths of a cause since this time, by release. A run that its worker did not end, because the worker crashed,
 * counts without a release; its letter has the release of that worker.
 */
async function diedSince(store: CauseReads, { fingerprint }: Cause, from: number): Promise<ReleaseFailures[]> {
  const { items } = await store.deadLetters({ fingerprint, from, redriven: true, ...LOOK });
  const releases = items.flatMap(({ release }) => (release === null ? [] : [release]));
  return [...new Set(releases)].map((release) => {
    return { release, failures: releases.filter((each) => each === release).length };
  });
}

/** How many of the newest failures of a cause belong to runs that started after this time. */
async function startedSince(store: CauseReads, { fingerprint, types }: Cause, at: number): Promise<number> {
  const letters = await store.deadLetters({ fingerprint, from: at, redriven: true, ...LOOK });
  // A job that was sent back may have started again since its death.
  const died = letters.items.filter(
    ({ job, generation }) => job.generation === generation && (job.startedAt ?? 0) > at,
  ).length;
  if (died > 0) return died;
  const pages = await Promise.all(
    types.slice(0, TYPES).map((type) => store.list({ ...LOOK, type, state: "queued", tried: true })),
  );
  return pages
    .flatMap(({ items }) => items)
    .filter(({ failure, startedAt }) => failure?.fingerprint === fingerprint && (startedAt ?? 0) > at).length;
}
