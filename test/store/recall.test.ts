// A recall beside busy slots: a worker of 50 slots takes jobs as fast as it can while those that were just sent back are
// recalled. Each is taken by the worker or by the recall, never by both or by neither.
// `npm run prove -- recall` tries a thousand times on each store.
import { expect, inject, it, onTestFinished } from "vitest";
import { createDice } from "../simulation/dice.ts";
import { importBuilt } from "../support/built.ts";
import { testPath } from "../support/database-file.ts";
import { testSchema } from "../support/postgres-queue.ts";

const asked = process.env["REDRIVE_PROVE"] === "recall";
const TRIES = Number(process.env["REDRIVE_PROVE_TRIES"] ?? 10);
const seed = Number(process.env["REDRIVE_PROVE_SEED"] ?? 1);
const SLOTS = 50;
/** Slots that other jobs keep busy; the rest are for those that come and go. */
const BUSY = 40;
const JOBS = 20;
const HOUR = 3_600_000;

const STORES: readonly (readonly [string, () => string])[] = [
  ["SQLite", () => `sqlite:${testPath()}`],
  ["Postgres", () => testSchema(inject("postgres18")).url],
];

const pause = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

it.each(STORES)(
  `%s gives each job to the worker or to the recall, ${TRIES} tries`,
  { timeout: asked ? HOUR : 60_000 },
  async (name, place) => {
    const { createRedrive, defineJob, PermanentError } =
      await importBuilt<typeof import("../../src/index.ts")>("index.js");
    const dice = createDice(seed, name);
    let [runs, isOver] = [0, false];
    const broken = defineJob("broken", {
      run: async () => {
        runs += 1;
        throw new PermanentError("still broken");
      },
    });
    const filler = defineJob("filler", {
      keep: { finished: 0 },
      run: async () => {
        await pause(dice.between(50, 150));
        if (!isOver) await redrive.enqueue(filler, {});
      },
    });
    const redrive = await createRedrive({ store: place(), jobs: [broken, filler], log: "silent" });
    onTestFinished(() => redrive.close());
    const { store } = redrive;
    const worker = redrive.worker({ concurrency: SLOTS });
    await redrive.enqueueMany(broken, Array(JOBS).fill({}));
    await redrive.worker({ concurrency: SLOTS }).drain();
    expect(await store.count()).toMatchObject({ dead: JOBS });
    await redrive.enqueueMany(filler, Array(BUSY).fill({}));
    await worker.start();
    const total = { claimed: 0, recalled: 0 };
    for (let turn = 1; turn <= TRIES; turn++) {
      const id = `r_${turn}`;
      const before = runs;
      const { items } = await store.deadLetters({ limit: JOBS, payloads: false });
      const targets = items.map(({ job, generation }) => ({ id: job.id, generation }));
      const answers = await store.redrive(targets.map((target) => ({ ...target, delayMs: 0, redrive: id })));
      expect(answers).toEqual(targets.map(() => "redriven"));
      await pause(dice.pick([0, 0, 1, 2, 4]));
      const recalled = (await store.recall(targets)).filter((answer) => answer === "recalled").length;
      const counts = await ended(async () => (await store.redriveCounts([id]))[0]);
      expect(counts).toMatchObject({ sent: JOBS, same: JOBS - recalled, recalled, good: 0, other: 0, gone: 0 });
      expect(runs - before).toBe(JOBS - recalled);
      total.claimed += runs - before;
      total.recalled += recalled;
    }
    isOver = true;
    await worker.stop();
    expect(total.claimed + total.recalled).toBe(TRIES * JOBS);
    expect(await store.count()).toMatchObject({ dead: JOBS });
    if (asked)
      process.stdout.write(
        `recall ${name}: ${TRIES} tries, sent ${TRIES * JOBS} = claimed ${total.claimed} + recalled ${total.recalled}\n`,
      );
  },
);

/** The counts of a run once nothing of it is pending. */
async function ended<C extends Readonly<Record<"sent" | "same" | "recalled", number>>>(
  read: () => Promise<C | undefined>,
): Promise<C> {
  for (let looks = 0; looks < 5_000; looks++) {
    const counts = await read();
    if (counts && counts.sent === counts.same + counts.recalled) return counts;
    await pause(2);
  }
  throw new Error("Something that was sent is still pending.");
}
