// A worker process that works until nothing is due: when it began, when its last job was settled, and its
// memory: the peak, and what it was when so many jobs were done.
import { createSqliteStore } from "../../dist/store/sqlite/index.js";
import { actor, stamp } from "../actor.mjs";
import { openWorker } from "./open-worker.mjs";

await actor(async ({ path, marks = [] }, go) => {
  const store = createSqliteStore({ path });
  await store.control();
  let completed = 0;
  let ended = 0;
  const memoryMb = {};
  const worker = openWorker(store, `sqlite:${path}`, {}, () => {
    completed += 1;
    ended = stamp();
    if (marks.includes(completed)) memoryMb[completed] = process.memoryUsage.rss() / 1_048_576;
  });
  await go();
  const began = stamp();
  await worker.drain({ graceMs: 0 });
  await store.close();
  const peakMb = process.resourceUsage().maxRSS / 1024;
  return { began, ended, completed, peakMb, memoryMb };
});
