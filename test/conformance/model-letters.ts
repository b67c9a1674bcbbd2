// Random commands about what has ended: pages and tallies of dead letters, and prunes in steps.
import fc from "fast-check";
import { FAILURE_CLASSES } from "../../src/core/job.ts";
import type { FailurePage, LetterFilter, Retention, Store } from "../../src/store/store.ts";
import { command, type Shared } from "./model-command.ts";
import { reasons } from "./model-verdicts.ts";

const filterFields = {
  redriven: fc.boolean(),
  type: fc.constantFrom("a", "b"),
  service: fc.constant("s"),
  tenant: fc.constantFrom("t1", "t2"),
  key: fc.constantFrom("k1", "k2"),
  reason: fc.constantFrom(...reasons),
  class: fc.constantFrom(...FAILURE_CLASSES),
  fingerprint: fc.constantFrom("f1", "f2"),
  text: fc.constantFrom("m", "ERR", "\ufffd", "😀", "", "%"),
};
/** How long ago, in milliseconds. */
const agoFields = { from: fc.constantFrom(0, 1_000, 60_000), until: fc.constantFrom(0, 1_000, 60_000) };
const few = <T>(fields: { readonly [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record(fields, { requiredKeys: [] }).map((all) => {
    // Every field narrows; with all of them nothing would be left.
    const entries = Object.entries(all).filter((_, at) => at % 3 === 0);
    return Object.fromEntries(entries) as Partial<T>;
  });
const filterSpec = fc.record({ filter: few(filterFields), ago: few(agoFields) });

function filterAt({ clock }: Shared, { filter, ago }: { filter: LetterFilter; ago: LetterFilter }): LetterFilter {
  const instants = Object.entries(ago).map(([field, ms]) => [field, clock.now - Number(ms)]);
  return { ...filter, ...(Object.fromEntries(instants) as LetterFilter) };
}

const pageSpec = fc.record({
  limit: fc.constantFrom(1, 2, 201),
  order: fc.constantFrom({ oldest: true }, { oldest: false }, { sort: "enqueued" as const }),
  pages: fc.integer({ min: 1, max: 3 }),
});

/** Some pages of dead letters, in every order. */
export const deadLetters = command("deadLetters", fc.tuple(filterSpec, pageSpec), (shared, [spec, page]) => {
  const query = { ...filterAt(shared, spec), limit: page.limit, ...page.order };
  return async (store) => {
    const items = [];
    let cursor: string | null = null;
    for (let n = 0; n < page.pages && (n === 0 || cursor !== null); n++) {
      const answer = await store.deadLetters({ ...query, cursor });
      items.push(...answer.items);
      cursor = answer.next;
    }
    return { items, more: cursor !== null };
  };
});

/** How many dead letters there are. */
export const tally = command("tally", filterSpec, (shared, spec) => {
  const filter = filterAt(shared, spec);
  return (store) => store.tally(filter);
});

const keepMs = fc.constantFrom(0, 1_000, 60_000);
const keep = fc.record({ finishedMs: keepMs, deadMs: fc.oneof(keepMs, fc.constant(null)) });
const retention = fc.record({
  keep,
  types: fc.oneof(
    fc.constant([]),
    keep.map((each) => [{ type: "a", ...each }]),
  ),
  keyMs: keepMs,
  limit: fc.integer({ min: 1, max: 5 }),
});

/** A prune in steps. Which jobs are given a time first is each store's own affair, so it goes on to its end. */
export const prune = command("prune", retention, (_, value) => (store) => pruneBy(store, value));

async function pruneBy(store: Store, value: Omit<Retention, "isFirst">): Promise<unknown> {
  const sum = { completed: 0, cancelled: 0, dead: 0 };
  for (let [isFirst, more, steps] = [true, true, 0]; more && steps < 1_000; isFirst = false, steps++) {
    const answer = await store.prune({ ...value, isFirst });
    for (const state of ["completed", "cancelled", "dead"] as const) sum[state] += answer[state];
    more = answer.more;
  }
  return sum;
}

const kept = fc.record({ type: fc.constantFrom("a", "b"), finishedMs: keepMs, deadMs: keepMs });

/** A move of the times of ended jobs, in steps. */
export const retain = command("retain", fc.tuple(kept, fc.integer({ min: 1, max: 5 })), (_, [type, limit]) => {
  return async (store) => {
    let sum = 0;
    for (let after: number | null = 0, steps = 0; after !== null && steps < 1_000; steps++) {
      const { moved, next } = await store.retain({ types: [type], after, limit });
      [sum, after] = [sum + moved, next];
    }
    return sum;
  };
});

/** New fingerprints for failures that have another one, in pages. Numbers of jobs are each store's own affair. */
export const setFingerprints = command(
  "setFingerprints",
  fc.tuple(fc.constantFrom("f1", "f2"), fc.integer({ min: 1, max: 5 })),
  (_, [fingerprint, limit]) =>
    async (store) => {
      const counts = [];
      for (let [after, pages] = [0 as number | null, 0]; after !== null && pages < 1_000; pages++) {
        const page: FailurePage = await store.failures({ after, limit });
        const others = page.items.filter(({ failure }) => failure.fingerprint !== fingerprint);
        const changes = others.map(({ of, seq, at, failure: { fingerprint: was } }) => ({
          of,
          seq,
          at,
          was,
          fingerprint,
        }));
        counts.push([page.items.length, await store.setFingerprints(changes.filter(({ was }) => was !== ""))]);
        after = page.next;
      }
      return counts;
    },
);
