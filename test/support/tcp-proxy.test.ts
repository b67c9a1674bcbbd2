// The proxy before a server that answers every request: what each fault looks like to the client, and what the server
// heard.
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { startTcpProxy } from "./tcp-proxy.ts";

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end();
});

/** A server that answers each request with `re: ` before it, and a proxy before it. */
async function world() {
  const heard: string[] = [];
  const accepted = new Set<Socket>();
  const server = createServer((socket) => {
    accepted.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => accepted.delete(socket));
    socket.on("data", (bytes) => {
      heard.push(bytes.toString());
      socket.write(`re: ${bytes.toString()}`);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  endings.push(() => {
    for (const socket of accepted) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  const proxy = await startTcpProxy(port);
  endings.push(() => proxy.close());
  return { proxy, heard, accepted, client: () => openClient(proxy.port) };
}

/** A client that keeps what it is told, and how its connection ended. */
async function openClient(port: number) {
  const socket = connect(port, "127.0.0.1");
  endings.push(() => socket.destroy());
  await once(socket, "connect");
  const client = { told: "", end: "", socket, ask: (text: string) => void socket.write(text) };
  socket.on("data", (bytes) => (client.told += bytes.toString()));
  socket.on("error", (error: NodeJS.ErrnoException) => (client.end = error.code ?? "error"));
  socket.on("close", () => (client.end ||= "closed"));
  return client;
}

async function until(isSo: () => boolean): Promise<void> {
  for (let tries = 0; tries < 500 && !isSo(); tries++) await wait(10);
  expect(isSo()).toBe(true);
}

describe("the TCP proxy", () => {
  it("passes both directions on, and the end of either side", async () => {
    const { proxy, client, accepted } = await world();
    const one = await client();
    const two = await client();
    one.ask("hello");
    await until(() => one.told === "re: hello");
    expect(proxy.open).toBe(2);
    one.socket.end();
    await until(() => one.end === "closed" && accepted.size === 1);
    for (const socket of accepted) socket.end();
    await until(() => two.end === "closed");
    await until(() => proxy.open === 0);
  });

  it("resets the connections it is told to, and only those", async () => {
    const { proxy, client, accepted } = await world();
    const one = await client();
    const two = await client();
    await until(() => accepted.size === 2);
    let turn = 0;
    expect(proxy.reset(() => turn++ === 0)).toBe(1);
    await until(() => one.end === "ECONNRESET" && accepted.size === 1);
    two.ask("still there");
    await until(() => two.told === "re: still there");
  });

  it("says no where the server is gone", async () => {
    const proxy = await startTcpProxy(1);
    endings.push(() => proxy.close());
    const one = await openClient(proxy.port);
    await until(() => one.end !== "");
    expect(proxy.open).toBe(0);
  });

  it("falls silent, also to new ones, and goes on late with what was held back", async () => {
    const { proxy, client, heard } = await world();
    const one = await client();
    const silence = proxy.fallSilent();
    const two = await client();
    one.ask("one");
    two.ask("two");
    await wait(100);
    expect(heard).toEqual([]);
    expect(silence.caught).toBe(2);
    silence.goOn();
    await until(() => one.told === "re: one" && two.told === "re: two");
  });

  it("drops what a silence caught, and takes new ones", async () => {
    const { proxy, client, heard } = await world();
    const one = await client();
    const silence = proxy.fallSilent();
    one.ask("never");
    await wait(50);
    silence.drop();
    await until(() => one.end === "ECONNRESET");
    const two = await client();
    two.ask("two");
    await until(() => two.told === "re: two");
    expect(heard).toEqual(["two"]);
  });

  it("forgets what a silence caught: the server hears the end, the client nothing", async () => {
    const { proxy, client, heard, accepted } = await world();
    const one = await client();
    await until(() => accepted.size === 1);
    const silence = proxy.fallSilent();
    one.ask("never");
    silence.forget();
    await until(() => accepted.size === 0);
    one.ask("nor this");
    const two = await client();
    two.ask("two");
    await until(() => two.told === "re: two");
    expect([one.told, one.end, heard]).toEqual(["", "", ["two"]]);
    expect(proxy.reset(), "a forgotten one is left alone").toBe(1);
    one.socket.destroy();
    await until(() => proxy.open === 0);
  });

  it("lets a request through and swallows its answer", async () => {
    const { proxy, client, heard } = await world();
    const one = await client();
    const two = await client();
    const cut = proxy.cutReply((request) => request.includes("commit"), 5_000);
    one.ask("begin");
    await until(() => one.told === "re: begin");
    two.ask("commit");
    expect(await cut).toBe(true);
    await until(() => two.end === "ECONNRESET");
    expect([two.told, heard]).toEqual(["", ["begin", "commit"]]);
    one.ask("commit");
    await until(() => one.told === "re: beginre: commit");
  });

  it("says that nothing was there to cut", async () => {
    const { proxy, client } = await world();
    const one = await client();
    expect(await proxy.cutReply((request) => request.includes("commit"), 50)).toBe(false);
    one.ask("commit");
    await until(() => one.told === "re: commit");
  });
});
