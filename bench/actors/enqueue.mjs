// Callers that each enqueue one job and wait for the answer, again and again; gives how many a second went through.
import { openEnqueuer } from "../../dist/enqueue/enqueuer.js";
import { createSqliteStore } from "../../dist/store/sqlite/index.js";
import { realSystem } from "../../dist/system/real.js";
import { actor } from "../actor.mjs";
import { newJob } from "../measure.mjs";

await actor(async ({ path, callers, count }, go) => {
  const store = createSqliteStore({ path });
  await store.control();
  const enqueuer = openEnqueuer(store, realSystem);
  const call = async (times) => {
    for (let made = 0; made < times; made++) await enqueuer.enqueue(newJob());
  };
  await go();
  const began = performance.now();
  await Promise.all(Array.from({ length: callers }, () => call(count / callers)));
  const perSecond = count / ((performance.now() - began) / 1000);
  const { queued } = await store.count();
  await store.close();
  if (queued !== count) throw new Error(`enqueued ${queued} of ${count}`);
  return { perSecond };
});
