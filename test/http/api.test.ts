// What the API does with good and bad input, in process: a Request in, a Response out.
import { afterEach, describe, expect, it } from "vitest";
import { httpHandler } from "../../src/http/index.ts";
import { PREFIX, ROUTES } from "../../src/http/routes.ts";
import type { Route } from "../../src/http/route.ts";
import { auth, openScene, PAYLOAD, requestFor, samplesOf, type Scene } from "./scene.ts";

let scene: Scene;
afterEach(() => scene.redrive.close());

interface Asking {
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: NonNullable<RequestInit["body"]>;
  readonly media?: string;
}

async function ask(method: string, path: string, { token = "admin", headers = {}, body, media }: Asking = {}) {
  const type = body === undefined ? {} : { "content-type": media ?? "application/json" };
  const init = { method, headers: { authorization: `Bearer ${token}`, ...type, ...headers }, duplex: "half" };
  const response = await scene.handler(
    new Request(`http://127.0.0.1:1${PREFIX}${path}`, { ...init, ...(body !== undefined && { body }) } as RequestInit),
  );
  const text = await response.text();
  const isJson = response.headers.get("content-type") === "application/json" && text !== "";
  return {
    status: response.status,
    headers: response.headers,
    text,
    // oxlint-disable-next-line typescript/no-explicit-any
    document: isJson ? (JSON.parse(text) as any) : null,
  };
}

describe("payloads", () => {
  it("go in and out byte for byte, also with numbers beyond 2^53", async () => {
    scene = await openScene();
    const { document } = await ask("POST", "/jobs", { body: `{"type":"x", "payload": ${PAYLOAD} , "key":"a"}` });
    const { text, headers } = await ask("GET", `/jobs/${document.id}/payload`);
    expect(text).toBe(PAYLOAD);
    expect((await ask("GET", `/jobs/${document.id}`)).text).toContain(`"payload":${PAYLOAD}`);
    const again = await ask("GET", `/jobs/${document.id}/payload`, {
      headers: { "if-none-match": headers.get("etag") ?? "" },
    });
    expect(again.status).toBe(304);
  });

  it("are edited only where they are still the ones that were seen", async () => {
    scene = await openScene();
    const { headers } = await ask("GET", `/jobs/${scene.dead}/payload`);
    const etag = headers.get("etag") ?? "";
    const body = '{"n": 12345678901234567890}';
    expect(await ask("PUT", `/jobs/${scene.dead}/payload`, { body, headers: { "if-match": '"other"' } })).toMatchObject(
      { status: 412 },
    );
    expect(await ask("PUT", `/jobs/${scene.dead}/payload`, { body, headers: { "if-match": etag } })).toMatchObject({
      status: 200,
    });
    expect((await ask("GET", `/jobs/${scene.dead}/payload`)).text).toBe(body);
    expect((await ask("PUT", `/jobs/${scene.dead}/payload`, { body: '{"n":"no"}' })).document.code).toBe(
      "invalid_payload",
    );
  });

  it("are shown only with the right to see them, and each look is in the event log", async () => {
    scene = await openScene();
    const { document } = await ask("GET", `/jobs/${scene.dead}`, { token: "viewer" });
    expect(Object.keys(document)).not.toEqual(expect.arrayContaining(["payload"]));
    expect(document).not.toHaveProperty("result");
    await ask("GET", `/jobs/${scene.dead}`, { token: "viewer+payloads", headers: { "x-request-id": "look-1" } });
    await ask("GET", `/jobs/${scene.dead}`, { token: "viewer+payloads" });
    const { items } = (await ask("GET", "/events?kind=payload.viewed")).document;
    expect(items).toMatchObject([{ actor: "viewer-1", subject: `job:${scene.dead}`, value: { request: "look-1" } }]);
  });
});

describe("the event log", () => {
  it("has actor and request of each change, and hides them from those who may not audit", async () => {
    scene = await openScene();
    const done = await ask("PUT", "/pauses/queue/mail", {
      token: "operator",
      body: '{"why":"full"}',
      headers: { "x-request-id": "r-7" },
    });
    expect(done.status).toBe(200);
    const whole = (await ask("GET", "/events?kind=pause&oldest=true")).document.items;
    expect(whole[0]).toMatchObject({
      actor: "operator-1",
      why: "full",
      subject: "queue:mail",
      value: { step: "intent", request: "r-7" },
    });
    const cut = (await ask("GET", "/events?kind=pause&oldest=true", { token: "viewer" })).document.items;
    expect(cut[0]).not.toHaveProperty("actor");
    expect(cut[0]).toMatchObject({ subject: "queue:mail", value: { step: "intent" } });
    expect(await ask("GET", "/events?actor=operator-1", { token: "viewer" })).toMatchObject({ status: 403 });
  });
});

describe("NDJSON", () => {
  const lines = (count: number): string =>
    Array.from({ length: count }, (_, at) => `{"type":"bulk","payload":{"at":${at}},"id":"b-${at}"}\n`).join("");

  it("is read line by line, and every line has its answer", async () => {
    scene = await openScene();
    const body = `${lines(2_500)}{"type":"bulk"}\nnot json\n\n{"type":"bulk","payload":1,"id":"b-0"}`;
    const { text, status } = await ask("POST", "/jobs", { body, media: "application/x-ndjson" });
    expect(status).toBe(200);
    const answers = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { line: number; id?: string; error?: { code: string }; duplicate?: boolean });
    expect(answers).toHaveLength(2_503);
    expect(answers[2_499]).toMatchObject({ line: 2_500, id: "b-2499", duplicate: false });
    expect(answers[2_500]).toMatchObject({ line: 2_501, error: { code: "invalid_argument" } });
    expect(answers[2_501]?.error?.code).toBe("invalid_argument");
    expect(answers[2_502]).toMatchObject({ line: 2_504, id: "b-0", duplicate: true });
    expect((await scene.redrive.jobs.count()).queued).toBe(2_501);
  });

  it("that breaks off keeps the lines before, and says so", async () => {
    scene = await openScene();
    const whole = new TextEncoder().encode(lines(3));
    const body = new ReadableStream({
      pull(controller) {
        if (controller.desiredSize === 0) return;
        controller.enqueue(whole);
        controller.error(new Error("gone"));
      },
    });
    const { text } = await ask("POST", "/jobs", { body, media: "application/x-ndjson" }).catch(() => ({ text: "" }));
    const left = (await scene.redrive.jobs.list({ type: "bulk" })).items.length;
    expect(text.split("\n").filter((line) => line.includes('"id"'))).toHaveLength(left);
  });
});

describe("bad input", () => {
  const SQL = ["' or 1=1 --", "1; drop table job", '"; select pg_sleep(9)', "%27", "\\", "a%00b", "𝕏".repeat(200)];

  it.each([
    "jobs.list",
    "letters.list",
    "letters.stats",
    "runs.list",
    "events.list",
    "stuck.list",
    "causes.list",
    "redrives.list",
  ])("in every filter of %s finds nothing or is refused, and changes nothing", async (name) => {
    scene = await openScene();
    const route = ROUTES.find((each) => each.name === name) as Route;
    const before = await scene.redrive.jobs.count();
    for (const field of Object.keys(route.query))
      for (const text of SQL) {
        const { status } = await ask("GET", `${route.path}?${field}=${encodeURIComponent(text)}`);
        expect.soft([200, 400], `${field}=${text}: ${status}`).toContain(status);
      }
    expect(await scene.redrive.jobs.count()).toEqual(before);
  });

  it("names the nearest parameter, and refuses one given twice", async () => {
    scene = await openScene();
    expect((await ask("GET", "/jobs?stat=dead")).document.message).toContain('did you mean "state"?');
    expect(await ask("GET", "/jobs?type=a&type=b")).toMatchObject({ status: 400 });
    expect((await ask("POST", "/jobs", { body: '{"typ":"a","payload":1}' })).document.message).toContain(
      'did you mean "type"?',
    );
    expect((await ask("GET", "/jbs")).document.hint).toContain("/jobs");
    expect(await ask("PATCH", "/jobs")).toMatchObject({ status: 405, document: { code: "method_not_allowed" } });
  });

  it.each([
    ["a prototype key", '{"type":"a","payload":1,"__proto__":{"role":"admin"}}', 400],
    ["a constructor", '{"type":"a","payload":1,"constructor":{}}', 400],
    ["a depth of 1,000", `{"type":"a","payload":${"[".repeat(1_000)}${"]".repeat(1_000)}}`, 413],
    ["ten megabytes", `{"type":"a","payload":"${"x".repeat(10_000_000)}"}`, 413],
    ["no JSON", "{", 400],
    ["no object", "[1]", 400],
    ["bytes that are no text", new Uint8Array([0x7b, 0xff, 0xfe]), 400],
    ["a wrong type of field", '{"type":5,"payload":1}', 400],
    ["no payload", '{"type":"a"}', 400],
    ["a priority that is none", '{"type":"a","payload":1,"priority":99}', 400],
  ])("as %s is refused, and nothing is stored", async (_what, body, status) => {
    scene = await openScene();
    const before = await scene.redrive.jobs.count();
    const answer = await ask("POST", "/jobs", { body: body as NonNullable<RequestInit["body"]> });
    expect(answer.status, answer.text.slice(0, 200)).toBe(status);
    expect(await scene.redrive.jobs.count()).toEqual(before);
  });

  it("without a length is cut off where it gets too long", async () => {
    scene = await openScene();
    let sent = 0;
    const body = new ReadableStream({
      pull(controller) {
        sent += 1;
        controller.enqueue(new Uint8Array(65_536).fill(32));
        if (sent > 1_000) controller.close();
      },
    });
    expect(await ask("POST", "/jobs", { body })).toMatchObject({ status: 413 });
    expect(sent).toBeLessThan(100);
  });

  it("of the application itself is refused: auth is no default", () => {
    expect(() => httpHandler(scene.redrive, {} as never)).toThrow(/auth: expected a function/);
    expect(() => httpHandler(scene.redrive, { auth, basePath: "redrive/" })).toThrow(/basePath/);
  });
});

describe("bulk", () => {
  it("does nothing where there are more or fewer than the caller saw", async () => {
    scene = await openScene();
    for (let at = 0; at < 20; at++) await scene.redrive.enqueue("fine", { at }, { delay: "1h" });
    const body = (count: number) =>
      JSON.stringify({ action: "cancel", target: { filter: { type: "fine", state: "queued" } }, expect: { count } });
    expect((await ask("POST", "/bulk", { body: body(5) })).document).toMatchObject({
      code: "conflict",
      details: { expected: 5, found: 11 },
    });
    expect((await scene.redrive.jobs.count()).cancelled).toBe(0);
    expect((await ask("POST", "/bulk", { body: body(20) })).document).toMatchObject({ cancelled: 21 });
  });

  it("removes only for an admin", async () => {
    scene = await openScene();
    const body = JSON.stringify({ action: "remove", target: { ids: [scene.dead] } });
    expect(await ask("POST", "/bulk", { body, token: "operator+payloads" })).toMatchObject({ status: 403 });
    expect((await ask("POST", "/bulk", { body })).document).toMatchObject({ removed: 1 });
  });
});

describe("limits", () => {
  it("let an operator write 100 times a second", async () => {
    let now = 0;
    scene = await openScene({}, () => now);
    const write = async (times: number): Promise<number[]> => {
      const statuses: number[] = [];
      for (let at = 0; at < times; at++)
        statuses.push((await ask("DELETE", "/pauses/queue/none", { token: "operator" })).status);
      return statuses;
    };
    expect(await write(102)).toEqual([...Array.from({ length: 100 }, () => 200), 429, 429]);
    now += 20;
    expect(await write(3)).toEqual([200, 200, 429]);
  });

  it("let so many enqueues be open at once", async () => {
    scene = await openScene({ openEnqueues: 1 });
    const held = new ReadableStream({ pull: () => new Promise(() => undefined) });
    const headers = { authorization: "Bearer producer", "content-type": "application/x-ndjson" };
    const open = await scene.handler(
      new Request(`http://127.0.0.1:1${PREFIX}/jobs`, {
        method: "POST",
        headers,
        body: held,
        duplex: "half",
      } as RequestInit),
    );
    const second = await ask("POST", "/jobs", { token: "producer", body: '{"type":"a","payload":1}' });
    expect(second).toMatchObject({ status: 429 });
    expect(second.headers.get("retry-after")).toBe("1");
    await open.body?.cancel();
    expect(await ask("POST", "/jobs", { token: "producer", body: '{"type":"a","payload":1}' })).toMatchObject({
      status: 201,
    });
  });

  it("slow an address down that guesses tokens", async () => {
    scene = await openScene();
    const statuses = [];
    for (let at = 0; at < 13; at++) statuses.push((await ask("GET", "/jobs", { token: "guess" })).status);
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429, 429, 429]);
    expect((await ask("GET", "/jobs")).status).toBe(200);
  });
});

describe("idempotency", () => {
  it("makes one job of an id, and one run of a plan", async () => {
    scene = await openScene();
    const body = '{"type":"a","payload":1}';
    const first = await ask("POST", "/jobs", { body, headers: { "idempotency-key": "once" } });
    const second = await ask("POST", "/jobs", { body, headers: { "idempotency-key": "once" } });
    expect([first.status, second.status, first.document.id, second.document.duplicate]).toEqual([
      201,
      200,
      "once",
      true,
    ]);
    const { document: plan } = await ask("POST", "/plans", {
      body: JSON.stringify({ selection: { ids: [scene.dead] } }),
    });
    const start = () => ask("PUT", `/redrives/${plan.run}`, { body: '{"alongside":true}' });
    expect((await start()).document).toMatchObject({ id: plan.run, state: "running", by: "admin-1" });
    expect((await start()).status).toBe(200);
  });

  it("changes a cause only where it is still as it was seen", async () => {
    scene = await openScene();
    const { document } = await ask("GET", `/causes/${scene.fingerprint}`);
    const change = (revision: string, note: string) =>
      ask("PATCH", `/causes/${scene.fingerprint}`, {
        body: JSON.stringify({ note }),
        headers: { "if-match": `"${revision}"` },
      });
    expect((await change(document.revision, "one")).document).toMatchObject({ note: "one" });
    expect((await change(document.revision, "two")).status).toBe(412);
  });
});

describe("the store is away", () => {
  it("is said with 503 and when to try again, and without a trace", async () => {
    scene = await openScene();
    scene.redrive.storeDown();
    const { status, headers, document } = await ask("GET", "/jobs");
    expect([status, headers.get("retry-after"), document.code]).toEqual([503, "1", "store_unavailable"]);
    expect(JSON.stringify(document)).not.toMatch(/at .*\.ts:/);
    scene.redrive.storeUp();
  });
});

describe("events", () => {
  it("are streamed from where the last stream ended, each once", async () => {
    scene = await openScene();
    const read = async (after: number, count: number): Promise<number[]> => {
      const controller = new AbortController();
      const response = await scene.handler(
        new Request(`http://127.0.0.1:1${PREFIX}/events/stream`, {
          headers: { authorization: "Bearer admin", "last-event-id": String(after) },
          signal: controller.signal,
        }),
      );
      const seen: number[] = [];
      let text = "";
      for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
        text += new TextDecoder().decode(part);
        seen.splice(0, seen.length, ...[...text.matchAll(/id: (\d+)\nevent: row/g)].map(([, id]) => Number(id)));
        if (seen.length >= count) break;
      }
      controller.abort();
      return seen;
    };
    const all = (await scene.redrive.events({ oldest: true })).items.map(({ seq }) => seq);
    expect(all.length).toBeGreaterThan(2);
    expect(await read(0, all.length)).toEqual(all);
    expect(await read(all[0] as number, all.length - 1)).toEqual(all.slice(1));
    expect(scene.handler.streams).toBe(0);
  });

  it("have at most 100 streams, which end with their requests", async () => {
    scene = await openScene();
    const route = ROUTES.find(({ name }) => name === "events.stream") as Route;
    const open = await Promise.all(
      Array.from({ length: 101 }, () =>
        scene.handler(requestFor(route, samplesOf(scene)["events.stream"], { authorization: "Bearer viewer" })),
      ),
    );
    expect(open.filter(({ status }) => status === 429)).toHaveLength(1);
    expect(scene.handler.streams).toBe(100);
    scene.handler.close();
    expect(scene.handler.streams).toBe(0);
  });
});
