// How things end: one-shots clean up, archives keep everything, probes and listeners hold nobody, bad calls are refused.
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { defineJob, PermanentError } from "../../src/index.ts";
import { realSystem } from "../../src/system/real.ts";
import { collectLog } from "../../src/testing/index.ts";
import { archiveTo } from "../../src/operate/archive.ts";
import { applyRetention } from "../../src/upkeep/retention.ts";
import { testFolder } from "../support/database-file.ts";
import { codeOf, drain, KINDS, openRedrive } from "../redrive/kinds.ts";

const brief = defineJob("brief", { keep: { finished: 1, dead: 1 }, run: () => "done" });
const final = defineJob("final", {
  keep: { finished: 1, dead: 1 },
  run: (_input: object): void => {
    throw new PermanentError("never");
  },
});

const rest = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe.each(KINDS)("a drain on %s", (kind) => {
  it("cleans up before it ends", async () => {
    const redrive = await openRedrive(kind, { jobs: [brief] });
    const { id } = await redrive.enqueue(brief, {});
    await drain(redrive);
    await rest(20);
    await drain(redrive);
    expect(await redrive.jobs.get(id)).toBeNull();
  });

  it("archives the letters of every death, behind a line that was cut short", async () => {
    const archive = join(testFolder(), "archive.ndjson");
    writeFileSync(archive, '{"half":');
    const redrive = await openRedrive(kind, { jobs: [{ ...final, options: { keep: { dead: "1h" } } }] });
    const { id } = await redrive.enqueue("final", { password: "kept" });
    await drain(redrive);
    await redrive.deadLetters.retry(id);
    await drain(redrive);
    expect((await redrive.deadLetters.list({ redriven: true })).items).toHaveLength(2);
    await rest(5);
    const { store } = redrive;
    const options = { store, system: realSystem, jobs: [final], policy: final.policy, onPruned: () => undefined };
    await applyRetention({ ...options, archive: archiveTo(archive, store) });
    expect(await redrive.jobs.get(id)).toBeNull();
    const [torn, ...lines] = readFileSync(archive, "utf8").trim().split("\n");
    expect(torn).toBe('{"half":');
    const letters = lines.map((line) => JSON.parse(line) as { id: string; generation: number; payload: object });
    expect(letters.map((letter) => [letter.id, letter.generation, letter.payload])).toEqual([
      [id, 1, { password: "kept" }],
      [id, 2, { password: "kept" }],
    ]);
  });
});

describe("a worker with a health port", () => {
  it("ends although a probe holds its connection", async () => {
    const redrive = await openRedrive("memory", { jobs: [brief] });
    const worker = redrive.worker({ health: { port: 0 } });
    await worker.start();
    const socket = connect(worker.healthPort as number, "127.0.0.1");
    await new Promise((resolve) => socket.once("connect", resolve));
    socket.on("error", () => undefined);
    // An idle connection is dropped by Node itself only after a minute.
    const stopped = worker.stop().then(() => "stopped");
    const late = new Promise((resolve) => setTimeout(() => resolve("late"), 30_000).unref());
    expect(await Promise.race([stopped, late])).toBe("stopped");
    socket.destroy();
  });
});

describe("a listener", () => {
  it("that rejects is logged and harms nobody", async () => {
    const log = collectLog();
    const redrive = await openRedrive("memory", { jobs: [brief], log });
    const down = (): unknown => Promise.reject(new Error("listener down"));
    redrive.on("job.completed", down);
    await redrive.enqueue(brief, {});
    await drain(redrive);
    await rest(5);
    expect(log.said("an event listener failed")).toHaveLength(1);
  });
});

describe.each(KINDS)("a call that makes no sense on %s", (kind) => {
  it("is refused with invalid_argument, and nothing is written", async () => {
    const redrive = await openRedrive(kind, { jobs: [brief] });
    const nothing = null as never;
    const calls: (() => Promise<unknown>)[] = [
      () => redrive.run(brief, {}, nothing),
      () => redrive.run(brief, {}, { signal: 5 as never }),
      () => redrive.jobs.list(nothing),
      () => redrive.jobs.list({ cursor: 5 as never }),
      () => redrive.deadLetters.list(nothing),
      () => redrive.pause(nothing),
      () => redrive.resume(nothing),
      () => redrive.worker().stop(nothing),
      () => redrive.worker().drain({ grase: 1 } as never),
      () => redrive.jobs.reschedule({ type: "none" }, { priority: 99 }),
      () => redrive.enqueue(brief, {}, { delay: "1s", runAt: 5 }),
      async () => redrive.worker(nothing),
      async () => redrive.worker({ archive: 3 as never }),
      async () => redrive.worker({ health: { port: "x" as never } }),
      async () => redrive.on("job.dead", 5 as never),
    ];
    for (const call of calls)
      expect([call.toString(), await codeOf(call)]).toEqual([call.toString(), "invalid_argument"]);
    expect(await codeOf(() => redrive.enqueueText(brief, 5 as never))).toBe("invalid_payload");
    expect(await redrive.jobs.count()).toMatchObject({ queued: 0 });
  });
});
