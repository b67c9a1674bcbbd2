// The event log: what is written stays as it was, in the order of commits, until it is old.
import { expect } from "vitest";
import type { EventQuery, LoggedEvent, NewEvent, Retention, Store } from "../../src/store/store.ts";
import type { Suite } from "./suite.ts";

const DAY = 86_400_000;
const PRUNE: Retention = { keep: { finishedMs: 0, deadMs: 0 }, types: [], keyMs: 0, limit: 100, isFirst: false };

const event = (given: Partial<NewEvent> = {}): NewEvent => {
  return { kind: "pause", actor: "ada@desk", why: null, subject: "queue:mail", value: "{}", ...given };
};
const seen = (release: string): NewEvent =>
  event({ kind: "release.seen", actor: null, subject: `release:${release}`, once: true });

const read = async (store: Store, query: Partial<EventQuery> = {}): Promise<readonly LoggedEvent[]> =>
  (await store.events({ limit: 200, oldest: true, ...query })).items;
const subjects = async (...args: Parameters<typeof read>): Promise<(string | null)[]> =>
  (await read(...args)).map(({ subject }) => subject);

/** Tests of record and events. */
export function eventFacts(suite: Suite): void {
  writeFacts(suite);
  readFacts(suite);
  refusedFacts(suite);
  pruneFacts(suite);
}

function writeFacts({ fact, timed }: Suite): void {
  timed("keeps an event as it was written, with the store's time", async ({ store, clock }) => {
    const texts = {
      why: "schön – \ud83d\ude00 \u0007",
      subject: "tenant:søn & co",
      value: '{"a": "\\u0000", "n": 1e400}',
    };
    expect(await store.record([event(texts)])).toEqual([1]);
    clock.now += 5;
    expect(await store.record([event({ actor: null, subject: null, intent: 1 })])).toEqual([2]);
    expect(await read(store)).toStrictEqual([
      { seq: 1, at: clock.now - 5, kind: "pause", actor: "ada@desk", ...texts, intent: null },
      { seq: 2, at: clock.now, kind: "pause", actor: null, why: null, subject: null, intent: 1, value: "{}" },
    ]);
  });

  timed("has no earlier time than the event before, also where the clock was set back", async ({ store, clock }) => {
    const before = clock.now;
    await store.record([event()]);
    clock.now = before - 5_000;
    await store.record([event(), event()]);
    clock.now = before + 1;
    await store.record([event()]);
    expect((await read(store)).map(({ at }) => at)).toEqual([before, before, before, before + 1]);
  });

  fact("numbers the events of one write in their order, and writes nothing for none", async ({ store }) => {
    expect(await store.record([])).toEqual([]);
    const events = ["c", "a", "b"].map((subject) => event({ subject }));
    expect(await store.record(events)).toEqual([1, 2, 3]);
    expect(await subjects(store)).toEqual(["c", "a", "b"]);
  });

  fact("writes an event that is to be there once no second time", async ({ store }) => {
    const plain = event({ kind: "release.seen", subject: "release:1" });
    expect(await store.record([plain, seen("1"), seen("1"), seen("2")])).toEqual([1, 2, null, 3]);
    expect(await store.record([seen("2"), plain, seen("3"), seen("1")])).toEqual([null, 4, 5, null]);
    expect(await store.record([{ ...seen("1"), kind: "other" }])).toEqual([6]);
    expect(await store.record([seen("3")])).toEqual([null]);
    expect(await store.record([event()])).toEqual([7]);
  });

  fact("lets many writers have a number each, and one of them what is there once", async ({ store, peer }) => {
    const stores = [store, await peer(), await peer()];
    const writes = Array.from({ length: 30 }, (_, n) =>
      (stores[n % 3] as Store).record([event({ subject: `n:${n}` }), seen("1")]),
    );
    const answers = await Promise.all(writes);
    const events = await read(store);
    expect(answers.filter(([, once]) => once !== null)).toHaveLength(1);
    expect(events).toHaveLength(31);
    expect(
      answers
        .flat()
        .filter((seq) => seq !== null)
        .toSorted((a, b) => a - b),
    ).toEqual(events.map(({ seq }) => seq));
    for (const [n, [seq]] of answers.entries()) expect(events.find((each) => each.seq === seq)?.subject).toBe(`n:${n}`);
  });
}

function readFacts({ fact, timed }: Suite): void {
  fact("lists in pages, newest or oldest first", async ({ store }) => {
    await store.record(["1", "2", "3", "4", "5"].map((subject) => event({ subject })));
    for (const [oldest, order] of [
      [false, ["5", "4", "3", "2", "1"]],
      [true, ["1", "2", "3", "4", "5"]],
    ] as const) {
      const pages: (string | null)[][] = [];
      for (let cursor: string | null = null, n = 0; n === 0 || (cursor !== null && n < 9); n++) {
        const page = await store.events({ limit: 2, cursor, oldest });
        pages.push(page.items.map(({ subject }) => subject));
        cursor = page.next;
      }
      expect(pages).toEqual([order.slice(0, 2), order.slice(2, 4), order.slice(4)]);
    }
    expect((await store.events({ limit: 5 })).next).toBeNull();
  });

  fact("goes on after a number, and finds what came since", async ({ store }) => {
    const [first] = await store.record([event({ subject: "1" })]);
    const after = { cursor: String(first) };
    expect(await subjects(store, after)).toEqual([]);
    await store.record([event({ subject: "2" }), event({ subject: "3" })]);
    expect(await subjects(store, after)).toEqual(["2", "3"]);
  });

  fact("finds by kind, actor and subject, each exactly", async ({ store }) => {
    await store.record([
      event({ kind: "pause", actor: "ada", subject: "queue:a" }),
      event({ kind: "resume", actor: "ada", subject: "queue:b" }),
      event({ kind: "pause", actor: "Ada", subject: "queue:B" }),
      event({ kind: "pause.x", actor: null, subject: null }),
    ]);
    const numbers = async (query: Partial<EventQuery>) => (await read(store, query)).map(({ seq }) => seq);
    expect(await numbers({ kind: "pause" })).toEqual([1, 3]);
    expect(await numbers({ actor: "ada" })).toEqual([1, 2]);
    expect(await numbers({ subject: "queue:b" })).toEqual([2]);
    expect(await numbers({ kind: "pause", actor: "Ada", subject: "queue:B" })).toEqual([3]);
    expect(await numbers({ kind: "pause", actor: "ada", subject: "queue:B" })).toEqual([]);
  });

  fact("finds the outcomes of intents by their numbers, however many events are between", async ({ store }) => {
    const [first, second] = await store.record([event(), event()]);
    await store.record(Array.from({ length: 300 }, () => event()));
    await store.record([event({ intent: second as number }), event({ intent: first as number })]);
    const found = async (...intents: number[]) =>
      (await read(store, { intents })).map(({ seq, intent }) => [seq, intent]);
    expect(await found(1, 2, 77)).toEqual([
      [303, 2],
      [304, 1],
    ]);
    expect(await found(2)).toEqual([[303, 2]]);
    expect(await found()).toEqual([]);
  });

  timed("finds by time: from an instant, and before one", async ({ store, clock }) => {
    const from = clock.now;
    for (const subject of ["1", "2", "3"]) {
      await store.record([event({ subject })]);
      clock.now += 1_000;
    }
    expect(await subjects(store, { from: from + 1_000 })).toEqual(["2", "3"]);
    expect(await subjects(store, { until: from + 1_000 })).toEqual(["1"]);
    expect(await subjects(store, { from: from + 1, until: from + 2_000 })).toEqual(["2"]);
  });
}

const BAD: readonly Partial<Record<keyof NewEvent, unknown>>[] = [
  ...["", "a b", "ä", "x".repeat(129), null].map((kind) => ({ kind })),
  ...["", " \t", "a\0", "\ud800", "x".repeat(256), 5].map((actor) => ({ actor })),
  ...["", " \t", "a\0", "\ud800", "x".repeat(1_001), 5].map((why) => ({ why })),
  ...["", "a\0", "\ud800", "x".repeat(301), 5].map((subject) => ({ subject })),
  ...["a\0", "\ud800", "x".repeat(16_385), "é".repeat(8_193), 5, null].map((value) => ({ value })),
  ...[0, -1, 1.5, "1"].map((intent) => ({ intent })),
  { once: 1 },
  { once: true, subject: null },
];

function refusedFacts({ fact }: Suite): void {
  fact("refuses events out of bounds, and writes nothing of their call", async ({ store }) => {
    for (const bad of BAD) {
      const refused = store.record([event(), event(bad as Partial<NewEvent>)]);
      await expect(refused, JSON.stringify(bad).slice(0, 60)).rejects.toMatchObject({ code: "invalid_argument" });
    }
    await expect(store.record(Array.from({ length: 10_001 }, () => event()))).rejects.toMatchObject({
      code: "invalid_argument",
    });
    expect(await read(store)).toEqual([]);
    const most = { why: "w".repeat(1_000), actor: "é".repeat(127), subject: "s".repeat(300), value: "é".repeat(8_192) };
    await store.record([event(most)]);
    expect(await read(store)).toMatchObject([most]);
  });

  fact("refuses a list out of bounds", async ({ store }) => {
    const queries: object[] = [
      ...[0, 201, 0.5, "5"].map((limit) => ({ limit })),
      ...["x", "-1", "1.5"].map((cursor) => ({ cursor })),
      { kind: "a b" },
      { actor: "" },
      { subject: "a\0" },
      { oldest: 1 },
      { from: -1 },
      { until: Number.NaN },
      { intents: ["1"] },
      { intents: Array.from({ length: 201 }, (_, n) => n + 1) },
    ];
    for (const query of queries)
      await expect(store.events({ limit: 5, ...query }), JSON.stringify(query)).rejects.toMatchObject({
        code: "invalid_argument",
      });
  });
}

function pruneFacts({ timed }: Suite): void {
  timed("deletes events after 90 days, in bounded steps, and uses no number twice", async ({ store, clock }) => {
    await store.record(["1", "2", "3"].map((subject) => event({ subject })));
    clock.now += 1;
    await store.record([event({ subject: "4" })]);
    clock.now += 90 * DAY - 2;
    await store.prune(PRUNE);
    expect(await subjects(store)).toEqual(["1", "2", "3", "4"]);
    clock.now += 1;
    await store.prune({ ...PRUNE, limit: 2 });
    expect(await subjects(store)).toEqual(["3", "4"]);
    await store.prune({ ...PRUNE, limit: 2 });
    expect(await subjects(store)).toEqual(["4"]);
    clock.now += 1;
    await store.prune(PRUNE);
    expect(await subjects(store)).toEqual([]);
    expect(await store.record([event()])).toEqual([5]);
  });

  timed("never forgets which releases it has seen", async ({ store, clock }) => {
    await store.record([seen("1.0"), event()]);
    clock.now += 400 * DAY;
    await store.prune(PRUNE);
    expect(await subjects(store)).toEqual(["release:1.0"]);
    expect(await store.record([seen("1.0")])).toEqual([null]);
  });
}
