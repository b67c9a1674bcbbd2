// Retention and redrive runs: what a run may still send is not deleted.
import { expect, it } from "vitest";
import { PRESETS } from "../../src/core/policy.ts";
import { applyRetention } from "../../src/upkeep/retention.ts";
import { die, opened, plain, program, WORLDS } from "./worlds.ts";

const KEPT_MS = 3_600_000;

it.each(WORLDS)("a run that is not over keeps dead jobs past their time, on %s", async (_, open) => {
  const world = await opened(open);
  const ids = await die(world, plain(3));
  const system = { random: () => 0, now: () => world.clock.now } as never;
  const options = {
    store: world.store,
    system,
    jobs: [],
    policy: { ...PRESETS.default, keepDeadMs: KEPT_MS },
    archive: null,
    onPruned: () => undefined,
  };
  await applyRetention(options);
  const ada = program(world, "ada");
  const { id } = await ada.start((await ada.plan({ type: "charge" })).id);
  await ada.pause(id);
  // Their time is over, and the run is not yet seven days old.
  world.clock.now += KEPT_MS + 1;
  await applyRetention(options);
  expect((await world.store.get(ids)).filter((job) => job !== null)).toHaveLength(3);
  await ada.cancel(id);
  await applyRetention(options);
  expect((await world.store.get(ids)).filter((job) => job !== null)).toHaveLength(0);
});
