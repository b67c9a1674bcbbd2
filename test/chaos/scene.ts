// Where a chaos run takes place: a file, or a real Postgres server with a proxy before it, so that the server can be
// killed and the network between it and the actors can fail.
import { createRequire } from "node:module";
import pg from "pg";
import { startPostgres } from "../support/postgres-server.ts";
import { CLOCK_TABLE, layClock, MAKE_CLOCK, stepClock } from "./store-clock.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";

/** The stores that chaos knows. */
export const STORES = ["sqlite", "postgres"] as const;
/** One of `STORES`. */
export type StoreName = (typeof STORES)[number];

/** A place for a run. */
export interface Scene {
  /** The store as actors reach it. */
  readonly url: string;
  /** The store as the conductor and the judge reach it, past every fault of the network. */
  readonly directUrl: string;
  /** What runs here, in which version. */
  readonly versions: readonly string[];
  /** Makes the clock of the store step to so far ahead. */
  stepClock(ahead: number): Promise<void>;
  /** What else can fail here; null on a file. */
  readonly server: ServerScene | null;
  /** Ends everything that was started, at once. */
  abandon(): void;
  close(): Promise<void>;
}

/** A server and the network before it. */
export interface ServerScene {
  readonly proxy: TcpProxy;
  kill(): Promise<void>;
  start(): Promise<void>;
  /** Ends connections from the server's side, those for which `isHit` says so; says how many. */
  terminate(isHit: () => boolean): Promise<number>;
}

/** Prepares the place. */
export async function openScene(store: StoreName, folder: string): Promise<Scene> {
  const versions = [`Node ${process.versions.node}`];
  layClock(folder);
  if (store === "postgres") return openPostgres(folder, versions);
  const url = `sqlite:${folder}/jobs.db`;
  return {
    url,
    directUrl: url,
    versions,
    stepClock: (ahead) => stepClock(folder, ahead, async () => undefined),
    server: null,
    abandon: () => undefined,
    close: async () => undefined,
  };
}

async function openPostgres(folder: string, versions: readonly string[]): Promise<Scene> {
  const server = await startPostgres({ durable: true });
  const proxy = await startTcpProxy(server.port);
  const { version } = createRequire(import.meta.url)("pg/package.json") as { readonly version: string };
  const [row] = await ask(server.url(), "show server_version");
  await ask(server.url(), MAKE_CLOCK);
  return {
    url: server.url().replace(`:${server.port}/`, `:${proxy.port}/`),
    directUrl: server.url(),
    versions: [...versions, `Postgres ${String(row?.["server_version"])}`, `pg ${version}`],
    stepClock: (ahead) =>
      stepClock(
        folder,
        ahead,
        async () => void (await ask(server.url(), `update ${CLOCK_TABLE} set ahead = $1`, [ahead])),
      ),
    server: {
      proxy,
      kill: () => server.kill(),
      start: () => server.start(),
      async terminate(isHit) {
        const backends = "select pid from pg_stat_activity where application_name = 'redrive' order by pid";
        const pids = (await ask(server.url(), backends)).filter(isHit).map(({ pid }) => pid);
        await ask(server.url(), "select pg_terminate_backend(pid) from unnest($1::int[]) pid", [pids]);
        return pids.length;
      },
    },
    abandon: () => void server.kill(),
    async close() {
      await proxy.close();
      await server.stop();
    },
  };
}

async function ask(url: string, text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text, values.length > 0 ? values : undefined)).rows;
  } finally {
    await client.end();
  }
}
