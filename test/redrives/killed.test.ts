// A redrive run whose driving process is killed with SIGKILL at random moments: every letter is sent exactly once.
// `npm run prove -- redrives --kills 50` does it more often.
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, inject, it, onTestFinished } from "vitest";
import { createRedrive, defineJob } from "../../src/index.ts";
import { seededDice } from "../../src/testing/fake-system.ts";
import { builtModule, importBuilt } from "../support/built.ts";
import { testPath } from "../support/database-file.ts";
import { testSchema } from "../support/postgres-queue.ts";

const SCRIPT = fileURLToPath(new URL("../support/redrive-driver.mjs", import.meta.url));
const KILLS = Number(process.env["REDRIVE_PROVE_KILLS"] ?? 2);
const LETTERS = KILLS * 40;

it.each<[string, () => string]>([
  ["sqlite", () => `sqlite:${testPath()}`],
  ["postgres 18", () => testSchema(inject("postgres18")).url],
])(
  `sends ${LETTERS} letters exactly once, its driver killed ${KILLS} times, on %s`,
  async (_, place) => {
    const store = place();
    let isMended = false;
    const charge = defineJob("charge", {
      maxAttempts: 1,
      run: () => {
        if (!isMended) throw new Error("card declined");
      },
    });
    const library = await importBuilt<{ createRedrive: typeof createRedrive }>("index.js");
    const redrive = await library.createRedrive({ store, jobs: [charge], log: "silent" });
    onTestFinished(() => redrive.close());
    const ids: string[] = [];
    for (let n = 0; n < LETTERS; n++) ids.push((await redrive.enqueue(charge, { n })).id);
    await redrive.worker({ poll: 20, concurrency: 50 }).drain({ grace: 0 });
    isMended = true;
    const plan = await redrive.redrives.plan({ type: "charge" });
    // So slow that every kill comes while letters are left.
    const { id } = await redrive.redrives.start(plan.id, { canary: "none", rate: 20 });
    const bits = seededDice(Number(process.env["REDRIVE_PROVE_SEED"] ?? 1), "kills");
    let kills = 0;
    const drive = (): ReturnType<typeof fork> => {
      const child = fork(SCRIPT, [builtModule("index.js"), store, id], { execArgv: [] });
      onTestFinished(() => void child.kill("SIGKILL"));
      return child;
    };
    for (; kills < KILLS; kills++) {
      // Two at once: the second waits for the lease of the first, and takes over when both kills leave none.
      const pair = [drive(), drive()];
      await Promise.all(pair.map((child) => once(child, "message")));
      await new Promise((resolve) => setTimeout(resolve, bits() % 1_500));
      for (const child of pair) child.kill("SIGKILL");
      await Promise.all(
        pair
          .filter((child) => child.exitCode === null && child.signalCode === null)
          .map((child) => once(child, "exit")),
      );
      await redrive.worker({ poll: 20 }).drain({ grace: 0 });
    }
    const worker = redrive.worker({ poll: 20 });
    await worker.start();
    const run = await redrive.redrives.follow(id);
    await worker.stop();
    expect(run).toMatchObject({ state: "completed", counts: { sent: LETTERS, completed: LETTERS, left: 0 } });
    const jobs = await redrive.store.get(ids);
    expect(jobs.every((job) => job?.generation === 2 && job.state === "completed")).toBe(true);
    expect(kills).toBe(KILLS);
  },
  60_000 + KILLS * 30_000,
);
