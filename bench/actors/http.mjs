// A process that serves: the API as `redrive up` serves it, or the least that a program would write around `enqueue`. Told
// `cpu` it says what it has used so far; told a number it enqueues so many jobs itself, through `enqueueMany`.
import { once } from "node:events";
import { createServer } from "node:http";
import { httpHandler, openAccess } from "../../dist/http/index.js";
import { serveHttp } from "../../dist/http/serve.js";
import { createRedrive } from "../../dist/index.js";
import { realSystem } from "../../dist/system/real.js";

/** No process of a benchmark lives longer, whatever it waits for. */
const LONGEST_MS = 3_600_000;
const [role, store, adminToken] = process.argv.slice(2);
const redrive = await createRedrive({ store, log: "silent" });

async function api() {
  const access = openAccess({ store: redrive.store, system: realSystem, adminToken, port: () => 0, isSecure: false });
  const { port } = await serveHttp(httpHandler(redrive, { auth: access }), { port: 0, host: "127.0.0.1" });
  return port;
}

/** Reads a body, parses it, enqueues, answers. */
async function bare() {
  const server = createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => void answer(Buffer.concat(parts).toString(), response));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server.address().port;
}

async function answer(text, response) {
  const { type, payload } = JSON.parse(text);
  const job = await redrive.enqueue(type, payload);
  response.writeHead(201, { "content-type": "application/json" });
  response.end(JSON.stringify(job));
}

function* inputs(count) {
  for (let at = 0; at < count; at++) yield { customer: `c-${at}`, url: "https://example.com/orders/123456", at };
}

const port = await { api, bare }[role]();
async function hear(word) {
  if (typeof word === "number") {
    const began = performance.now();
    await redrive.enqueueMany("many", inputs(word));
    process.send(performance.now() - began);
    return;
  }
  const { user, system } = process.cpuUsage();
  process.send((user + system) / 1_000);
}
process.on("message", (word) => void hear(word));
process.once("disconnect", () => process.exit(1));
setTimeout(() => process.exit(1), LONGEST_MS);
process.send(port);
