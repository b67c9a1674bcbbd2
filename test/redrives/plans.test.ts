// Plans of redrives and their start: what they say, what makes them stale, and what is refused with nothing written.
import { describe, expect, it } from "vitest";
import { defineJob, type Redrive, type StandardSchema } from "../../src/index.ts";
import type { RedrivePlan } from "../../src/core/recovery/plan.ts";
import type { RedriveStartOptions } from "../../src/operate/redrive-selection.ts";
import { createTestRedrive } from "../../src/testing/index.ts";
import { codeOf } from "../redrive/kinds.ts";
import { deadScene, declined, mend, refused } from "./scenes.ts";

/** The cells of plans and runs, which a refused call must not have changed. */
async function written({ store }: Pick<Redrive, "store">): Promise<number> {
  return (await store.cells([{ kind: "plan" }, { kind: "redrive" }])).cells.length;
}

async function messageOf(call: () => Promise<unknown>): Promise<string> {
  return call().then(
    () => "nothing",
    (error: Error) => error.message,
  );
}

describe("a plan", () => {
  it("counts what it means, and changes no job", async () => {
    const { redrive, ids } = await deadScene(12, { actor: "ada", of: (n) => ({ tenant: `t${n % 3}` }) });
    const before = await redrive.store.get(ids);
    const plan = await redrive.redrives.plan({ type: "charge", tenant: "t1" });
    expect(plan).toMatchObject({ count: 4, toSend: 4, by: "ada", rate: 10, started: null });
    expect(plan.facts).toMatchObject({ types: { charge: 4 }, tenants: 1, services: {}, groups: 0 });
    expect(await redrive.redrives.getPlan(plan.id)).toEqual(plan);
    expect(await redrive.store.get(ids)).toEqual(before);
  });

  it("selects by ids, cause, class, key, text, time and limit", async () => {
    const { redrive, ids } = await deadScene(6, { of: (n) => ({ key: `k${n}` }) });
    const { failure, diedAt } = await redrive.deadLetters.get(ids[0] as string);
    const count = async (selection: Parameters<Redrive["redrives"]["plan"]>[0]): Promise<number> =>
      (await redrive.redrives.plan(selection)).count;
    expect(await count({ ids: ids.slice(0, 2) })).toBe(2);
    expect(await count({ fingerprint: failure.fingerprint })).toBe(6);
    expect(await count({ class: "transient" })).toBe(6);
    expect(await count({ class: "permanent" })).toBe(0);
    expect(await count({ key: "k3" })).toBe(1);
    expect(await count({ text: "DECLINED" })).toBe(6);
    expect(await count({ until: diedAt })).toBe(0);
    expect(await count({ from: "1h" })).toBe(6);
    expect(await count({ type: "charge", limit: 4 })).toBe(4);
  });

  it("with a limit sends no more than that", async () => {
    const { redrive, bug } = await deadScene(20);
    mend(bug);
    const plan = await redrive.redrives.plan({ type: "charge", limit: 7 });
    const run = await redrive.redrives.follow((await redrive.redrives.start(plan.id)).id);
    expect(run).toMatchObject({ state: "completed", counts: { sent: 7, completed: 7, left: 0 } });
    expect((await redrive.deadLetters.stats()).total).toBe(13);
  });

  it("leaves out letters whose key a newer job has, unless asked for them", async () => {
    const { redrive, bug, job } = await deadScene(6, { of: (n) => ({ key: `k${n}` }) });
    mend(bug);
    for (const n of [0, 1]) await redrive.enqueue(job, { n: 100 + n }, { key: `k${n}`, unique: "active" });
    await redrive.drain();
    bug.ran.length = 0;
    const plan = await redrive.redrives.plan({ type: "charge" });
    expect(plan).toMatchObject({ count: 6, toSend: 4, facts: { superseded: { completed: 2 } } });
    expect(plan.warnings).toContainEqual(expect.objectContaining({ kind: "superseded", count: 2 }));
    const run = await redrive.redrives.follow((await redrive.redrives.start(plan.id)).id);
    expect(run).toMatchObject({ state: "completed", counts: { sent: 4, left: 0 } });
    expect(bug.ran.toSorted((a, b) => a - b)).toEqual([2, 3, 4, 5]);
    const all = await redrive.redrives.plan({ type: "charge" }, { superseded: true });
    expect(all).toMatchObject({ count: 2, toSend: 2 });
    await redrive.redrives.follow((await redrive.redrives.start(all.id)).id);
    expect(bug.ran.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it("says that nothing fits, and writes nothing", async () => {
    const { redrive } = await deadScene(1);
    expect(await redrive.redrives.plan({ type: "other" })).toMatchObject({ count: 0, toSend: 0 });
    expect(await written(redrive)).toBe(0);
  });

  it("takes half of the service's limit as its rate", async () => {
    const { redrive } = await deadScene(2, {
      type: { service: "stripe" },
      dies: refused,
      services: { stripe: { rateLimit: { limit: 40 } } },
    });
    expect(await redrive.redrives.plan({ type: "charge" })).toMatchObject({
      rate: 20,
      rateBecause: "half of the limit of stripe",
    });
  });

  it("is refused where it names no cause of the store, or is no selection", async () => {
    const { redrive } = await deadScene(1);
    const { redrives } = redrive;
    expect(await messageOf(() => redrives.plan({ fingerprint: "nope" }))).toContain('There is no cause "nope"');
    expect(await codeOf(() => redrives.plan({ fingerprint: "nope" }))).toBe("not_found");
    const tooMany = Array.from({ length: 100_000 }, (_, n) => `id-${n}`);
    for (const bad of [
      {},
      { limit: 5 },
      { ids: [] },
      { ids: tooMany },
      { class: "odd" },
      { typ: "charge" },
      { type: 7 },
      { type: "a", limit: 0 },
      { from: "yesterday" },
    ])
      expect(await codeOf(() => redrives.plan(bad as never))).toBe("invalid_argument");
    expect(await messageOf(() => redrives.plan({ ids: tooMany }))).toContain('1 to 1000 ids; got "100000 ids"');
    expect(await written(redrive)).toBe(0);
  });
});

describe("a start", () => {
  async function planned(count = 20): Promise<{ scene: Awaited<ReturnType<typeof deadScene>>; plan: RedrivePlan }> {
    const scene = await deadScene(count);
    return { scene, plan: await scene.redrive.redrives.plan({ type: "charge" }) };
  }

  it.each<[string, RedriveStartOptions]>([
    ["a rate of 0", { rate: 0 }],
    ["a negative rate", { rate: -1 }],
    ["a rate of a billion", { rate: 1e9 }],
    ["steps that fall", { canary: [50, 5] }],
    ["a step of 0", { canary: [0, 5] }],
    ["no steps", { canary: [] }],
    ["half a step", { canary: [2.5] }],
    ["100 % tolerated", { tolerate: 1 }],
    ["a share below 0", { tolerate: -0.1 }],
    ["no time to judge", { judgeWithin: "0s" }],
    ["an unknown option", { speed: 3 } as never],
  ])("refuses %s, and writes nothing", async (_, options) => {
    const { scene, plan } = await planned(1);
    const before = await written(scene.redrive);
    expect(await codeOf(() => scene.redrive.redrives.start(plan.id, options))).toBe("invalid_argument");
    expect(await written(scene.redrive)).toBe(before);
  });

  it("refuses a plan of another store, and one that was started before", async () => {
    const { scene, plan } = await planned();
    const { redrives } = scene.redrive;
    expect(await messageOf(() => redrives.start("p_nowhere"))).toContain(
      "Plan p_nowhere cannot be started: this store has no such plan",
    );
    const { id } = await redrives.start(plan.id);
    expect(await messageOf(() => redrives.start(plan.id))).toContain(`it was started before, as ${id}`);
    expect((await redrives.list()).items).toHaveLength(1);
  });

  it("makes one run of two starts at once", async () => {
    const { scene, plan } = await planned();
    const { redrives } = scene.redrive;
    const answers = await Promise.allSettled([redrives.start(plan.id), redrives.start(plan.id)]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    expect((await redrives.list()).items).toHaveLength(1);
  });

  it("refuses a plan that is older than 15 minutes", async () => {
    const { scene, plan } = await planned();
    scene.redrive.clock.set(scene.redrive.clock.now() + 900_001);
    expect(await messageOf(() => scene.redrive.redrives.start(plan.id))).toContain("it is 15m old, and good for 15m");
  });

  it("refuses a plan whose letters have moved, with both numbers", async () => {
    const { scene, plan } = await planned(40);
    await scene.redrive.deadLetters.remove(scene.ids.slice(0, 6));
    const message = await messageOf(() => scene.redrive.redrives.start(plan.id));
    expect(message).toContain("40 dead letters matched then; 6 of them are gone, and 0 others have come; plan again");
  });

  it("refuses a plan whose breaker has opened since", async () => {
    const { redrive } = await deadScene(2, { type: { service: "stripe" }, dies: refused });
    const plan = await redrive.redrives.plan({ type: "charge" });
    await redrive.breakers.open("stripe", { reason: "down" });
    expect(await messageOf(() => redrive.redrives.start(plan.id))).toContain("the breaker of stripe has opened since");
  });

  it("refuses a run beside one that may send the same letters, and names it, unless alongside", async () => {
    const { scene, plan } = await planned();
    const { redrives } = scene.redrive;
    const other = await redrives.plan({ class: "transient" });
    const { id } = await redrives.start(plan.id, { canary: "none" });
    await redrives.pause(id);
    const message = await messageOf(() => redrives.start(other.id));
    expect(message).toContain(`run ${id} of`);
    expect(message).toContain("paused");
    expect((await redrives.start(other.id, { alongside: true })).state).toBe("running");
  });

  it("sends no letter that died after the plan was made, and says how many did", async () => {
    const { scene, plan } = await planned();
    const { redrive, bug, job } = scene;
    const { id } = await redrive.redrives.start(plan.id);
    redrive.clock.set(redrive.clock.now() + 5_000);
    bug.hits = ({ n }) => (n >= 100 ? declined() : undefined);
    for (const n of [100, 101, 102]) await redrive.enqueue(job, { n });
    await redrive.drain();
    const run = await redrive.redrives.follow(id);
    expect(run).toMatchObject({ state: "completed", newDeaths: 3, counts: { sent: 20 } });
    expect((await redrive.deadLetters.stats()).total).toBe(3);
  });

  it("counts letters that others have sent back meanwhile", async () => {
    const { scene, plan } = await planned();
    const { redrive, bug, ids } = scene;
    mend(bug);
    const { id } = await redrive.redrives.start(plan.id);
    await redrive.deadLetters.retry(ids.slice(10, 14));
    const run = await redrive.redrives.follow(id);
    expect(run).toMatchObject({ state: "completed", counts: { sent: 16, completed: 16, left: 0, byOthers: 4 } });
  });

  it("knows no run that is not there", async () => {
    const redrive = await createTestRedrive();
    for (const call of ["get", "pause", "resume", "cancel", "recall", "follow"] as const)
      expect(await codeOf(() => redrive.redrives[call]("r_nowhere"))).toBe("not_found");
    await redrive.close();
  });
});

describe("a run with a patch", () => {
  let isStrict = false;
  const cents: StandardSchema<{ n: number; cents: number }> = {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: (value) => {
        const { n, cents: sum } = value as { n: number; cents?: unknown };
        if (!isStrict || (typeof sum === "number" && n !== 3)) return { value: { n, cents: sum as number } };
        return { issues: [{ message: "expected cents", path: ["cents"] }] };
      },
    },
  };

  it("sends every payload patched, and keeps the bytes that the patch does not name", async () => {
    const paid: object[] = [];
    let isMended = false;
    const pay = defineJob("pay", {
      maxAttempts: 1,
      run(input: object) {
        if (!isMended) declined();
        paid.push(input);
      },
    });
    await using redrive = await createTestRedrive({ jobs: [pay] });
    for (const n of [1, 2]) await redrive.enqueueText(pay, `{"n":${n}, "big":9007199254740993,"cents":"x"}`);
    await redrive.drain();
    isMended = true;
    const plan = await redrive.redrives.plan({ type: "pay" }, { patch: '{"cents":5}' });
    const { id } = await redrive.redrives.start(plan.id);
    expect(await redrive.redrives.follow(id)).toMatchObject({ state: "completed" });
    const { items } = await redrive.store.deadLetters({ redrive: id, limit: 10, oldest: true });
    expect(items.map(({ job }) => job.payload)).toContain('{"n":1, "big":9007199254740993,"cents":5}');
    expect(paid).toHaveLength(2);
  });

  it("is refused where a payload does not fit its type, and names it; with skipMisfits it is left out", async () => {
    const pay = defineJob("pay", { input: cents, maxAttempts: 1, run: () => declined() });
    await using redrive = await createTestRedrive({ jobs: [pay] });
    const ids: string[] = [];
    for (const n of [1, 2, 3]) ids.push((await redrive.enqueueText("pay", `{"n":${n}}`)).id);
    await redrive.drain();
    isStrict = true;
    const call = () => redrive.redrives.plan({ type: "pay" }, { patch: '{"cents":5}' });
    expect(await codeOf(call)).toBe("invalid_payload");
    expect(await messageOf(call)).toContain(ids[2]);
    const plan = await redrive.redrives.plan({ type: "pay" }, { patch: '{"cents":5}', skipMisfits: true });
    expect(plan).toMatchObject({ count: 3, toSend: 2, misfits: [ids[2]] });
  });

  it("is refused where no program here knows the type, or the patch is no JSON", async () => {
    const { redrive } = await deadScene(1);
    expect(await codeOf(() => redrive.redrives.plan({ type: "charge" }, { patch: "{" }))).toBe("invalid_payload");
    await using other = await createTestRedrive();
    expect(await codeOf(() => other.redrives.plan({ type: "x" }, { patch: 7 as never }))).toBe("invalid_argument");
  });
});
