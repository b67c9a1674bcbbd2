// Tokens in the store, sign-in by a link, sessions by cookie.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createRedrive, type Redrive } from "../../src/index.ts";
import {
  httpHandler,
  type HttpHandler,
  newSignInCode,
  openAccess,
  openTokens,
  type Tokens,
} from "../../src/http/index.ts";
import { PREFIX } from "../../src/http/routes.ts";
import { realSystem } from "../../src/system/real.ts";

const ADMIN = "0123456789abcdef0123456789abcdef";
const silent = { debug() {}, info() {}, warn() {}, error() {} };
let redrive: Redrive;
let handler: HttpHandler;
let tokens: Tokens;
let ahead: number;

function serve(port = 4180): HttpHandler {
  const system = {
    ...realSystem,
    now: () => realSystem.now() + ahead,
    monotonic: () => realSystem.monotonic() + ahead,
  };
  const auth = openAccess({ store: redrive.store, system, adminToken: ADMIN, port: () => port, isSecure: false });
  return httpHandler(redrive, { auth, log: silent }, { system });
}

beforeEach(async () => {
  ahead = 0;
  redrive = await createRedrive({ store: "memory:", log: "silent" });
  tokens = openTokens({ store: redrive.store, log: silent, actor: "root" });
  handler = serve();
});
afterEach(() => redrive.close());

const ask = (path: string, headers: Record<string, string>, method = "GET", body?: object, to = handler) =>
  to(
    new Request(`http://127.0.0.1:4180${PREFIX}${path}`, {
      method,
      headers: { ...headers, ...(body && { "content-type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) }),
    }),
  );
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const page = { origin: "http://127.0.0.1:4180" };
const cookieOf = (response: Response): string => (response.headers.get("set-cookie") ?? "").split(";")[0] ?? "";

describe("tokens", () => {
  it("give their name and rights to those who send them, until they are revoked", async () => {
    const { token } = await tokens.add("ada", { role: "operator", payloads: true });
    expect(token).toMatch(/^rd_[\w-]{43}$/);
    expect(JSON.stringify((await redrive.store.cells([{ kind: "token" }])).cells)).not.toContain(token);
    expect(await (await ask("/session", bearer(token))).json()).toMatchObject({
      actor: "ada",
      role: "operator",
      payloads: true,
      audit: false,
    });
    expect((await tokens.list())[0]).toMatchObject({ name: "ada", by: "root", usedAt: expect.any(Number) });
    await expect(tokens.add("ada", { role: "viewer" })).rejects.toMatchObject({ code: "conflict" });
    expect(await tokens.revoke("ada")).toBe(true);
    ahead = 2_000;
    expect((await ask("/jobs", bearer(token))).status).toBe(401);
    expect(await tokens.revoke("ada")).toBe(false);
    const kinds = (await redrive.events({ oldest: true })).items.map(({ kind }) => kind);
    expect(kinds).toEqual(["token.add", "token.add", "token.add", "token.add", "token.revoke", "token.revoke"]);
  });

  it("end with their time", async () => {
    const { token } = await tokens.add("brief", { role: "viewer", expires: "1h" });
    expect((await ask("/jobs", bearer(token))).status).toBe(200);
    ahead = 3_600_001;
    expect((await ask("/jobs", bearer(token))).status).toBe(401);
  });

  it.each([
    ["a b", { role: "viewer" }],
    ["", { role: "viewer" }],
    ["ada", { role: "root" }],
    ["ada", { role: "viewer", expires: "soon" }],
    ["ada", { role: "viewer", pay: true }],
  ])("refuse %j with %j, and write nothing", async (name, given) => {
    await expect(tokens.add(name, given as never)).rejects.toMatchObject({ code: "invalid_argument" });
    expect(await tokens.list()).toEqual([]);
  });
});

describe("a token that may not", () => {
  it("is not noted as used: what is refused changes nothing", async () => {
    const { token } = await tokens.add("web", { role: "producer" });
    expect((await ask("/jobs", bearer(token))).status).toBe(403);
    expect((await tokens.list())[0]).toMatchObject({ usedAt: null });
    expect((await ask("/jobs", bearer(token), "POST", { type: "a", payload: 1 })).status).toBe(201);
    expect((await tokens.list())[0]).toMatchObject({ usedAt: expect.any(Number) });
  });
});

describe("a sign-in link", () => {
  it("is good once, and gives a session that every server of the store knows", async () => {
    const code = await newSignInCode(redrive.store);
    const first = await ask("/session", page, "POST", { code });
    expect(first.status).toBe(201);
    expect(first.headers.get("set-cookie")).toMatch(
      /^redrive_4180=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/,
    );
    expect((await ask("/session", page, "POST", { code })).status).toBe(401);
    const cookie = cookieOf(first);
    expect((await ask("/jobs", { cookie }, "GET", undefined, serve())).status).toBe(200);
    expect((await ask("/jobs", { cookie }, "GET", undefined, serve(4181))).status).toBe(401);
    expect(JSON.stringify((await redrive.store.cells([{ kind: "session" }])).cells)).not.toContain(
      cookie.split("=")[1],
    );
    expect((await ask("/session", { cookie, ...page, "content-type": "application/json" }, "DELETE")).status).toBe(200);
    expect((await ask("/jobs", { cookie })).status).toBe(401);
  });

  it("ends after twelve hours, or with the token that signed in", async () => {
    const { token } = await tokens.add("ada", { role: "viewer" });
    const cookie = cookieOf(await ask("/session", page, "POST", { token }));
    expect((await ask("/jobs", { cookie })).status).toBe(200);
    await tokens.revoke("ada");
    ahead = 2_000;
    expect((await ask("/jobs", { cookie })).status).toBe(401);
    const admin = cookieOf(await ask("/session", page, "POST", { token: ADMIN }));
    expect((await ask("/jobs", { cookie: admin })).status).toBe(200);
    ahead = 12 * 3_600_000 + 1;
    expect((await ask("/jobs", { cookie: admin })).status).toBe(401);
  });

  it("of a token ends with that token, also where another one has its name by now", async () => {
    const { token } = await tokens.add("ada", { role: "operator" });
    const cookie = cookieOf(await ask("/session", page, "POST", { token }));
    await tokens.revoke("ada");
    await tokens.add("ada", { role: "viewer" });
    ahead = 2_000;
    expect((await ask("/jobs", { cookie })).status).toBe(401);
  });

  it("cannot be guessed for long", async () => {
    const statuses = [];
    for (let at = 0; at < 12; at++)
      statuses.push((await ask("/session", page, "POST", { code: `guess-${at}` })).status);
    expect(statuses).toEqual([...Array.from({ length: 11 }, () => 401), 429]);
  });
});
