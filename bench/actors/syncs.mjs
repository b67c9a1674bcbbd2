// What the disk alone takes: appends what an enqueue appends to the log, and syncs it, so many times a second. Gives how
// long each took.
import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import { actor } from "../actor.mjs";
import { sleep } from "../measure.mjs";

/** Pages of the log that one job costs, about. */
const PAGES = 6;

await actor(async ({ path, count, perSecond }, go) => {
  const file = openSync(path, "a");
  const pages = Buffer.alloc(PAGES * 4_120, 1);
  await go();
  const syncs = [];
  for (let made = 0; made < count; made++) {
    await sleep(1_000 / perSecond);
    const began = performance.now();
    writeSync(file, pages);
    fdatasyncSync(file);
    syncs.push(performance.now() - began);
  }
  closeSync(file);
  return { syncs };
});
