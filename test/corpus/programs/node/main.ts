// Runs every cause once and writes one line of JSON for each error. How the calls are nested around a cause depends on
// CORPUS_WAY, as in services that a queue, a timer or a plain loop calls.

import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type Cause, type Data, dataOf } from "./data.ts";
import { causes as importer } from "./services/importer.ts";
import { causes as invoices } from "./services/invoices.ts";
import { causes as mail } from "./services/mail.ts";
import { causes as orders } from "./services/orders.ts";
import { causes as scraper } from "./services/scraper.ts";

const all: Cause[] = [...orders, ...invoices, ...mail, ...importer, ...scraper];
const places = process.env as { CORPUS_FOLDER: string; CORPUS_SEED: string; CORPUS_WAY: string };

/** Answers as the first part of the path says: a status, HTML, late, or with a reset. */
function badServer(): Server {
  return createServer((request, response) => {
    const [, how = ""] = (request.url ?? "").split("/");
    if (how === "reset") return void request.socket.destroy();
    if (how === "slow") return void setTimeout(() => response.end("{}"), 2_500).unref();
    if (/^\d+$/.test(how)) response.statusCode = Number(how);
    response.end(`<!doctype html><p>${request.url}</p>`);
  });
}

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

class QueueWorker {
  async execute(cause: Cause, d: Data): Promise<unknown> {
    return await this.attempt(cause[1], d);
  }
  private async attempt(run: Cause[1], d: Data): Promise<unknown> {
    const started = Date.now();
    const answer = await run(d);
    return [started, answer];
  }
}

const WAYS: Record<string, (cause: Cause, d: Data) => Promise<unknown>> = {
  loop: async ([, run], d) => await run(d),
  queue: (cause, d) => new QueueWorker().execute(cause, d),
  timer: ([, run], d) =>
    new Promise((resolve, reject) => {
      setImmediate(() => {
        try {
          resolve(run(d));
        } catch (error) {
          reject(error);
        }
      });
    }),
};

/** What a queue can read of an error: its texts, its code and status, and the errors within it. */
function textsOf(thrown: unknown, depth = 0): Record<string, unknown> {
  if (typeof thrown !== "object" || thrown === null) return { thrown };
  const error = thrown as Error & { code?: unknown; status?: unknown; errors?: unknown[] };
  const within = error.cause !== undefined && depth < 4 ? { causedBy: textsOf(error.cause, depth + 1) } : {};
  const list = error instanceof AggregateError && depth < 4 ? error.errors.slice(0, 2) : [];
  return {
    name: error.name,
    message: error.message,
    stack: error.stack,
    ...(typeof error.code === "string" ? { code: error.code } : {}),
    ...(typeof error.status === "number" ? { status: error.status } : {}),
    ...within,
    ...(list.length > 0 ? { errors: list.map((each) => textsOf(each, depth + 1)) } : {}),
  };
}

async function main(): Promise<void> {
  const folder = places.CORPUS_FOLDER;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "kept.txt"), "");
  const server = badServer();
  const base = await listening(server);
  const gone = createServer();
  const closed = await listening(gone);
  await new Promise((resolve) => gone.close(resolve));
  const run = WAYS[places.CORPUS_WAY] as (cause: Cause, d: Data) => Promise<unknown>;
  for (const [i, cause] of all.entries()) {
    const d = dataOf(Number(places.CORPUS_SEED) * 7919 + i * 104_729, { folder, base, closed });
    const line = await run(cause, d).then(
      () => ({ cause: cause[0], missing: true }),
      (error: unknown) => ({ cause: cause[0], ...textsOf(error) }),
    );
    process.stdout.write(`${JSON.stringify(line)}\n`);
  }
  server.closeAllConnections();
  server.close();
}

void main();
