// The way to the server when connections break: inside a transaction, without a word, or with a process that holds locks
// and does not go on.
import { createServer } from "node:net";
import pg from "pg";
import { describe, expect, inject, it } from "vitest";
import { openDatabase } from "../../../src/store/postgres/driver.ts";
import { realSystem } from "../../../src/system/real.ts";
import { startTcpProxy } from "../../support/tcp-proxy.ts";

const SERVER = inject("postgres18");

/** A database behind a proxy. */
async function open(onTestFinished: (end: () => Promise<void>) => void) {
  const target = new URL(SERVER);
  const proxy = await startTcpProxy(Number(target.port));
  target.port = String(proxy.port);
  const pool = new pg.Pool({ connectionString: target.href, max: 6, idleTimeoutMillis: 60_000 });
  const db = openDatabase({ pool, owned: true, direct: true, system: realSystem, place: "here" });
  onTestFinished(async () => {
    await db.close();
    await proxy.close();
  });
  return { db, proxy };
}

const sleep = (seconds: number): { text: string } => ({ text: `select pg_sleep(${seconds})` });
const one = { text: "select 1" };

describe.concurrent("a database", () => {
  // Without a listener for the error of its connection the process would end, and vitest would say so.
  it("survives that a connection breaks inside a transaction", async ({ onTestFinished }) => {
    const { db, proxy } = await open(onTestFinished);
    const cut = db.together(async (ask) => {
      const asked = ask(sleep(5));
      asked.catch(() => undefined);
      await realSystem.sleep(100);
      expect(proxy.reset()).toBe(1);
      return asked;
    });
    await expect(cut).rejects.toMatchObject({ code: "store_unavailable" });
    const between = db.together(async () => {
      proxy.reset();
      await realSystem.sleep(100);
    });
    await expect(between).rejects.toMatchObject({ code: "store_unavailable" });
    expect(await db.ask(one)).toEqual([[1]]);
  });

  it("survives that a server says hello and its last words in one breath", async ({ onTestFinished }) => {
    const word = (kind: string, body: string): Buffer => {
      const length = Buffer.alloc(4);
      length.writeInt32BE(4 + body.length);
      return Buffer.concat([Buffer.from(kind), length, Buffer.from(body, "latin1")]);
    };
    const last = "SFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0";
    const breath = Buffer.concat([word("R", "\0\0\0\0"), word("Z", "I"), word("E", last)]);
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () => socket.end(breath));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const pool = new pg.Pool({ connectionString: `postgres://postgres@127.0.0.1:${port}/postgres` });
    const db = openDatabase({ pool, owned: true, direct: true, system: realSystem, place: "here" });
    onTestFinished(async () => {
      await db.close();
      server.close();
    });
    await expect(db.ask(one)).rejects.toMatchObject({ code: "store_unavailable" });
  });

  it("waits for one connection that was forgotten, not for each of them", async ({ onTestFinished }) => {
    const { db, proxy } = await open(onTestFinished);
    await Promise.all(Array.from({ length: 6 }, () => db.ask(sleep(0.2))));
    expect(proxy.open).toBe(6);
    proxy.fallSilent().forget();
    await expect(db.ask(one)).rejects.toMatchObject({ code: "store_unavailable" });
    const asked = performance.now();
    expect(await db.ask(one)).toEqual([[1]]);
    expect(performance.now() - asked).toBeLessThan(12_000);
  });

  it("takes locks from whoever does not go on with a transaction", async ({ onTestFinished }) => {
    const { db } = await open(onTestFinished);
    const { db: other } = await open(onTestFinished);
    const lock = { text: "select pg_advisory_xact_lock(hashtext('driver test'))" };
    const halted = db.together(async (ask) => {
      await ask(lock);
      await realSystem.sleep(14_000);
      await ask(one);
    });
    halted.catch(() => undefined);
    await realSystem.sleep(500);
    await other.ask(lock);
    await expect(halted).rejects.toMatchObject({ code: "store_unavailable" });
  });
});
