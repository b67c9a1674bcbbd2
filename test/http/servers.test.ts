// The handler behind real servers: http, Express, Fastify, Koa; and the typed client in front of them.
import { createServer, type RequestListener, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import express from "express";
import fastify from "fastify";
import Koa from "koa";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createClient, RedriveHttpError } from "../../src/http/client.ts";
import { fastifyRedrive, koaRedrive, toNode } from "../../src/http/index.ts";
import { PATHS } from "../../src/http/paths.ts";
import { ROUTES } from "../../src/http/routes.ts";
import { serveHttp } from "../../src/http/serve.ts";
import { openScene, PAYLOAD, type Scene } from "./scene.ts";

let scene: Scene;
const closing: (() => Promise<unknown>)[] = [];
beforeEach(async () => {
  scene = await openScene();
});
afterEach(async () => {
  scene.handler.close();
  for (const close of closing.splice(0)) await close();
  await scene.redrive.close();
});

async function listen(listener: RequestListener): Promise<string> {
  const server: Server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => new Promise((resolve) => (server.close(resolve), server.closeAllConnections())));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** What must work behind every server. */
async function works(url: string): Promise<void> {
  const client = createClient({ url, token: "admin" });
  const { id } = await client.jobs.enqueue({ type: "x", payload: { a: 1 } });
  expect(await client.jobs.get({ id })).toMatchObject({ id, payload: { a: 1 } });
  expect(await client.jobs.payload({ id: scene.dead })).toBe(PAYLOAD);
  expect(await client.jobs.list({ state: "dead", limit: 1 })).toMatchObject({
    items: [{ state: "dead" }],
    next: expect.any(String),
  });
  const answers = [];
  for await (const answer of client.enqueueMany([
    { type: "x", payload: 1 },
    { type: "", payload: 2 },
  ]))
    answers.push(answer);
  expect(answers).toMatchObject([
    { line: 1, duplicate: false },
    { line: 2, error: { code: "invalid_argument" } },
  ]);
  const stop = new AbortController();
  for await (const message of client.follow({ after: 0, signal: stop.signal })) {
    expect(message).toMatchObject({ kind: "row", id: 1 });
    stop.abort();
    break;
  }
  await expect(client.jobs.get({ id: "none" })).rejects.toBeInstanceOf(RedriveHttpError);
  await expect(client.jobs.get({ id: "none" })).rejects.toMatchObject({ status: 404, code: "not_found" });
}

describe("the handler", () => {
  it("works in a plain server", async () => works(await listen(toNode(scene.handler))));

  it("works in Express below a path, which gets its slash", async () => {
    const app = express();
    app.use("/redrive", toNode(scene.handler) as never);
    const url = await listen(app as unknown as RequestListener);
    await works(`${url}/redrive`);
    const response = await fetch(`${url}/redrive`, { redirect: "manual" });
    expect([response.status, response.headers.get("location")]).toEqual([308, "redrive/"]);
  });

  it("works behind express.json(), except where the bytes of a payload are lost", async () => {
    const app = express();
    app.use(express.json());
    app.use("/redrive", toNode(scene.handler) as never);
    const client = createClient({ url: `${await listen(app as unknown as RequestListener)}/redrive`, token: "admin" });
    expect(await client.pauses.set({ kind: "queue", name: "mail", reason: "full" })).toMatchObject({ paused: true });
    await expect(client.jobs.enqueue({ type: "x", payload: {} })).rejects.toMatchObject({
      status: 415,
      hint: expect.stringContaining("express.json"),
    });
  });

  it("works in Fastify as a plugin", async () => {
    const app = fastify();
    await app.register(fastifyRedrive as never, { handler: scene.handler, prefix: "/redrive" } as never);
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    closing.push(() => app.close());
    await works(`${url}/redrive`);
  });

  it("works in Koa, beside what the application has", async () => {
    const app = new Koa();
    app.use(koaRedrive(scene.handler, { prefix: "/redrive" }) as never);
    app.use((context: { body: string }) => void (context.body = "mine"));
    const url = await listen(app.callback());
    await works(`${url}/redrive`);
    expect(await (await fetch(`${url}/other`)).text()).toBe("mine");
  });
});

describe("a server", () => {
  it("refuses long headers, and ends without waiting for streams", async () => {
    const { port, close } = await serveHttp(scene.handler, { port: 0, host: "127.0.0.1" });
    const answer = await new Promise<string>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => {
        socket.write("GET /live HTTP/1.1\r\nhost: 127.0.0.1\r\n");
        for (let at = 0; at < 10_000; at++) socket.write(`x-${at}: y\r\n`);
        socket.write("\r\n");
      });
      socket.on("error", () => undefined);
      socket.once("data", (data) => resolve(String(data).split("\r\n")[0] ?? ""));
    });
    expect(answer).toContain("431");
    const stream = await fetch(`http://127.0.0.1:${port}/api/v1/events/stream`, {
      headers: { authorization: "Bearer viewer" },
    });
    expect(scene.handler.streams).toBe(1);
    await close();
    await stream.body?.cancel().catch(() => undefined);
    expect(scene.handler.streams).toBe(0);
  });

  it("keeps nothing of an upload that its sender gave up", async () => {
    const { port, close } = await serveHttp(scene.handler, { port: 0, host: "127.0.0.1" });
    const before = await scene.redrive.jobs.count();
    await new Promise<void>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => {
        socket.write(
          'POST /api/v1/jobs HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer admin\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{"type":',
        );
        socket.destroy();
      });
      socket.on("close", () => resolve());
    });
    await close();
    expect(await scene.redrive.jobs.count()).toEqual(before);
  });
});

describe("the table of paths of the client", () => {
  it("is that of the routes", () => {
    const rows = ROUTES.map(({ name, method, path, query }) => [name, [method, path, Object.keys(query)]]);
    expect(PATHS).toEqual(Object.fromEntries(rows));
  });

  it.each(ROUTES.map((route) => [route.name, route] as const))(
    "%s has no field of one name in two places",
    (_name, { params, query, body }) => {
      const fields =
        typeof body === "object" && body !== null && "entries" in body ? Object.keys(body.entries as object) : [];
      const all = [...Object.keys(params), ...Object.keys(query), ...fields];
      expect(all).toHaveLength(new Set(all).size);
    },
  );
});
