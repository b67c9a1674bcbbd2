// What a redrive run waits for, on real stores and virtual time: for hours it sends nothing more than it may, its
// record says why in the form that `redrives show` prints, and it goes on once the reason is gone.
import { describe, expect, inject, it } from "vitest";
import { wholeRunForm } from "../../src/operate/view-forms.ts";
import { openBreakers } from "../../src/operate/breakers.ts";
import { openEventLog } from "../../src/report/event-log.ts";
import { NO_LIMITS } from "../../src/services/holding.ts";
import { lineLog } from "../../src/system/log.ts";
import type { World } from "../conformance/suite.ts";
import { postgresWorld } from "../support/postgres-world.ts";
import { add, signUp } from "../support/runs.ts";
import { sqliteWorld } from "../support/worlds.ts";
import { again, die, opened, plain, program, work } from "./worlds.ts";

const MINUTE = 60_000;
const LETTERS = 20;
const DAY = 86_400_000;

/** A run over the letters of a world, and its program. */
async function begun(world: World, options: object = {}) {
  const ada = program(world, "ada");
  const plan = await ada.plan({ fingerprint: "f1" });
  const { id } = await ada.start(plan.id, { rate: 100, judgeWithin: "5m", ...options });
  /** What `redrives show` prints after so many turns of the driver and the worker. */
  const after = async (turns: number, stepMs: number, worker: string | null): Promise<object> => {
    for (let turn = 0; turn < turns; turn++) {
      await ada.drive();
      if (worker !== null) await work(world, worker);
      world.clock.now += stepMs;
    }
    return wholeRunForm(await ada.get(id));
  };
  return {
    async held(worker: string | null, hours = 12): Promise<object> {
      await after(5, 1_000, worker);
      return after(hours * 3, 20 * MINUTE, worker);
    },
    goesOn: (worker: string, turns = 30) => after(turns, 1_000, worker),
  };
}

const DONE = { state: "completed", sent: LETTERS, completed: LETTERS, waits: null };

describe.each<[string, () => Promise<World>]>([
  ["sqlite", sqliteWorld],
  ["postgres 18", () => postgresWorld(inject("postgres18"))],
])("a run waits for hours, says why, and then goes on, on %s", (_, open) => {
  it("while its queue is paused", async () => {
    const world = await opened(open);
    await die(world, plain(LETTERS));
    const worker = await signUp(world.store, DAY);
    const queue = { kind: "queue", name: "default" } as const;
    await world.store.pause(queue, { forMs: null, reason: "" });
    const { held, goesOn } = await begun(world);
    expect(await held(worker)).toMatchObject({
      state: "running",
      step: 0,
      sent: 0,
      waits: "the queue default is paused",
    });
    await world.store.resume(queue);
    expect(await goesOn(worker)).toMatchObject(DONE);
  });

  it("while the breaker of its service is open", async () => {
    const world = await opened(open);
    const { store } = world;
    await die(
      world,
      plain(LETTERS).map(() => ({ service: "stripe" })),
    );
    const worker = await signUp(store, DAY);
    const eventLog = openEventLog({ store, log: lineLog("silent"), actor: "ada" });
    const breakers = openBreakers({ store, limits: NO_LIMITS, eventLog });
    await breakers.open("stripe", { reason: "they asked us to stop" });
    const { held, goesOn } = await begun(world);
    const waits = "the breaker of stripe is open by hand";
    expect(await held(worker)).toMatchObject({ state: "running", step: 0, sent: 0, waits });
    await breakers.close("stripe");
    expect(await goesOn(worker)).toMatchObject(DONE);
  });

  it("while no worker is alive", async () => {
    const world = await opened(open);
    await die(world, plain(LETTERS));
    world.clock.now += 10 * MINUTE;
    const { held, goesOn } = await begun(world);
    expect(await held(null)).toMatchObject({ state: "running", step: 0, sent: 5, waits: "no worker is alive" });
    expect(await goesOn(await signUp(world.store, DAY))).toMatchObject(DONE);
  });

  it("while a job of its group waits for its retry", async () => {
    const world = await opened(open);
    await die(
      world,
      plain(LETTERS).map(() => ({ group: "g" })),
    );
    const worker = await signUp(world.store, DAY);
    const before = await add(world.store, { type: "charge", group: "g" });
    // Four hours.
    await work(world, worker, { verdict: () => again() });
    const { held, goesOn } = await begun(world);
    const waits = `job ${before} of its group g is before it`;
    expect(await held(worker, 3)).toMatchObject({ state: "running", step: 0, sent: 0, waits });
    world.clock.now += 60 * MINUTE;
    expect(await goesOn(worker, 80)).toMatchObject(DONE);
  });

  it("but not for a backoff of four hours after a first run that failed", async () => {
    const world = await opened(open);
    await die(world, plain(LETTERS));
    const worker = await signUp(world.store, DAY);
    const ada = program(world, "ada");
    const { id } = await ada.start((await ada.plan({ fingerprint: "f1" })).id, { rate: 100 });
    for (let turn = 0; turn < 10; turn++) {
      await ada.drive();
      await work(world, worker, { most: 2, verdict: () => again() });
      world.clock.now += 1_000;
    }
    expect(wholeRunForm(await ada.get(id))).toMatchObject({ state: "stopped", sent: 5, left: LETTERS - 5 });
  });
});
