// Enqueues single jobs at intervals, each with the time of its enqueue in its payload.
import { stamp } from "../actor.mjs";
import { newJob, sleep } from "../measure.mjs";

/** Enqueues `count` jobs, one every 50 to 100 ms, and waits until the last was probably picked up. */
export async function produce(store, count) {
  for (let made = 0; made < count; made++) {
    await sleep(50 + Math.random() * 50);
    await store.enqueue([newJob({ payload: JSON.stringify({ at: stamp(), note: "x".repeat(60) }) })]);
  }
  await sleep(500);
}
