// What a store over a pool of the user's own opens beside it: a listener for wake-ups, and a thread for heartbeats. The pool
// hides its password, or only a function knows it, or it makes its sockets by a function of the user's.
import { spawnSync } from "node:child_process";
import { Socket } from "node:net";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { defineJob, type Log } from "../../../src/index.ts";
import { importBuilt } from "../../support/built.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";
import { freshSchema, sql } from "../../support/postgres-world.ts";

const { createRedrive, postgres } = {
  ...(await importBuilt<typeof import("../../../src/index.ts")>("index.js")),
  ...(await importBuilt<typeof import("../../../src/store/postgres/index.ts")>("store/postgres/index.js")),
};
/** Ten times as long as heartbeats are apart: whatever was silent for less has given signs of life meanwhile. */
const BLOCKED_MS = 4_000;
const FIRST = "hunter2";
let server: PostgresServer;
let secret = FIRST;

beforeAll(async () => {
  server = await startPostgres({ password: FIRST });
});
afterAll(() => server.stop());

const admin = (): string => server.url().replace(FIRST, secret);
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** How long ago the one worker gave its last sign of life, seen from another process while this one stands still. */
function silentMs(schema: string): number {
  const text = `select floor(extract(epoch from now()) * 1000)::bigint - max(beat_at) as ms from ${schema}.worker`;
  const script = `const pg = require("pg"); const client = new pg.Client(process.argv[1]);
    client.connect().then(() => client.query(process.argv[2])).then(({ rows }) => { console.log(rows[0].ms); client.end(); });`;
  const { stdout, stderr } = spawnSync(process.execPath, ["-e", script, admin(), text], {
    encoding: "utf8",
    timeout: 60_000,
  });
  if (!stdout) throw new Error(stderr);
  return Number(stdout);
}

/** A worker over such a pool that polls so rarely that only a wake-up can explain that it runs anything. */
async function employ(options: pg.PoolConfig, blockMs: number) {
  const schema = freshSchema();
  const pool = new pg.Pool(options);
  pool.on("error", () => undefined);
  onTestFinished(() => pool.end());
  const ran: { silentMs: number; aborted: boolean }[] = [];
  const block = defineJob("block", {
    async run(_input: null, { signal }) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, blockMs);
      const silent = silentMs(schema);
      await pause(50);
      ran.push({ silentMs: silent, aborted: signal.aborted });
    },
  });
  const warnings: string[] = [];
  const heard = { debug: () => undefined, info: () => undefined, error: () => undefined };
  const log: Log = { ...heard, warn: (_fields, message) => void warnings.push(message) };
  const store = postgres({ pool, schema });
  const redrive = await createRedrive({ store, jobs: [block], log });
  onTestFinished(async () => {
    await redrive.close();
    await store.close();
  });
  const worker = redrive.worker({ lease: "20s", heartbeat: "400ms", poll: "10m" });
  await worker.start();
  await pause(600);
  const run = async (): Promise<void> => {
    const elsewhere = await createRedrive({ store: `${admin()}?schema=${schema}`, log: "silent" });
    onTestFinished(() => elsewhere.close());
    await elsewhere.enqueue("block", null);
    for (let tries = 0; ran.length === 0 && tries < 2_400; tries++) await pause(25);
  };
  return { run, ran, warnings, store };
}

const login = () => ({ host: "127.0.0.1", port: server.port, user: "postgres", database: "postgres" });

describe("a worker over a pool with a password", () => {
  it.each([
    ["in its options", () => ({ ...login(), password: secret })],
    ["in a URL", () => ({ connectionString: admin() })],
    ["that a function gives", () => ({ ...login(), password: () => Promise.resolve(secret) })],
  ])("%s is woken, and keeps its lease while a handler blocks the event loop", async (_where, options) => {
    const { run, ran, warnings } = await employ(options(), BLOCKED_MS);
    await run();
    expect(ran).toEqual([{ silentMs: expect.any(Number) as number, aborted: false }]);
    expect(ran[0]?.silentMs).toBeLessThan(BLOCKED_MS);
    expect(warnings).toEqual([]);
  });

  it("that changes asks the function again when its connections were cut", async () => {
    const { run, ran, store } = await employ({ ...login(), password: async () => secret }, 0);
    await sql(admin(), "alter role postgres password 'another'");
    secret = "another";
    // The listener's and the heartbeat's.
    const cut = `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'redrive'
      and (select count(*) from pg_stat_activity where application_name = 'redrive') = 2`;
    for (let tries = 0; (await sql(admin(), cut)).length < 2; tries++) {
      expect(tries).toBeLessThan(100);
      await pause(50);
    }
    await pause(BLOCKED_MS);
    expect(await store.workers()).toMatchObject([{ givenUp: false }]);
    await run();
    expect(ran).toEqual([{ silentMs: expect.any(Number) as number, aborted: false }]);
    expect(ran[0]?.silentMs).toBeLessThan(BLOCKED_MS);
  });
});

describe("a worker over a pool that makes its sockets by a function", () => {
  it("is woken, and says that a blocked event loop would cost its lease", async () => {
    const { run, ran, warnings } = await employ({ ...login(), password: secret, stream: () => new Socket() }, 0);
    await run();
    expect(ran).toHaveLength(1);
    expect(warnings).toEqual([expect.stringContaining("blocks the event loop")]);
  });
});
