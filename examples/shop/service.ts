// The outside service: a real HTTP server on loopback that has the day `weather.ts` gives it, and keeps books of its
// own: what it was asked, and what it carried out for which key. The demo's books must agree with them in the end.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { pause } from "../kit/pause.ts";
import { seededDice } from "./dice.ts";
import type { PlannedJob } from "./orders.ts";
import { answerTo, type AnswerKind, type SeededFate, SERVICES, type ServiceName } from "./weather.ts";

/** What happened to one call. */
export interface Answered {
  readonly service: ServiceName;
  readonly order: number;
  /** `repeat`: carried out before under the same key, and not again. */
  readonly kind: AnswerKind | "repeat";
}

/** The service's own books, by key, which is the id of the job. */
export interface ServiceBooks {
  calls: number;
  /** Calls that met the outage. */
  down: number;
  /** How often each key was carried out. */
  readonly effects: Map<string, number>;
  /** How often a call came for a key that had been carried out already. */
  readonly repeats: Map<string, number>;
}

/** The service while it is up. */
export interface DemoService {
  readonly url: string;
  readonly ledger: ServiceBooks;
  /** Calls of a worker process that it has not answered yet. */
  inFlight(pid: number): number;
  /** From now on connections hold, and it makes no mistakes. */
  calmDown(): void;
  close(): Promise<void>;
}

/** What the service is made of. */
export interface DemoServiceOptions {
  readonly plan: readonly PlannedJob[];
  readonly seed: number;
  /** The time of the day, from 0. */
  readonly at: () => number;
  readonly onAnswer: (answered: Answered) => void;
}

interface Call {
  readonly service: ServiceName;
  readonly key: string;
  readonly worker: number;
  readonly order: number;
}

const STATUS: Readonly<Record<"error" | "limited" | "down" | "refused", readonly [status: number, error: string]>> = {
  error: [500, "something went wrong here"],
  limited: [429, "too many requests, come back in a second"],
  down: [503, "service unavailable"],
  refused: [403, "this account was closed"],
};
const MOST_BYTES = 65_536;

/** Opens the service on a free port of loopback. */
export async function openService(options: DemoServiceOptions): Promise<DemoService> {
  const { seed } = options;
  const fates = new Map(options.plan.map(({ order, fate }) => [order, fate]));
  const ledger: ServiceBooks = { calls: 0, down: 0, effects: new Map(), repeats: new Map() };
  const callsOf = new Map<number, number>();
  const reachedOf = new Map<number, number>();
  const flying = new Map<number, number>();
  let calm = false;

  const answer = async (call: Call, response: ServerResponse): Promise<void> => {
    const calls = count(callsOf, call.order);
    const fate: SeededFate = fates.get(call.order) ?? "fine";
    const earlier = reachedOf.get(call.order) ?? 0;
    const dice = seededDice(seed, call.order, calls);
    const { kind, latencyMs } = answerTo({ ...call, fate, earlier, at: options.at(), calm, dice });
    if (kind === "ok" || kind === "hang") count(reachedOf, call.order);
    ledger.calls += 1;
    if (kind === "down") ledger.down += 1;
    const tell = (told: Answered["kind"]): void => options.onAnswer({ ...call, kind: told });
    if (kind === "hang") return tell(kind);
    await pause(latencyMs / 2);
    if (kind === "ok") {
      // It is done here, whether or not the worker that asked lives to hear of it.
      const known = ledger.effects.has(call.key);
      count(known ? ledger.repeats : ledger.effects, call.key);
      tell(known ? "repeat" : "ok");
      await pause(latencyMs / 2);
      return send(response, 200, { carriedOut: true, repeated: known });
    }
    tell(kind);
    await pause(latencyMs / 2);
    if (kind === "reset") return void response.destroy();
    send(response, ...STATUS[kind]);
  };

  const server = createServer((request, response) => {
    response.on("error", () => undefined);
    void readCall(request).then((call) => {
      if (!call) return send(response, 400, "expected a call of the demo");
      count(flying, call.worker);
      response.on("close", () => flying.set(call.worker, (flying.get(call.worker) ?? 1) - 1));
      return answer(call, response);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.on("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ledger,
    inFlight: (pid) => flying.get(pid) ?? 0,
    calmDown: () => {
      calm = true;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function count<K>(counts: Map<K, number>, key: K): number {
  const next = (counts.get(key) ?? 0) + 1;
  counts.set(key, next);
  return next;
}

function send(response: ServerResponse, status: number, body: string | object): void {
  if (response.destroyed) return;
  const headers = { "content-type": "application/json", ...(status === 429 && { "retry-after": "1" }) };
  response.writeHead(status, headers).end(JSON.stringify(typeof body === "string" ? { error: body } : body));
}

/** The call in a request; null for one that is none of ours. */
async function readCall(request: IncomingMessage): Promise<Call | null> {
  try {
    let text = "";
    for await (const chunk of request) {
      text += String(chunk);
      if (text.length > MOST_BYTES) return null;
    }
    const service = SERVICES.find((name) => request.url === `/${name}`);
    const { order } = JSON.parse(text) as { readonly order?: unknown };
    const key = request.headers["idempotency-key"];
    if (!service || typeof key !== "string" || typeof order !== "number") return null;
    return { service, key, order, worker: Number(request.headers["x-worker"]) };
  } catch {
    return null;
  }
}
