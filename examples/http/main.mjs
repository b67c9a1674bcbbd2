// The API mounted in servers of several kinds, one after the other; a job goes in through each of them, and comes out.
//   node examples/http/main.mjs
import { once } from "node:events";
import { createServer } from "node:http";
import express from "express";
import fastify from "fastify";
import Koa from "koa";
import { Hono } from "hono";
import { serve } from "@hono/node-server";
import { createRedrive } from "redrive";
import { createClient } from "redrive/client";
import { fastifyRedrive, httpHandler, koaRedrive, toNode } from "redrive/http";

const TOKEN = "a token of your own";

const redrive = await createRedrive({ store: "memory:", log: "silent" });
const handler = httpHandler(redrive, {
  // A session of yours, a header of your proxy: whatever says who calls.
  auth: (request) =>
    request.headers.get("authorization") === `Bearer ${TOKEN}` ? { actor: "example", role: "admin" } : null,
});

async function listen(listener) {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: server.address().port, close: () => server.close() };
}

const SERVERS = {
  "node:http": () => listen(toNode(handler)),
  Express: () => listen(express().use("/redrive", toNode(handler))),
  async Fastify() {
    const app = fastify();
    await app.register(fastifyRedrive, { handler, prefix: "/redrive" });
    await app.listen({ port: 0, host: "127.0.0.1" });
    return { port: app.server.address().port, close: () => app.close() };
  },
  Koa: () => listen(new Koa().use(koaRedrive(handler, { prefix: "/redrive" })).callback()),
  async Hono() {
    const app = new Hono();
    app.mount("/redrive", (request) => handler(request));
    const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
    await once(server, "listening");
    return { port: server.address().port, close: () => server.close() };
  },
};

/** What Next, Bun and Deno call: a function from Request to Response. */
async function withoutServer() {
  const own = httpHandler(redrive, { auth: () => ({ actor: "example", role: "viewer" }), basePath: "/redrive" });
  const response = await own(new Request("http://localhost/redrive/api/v1/jobs"));
  return (await response.json()).items.length;
}

try {
  for (const [name, start] of Object.entries(SERVERS)) {
    const { port, close } = await start();
    const path = name === "node:http" ? "" : "/redrive";
    const client = createClient({ url: `http://127.0.0.1:${port}${path}`, token: TOKEN });
    const { id } = await client.jobs.enqueue({ type: "hello", payload: { from: name } });
    const { payload } = await client.jobs.get({ id });
    if (payload.from !== name) throw new Error(`${name} lost its job.`);
    process.stdout.write(`✓ ${name}\n`);
    await close();
  }
  process.stdout.write(`✓ Request to Response: ${await withoutServer()} jobs\n`);
} finally {
  await redrive.close();
}
