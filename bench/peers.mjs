// The peers as the benchmarks see them: which can run here, why not where they cannot, and their figures.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { play } from "./actor.mjs";
import { inScratch } from "./measure.mjs";
import { redisAvailable, startRedis } from "./redis.mjs";

/** For each peer null, or the reason why it is left out. */
export function peersMissing(wanted) {
  const installed = existsSync(new URL("./peers/node_modules", import.meta.url));
  const why = !wanted ? "left out by --no-peers" : installed ? null : "not installed in bench/peers; use npm run bench";
  return {
    plainjob: why ?? (driverLoads() ? null : "better-sqlite3 does not load on this Node"),
    bee: why ?? (redisAvailable() ? null : "there is no redis-server (Debian: apt-get install redis-server)"),
  };
}

function driverLoads() {
  try {
    const Database = createRequire(import.meta.url)("better-sqlite3");
    new Database(":memory:").close();
    return true;
  } catch {
    return false;
  }
}

/** Fills a new file and has plainjob drain it with one process. */
export function plainjobDrain(count) {
  return inScratch(async (folder) => {
    const path = join(folder, "plainjob.db");
    await play("./peers/plainjob.mjs", { kind: "fill", path, count });
    return play("./peers/plainjob.mjs", { kind: "drain", path, count });
  });
}

/** Has callers of plainjob enqueue single jobs; gives jobs per second. */
export function plainjobEnqueue(callers, count) {
  return inScratch(async (folder) => {
    const path = join(folder, "plainjob.db");
    return (await play("./peers/plainjob.mjs", { kind: "enqueue", path, callers, count })).perSecond;
  });
}

/** Has plainjob add many jobs a call; gives jobs per second. */
export function plainjobBulk(count) {
  return inScratch(async (folder) => {
    const path = join(folder, "plainjob.db");
    return (await play("./peers/plainjob.mjs", { kind: "bulk", path, count })).perSecond;
  });
}

/** Has bee-queue drain a queue on a Redis of its own. */
export function beeDrain(count, failOnce = false) {
  return inScratch(async (folder) => {
    const redis = await startRedis(folder);
    try {
      return await play("./peers/bee-queue.mjs", { socket: redis.socket, name: "bench", count, failOnce });
    } finally {
      await redis.stop();
    }
  });
}
