// Keeps the counts of causes and types small and right: folds them every minute, and compares the counts of causes with
// their dead letters once a day, because a program of an older version changes letters without counting.
import { DAY, HOUR, MINUTE } from "../core/flow.ts";
import type { RecountAnswer, Store } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import type { Service } from "./upkeep.ts";

/** What the service needs. */
export interface CountsOptions {
  readonly store: Pick<Store, "fold" | "recount" | "cells" | "setCells">;
  readonly system: Pick<System, "random" | "monotonic" | "after">;
  readonly log: Log;
}

/** Rows folded in one step, of each kind. */
const FOLD = 1_000;
/** Causes compared in one step; each is one count over an index. */
const RECOUNT = 20;
/** A worker looks this often whether the recount of the day was begun. */
const LOOK_MS = HOUR;
/** A one-shot does it for at most this long. Folding continues with the next one; a recount begins again. */
const BRIEF_MS = 2_000;

/** When the last recount began, for all processes. */
const BEGUN = { kind: "recount", name: "causes", holder: "" } as const;

/** The service. */
export function countsService(options: CountsOptions): Service {
  const { system } = options;
  const waitMs = (): number => MINUTE * (0.5 + system.random());
  let nextLookMs = Number.NEGATIVE_INFINITY;
  return {
    name: "counts",
    firstMs: waitMs(),
    async step(signal) {
      await foldAll(options, signal);
      if (system.monotonic() < nextLookMs) return waitMs();
      nextLookMs = system.monotonic() + LOOK_MS;
      await recountDaily(options, signal);
      return waitMs();
    },
  };
}

/** The same once and briefly, for a process that ends: no worker may come to do it. */
export async function countBriefly(options: CountsOptions): Promise<void> {
  const enough = new AbortController();
  const forget = options.system.after(BRIEF_MS, () => enough.abort());
  await countsService(options).step(enough.signal).finally(forget);
}

async function foldAll({ store }: CountsOptions, signal: AbortSignal): Promise<void> {
  for (let more = true; more && !signal.aborted; ) ({ more } = await store.fold({ limit: FOLD }));
}

/** Recounts unless a process has begun to within the last day; the first to say so does it. */
async function recountDaily({ store, log }: CountsOptions, signal: AbortSignal): Promise<void> {
  const { cells, now } = await store.cells([{ kind: BEGUN.kind }]);
  const last = cells.find(({ name }) => name === BEGUN.name);
  if (last && now - last.at < DAY) return;
  const [isOurs] = await store.setCells([{ ...BEGUN, version: last?.version ?? 0, value: "{}" }]);
  if (!isOurs) return;
  let sum: number | null = null;
  try {
    sum = await recountAll(store, signal);
  } finally {
    // Not done: the next process to look begins again.
    if (sum === null) await store.setCells([{ ...BEGUN, version: null, value: null }]);
  }
  if (sum !== null && sum > 0)
    log.info(
      { letters: sum },
      "the counts of causes differed from the dead letters, and were corrected: a program of an older version, or SQL by hand, had changed letters",
    );
}

/** Compares all causes with their letters; answers how many letters were wrong, null where it was interrupted. */
async function recountAll(store: CountsOptions["store"], signal: AbortSignal): Promise<number | null> {
  let sum = 0;
  for (let after: string | null = ""; after !== null; ) {
    if (signal.aborted) return null;
    const { mended, next }: RecountAnswer = await store.recount({ after, limit: RECOUNT });
    sum += mended;
    after = next;
  }
  return sum;
}
