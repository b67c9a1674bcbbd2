// How many jobs a worker has claimed and not settled at a time, while every second run fails and it takes as many as it may:
// after a `kill -9` each of them carries a crash. Asked of the server many times during one drain.
import { createPostgresStore } from "../../dist/store/postgres/index.js";
import { play, startActor } from "../actor.mjs";
import { against, row, sleep } from "../measure.mjs";
import { REDRIVE } from "./contenders.mjs";
import { inDatabase } from "./database.mjs";

const CONCURRENCY = 100;
/** Twice the slots, and at most this beyond them (core/in-hand.ts). */
const MOST = 2 * CONCURRENCY + 5_000;
const LOOK_MS = 250;

/** Rows about what a worker leaves unsettled. */
export async function unsettled({ server, short }) {
  const count = short ? 2_000 : 300_000;
  await inDatabase(server, async (url) => {
    await play(REDRIVE.module, { kind: "fill", url, count });
    const store = createPostgresStore({ url });
    const task = { kind: "drain", url, count, failOnce: true, worker: { concurrency: CONCURRENCY } };
    const worker = startActor(REDRIVE.module, task);
    await worker.ready;
    worker.say("go");
    let [figures, most, looks] = [null, 0, 0];
    const ended = worker.figures.then((given) => (figures = given));
    for (; !figures; looks++) {
      most = Math.max(most, (await store.count()).running);
      await Promise.race([ended, sleep(LOOK_MS)]);
    }
    await store.close();
    if (figures.completed !== count) throw new Error(`completed ${figures.completed} of ${count}`);
    row(`claimed and not settled, ${count} jobs that fail once`, `at most ${most}`, against(`≤ ${MOST}`, most <= MOST));
    row("  looks, memory of the worker", `${looks}, ${figures.peakMb.toFixed(0)} MB`);
  });
}
