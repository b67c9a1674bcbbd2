// Which dead letters are meant: who they belong to, when they died, what they say; in both directions, and counted.
import { expect } from "vitest";
import type { DeadLetter, Job } from "../../src/core/job.ts";
import type { DeadLetterQuery, LetterFilter } from "../../src/store/store.ts";
import { add, end, finish, takeOne } from "../support/runs.ts";
import { walk } from "../support/letter-pages.ts";
import { dead, failure } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

const died = (said: Parameters<typeof failure>[0]) => dead({ failure: failure(said) });

/** Tests of the filters of dead letters. */
export function filterFacts({ fact, timed }: Suite): void {
  fact("narrows by service and tenant", async ({ store }) => {
    const a = await finish(store, dead(), { service: "s", tenant: "t" });
    const b = await finish(store, dead(), { service: "s" });
    const c = await finish(store, dead(), { tenant: "t" });
    const queries: [LetterFilter, Job[]][] = [
      [{ service: "s" }, [b, a]],
      [{ tenant: "t" }, [c, a]],
      [{ service: "s", tenant: "t" }, [a]],
      [{ service: "other" }, []],
    ];
    for (const [query, jobs] of queries) {
      expect(await walk(store, { limit: 1, ...query })).toEqual(jobs.map(({ id }) => id));
      expect((await store.tally(query)).total).toBe(jobs.length);
    }
  });

  timed("narrows by the time of death, from inclusive, until exclusive", async ({ store, clock }) => {
    const start = clock.now;
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) {
      clock.now = start + i * 10;
      ids.push((await finish(store, dead())).id);
    }
    const [a, b, c] = ids;
    const queries: [LetterFilter, (string | undefined)[]][] = [
      [{ from: start + 10 }, [c, b]],
      [{ from: start + 11 }, [c]],
      [{ until: start + 10 }, [a]],
      [{ until: start + 11 }, [b, a]],
      [{ from: start, until: start + 20 }, [b, a]],
      [{ from: start + 20, until: start + 20 }, []],
      [{ from: 0, until: 8_640_000_000_000_000 }, [c, b, a]],
    ];
    for (const [query, expected] of queries) {
      expect(await walk(store, { limit: 1, ...query })).toEqual(expected);
      expect((await store.tally(query)).total).toBe(expected.length);
    }
  });

  timed("looks at no more letters than it may, and says how far it looked", async ({ store, clock }) => {
    const began = clock.now;
    const ids: string[] = [];
    for (let i = 0; i < 6; i++) {
      clock.now = began + i * 10;
      ids.push((await finish(store, died({ message: i % 2 === 0 ? "even" : "odd" }), { type: "t" })).id);
    }
    const [first, , third, , fifth] = ids;
    for (const of of [{}, { type: "t" }])
      for (const lookAt of [1, 2, 4, 6, 7]) {
        expect(await walk(store, { limit: 2, text: "even", lookAt, ...of })).toEqual([fifth, third, first]);
        expect(await walk(store, { limit: 2, text: "even", lookAt, oldest: true, ...of })).toEqual([
          first,
          third,
          fifth,
        ]);
      }
    const newest = await store.deadLetters({ limit: 9, text: "even", lookAt: 3 });
    expect([newest.items.length, newest.next !== null, newest.seenTo]).toEqual([1, true, began + 30]);
    const oldest = await store.deadLetters({ limit: 9, text: "even", lookAt: 3, oldest: true });
    expect([oldest.items.length, oldest.next !== null, oldest.seenTo]).toEqual([2, true, began + 20]);
    expect(await store.tally({ lookAt: 4 })).toMatchObject({ total: 4, seenTo: began + 20 });
    expect(await store.tally({ lookAt: 4, text: "odd" })).toMatchObject({ total: 2, seenTo: began + 20 });
    expect("seenTo" in (await store.tally({ lookAt: 7 }))).toBe(false);
    const { fingerprint } = (newest.items[0] as DeadLetter).failure;
    expect(await store.tally({ lookAt: 2, fingerprint })).toMatchObject({ total: 2, seenTo: began + 40 });
    // Those of one job are few, and all are looked at.
    expect(await walk(store, { limit: 2, jobId: first as string, lookAt: 1 })).toEqual([first]);
  });

  fact("finds text in name and message, whatever the case of A to Z", async ({ store }) => {
    const a = await finish(store, died({ name: "TypeError", message: "100% of a_b failed" }));
    const b = await finish(store, died({ name: "Error", message: "Connection RESET\nÄrger" }));
    const c = await finish(store, died({ name: "E\0", message: "\ud800 [x] \\" }));
    const texts: [string, Job[]][] = [
      ["typeerror", [a]],
      ["ERROR", [b, a]],
      ["reset", [b]],
      ["100%", [a]],
      ["%", [a]],
      ["a_b", [a]],
      ["_", [a]],
      ["aXb", []],
      ["reset\nÄ", [b]],
      ["ärger", []],
      ["Ärger", [b]],
      ["error\nconnection", []],
      ["e␀", [c]],
      ["\ufffd [X]", [c]],
      ["\\", [c]],
      ["'", []],
      ["x".repeat(200), []],
    ];
    for (const [text, jobs] of texts) {
      const ids = jobs.map(({ id }) => id);
      expect(await walk(store, { limit: 2, text }), text).toEqual(ids);
      expect((await store.tally({ text })).total, text).toBe(ids.length);
    }
  });

  fact("lists the oldest first when asked, page by page, also while others die", async ({ store }) => {
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push((await finish(store, dead(), { tenant: i % 2 ? "b" : "a" })).id);
    for (const limit of [1, 2, 5, 200]) expect(await walk(store, { limit, oldest: true })).toEqual(ids);
    expect(await walk(store, { limit: 1, oldest: true, tenant: "b" })).toEqual([ids[1], ids[3]]);
    expect(await walk(store, { limit: 2, oldest: false })).toEqual(ids.toReversed());
    const first = await store.deadLetters({ limit: 3, oldest: true });
    const late = await finish(store, dead());
    const rest = await store.deadLetters({ limit: 3, oldest: true, cursor: first.next });
    expect(rest.items.map(({ job }) => job.id)).toEqual([...ids.slice(3), late.id]);
    expect(rest.next).toBeNull();
  });

  fact("skips no letter in that order, also when all before it are gone", async ({ store }) => {
    const old = [await finish(store, dead()), await finish(store, dead()), await finish(store, dead())];
    const { next } = await store.deadLetters({ limit: 2, oldest: true });
    await store.remove(old.map(({ id }) => id));
    const late = await finish(store, dead());
    expect((await store.deadLetters({ limit: 2, oldest: true, cursor: next })).items).toMatchObject([
      { job: { id: late.id } },
    ]);
  });

  const INSTANTS = [-1, 0.5, Number.NaN, 8_640_000_000_000_001, "5", null];
  const REFUSED: readonly (readonly [field: keyof DeadLetterQuery, values: readonly unknown[]])[] = [
    ["service", ["", "\0", 5, null]],
    ["tenant", ["", "x".repeat(256), "\ud800", null]],
    ["from", INSTANTS],
    ["until", INSTANTS],
    ["text", ["", "x".repeat(201), "\0", "\ud800", 5, null]],
  ];
  for (const [field, values] of REFUSED) {
    fact(`refuses a bad ${field}`, async ({ store }) => {
      for (const value of values) {
        const told = { code: "invalid_argument" };
        const query = { [field]: value };
        await expect(store.deadLetters({ limit: 1, ...query }), String(value)).rejects.toMatchObject(told);
        await expect(store.tally(query), String(value)).rejects.toMatchObject(told);
      }
    });
  }

  fact("refuses an order that is neither", async ({ store }) => {
    for (const oldest of ["yes", 1]) {
      const refused = store.deadLetters({ limit: 1, oldest: oldest as unknown as boolean });
      await expect(refused).rejects.toMatchObject({ code: "invalid_argument" });
    }
  });
}

const NOTHING = { total: 0, byClass: {}, byType: {}, byReason: {}, causes: [], otherCauses: 0 };

/** Tests of tally. */
export function tallyFacts({ fact, timed }: Suite): void {
  fact("counts nothing where nobody died", async ({ store }) => {
    expect(await store.tally({})).toEqual(NOTHING);
  });

  timed("counts by class, type, reason and cause, with the newest words of each cause", async ({ store, clock }) => {
    const start = clock.now;
    const at = async (ms: number, type: string, reason: "stuck" | "permanent", said: Parameters<typeof failure>[0]) => {
      clock.now = start + ms;
      await finish(store, dead({ reason, failure: failure(said) }), { type });
    };
    await at(1, "mail", "permanent", { class: "network", fingerprint: "x", name: "A", message: "first" });
    await at(2, "mail", "stuck", { class: "stuck", fingerprint: "z", name: "B\0", message: "\ud800" });
    await at(3, "__proto__", "permanent", { class: "network", fingerprint: "y", name: "C", message: "c" });
    await at(9, "video", "permanent", { class: "transient", fingerprint: "x", name: "D", message: "second" });
    const tally = await store.tally({});
    expect(tally).toEqual({
      total: 4,
      byClass: { network: 2, stuck: 1, transient: 1 },
      byType: Object.fromEntries([
        ["mail", 2],
        ["__proto__", 1],
        ["video", 1],
      ]),
      byReason: { permanent: 3, stuck: 1 },
      causes: [
        {
          fingerprint: "x",
          count: 2,
          name: "D",
          message: "second",
          class: "transient",
          firstAt: start + 1,
          lastAt: start + 9,
        },
        {
          fingerprint: "y",
          count: 1,
          name: "C",
          message: "c",
          class: "network",
          firstAt: start + 3,
          lastAt: start + 3,
        },
        {
          fingerprint: "z",
          count: 1,
          name: "B\0",
          message: "\ud800",
          class: "stuck",
          firstAt: start + 2,
          lastAt: start + 2,
        },
      ],
      otherCauses: 0,
    });
    expect(await store.tally({ class: "network" })).toMatchObject({
      total: 2,
      byType: Object.fromEntries([
        ["__proto__", 1],
        ["mail", 1],
      ]),
      causes: [{ fingerprint: "x", message: "first" }, { fingerprint: "y" }],
    });
    expect(await store.tally({ type: "video", reason: "stuck" })).toEqual(NOTHING);
  });

  fact("counts redriven letters only when asked", async ({ store }) => {
    const job = await finish(store, dead());
    await store.redrive([{ id: job.id, generation: job.generation, delayMs: 0 }]);
    expect(await store.tally({})).toEqual(NOTHING);
    expect((await store.tally({ redriven: true })).total).toBe(1);
    await end(store, await takeOne(store, job.id), dead());
    expect((await store.tally({ jobId: job.id })).total).toBe(1);
    expect(await store.tally({ jobId: job.id, redriven: true })).toMatchObject({ total: 2, causes: [{ count: 2 }] });
  });

  fact("lists a hundred causes and says how many letters the others have", async ({ store }) => {
    const names = Array.from({ length: 103 }, (_, i) => `f${String(i).padStart(3, "0")}`);
    for (const fingerprint of [...names, "f102", "f102", "f050"]) {
      const id = await add(store, { type: "t" });
      await end(store, await takeOne(store, id), died({ fingerprint }));
    }
    const { total, causes, otherCauses } = await store.tally({});
    const expected = ["f102", "f050", ...names.filter((name) => name !== "f102" && name !== "f050")].slice(0, 100);
    expect(causes.map(({ fingerprint }) => fingerprint)).toEqual(expected);
    expect(causes.map(({ count }) => count).slice(0, 3)).toEqual([3, 2, 1]);
    expect([total, otherCauses]).toEqual([106, 3]);
  });
}
