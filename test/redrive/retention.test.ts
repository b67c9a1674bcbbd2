// Retention as a worker does it: what is over goes, the dead are archived first, and whoever listens hears of it.
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { defineJob, type EventOf, PermanentError, type Redrive, type RedriveOptions } from "../../src/index.ts";
import { assemble } from "../../src/redrive.ts";
import { realSystem } from "../../src/system/real.ts";
import { testFolder } from "../support/database-file.ts";
import { threadedWorld, memoryWorld } from "../support/worlds.ts";
import { type Kind, KINDS } from "./kinds.ts";

const keep = { finished: 0, dead: 0 } as const;
const short = defineJob("short", { keep, run: () => "done" });
const final = defineJob("final", {
  keep,
  run: (_input: object): void => {
    throw new PermanentError("never");
  },
});
const long = defineJob("long", { keep: { finished: "1h", dead: "1h" }, run: final.run });

/** Upkeep every few milliseconds instead of every few minutes; nothing else waits for longer anyway. */
const hurried = {
  ...realSystem,
  sleep: (ms: number, signal?: AbortSignal) => realSystem.sleep(Math.min(ms, 50), signal),
};

async function open(kind: Kind, options: Omit<RedriveOptions, "store">): Promise<Redrive> {
  const world = await (kind === "memory" ? memoryWorld() : threadedWorld());
  const process = { pid: globalThis.process.pid, host: "here", isAlive: () => true };
  const redrive = await assemble({ log: "silent", ...options, store: world.store }, { system: hurried, process });
  onTestFinished(async () => {
    await redrive.close();
    await world.close();
  });
  return redrive;
}

describe.each(KINDS)("retention on %s", (kind) => {
  it("deletes what is over, keeps what is not, and tells how many", async () => {
    const redrive = await open(kind, { jobs: [short, final, long] });
    const pruned: EventOf<"jobs.pruned">[] = [];
    redrive.on("jobs.pruned", (event) => void pruned.push(event));
    const { id: kept } = await redrive.enqueue(long, {});
    await redrive.enqueue(short, {});
    await redrive.enqueue(final, {});
    const { id: cancelled } = await redrive.enqueue(short, {}, { delay: "1h" });
    await redrive.jobs.cancel(cancelled);
    await redrive.worker({ poll: 20 }).start();
    const total = () => pruned.reduce((sum, event) => sum + event.completed + event.dead + event.cancelled, 0);
    // The completed one went as it completed.
    await expect.poll(total).toBe(2);
    expect(pruned.every(({ archive }) => archive === null)).toBe(true);
    const count = await redrive.jobs.count();
    expect(count).toEqual({ queued: 0, running: 0, completed: 0, dead: 1, cancelled: 0 });
    expect((await redrive.jobs.get(kept))?.state).toBe("dead");
  });

  it("archives the dead before they go, for their owner's eyes only", async () => {
    const redrive = await open(kind, { jobs: [short, final, long] });
    const archive = join(testFolder(), "dead.ndjson");
    const pruned: EventOf<"jobs.pruned">[] = [];
    redrive.on("jobs.pruned", (event) => void pruned.push(event));
    const { id: kept } = await redrive.enqueue(long, {});
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) ids.push((await redrive.enqueue(final, { n })).id);
    await redrive.worker({ poll: 20, archive }).start();
    await expect.poll(async () => (await redrive.jobs.count()).dead).toBe(1);
    await expect.poll(() => pruned.reduce((sum, { dead }) => sum + dead, 0)).toBe(3);
    expect(pruned.every((event) => event.archive === archive)).toBe(true);
    const letters = readFileSync(archive, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { id: string; reason: string });
    expect(letters.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    expect(letters[0]?.reason).toBe("permanent");
    expect(statSync(archive).mode & 0o777).toBe(0o600);
    expect((await redrive.jobs.get(kept))?.state).toBe("dead");
  });

  it("deletes no dead letter that could not be archived", async () => {
    const redrive = await open(kind, { jobs: [final] });
    const { id } = await redrive.enqueue(final, {});
    await redrive.worker({ poll: 20, archive: join(testFolder(), "missing", "dead.ndjson") }).start();
    await expect.poll(async () => (await redrive.jobs.get(id))?.state).toBe("dead");
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect((await redrive.jobs.get(id))?.state).toBe("dead");
  });
});
