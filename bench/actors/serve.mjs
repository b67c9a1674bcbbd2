// A worker process that waits for work until it is told to end; gives how long each job with a stamp had waited. It
// enqueues jobs itself where it is asked to, which is the pick-up within one process. Where it is given the time, it first
// idles, and gives the share of a core that this took.
import { createSqliteStore } from "../../dist/store/sqlite/index.js";
import { actor } from "../actor.mjs";
import { sleep } from "../measure.mjs";
import { pickups } from "./jobs.mjs";
import { openWorker } from "./open-worker.mjs";
import { produce } from "./produce.mjs";

/** What a start leaves to do is not idling; V8 cleans up after it some eight seconds later, once. */
const SETTLE_MS = 10_000;

async function idleShare(forMs) {
  await sleep(Math.min(SETTLE_MS, forMs));
  const [before, began] = [process.cpuUsage(), performance.now()];
  await sleep(forMs);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000 / (performance.now() - began);
}

await actor(async ({ path, enqueue = 0, idleMs = 0 }, go, told) => {
  const store = createSqliteStore({ path });
  const worker = openWorker(store, `sqlite:${path}`);
  await worker.start();
  const idle = idleMs > 0 ? await idleShare(idleMs) : null;
  await go();
  if (enqueue > 0) await produce(store, enqueue);
  else await told.next();
  await worker.stop({ withinMs: 1_000 });
  await store.close();
  return { pickups, idle };
});
