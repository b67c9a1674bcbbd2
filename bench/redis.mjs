// A Redis server for one benchmark: on a socket in a scratch folder, keeping nothing on disk.
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { sleep } from "./measure.mjs";

/** True if there is a server to start. */
export function redisAvailable() {
  return spawnSync("redis-server", ["--version"]).status === 0;
}

/** Starts one; returns its socket and the way to end it. */
export async function startRedis(folder) {
  const socket = join(folder, "redis.sock");
  const options = ["--port", "0", "--unixsocket", socket, "--dir", folder, "--save", "", "--appendonly", "no"];
  const child = spawn("redis-server", options, { stdio: "ignore" });
  for (let waited = 0; !existsSync(socket); waited += 20) {
    if (waited > 5_000) throw new Error("redis-server did not open its socket within 5 s.");
    await sleep(20);
  }
  return {
    socket,
    async stop() {
      const closed = new Promise((resolve) => child.once("close", resolve));
      child.kill("SIGTERM");
      await closed;
    },
  };
}
