// The Python client against a real server, with a front before it that breaks what the Python program asks for. Skipped
// where there is no Python 3.10; its types are checked where mypy is.
import { spawn, spawnSync } from "node:child_process";
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { importBuilt } from "../support/built.ts";
import { testPath } from "../support/database-file.ts";
import { identityOf } from "./scene.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const CLIENT = `${ROOT}clients/python/redrive_client.py`;
const python = (...args: string[]) => spawnSync("python3", args, { encoding: "utf8" });
const hasPython = python("-c", "import sys; sys.exit(sys.version_info < (3, 10))").status === 0;
const hasMypy = hasPython && python("-m", "mypy", "--version").status === 0;
if (!hasPython) console.log("There is no Python 3.10 here: its client is not tested.");

/** A real server of a queue with a worker. */
async function openServer(): Promise<{ readonly port: number; readonly broken: { is: boolean } }> {
  const { createRedrive, defineJob, PermanentError } =
    await importBuilt<typeof import("../../src/index.ts")>("index.js");
  const { httpHandler, toNode } = await importBuilt<typeof import("../../src/http/index.ts")>("http/index.js");
  const broken = { is: false };
  const run = (input: { file?: string }): object => {
    if (broken.is) throw new PermanentError("the bank says no");
    return { paid: input.file ?? null };
  };
  const jobs = [
    defineJob("pay", { run }),
    defineJob("odd", {
      run() {
        if (broken.is) throw new TypeError("odd is not even");
      },
      maxAttempts: 1,
    }),
  ];
  const redrive = await createRedrive({ store: `sqlite:${testPath()}`, jobs, log: "silent" });
  const worker = redrive.worker({ concurrency: 2 });
  await worker.start();
  const auth = (call: Request) => identityOf(call.headers.get("authorization")?.replace("Bearer ", "") ?? "");
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const handler = httpHandler(redrive, { auth, openEnqueues: 1, log });
  const server = createServer(toNode(handler));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    handler.close();
    server.closeAllConnections();
    server.close();
    await redrive.close();
  });
  return { port: (server.address() as AddressInfo).port, broken };
}

/** An enqueue that stays open, so that the server takes no other. */
function holdOpen(port: number): Promise<() => void> {
  const headers = { authorization: "Bearer operator", "content-type": "application/x-ndjson" };
  const held = request({ port, host: "127.0.0.1", path: "/api/v1/jobs", method: "POST", headers });
  held.on("error", () => undefined);
  held.write("\n");
  return new Promise((resolve) => held.on("response", (answer) => (answer.resume(), resolve(() => void held.end()))));
}

/** Passes requests on to the server, but for those that shall fail. */
async function openFront({ port, broken }: Awaited<ReturnType<typeof openServer>>): Promise<string> {
  let faults: string[] = [];
  let requests = 0;
  let release: (() => void) | null = null;
  const control = async (what: string, to: ServerResponse): Promise<void> => {
    if (what.startsWith("handler")) broken.is = what === "handler-down";
    else if (what === "full") release = await holdOpen(port);
    else faults = what === "count" ? [] : what.split(",");
    to.end(String(requests));
    requests = 0;
  };
  const pass = (from: IncomingMessage, to: ServerResponse, fault: string | undefined): void => {
    const { method, headers, url: path } = from;
    const sent = request({ port, host: "127.0.0.1", method, headers, path }, (answer) => {
      if (fault === "lost") return void answer.on("end", () => to.destroy()).resume();
      if (answer.statusCode === 429) {
        expect(answer.headers["retry-after"]).toBe("1");
        release?.();
      }
      const length = fault === "short" ? { "content-length": "100000" } : {};
      to.writeHead(answer.statusCode ?? 500, { ...answer.headers, ...length });
      if (fault === "short") answer.on("data", (part) => to.write(part)).on("end", () => to.destroy());
      else answer.pipe(to);
    });
    // The server has answered before it read the whole body.
    sent.on("error", () => void (to.headersSent ? from.resume() : to.destroy()));
    from.pipe(sent);
  };
  const front = createServer((from, to) => {
    const what = /^\/fault\/(.+)$/.exec(from.url ?? "")?.[1];
    if (what !== undefined) return void control(what, to);
    requests += 1;
    const fault = faults.shift();
    if (fault === "503") {
      const error = { code: "store_unavailable", message: "The store does not answer.", requestId: "r" };
      from.resume();
      to.writeHead(503, { "content-type": "application/json", "retry-after": "0" }).end(JSON.stringify(error));
    } else if (fault === "reset") from.socket.destroy();
    else if (fault !== "silent") pass(from, to, fault);
  });
  await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => (front.closeAllConnections(), void front.close()));
  return `http://127.0.0.1:${(front.address() as AddressInfo).port}`;
}

it.skipIf(!hasPython)("the Python client does what it says, whatever fails", { timeout: 120_000 }, async () => {
  const url = await openFront(await openServer());
  const env = {
    PATH: process.env["PATH"],
    REDRIVE_URL: url,
    PYTHONPATH: `${ROOT}clients/python`,
    PYTHONDONTWRITEBYTECODE: "1",
  };
  const child = spawn("python3", [`${ROOT}test/http/python-client.py`], { env });
  onTestFinished(() => void child.kill("SIGKILL"));
  let [out, err] = ["", ""];
  child.stdout.on("data", (part: Buffer) => (out += part.toString()));
  child.stderr.on("data", (part: Buffer) => (err += part.toString()));
  const code = await new Promise((resolve) => child.on("close", resolve));
  expect({ code, err }, out).toEqual({ code: 0, err: "" });
  expect(out).toContain("OK");
});

it.skipIf(!hasMypy)("the Python client is typed", { timeout: 120_000 }, () => {
  const { status, stdout } = python(
    "-m",
    "mypy",
    "--strict",
    "--python-version",
    "3.10",
    "--cache-dir=/dev/null",
    CLIENT,
  );
  expect({ status, stdout }).toMatchObject({ status: 0 });
});
