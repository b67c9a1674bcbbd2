// Plans of more letters than are looked at one by one: the others are counted, and what is said of a part says so.
import { describe, expect, it } from "vitest";
import { countLetters, LOOKED_MOST } from "../../src/operate/letter-counts.ts";
import type { LetterFields } from "../../src/core/recovery/selection.ts";
import type { Store } from "../../src/store/store.ts";
import { die, opened, plain, program, WORLDS } from "./worlds.ts";
import { memoryWorld } from "../support/worlds.ts";

const BY: readonly LetterFields[] = [
  { fingerprint: "f1" },
  { type: "charge" },
  { fingerprint: "f1", type: "charge" },
  { class: "transient" },
];

/** A store whose letters seem to be so many: each page of the walk is the same, and the counts are given. */
function many(store: Store, count: number): { readonly store: Store; readonly asked: string[] } {
  const asked: string[] = [];
  const note = (name: string, query: object): void => void asked.push("lookAt" in query ? `${name} in part` : name);
  const letters: Pick<Store, "deadLetters" | "tally" | "figures"> = {
    async deadLetters(query) {
      note("deadLetters", query);
      const page = await store.deadLetters({ ...query, cursor: null });
      return query.sort === "enqueued" ? { ...page, next: "1.1.1000" } : page;
    },
    tally(query) {
      note("tally", query);
      return store.tally(query);
    },
    figures: async (query) => ({ ...(await store.figures(query)), letters: [{ type: "charge", count }] }),
  };
  return { asked, store: { ...store, ...letters } };
}

describe.each(WORLDS)("letters are counted on %s", (_, open) => {
  it("by cause, by type and one by one, apart from those that came", async () => {
    const world = await opened(open);
    const ids = await die(world, plain(9));
    await die(world, [{ type: "mail" }]);
    const { now } = await world.store.control();
    world.clock.now += 10;
    await die(world, plain(2));
    await world.store.remove(ids.slice(0, 3).map((id) => ({ id, generation: 1 })));
    const count = (selection: LetterFields) => countLetters(world.store, { ...selection, through: 10 }, now, 9);
    expect(await Promise.all(BY.map(count))).toEqual([
      { count: 7, come: 2 },
      { count: 6, come: 2 },
      { count: 6, come: 2 },
      { count: 7, come: 2 },
    ]);
    expect(await count({ type: "none" })).toEqual({ count: 0, come: 0 });
    expect(await count({ type: "charge", until: now })).toEqual({ count: 0, come: 0 });
  });
});

it("a plan looks at the first letters of very many, and counts the others; so does its start", async () => {
  const world = await opened(memoryWorld);
  await die(world, plain(199));
  world.clock.now += 5_000;
  await die(world, plain(1));
  world.clock.now += 5_000;
  const { store, asked } = many(world.store, 1_000_000);
  const ada = program(world, "ada", store);
  const plan = await ada.plan({ type: "charge" });
  expect(plan).toMatchObject({ count: 1_000_000, toSend: 1_000_000, facts: { looked: LOOKED_MOST } });
  expect((plan.facts.lastDiedAt ?? 0) - (plan.facts.firstDiedAt ?? 0)).toBe(5_000);
  const pages = Array(LOOKED_MOST / 200 + 1).fill("deadLetters");
  expect(asked).toEqual([...pages, "tally in part", "deadLetters in part"]);

  // With a limit its end has to be found.
  expect((await ada.plan({ type: "charge", limit: LOOKED_MOST + 1 })).facts.looked).toBe(LOOKED_MOST + 1);

  asked.length = 0;
  const less = program(world, "bob", many(world.store, 949_999).store);
  await expect(less.start(plan.id)).rejects.toThrow(
    "1000000 dead letters matched then; 50001 of them are gone, and 0 others",
  );
  await ada.start(plan.id);
  // One look for letters that came, and one for new deaths.
  expect(asked).toEqual(["tally in part", "tally in part"]);
});
