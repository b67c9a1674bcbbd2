// What a process tells of the services that it calls, where somebody holds one of its rows: nobody waits for that.
import { expect, it } from "vitest";
import { resolveLimits } from "../../src/core/service.ts";
import { ServiceWatch } from "../../src/services/service-watch.ts";
import { createMemoryStore } from "../../src/store/memory/index.ts";
import type { Store } from "../../src/store/store.ts";
import { realSystem } from "../../src/system/real.ts";

/** A watch on a store in which somebody may hold cells, as Postgres has it: one that is to follow a version is left alone. */
function watched() {
  const store = createMemoryStore({ clock: () => realSystem.now() });
  const held = new Set<string>();
  const holder = { id: "w1" };
  const holding: Store = {
    ...store,
    async setCells(changes) {
      const free = changes.filter(({ name }) => !held.has(name));
      const waits = changes.some(({ name, version }) => held.has(name) && !(version !== null && version > 0));
      // It would be waited for until the server gives up, and nothing of this would be written.
      if (waits) return changes.map(() => false);
      const written = await store.setCells(free);
      return changes.map((change) => free.includes(change) && (written[free.indexOf(change)] ?? false));
    },
  };
  const watch = new ServiceWatch({
    store: holding,
    system: realSystem,
    limits: resolveLimits({}),
    holder: () => holder.id,
    attempt: (_what, call) => call(),
    onChange: () => undefined,
    onSick: () => undefined,
    onStandBack: () => undefined,
  });
  const streaks = async (): Promise<Record<string, number>> => {
    const { cells } = await store.cells([{ kind: "evidence" }]);
    const own = cells.filter((cell) => cell.holder === holder.id);
    return Object.fromEntries(own.map(({ name, value }) => [name, (JSON.parse(value) as { streak: number }).streak]));
  };
  return { watch, held, holder, store, streaks };
}

it("tells of one service while its word on another is held, and of that one later", async () => {
  const { watch, held, streaks } = watched();
  await Promise.all([watch.failed("mail", 0), watch.failed("maps", 0)]);
  expect(await streaks()).toEqual({ mail: 1, maps: 1 });
  held.add("mail");
  for (let turn = 0; turn < 3; turn++) await Promise.all([watch.failed("mail", 0), watch.failed("maps", 0)]);
  expect(await streaks()).toEqual({ mail: 1, maps: 4 });
  held.clear();
  await watch.failed("mail", 0);
  expect(await streaks()).toEqual({ mail: 5, maps: 4 });
  watch.stop();
});

it("goes on where its cell was deleted, and under another name", async () => {
  const { watch, holder, store, streaks } = watched();
  await watch.failed("mail", 0);
  await store.setCells([{ kind: "evidence", name: "mail", holder: "w1", version: null, value: null }]);
  for (let turn = 0; turn < 2; turn++) await watch.failed("mail", 0);
  expect(await streaks()).toEqual({ mail: 3 });
  holder.id = "w2";
  for (let turn = 0; turn < 2; turn++) await watch.failed("mail", 0);
  expect(await streaks()).toEqual({ mail: 5 });
  watch.stop();
});
