// Enqueues single jobs at intervals, each with the time of its enqueue in its payload.
import { stamp } from "../actor.mjs";
import { newJob, sleep } from "../measure.mjs";

const enqueue = (store) => store.enqueue([newJob({ payload: JSON.stringify({ at: stamp(), note: "x".repeat(60) }) })]);

/** Enqueues `count` jobs, one every 50 to 100 ms, and waits until the last was probably picked up. */
export async function produce(store, count) {
  for (let made = 0; made < count; made++) {
    await sleep(50 + Math.random() * 50);
    await enqueue(store);
  }
  await sleep(500);
}

/** Enqueues so many a second, at times that wait for no answer, as the requests of a web server come. */
export async function produceSteadily(store, count, perSecond) {
  const answers = [];
  const began = performance.now();
  for (let made = 0; made < count; made++) {
    const at = began + ((made + Math.random()) * 1_000) / perSecond;
    await sleep(Math.max(0, at - performance.now()));
    answers.push(enqueue(store));
  }
  await Promise.all(answers);
  await sleep(500);
}
