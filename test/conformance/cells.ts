// Cells: small values that processes share, written over a version, over anything, or not at all.
import { expect } from "vitest";
import type { Cell, CellChange, CellKey, Store } from "../../src/store/store.ts";
import type { Suite } from "./suite.ts";

const KEY: CellKey = { kind: "state", name: "service:mail", holder: "" };
const DAY = 86_400_000;

const change = (value: string | null, version: number | null = null, key: Partial<CellKey> = {}): CellChange => {
  return { ...KEY, ...key, version, value };
};

const set = async (store: Store, ...args: Parameters<typeof change>): Promise<boolean | undefined> =>
  (await store.setCells([change(...args)]))[0];

const kindOf = async (store: Store, kind = KEY.kind): Promise<readonly Cell[]> => (await store.cells([{ kind }])).cells;

const read = async (store: Store, key: Partial<CellKey> = {}): Promise<Cell | undefined> => {
  const { kind, name, holder } = { ...KEY, ...key };
  return (await store.cells([{ kind, name }])).cells.find((cell) => cell.holder === holder);
};

const WRITES = [
  ["a new one", 0, "2", [true, false]],
  ["one over the version that was read", 1, "2", [false, true]],
  ["one over a version to come", 2, "2", [false, false]],
  ["whatever is there", null, "2", [true, true]],
  ["nothing over nothing", 0, null, [true, false]],
  ["nothing over the version that was read", 1, null, [false, true]],
  ["nothing over whatever is there", null, null, [true, true]],
] as const;

/** Tests of cells and setCells. */
export function cellFacts(suite: Suite): void {
  writeFacts(suite);
  readFacts(suite);
  sharedFacts(suite);
  refusedFacts(suite);
  pruneFacts(suite);
}

function writeFacts({ fact, timed }: Suite): void {
  for (const [what, version, value, [onNone, onFirst]] of WRITES) {
    fact(`writes ${what}`, async ({ store }) => {
      expect(await set(store, value, version)).toBe(onNone);
      expect((await read(store))?.value).toBe(onNone ? (value ?? undefined) : undefined);
      await set(store, null);
      await set(store, "1", 0);
      expect(await set(store, value, version)).toBe(onFirst);
      const expected = onFirst ? (value === null ? undefined : { value, version: 2 }) : { value: "1", version: 1 };
      const { value: text, version: now } = (await read(store)) ?? {};
      expect(text === undefined ? undefined : { value: text, version: now }).toEqual(expected);
    });
  }

  fact("grows a version by one per write and begins anew after a deletion", async ({ store }) => {
    const versions: (number | undefined)[] = [];
    for (const [value, version] of [
      ["1", 0],
      ["2", 1],
      ["3", null],
      [null, 3],
      ["4", null],
      ["5", 1],
    ] as const) {
      expect(await set(store, value, version)).toBe(true);
      versions.push((await read(store))?.version);
    }
    expect(versions).toEqual([1, 2, 3, undefined, 1, 2]);
  });

  fact("answers each change for itself, in order", async ({ store }) => {
    const named = (name: string) => ({ name });
    await store.setCells([change("1", 0, named("z")), change("1", 0, named("a"))]);
    const changes = [
      change("2", 1, named("z")),
      change("2", 0, named("z2")),
      change("2", 7, named("a")),
      change(null, 1, named("missing")),
      change("2", null, named("b")),
    ];
    expect(await store.setCells(changes)).toEqual([true, true, false, false, true]);
    const found = (await kindOf(store)).map(({ name, version, value }) => [name, version, value]);
    expect(found).toEqual([
      ["a", 1, "1"],
      ["b", 1, "2"],
      ["z", 2, "2"],
      ["z2", 1, "2"],
    ]);
    expect(await store.setCells([])).toEqual([]);
  });

  fact("applies changes of one cell one after the other", async ({ store }) => {
    const changes = [change("1", 1), change("2", 0), change("3", 0), change("4", 1), change(null, 2), change("5", 0)];
    expect(await store.setCells([...changes, change("6"), change("7", 2)])).toEqual([
      false,
      true,
      false,
      true,
      true,
      true,
      true,
      true,
    ]);
    expect(await read(store)).toMatchObject({ version: 3, value: "7" });
    expect(await store.setCells([change("8"), change(null, 4)])).toEqual([true, true]);
    expect(await kindOf(store)).toEqual([]);
  });

  timed("notes the time of the last write", async ({ store, clock }) => {
    const began = clock.now;
    await store.setCells([change("1", 0), change("1", 0, { name: "other" })]);
    clock.now += 500;
    await set(store, "2", 1);
    clock.now += 500;
    await set(store, "3", 1);
    expect(await read(store)).toStrictEqual({ ...KEY, version: 2, value: "2", at: began + 500 });
    expect((await read(store, { name: "other" }))?.at).toBe(began);
    expect((await store.cells([])).now).toBe(clock.now);
  });

  fact("writes many at once", async ({ store }) => {
    const all = Array.from({ length: 500 }, (_, i) => ({ name: `n${i % 50}`, holder: `h${(i * 7919) % 500}` }));
    expect(await store.setCells(all.map((key) => change("1", 0, key)))).toEqual(all.map(() => true));
    expect(await store.setCells(all.map((key, i) => change("2", i % 2, key)))).toEqual(all.map((_, i) => i % 2 === 1));
    expect(await store.setCells(all.map((key) => change("3", null, key)))).toEqual(all.map(() => true));
    const found = await kindOf(store);
    expect(found).toHaveLength(500);
    expect(found.filter(({ version }) => version === 3)).toHaveLength(250);
    expect(await store.setCells(all.map((key) => change(null, 3, key)))).toEqual(all.map((_, i) => i % 2 === 1));
    expect(await kindOf(store)).toHaveLength(250);
  });
}

function readFacts({ fact }: Suite): void {
  fact("lists what is asked for, each once, in the order of the keys", async ({ store }) => {
    const keys: CellKey[] = [];
    for (const kind of ["b", "a", "B"])
      for (const name of ["n", "", "n2", "\uffff", "😀", "é", "N"])
        for (const holder of ["w2", "", "w10"]) keys.push({ kind, name, holder });
    await store.setCells(keys.map((key) => ({ ...key, version: 0, value: "1" })));
    const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
    const sorted = keys.toSorted(
      (a, b) => compare(a.kind, b.kind) || compare(a.name, b.name) || compare(a.holder, b.holder),
    );
    const ask = async (...queries: Parameters<Store["cells"]>[0]): Promise<CellKey[]> =>
      (await store.cells(queries)).cells.map(({ kind, name, holder }) => ({ kind, name, holder }));
    expect(await ask({ kind: "a" }, { kind: "B" }, { kind: "b" })).toEqual(sorted);
    expect(await ask({ kind: "b", name: "n" }, { kind: "b", name: "n" })).toEqual(
      sorted.filter(({ kind, name }) => kind === "b" && name === "n"),
    );
    expect(await ask({ kind: "b", name: "" }, { kind: "a", name: "😀" }, { kind: "a" })).toEqual(
      sorted.filter(({ kind, name }) => kind === "a" || (kind === "b" && name === "")),
    );
    expect(await ask({ kind: "c" }, { kind: "a", name: "nn" })).toEqual([]);
    expect(await ask()).toEqual([]);
  });

  fact("keeps keys apart that look alike when put together", async ({ store }) => {
    const keys = [
      { kind: "a", name: "b", holder: "c" },
      { kind: "a", name: "bc", holder: "" },
      { kind: "ab", name: "c", holder: "" },
      { kind: "a", name: "", holder: "bc" },
      { kind: "a", name: 'b","c', holder: "" },
      { kind: "a", name: "b ", holder: "c" },
      { kind: "__proto__", name: "constructor", holder: "toString" },
    ];
    await store.setCells(keys.map((key, i) => ({ ...key, version: 0, value: `${i}` })));
    for (const [i, key] of keys.entries()) expect(await read(store, key)).toMatchObject({ ...key, value: `${i}` });
  });

  fact("keeps names and values byte for byte", async ({ store }) => {
    const name = `tenant:${"é😀\"'\\$1 ".repeat(20)}`;
    const values = [
      '{"a": "\\u0000\\ud800", "n": 12345678901234567890, "😀": -0}',
      " \t\r\n[ ]\n",
      "null",
      '""',
      "",
      "NULL",
      '{"__proto__":{"polluted":true}}',
      '"\ufeff\u2028\uffff e\u0301 \'; drop table cell; --"',
      `"${"😀".repeat(50_000)}"`,
    ];
    const changes = values.map((value, i) => change(value, null, { name, holder: `${i}` }));
    await store.setCells(changes);
    for (const [i, value] of values.entries()) {
      expect((await read(store, { name, holder: `${i}` }))?.value === value).toBe(true);
      await set(store, value, 1, { name, holder: `${i}` });
      expect((await read(store, { name, holder: `${i}` }))?.value === value).toBe(true);
    }
  });
}

function sharedFacts({ fact }: Suite): void {
  fact("lets exactly one of twenty win each round", async ({ store, peer }) => {
    const second = await peer();
    for (let version = 0; version < 10; version++) {
      const calls = Array.from({ length: 20 }, (_, i) => set(i % 2 ? second : store, `${i}`, version));
      const won = await Promise.all(calls);
      expect(won.filter(Boolean)).toHaveLength(1);
      expect(await read(store)).toMatchObject({ version: version + 1, value: `${won.indexOf(true)}` });
    }
  });

  fact("loses no write of sets that overlap in any order", async ({ store, peer }) => {
    const second = await peer();
    const names = ["a", "b", "c", "d", "e"];
    let written = 0;
    for (let round = 0; round < 10; round++) {
      const last = (await read(store, { name: "a" }))?.version ?? 0;
      const calls = Array.from({ length: 12 }, (_, i) => {
        const own = (i + round) % 3 ? names : names.toReversed();
        // Overwritten, replaced and made, in sets of one kind and in mixed ones.
        const versions = [[null], [last], [null, 0], [null, last]][i % 4] as (number | null)[];
        const changes = own.map((name, at) => change(`${i}`, versions[at % versions.length], { name }));
        return (i % 2 ? second : store).setCells(changes);
      });
      for (const answers of await Promise.all(calls)) written += answers.filter(Boolean).length;
    }
    const versions = (await kindOf(store)).map(({ version }) => version);
    expect(versions.reduce((sum, version) => sum + version, 0)).toBe(written);
  });

  fact("lets a deletion and a write over the same version not both happen", async ({ store, peer }) => {
    const second = await peer();
    for (let round = 0; round < 20; round++) {
      await set(store, "1", null, { name: `${round}` });
      const [deleted, written] = await Promise.all([
        set(store, null, 1, { name: `${round}` }),
        set(second, "2", 1, { name: `${round}` }),
      ]);
      expect([deleted, written].filter(Boolean)).toHaveLength(1);
      expect((await read(store, { name: `${round}` }))?.value).toBe(written ? "2" : undefined);
    }
  });

  fact("leaves the version of control alone", async ({ store }) => {
    const { version } = await store.control();
    for (const value of ["1", "2", null]) await set(store, value);
    expect((await store.control()).version).toBe(version);
  });

  fact("wakes nobody for a cell", async ({ store }) => {
    let woken = 0;
    const off = store.onWake(() => (woken += 1));
    for (const value of ["1", "2", null]) await set(store, value);
    off();
    expect(woken).toBe(0);
  });
}

function refusedFacts({ fact }: Suite): void {
  fact("refuses bad keys, versions and values, and writes nothing of their set", async ({ store }) => {
    const texts = ["a\0b", "\ud800", "x".repeat(301), null, undefined, 5];
    const bad: Record<string, unknown>[] = [
      ...["", "a b", "x".repeat(129), ...texts].map((kind) => ({ kind })),
      ...texts.flatMap((text) => [{ name: text }, { holder: text }]),
      ...[-1, 0.5, Number.NaN, 2 ** 53, "1", undefined].map((version) => ({ version })),
      ...["a\0b", "\ud800", undefined, 5, {}].map((value) => ({ value })),
    ];
    for (const fields of bad) {
      const refused = store.setCells([change("1"), { ...change("1", null, { name: "other" }), ...(fields as object) }]);
      await expect(refused, JSON.stringify(fields)).rejects.toMatchObject({ code: "invalid_argument" });
    }
    for (const query of [
      { kind: "" },
      { kind: "a\0" },
      { kind: "a", name: "\0" },
      { kind: "a", name: null as never },
    ]) {
      await expect(store.cells([query]), JSON.stringify(query)).rejects.toMatchObject({ code: "invalid_argument" });
    }
    expect(await kindOf(store)).toEqual([]);
  });

  fact("takes the longest tenant as a name", async ({ store }) => {
    const name = `service-of-tenant:${"x".repeat(255)}`;
    expect(await set(store, "1", 0, { kind: "k".repeat(128), name, holder: "h".repeat(300) })).toBe(true);
    expect(await kindOf(store, "k".repeat(128))).toMatchObject([{ name }]);
  });
}

function pruneFacts({ timed }: Suite): void {
  timed("prunes cells of holders that were silent for a day, in the first step only", async ({ store, clock }) => {
    const retention = { keep: { finishedMs: 0, deadMs: null }, types: [], keyMs: 0, limit: 1 };
    await store.setCells([change("1"), change("1", null, { holder: "gone" }), change("1", null, { holder: "here" })]);
    clock.now += 1_000;
    await set(store, "2", null, { holder: "here" });
    clock.now += DAY - 1_001;
    await store.prune({ ...retention, isFirst: true });
    expect(await kindOf(store)).toHaveLength(3);
    clock.now += 1;
    await store.prune({ ...retention, isFirst: false });
    expect(await kindOf(store)).toHaveLength(3);
    await store.prune({ ...retention, isFirst: true });
    expect((await kindOf(store)).map(({ holder }) => holder)).toEqual(["", "here"]);
    expect(await set(store, "1", 0, { holder: "gone" })).toBe(true);
    clock.now += 30 * DAY;
    await store.prune({ ...retention, isFirst: true });
    expect((await kindOf(store)).map(({ holder }) => holder)).toEqual([""]);
  });

  timed(
    "prunes what is left of limits, and notes about types, that nobody wrote for 30 days",
    async ({ store, clock }) => {
      const retention = { keep: { finishedMs: 0, deadMs: null }, types: [], keyMs: 0, limit: 1, isFirst: true };
      const all = [
        { kind: "rate", name: "tenant:a" },
        { kind: "rate", name: "tenant:b" },
        { kind: "budget", name: "s" },
        { kind: "keep", name: "mail" },
        { kind: "archive", name: "mail" },
      ];
      await store.setCells(all.map((key) => change("1", null, key)));
      clock.now += 1_000;
      await set(store, "2", null, { kind: "rate", name: "tenant:b" });
      clock.now += 30 * DAY - 1_001;
      await store.prune(retention);
      const found = async () =>
        (await store.cells(["rate", "budget", "keep", "archive"].map((kind) => ({ kind })))).cells;
      expect(await found()).toHaveLength(5);
      clock.now += 1;
      await store.prune(retention);
      expect((await found()).map(({ name }) => name)).toEqual(["tenant:b"]);
    },
  );
}
