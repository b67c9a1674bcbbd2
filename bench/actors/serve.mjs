// A worker process that waits for work until it is told to end; gives how long each job with a stamp had waited. It
// enqueues jobs itself where it is asked to, which is the pick-up within one process.
import { createSqliteStore } from "../../dist/store/sqlite/index.js";
import { actor } from "../actor.mjs";
import { pickups } from "./jobs.mjs";
import { openWorker } from "./open-worker.mjs";
import { produce } from "./produce.mjs";

await actor(async ({ path, enqueue = 0 }, go, told) => {
  const store = createSqliteStore({ path });
  const worker = openWorker(store, path);
  await worker.start();
  await go();
  if (enqueue > 0) await produce(store, enqueue);
  else await told.next();
  await worker.stop({ withinMs: 1_000 });
  await store.close();
  return { pickups };
});
