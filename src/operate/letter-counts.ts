// How many letters a selection of very many means. Those of a cause or of a type come from the counts that the store
// keeps, so that the answer takes no longer for a million letters; only other selections are counted one by one.
import type { FrozenSelection, LetterFields } from "../core/recovery/selection.ts";
import { filterOf } from "../core/recovery/selection.ts";
import type { Store } from "../store/store.ts";

/** Letters that a plan looks at one by one; where more match, the others are counted. */
export const LOOKED_MOST = 10_000;

/** How many live letters there are by these counts, and how many among them died after an instant. */
export interface LetterCount {
  /** Those that died by then. */
  readonly count: number;
  /** Those that died later; where they are more than a look finds, at least as many as the count has grown by. */
  readonly come: number;
}

/** Counts the letters of a selection, those apart that died after an instant; `before` is how many matched then. */
export async function countLetters(
  store: Pick<Store, "tally" | "causes" | "figures">,
  selection: FrozenSelection,
  at: number,
  before: number | null,
): Promise<LetterCount> {
  const filter = filterOf(selection);
  const { from = 0 } = filter;
  const newest = { ...filter, from: Math.max(from, at + 1), lookAt: LOOKED_MOST };
  const [live, { total, seenTo }] = await Promise.all([liveOf(store, filter), store.tally(newest)]);
  // A look that has not got back to that instant has not found all that came.
  const isPart = before !== null && seenTo !== undefined && seenTo > at;
  const come = isPart ? Math.max(total, live - before) : total;
  return { count: Math.max(0, live - come), come };
}

async function liveOf(store: Pick<Store, "tally" | "causes" | "figures">, filter: LetterFields): Promise<number> {
  const [field, ...others] = (Object.keys(filter) as (keyof LetterFields)[]).filter(
    (name) => filter[name] !== undefined,
  );
  const { fingerprint, type } = filter;
  if (others.length === 0 && field === "fingerprint" && fingerprint !== undefined) {
    const { items } = await store.causes({ fingerprint, limit: 1 });
    return items[0]?.live ?? 0;
  }
  if (others.length === 0 && field === "type") {
    const { letters } = await store.figures({ lanes: 1, jobs: 1, letters: 1, notes: "cause" });
    return letters.find((each) => each.type === type)?.count ?? 0;
  }
  return (await store.tally(filter)).total;
}
