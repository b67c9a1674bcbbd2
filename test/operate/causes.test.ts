// Causes and flow as people ask for them: from counts that a worker and a producer have left.
import { describe, expect, it } from "vitest";
import { defineJob, PermanentError, immediate } from "../../src/index.ts";
import { causeForm, causeTrend, flowTrend, listCauses } from "../../src/operate/causes.ts";
import { drain, KINDS, openRedrive } from "../redrive/kinds.ts";

const mail = defineJob("mail", {
  run({ to }: { to: string }): void {
    if (to === "nowhere") throw new PermanentError("no such mailbox");
  },
});
const pay = defineJob("pay", {
  maxAttempts: 2,
  backoff: immediate(),
  run(): void {
    throw new Error("card declined");
  },
});

const MINUTE = 60_000;

describe.each(KINDS)("on %s", (kind) => {
  it("causes and flow tell what was enqueued, ran and died", async () => {
    const redrive = await openRedrive(kind, { jobs: [mail, pay] });
    const { store } = redrive;
    await redrive.enqueueMany(mail, [{ to: "here" }, { to: "nowhere" }, { to: "nowhere" }]);
    await redrive.enqueue(pay, {});
    await drain(redrive, { release: "1.4.0" });
    const { items, next } = await listCauses(store);
    expect(next).toBeNull();
    expect(items.map(({ types, live, failures }) => [types, live, failures])).toEqual([
      [["mail"], 2, 2],
      [["pay"], 1, 2],
    ]);
    expect(causeForm(items[0] as (typeof items)[0])).toEqual({
      fingerprint: items[0]?.fingerprint,
      state: "open",
      dead: 2,
      firstSeen: expect.stringMatching(/:00\.000Z$/),
      lastSeen: expect.stringMatching(/:00\.000Z$/),
      types: ["mail"],
      releases: ["1.4.0"],
      sample: { name: "PermanentError", message: "no such mailbox" },
    });
  });

  it("counts appear without an end of the process, each step of the span once", async () => {
    const redrive = await openRedrive(kind, { jobs: [mail, pay] });
    const { store } = redrive;
    const from = (await store.control()).now;
    await redrive.enqueueMany(mail, [{ to: "here" }, { to: "nowhere" }]);
    await redrive.enqueue(pay, {});
    await drain(redrive);
    const { now } = await store.control();
    const span = { from: from - 10 * MINUTE, until: now + MINUTE, stepMs: MINUTE };
    const flow = await flowTrend(store, span);
    expect(flow.map(({ at }) => at)).toEqual(flow.map((_, n) => (flow[0]?.at as number) + n * MINUTE));
    const sum = (count: "enqueued" | "completed" | "retried" | "dead"): number =>
      flow.reduce((total, step) => total + step[count], 0);
    expect([sum("enqueued"), sum("completed"), sum("retried"), sum("dead")]).toEqual([3, 1, 1, 2]);
    const ofMail = await flowTrend(store, { ...span, type: "mail" });
    expect(ofMail.reduce((total, { dead }) => total + dead, 0)).toBe(1);
    const [cause] = (await listCauses(store)).items;
    const deaths = await causeTrend(store, { ...span, fingerprint: cause?.fingerprint as string });
    expect(deaths.reduce((total, step) => total + step.deaths, 0)).toBe(1);
    expect(deaths).toHaveLength(flow.length);
  });
});
