// What is between a plan and its start, on every store: letters that come and go, two starts at once, a start that is
// refused. What is sent is at most what was planned and looked at.
import { describe, expect, it } from "vitest";
import type { Store } from "../../src/store/store.ts";
import type { Redrives } from "../../src/operate/redrives.ts";
import type { World } from "../conformance/suite.ts";
import { signUp } from "../support/runs.ts";
import { die, opened, plain, program, work, WORLDS } from "./worlds.ts";

async function messageOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => "nothing",
    (error: Error) => error.message,
  );
}

/** Drives a run to its end, with a worker that completes everything. */
async function toEnd(world: World, redrives: Redrives, id: string) {
  const worker = await signUp(world.store, 3_600_000);
  for (let turns = 0; turns < 60 && (await redrives.get(id)).state === "running"; turns++) {
    await redrives.drive();
    await work(world, worker);
    world.clock.now += 1_000;
  }
  return redrives.get(id);
}

/** The numbers of the jobs among these that were sent back. */
async function sentAmong({ store }: World, ids: readonly string[]): Promise<number[]> {
  const jobs = await store.get(ids);
  return jobs.flatMap((job, at) => (job && job.generation > 1 ? [at] : []));
}

describe.each(WORLDS)("between plan and start on %s", (_, open) => {
  it("a limit sends only letters that were planned, although some of them are gone", async () => {
    const world = await opened(open);
    const ids = await die(world, plain(20));
    const ada = program(world, "ada");
    const plan = await ada.plan({ type: "charge", limit: 10 });
    await world.store.remove(ids.slice(0, 4).map((id) => ({ id, generation: 1 })));
    const { id } = await ada.start(plan.id, { canary: [2], rate: 100 });
    const run = await toEnd(world, ada, id);
    expect(run).toMatchObject({ state: "completed", counts: { sent: 6, completed: 6, left: 0, byOthers: 4 } });
    expect(await sentAmong(world, ids)).toEqual([4, 5, 6, 7, 8, 9]);
  });

  it("a limit over ids sends only the first of them", async () => {
    const world = await opened(open);
    const ids = await die(world, plain(8));
    const ada = program(world, "ada");
    const plan = await ada.plan({ ids: ids.toReversed(), limit: 4 });
    expect(plan).toMatchObject({ count: 4, toSend: 4 });
    const planned = plan.selection.ids ?? [];
    await world.store.remove([{ id: planned[0] as string, generation: 1 }]);
    const run = await toEnd(world, ada, (await ada.start(plan.id, { canary: "none", rate: 100 })).id);
    expect(run).toMatchObject({ state: "completed", counts: { sent: 3, byOthers: 1 } });
    expect(await sentAmong(world, planned)).toEqual([1, 2, 3]);
    expect(await sentAmong(world, ids)).toHaveLength(3);
  });

  it("a plan is stale when as many letters have come as gone", async () => {
    const world = await opened(open);
    const ids = await die(world, plain(20));
    const ada = program(world, "ada");
    const few = await ada.plan({ type: "charge" });
    await world.store.remove(ids.slice(0, 3).map((id) => ({ id, generation: 1 })));
    await die(world, plain(3));
    const message = await messageOf(ada.start(few.id));
    expect(message).toContain("20 dead letters matched then; 3 of them are gone, and 3 others have come; plan again");
    expect((await ada.list()).items).toEqual([]);
    const { id } = await ada.start((await ada.plan({ type: "charge" })).id);
    expect(id).toMatch(/^r_/);
  });

  it("a plan by ids is stale when its jobs have died again", async () => {
    const world = await opened(open);
    const ids = await die(world, plain(6));
    const ada = program(world, "ada");
    const plan = await ada.plan({ ids });
    await world.store.redrive(ids.map((id) => ({ id, generation: 1, delayMs: 0 })));
    await die(world, []);
    expect(await messageOf(ada.start(plan.id))).toContain("6 of them are gone");
  });

  it("of two starts that overlap one is refused, and may be started later", async () => {
    const world = await opened(open);
    await die(world, plain(5));
    const [ada, bob] = [program(world, "ada"), program(world, "bob", await world.peer())];
    const plans = [await ada.plan({ type: "charge" }), await bob.plan({ class: "transient" })] as const;
    const starts = await Promise.allSettled([ada.start(plans[0].id), bob.start(plans[1].id)]);
    const refused = starts.flatMap((start, at) => (start.status === "rejected" ? [plans[at]?.id as string] : []));
    expect(refused).toHaveLength(1);
    expect((await ada.list()).items).toHaveLength(1);
    await ada.cancel((await ada.list()).items[0]?.id as string);
    expect(await bob.start(refused[0] as string)).toMatchObject({ state: "running" });
    expect((await ada.list({ state: "running" })).items).toHaveLength(1);
  });

  it("a start that was killed half-way is no run, and may be started again", async () => {
    const world = await opened(open);
    await die(world, plain(5));
    const ada = program(world, "ada");
    const plan = await ada.plan({ type: "charge" });
    let sets = 0;
    const mortal: Store = {
      ...world.store,
      async setCells(changes) {
        if (sets++ > 0) throw new Error("killed");
        return world.store.setCells(changes);
      },
    };
    await expect(program(world, "bob", mortal).start(plan.id)).rejects.toThrow("killed");
    expect((await ada.list()).items).toEqual([]);
    world.clock.now += 11_000;
    const { id } = await ada.start(plan.id);
    expect(await toEnd(world, ada, id)).toMatchObject({ state: "completed", counts: { sent: 5 } });
  });

  it("a plan is started once, and a second start names the run", async () => {
    const world = await opened(open);
    await die(world, plain(5));
    const [ada, bob] = [program(world, "ada"), program(world, "bob", await world.peer())];
    const plan = await ada.plan({ type: "charge" });
    const starts = await Promise.allSettled([ada.start(plan.id), bob.start(plan.id), ada.start(plan.id)]);
    expect(starts.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const { items } = await ada.list();
    expect(items).toHaveLength(1);
    expect(await messageOf(ada.start(plan.id))).toContain(`it was started before, as ${items[0]?.id}`);
    expect(await ada.getPlan(plan.id)).toMatchObject({ started: items[0]?.id });
  });
});
