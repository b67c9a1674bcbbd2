// What an attack on the API has found once: each of these was wrong.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { toNode } from "../../src/http/index.ts";
import { PREFIX } from "../../src/http/routes.ts";
import { openStreams } from "../../src/http/streams.ts";
import { realSystem } from "../../src/system/real.ts";
import { openScene, type Scene } from "./scene.ts";

let scene: Scene;
afterEach(() => scene.redrive.close());

interface Asked {
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: NonNullable<RequestInit["body"]>;
  readonly media?: string;
}

const asking = (method: string, path: string, { token = "admin", headers = {}, body, media }: Asked = {}): Request =>
  new Request(`http://127.0.0.1:1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body !== undefined && { "content-type": media ?? "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body, duplex: "half" }),
  } as RequestInit);

async function ask(method: string, path: string, asked?: Asked) {
  const response = await scene.handler(asking(method, `${PREFIX}${path}`, asked));
  const text = await response.text();
  return {
    status: response.status,
    text,
    // oxlint-disable-next-line typescript/no-explicit-any
    document: (text.startsWith("{") ? JSON.parse(text.split("\n")[0] ?? "") : null) as any,
  };
}

describe("lines", () => {
  const NDJSON = "application/x-ndjson";

  it("answers a sender that waits for its answer before it sends more", async () => {
    scene = await openScene();
    let end = (): void => undefined;
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('{"type":"x","payload":1,"id":"first"}\n'));
        end = () => controller.close();
      },
    });
    const response = await scene.handler(asking("POST", `${PREFIX}/jobs`, { body, media: NDJSON }));
    const reader = response.body?.getReader();
    const { value } = (await reader?.read()) ?? {};
    expect(JSON.parse(new TextDecoder().decode(value))).toMatchObject({ line: 1, id: "first", known: false });
    end();
    expect((await reader?.read())?.done).toBe(true);
  });

  it("refuses one line that is no text or too long, and takes the others", async () => {
    scene = await openScene();
    const line = (id: string) => Buffer.from(`{"type":"x","payload":1,"id":"${id}"}\r\n`);
    const long = Buffer.from(`{"type":"x","payload":"${"y".repeat(2_000_000)}"}\n`);
    const bytes = Buffer.concat([
      Buffer.from("\ufeff"),
      line("a"),
      Buffer.from([0xff, 10]),
      line("b"),
      long,
      line("c"),
    ]);
    const body = new ReadableStream({
      start(controller) {
        for (let at = 0; at < bytes.byteLength; at += 10_000) controller.enqueue(bytes.subarray(at, at + 10_000));
        controller.close();
      },
    });
    const { text } = await ask("POST", "/jobs", { body, media: NDJSON });
    const answers = text
      .trim()
      .split("\n")
      .map((each) => JSON.parse(each) as { line: number; id?: string; error?: { code: string } });
    expect(answers.map(({ line: at, id, error }) => [at, id ?? error?.code])).toEqual([
      [1, "a"],
      [2, "invalid_argument"],
      [3, "b"],
      [4, "payload_too_large"],
      [5, "c"],
    ]);
  });
});

describe("a call that is sent twice", () => {
  it("makes one extra job of a schedule", async () => {
    scene = await openScene();
    const run = () => ask("POST", "/schedules/nightly/run", { body: "{}", headers: { "idempotency-key": "extra-1" } });
    expect([(await run()).document.id, (await run()).document.id]).toEqual(["extra-1", "extra-1"]);
    expect((await scene.redrive.jobs.list({ type: "fine" })).items.filter(({ id }) => id === "extra-1")).toHaveLength(
      1,
    );
  });

  it("retries a job once, although it has died again in between", async () => {
    scene = await openScene();
    const { generation } = (await ask("GET", `/jobs/${scene.dead}`)).document;
    const retry = () => ask("POST", `/jobs/${scene.dead}/retry`, { body: JSON.stringify({ generation }) });
    expect((await retry()).document).toMatchObject({ redriven: 1 });
    await scene.redrive.drain();
    expect((await retry()).document).toMatchObject({ redriven: 0, rescheduled: 0 });
    expect((await ask("GET", `/jobs/${scene.dead}`)).document).toMatchObject({
      state: "dead",
      generation: generation + 1,
    });
    const body = JSON.stringify({ generation: generation + 5 });
    expect(await ask("POST", `/jobs/${scene.dead}/retry`, { body })).toMatchObject({ status: 412 });
  });
});

describe("a number beyond 2^53", () => {
  it("in the input of a schedule is refused, because it could not be kept", async () => {
    scene = await openScene();
    const body = '{"every":"1h","job":"fine","input":{"n":9007199254740993}}';
    expect(await ask("PUT", "/schedules/big", { body })).toMatchObject({
      status: 422,
      document: { code: "invalid_payload" },
    });
    expect((await scene.redrive.schedules.list()).map(({ name }) => name)).not.toContain("big");
  });
});

describe("the event log without the right to audit", () => {
  it("names no person, also not as the owner of a token or by a filter", async () => {
    scene = await openScene();
    const value = JSON.stringify({ step: "done" });
    await scene.redrive.store.record([{ kind: "token.add", actor: "root", why: null, subject: "token:grace", value }]);
    expect((await ask("GET", "/events?kind=token.add", { token: "admin" })).text).toContain("grace");
    expect((await ask("GET", "/events?kind=token.add", { token: "viewer" })).text).not.toMatch(/grace|root/);
    for (const subject of ["token:grace", `job:${scene.dead}`])
      expect(await ask("GET", `/events?subject=${subject}`, { token: "viewer" })).toMatchObject({ status: 403 });
  });
});

describe("HEAD", () => {
  it("opens no stream that nothing would close", async () => {
    scene = await openScene();
    expect(await ask("HEAD", "/events/stream")).toMatchObject({ status: 200, text: "" });
    expect(scene.handler.streams).toBe(0);
  });
});

describe("Accept", () => {
  it.each([
    ["text/html", 406],
    ["application/json;q=0", 406],
    ["text/html, */*;q=0.1", 200],
    ["application/*", 200],
  ])("%s is answered with %i", async (accept, status) => {
    scene = await openScene();
    expect(await ask("GET", "/queues", { headers: { accept } })).toMatchObject({ status });
  });
});

describe("the base path", () => {
  it("is part of the paths of a plain server", async () => {
    scene = await openScene({ basePath: "/redrive" });
    const server = createServer(toNode(scene.handler));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const statuses = [];
    for (const path of ["/redrive/live", "/live", `/redriveX${PREFIX}/session`])
      statuses.push((await fetch(`${url}${path}`)).status);
    expect(statuses).toEqual([200, 404, 404]);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it("and the prefix of a server are refused with a slash at their end", async () => {
    scene = await openScene();
    expect(() => toNode(scene.handler, { prefix: "/redrive/" })).toThrow(/prefix: expected a path/);
  });
});

describe("an event stream", () => {
  const reading = async (after: number, from = scene.redrive.store): Promise<string> => {
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const streams = openStreams({ redrive: { store: from }, system: realSystem, log });
    const stream = await streams.open(after, (event) => event, new AbortController().signal);
    let text = "";
    for await (const part of stream as unknown as AsyncIterable<Uint8Array>) {
      text += new TextDecoder().decode(part);
      if (text.includes("event: changed")) break;
    }
    streams.close();
    return text;
  };

  it("that resumes is told that everything may have changed", async () => {
    scene = await openScene();
    expect(await reading(0)).toMatch(/event: changed\ndata: \{"of":\["causes","control","events",/);
  });

  it("begins now where the number is of another store", async () => {
    scene = await openScene();
    const last = (await scene.redrive.events({ limit: 1 })).items[0]?.seq ?? 0;
    expect(await reading(999_999)).toContain(`id: ${last}\n`);
  });

  it("loses no row where the store fails between two pages", async () => {
    scene = await openScene();
    const rows = Array.from({ length: 450 }, () => ({
      kind: "note",
      actor: null,
      why: null,
      subject: null,
      value: "{}",
    }));
    await scene.redrive.store.record(rows);
    let asked = 0;
    const { store } = scene.redrive;
    const failing = {
      ...store,
      events: (query: Parameters<typeof store.events>[0]) =>
        query.oldest === true && ++asked === 3 ? Promise.reject(new Error("away")) : store.events(query),
    };
    const text = await reading(0, failing);
    const seen = [...text.matchAll(/id: (\d+)\nevent: row/g)].map(([, id]) => Number(id));
    const all = [];
    for (let cursor: string | null = "0"; cursor !== null; ) {
      const page: Awaited<ReturnType<typeof store.events>> = await store.events({ oldest: true, cursor, limit: 200 });
      all.push(...page.items.map(({ seq }) => seq));
      cursor = page.next;
    }
    expect(asked).toBeGreaterThan(3);
    expect(seen).toEqual(all);
  });
});
