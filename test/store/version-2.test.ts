// The stores that version 2 has left behind, opened by this program: what people did after an incident goes on.
import { describe, expect, it } from "vitest";
import { programOn } from "../support/fixture-program.ts";
import { FIXTURES } from "../support/fixtures.ts";

describe.each(FIXTURES)("a store of version 2 on %s", (_store, fixture) => {
  it("has its causes, its redrive run, its payload versions and its events", async () => {
    const { redrive, store } = await programOn(await fixture(2));
    expect(await store.count()).toEqual({ queued: 14, running: 1, completed: 4, dead: 6, cancelled: 1 });
    const { items: causes } = await redrive.causes.list();
    expect(causes.map(({ dead, note, owner }) => [dead, note, owner])).toEqual([
      [4, "The carrier closed these accounts.", "shipping"],
      [2, null, null],
    ]);
    const { items: runs } = await redrive.redrives.list();
    expect(runs).toMatchObject([
      { state: "running", toSend: 3, counts: { sent: 1, completed: 0 }, why: "the accounts are open again" },
    ]);
    const { items: letters } = await redrive.deadLetters.list({ type: "ship" });
    const repaired = letters.find(({ job }) => job.payload.includes("9007199254740991"));
    const payloads = await redrive.deadLetters.payloads(repaired?.job.id ?? "");
    expect(payloads.map(({ payload }) => payload)).toEqual([
      '{"label":"repaired","fails":"for good"}',
      '{"label":"repaired","account":9007199254740991}',
    ]);
    expect(payloads.map(({ generation }) => generation)).toEqual([null, null]);
    const { items: events } = await redrive.events({ oldest: true, limit: 200 });
    expect(events.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(["release.seen", "job.edited", "redrive.started"]),
    );
  });

  it("takes a repair back that version 2 wrote", async () => {
    const { redrive } = await programOn(await fixture(2));
    const { items: letters } = await redrive.deadLetters.list({ type: "ship" });
    const { id } = letters.find(({ job }) => job.payload.includes("9007199254740991"))?.job ?? { id: "" };
    expect(await redrive.deadLetters.undo(id)).toMatchObject({ version: 2, changed: true });
    expect((await redrive.jobs.get(id))?.payload).toBe('{"label":"repaired","fails":"for good"}');
  });

  it("ends the redrive run once its queue goes on", async () => {
    const { redrive, drain, pass } = await programOn(await fixture(2));
    await drain();
    expect((await redrive.redrives.list()).items).toMatchObject([{ state: "running", counts: { sent: 1 } }]);
    await redrive.resume({ kind: "queue", name: "slow" });
    const ran: string[] = [];
    for (let times = 0; times < 50 && (await redrive.redrives.list({ state: "running" })).items.length > 0; times++) {
      ran.push(...(await drain()));
      await redrive.redrives.drive();
      pass(1_000);
    }
    expect(ran.toSorted()).toEqual(["left to a run", "repaired", "sent by a run", "waits in a paused queue"]);
    expect((await redrive.redrives.list()).items).toMatchObject([
      { state: "completed", counts: { sent: 3, completed: 3, failed: 0 } },
    ]);
  });
});
