// A real PgBouncer in transaction mode in front of a Postgres server, where it is installed: every transaction may get
// another connection, so nothing may rest on one.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { startGuardian } from "../../scripts/guardian.mjs";
import { freePort, owner } from "./postgres-server.ts";
import { sql } from "./postgres-world.ts";

/** Whether it is installed. */
export const HAS_PGBOUNCER = spawnSync("pgbouncer", ["--version"]).status === 0;

const READY_MS = 10_000;

/** Starts one with this many connections to the server, ended with the test; gives its URL. */
export async function startPgBouncer(server: string, connections: number): Promise<string> {
  const behind = new URL(server);
  const folder = mkdtempSync(join(tmpdir(), "redrive-bouncer-"));
  const port = await freePort();
  const file = join(folder, "pgbouncer.ini");
  writeFileSync(
    file,
    `[databases]
* = host=${behind.hostname} port=${behind.port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${connections}
max_client_conn = 200
`,
  );
  const as = owner();
  if (as) for (const path of [folder, file]) chownSync(path, as.uid, as.gid);
  const child = spawn("pgbouncer", ["--quiet", file], { ...as, cwd: folder, stdio: "ignore" });
  const guardian = startGuardian({ signal: "KILL", folder });
  if (child.pid) guardian.watch(child.pid);
  const ended = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true, force: true });
    guardian.dismiss();
  });
  const url = `postgres://anybody@127.0.0.1:${port}/postgres`;
  for (const until = Date.now() + READY_MS; ; ) {
    const ready = await sql(url, "select 1").then(
      () => true,
      () => false,
    );
    if (ready) return url;
    if (Date.now() > until || child.exitCode !== null) throw new Error("PgBouncer did not start.");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
