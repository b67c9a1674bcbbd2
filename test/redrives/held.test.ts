// Letters that something holds back do not decide for the others: those that may run are sent, a probe is found behind
// them, and the order inside groups stays.
import { describe, expect, it, onTestFinished } from "vitest";
import { defineJob, fixed, PermanentError } from "../../src/index.ts";
import { createTestRedrive, type TestRedrive } from "../../src/testing/index.ts";
import { signUp } from "../support/runs.ts";
import { die, opened, plain, program, work, WORLDS } from "./worlds.ts";

/** Two types, each with a service of its own; what is mended completes. */
async function twoServices(): Promise<{
  readonly redrive: TestRedrive;
  readonly ran: string[];
  readonly enqueue: (service: "a" | "b", n: number, group?: string) => Promise<string>;
  readonly mend: () => Promise<void>;
}> {
  const ran: string[] = [];
  let isMended = false;
  const of = (service: "a" | "b") =>
    defineJob(`use-${service}`, {
      service,
      maxAttempts: 2,
      backoff: fixed("15m"),
      run({ n }: { n: number }, { attempt }) {
        if (n < 0 && attempt === 1) throw new Error("not yet");
        if (!isMended && n >= 0) throw new PermanentError("no such card");
        ran.push(`${service}${n}`);
      },
    });
  const types = { a: of("a"), b: of("b") };
  const services = { a: { ramp: 0 }, b: { breaker: { probes: 1, closeAfter: 1 }, ramp: 0 } };
  const redrive = await createTestRedrive({ jobs: [types.a, types.b], services });
  onTestFinished(() => redrive.close());
  return {
    redrive,
    ran,
    enqueue: async (service, n, group) =>
      (await redrive.enqueue(types[service], { n }, group === undefined ? {} : { group })).id,
    async mend() {
      await redrive.drain();
      isMended = true;
    },
  };
}

describe("a held letter in front", () => {
  it("leaves the probe of a canary to another service", async () => {
    const { redrive, ran, enqueue, mend } = await twoServices();
    await enqueue("a", 0);
    for (let n = 0; n < 5; n++) await enqueue("b", n);
    await mend();
    await redrive.breakers.open("a", { reason: "for good" });
    await redrive.breakers.open("b", { reason: "down", for: "1m" });
    const plan = await redrive.redrives.plan({ class: "permanent" });
    const { id } = await redrive.redrives.start(plan.id, { canary: [2], judgeWithin: "1m" });
    await redrive.clock.advance("5m");
    const run = await redrive.redrives.get(id);
    expect(run).toMatchObject({
      state: "running",
      waits: "the breaker of a is open by hand",
      counts: { completed: 5 },
    });
    expect(ran.toSorted()).toEqual(["b0", "b1", "b2", "b3", "b4"]);
    await redrive.breakers.close("a");
    expect(await redrive.redrives.follow(id)).toMatchObject({ state: "completed", counts: { completed: 6 } });
  });

  it("leaves the probe of the rest to another service", async () => {
    const { redrive, enqueue, mend } = await twoServices();
    await enqueue("a", 0);
    for (let n = 0; n < 3; n++) await enqueue("b", n);
    await mend();
    await redrive.breakers.open("a", { reason: "for good" });
    await redrive.breakers.open("b", { reason: "down", for: "1m" });
    const plan = await redrive.redrives.plan({ class: "permanent" });
    const { id } = await redrive.redrives.start(plan.id, { canary: "none" });
    await redrive.clock.advance("5m");
    expect((await redrive.redrives.get(id)).counts).toMatchObject({ sent: 3, completed: 3, left: 1 });
  });

  it.each(WORLDS)("does not keep a canary from letters more than a page behind it, on %s", async (_, open) => {
    const world = await opened(open);
    const held = Array.from({ length: 205 }, () => ({ type: "held" }));
    // In one group, so that the newest letters are no candidates.
    await die(world, [...held, ...plain(4).map(() => ({ group: "g" }))]);
    await world.store.pause({ kind: "type", name: "held" }, { forMs: null, reason: "" });
    const ada = program(world, "ada");
    const { id } = await ada.start((await ada.plan({ fingerprint: "f1" })).id, { canary: [1], rate: 100 });
    const worker = await signUp(world.store, 3_600_000);
    for (let turns = 0; turns < 12; turns++) {
      await ada.drive();
      await work(world, worker);
      world.clock.now += 1_000;
    }
    expect((await ada.get(id)).counts).toMatchObject({ sent: 4, completed: 4, left: 205 });
  });

  it("does not keep the rest from the others, and the order inside groups stays", async () => {
    const { redrive, ran, enqueue, mend } = await twoServices();
    for (let n = 0; n < 6; n++) {
      await enqueue("a", n, `g${n % 2}`);
      await enqueue("b", n, `g${n % 2}`);
    }
    await mend();
    await redrive.breakers.open("a", { reason: "for good" });
    const plan = await redrive.redrives.plan({ class: "permanent" });
    const { id } = await redrive.redrives.start(plan.id, { canary: "none", rate: 2 });
    await redrive.clock.advance("1m");
    expect(await redrive.redrives.get(id)).toMatchObject({
      waits: "the breaker of a is open by hand",
      counts: { sent: 6, left: 6 },
    });
    expect(ran.toSorted()).toEqual(["b0", "b1", "b2", "b3", "b4", "b5"]);
    await redrive.breakers.close("a");
    expect((await redrive.redrives.follow(id)).state).toBe("completed");
    for (const service of ["a", "b"])
      for (const group of [0, 1]) {
        const own = ran.filter((each) => each.startsWith(service) && Number(each.slice(1)) % 2 === group);
        expect(own).toEqual([0, 2, 4].map((n) => `${service}${n + group}`));
      }
  });
});

describe("a group that a later retry blocks", () => {
  async function blocked() {
    const scene = await twoServices();
    for (let n = 0; n < 6; n++) await scene.enqueue("a", n, n % 2 === 0 ? "even" : "odd");
    await scene.mend();
    await scene.enqueue("a", -1, "even");
    await scene.redrive.drain();
    return { ...scene, plan: await scene.redrive.redrives.plan({ class: "permanent" }) };
  }

  it("is passed over by the canary", async () => {
    const { redrive, ran, plan } = await blocked();
    const { id } = await redrive.redrives.start(plan.id, { canary: [1], judgeWithin: "1m" });
    await redrive.clock.advance("5m");
    expect(await redrive.redrives.get(id)).toMatchObject({ state: "running", step: 1, counts: { completed: 3 } });
    expect(ran).toEqual(["a1", "a3", "a5"]);
  });

  it("does not keep the rest from the others, and says what it waits for", async () => {
    const { redrive, ran, plan } = await blocked();
    const { id } = await redrive.redrives.start(plan.id, { canary: "none", judgeWithin: "1m" });
    await redrive.clock.advance("5m");
    const run = await redrive.redrives.get(id);
    expect(run).toMatchObject({ state: "running", counts: { sent: 3, completed: 3, left: 3 } });
    expect(run.waits).toMatch(/^job .* of its group even is before it$/);
    expect(await redrive.redrives.follow(id)).toMatchObject({ state: "completed", counts: { completed: 6 } });
    expect(ran).toEqual(["a1", "a3", "a5", "a-1", "a0", "a2", "a4"]);
  });

  it("is not where the probe of a breaker is taken from", async () => {
    const { redrive, ran, plan } = await blocked();
    await redrive.breakers.open("a", { reason: "down", for: "1m" });
    const { id } = await redrive.redrives.start((await redrive.redrives.plan({ class: "permanent" })).id, {
      canary: [1],
    });
    expect(plan.count).toBe(6);
    await redrive.clock.advance("5m");
    expect((await redrive.redrives.get(id)).counts.completed).toBe(3);
    expect(ran).toEqual(["a1", "a3", "a5"]);
  });
});
