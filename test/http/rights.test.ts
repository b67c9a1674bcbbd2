// Every route by every kind of caller: the table is made from the routes, and what is refused changes nothing.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as v from "valibot";
import { ALLOWED, isText, isWrite, type Role, ROLES, type Route } from "../../src/http/route.ts";
import { ROUTES } from "../../src/http/routes.ts";
import type { Store } from "../../src/store/store.ts";
import { openScene, requestFor, type Sample, samplesOf, type Scene } from "./scene.ts";

const KINDS = ["token", "token-use", "session", "sign-in", "schedule", "redrive", "plan", "cause", "evidence"];

/** Everything that a call could change. */
async function dump(store: Store): Promise<string> {
  const { version, pauses, services } = await store.control();
  return JSON.stringify([
    (await store.list({ limit: 200 })).items,
    (await store.deadLetters({ limit: 200, redriven: true })).items,
    (await store.cells(KINDS.map((kind) => ({ kind })))).cells,
    (await store.events({ limit: 200 })).items,
    { version, pauses, services },
  ]);
}

interface Case {
  readonly what: string;
  headers(sample: Sample, route: Route): Record<string, string>;
  /** The status; null where the case does not concern the route. */
  expected(route: Route): number | null;
  readonly origin?: string;
}

const isOpen = ({ role }: Route): boolean => role === "anyone";
const isChange = ({ method }: Route): boolean => method !== "GET";

const CASES: readonly Case[] = [
  {
    what: "no token",
    headers: () => ({ origin: "http://127.0.0.1:1" }),
    expected: (route) => (isOpen(route) ? null : 401),
  },
  {
    what: "an expired token",
    headers: () => ({ authorization: "Bearer expired" }),
    expected: (route) => (isOpen(route) ? null : 401),
  },
  {
    what: "a wrong token",
    headers: () => ({ authorization: "Bearer nope" }),
    expected: (route) => (isOpen(route) ? null : 401),
  },
  {
    what: "a cookie without an origin",
    headers: () => ({ cookie: "redrive_1=admin" }),
    expected: (route) => (isChange(route) ? 403 : null),
  },
  {
    what: "a page of another site",
    headers: () => ({ cookie: "redrive_1=admin", "sec-fetch-site": "cross-site", origin: "http://127.0.0.1:1" }),
    expected: (route) => (isChange(route) ? 403 : null),
  },
  {
    what: "the origin of another site, where browsers do not say more",
    headers: () => ({ cookie: "redrive_1=admin", origin: "http://evil.example" }),
    expected: (route) => (isChange(route) ? 403 : null),
  },
  {
    what: "the content type of a plain form",
    headers: () => ({ cookie: "redrive_1=admin", "sec-fetch-site": "same-origin", "content-type": "text/plain" }),
    expected: (route) => (isChange(route) ? 415 : null),
  },
  {
    what: "another host",
    headers: () => ({ authorization: "Bearer admin", host: "evil.example" }),
    expected: () => 421,
  },
  ...ROLES.map(
    (role: Role): Case => ({
      what: `the role ${role} without the right to see payloads`,
      headers: () => ({ authorization: `Bearer ${role}` }),
      expected: (route) => {
        if (!ALLOWED[route.role].includes(role)) return 403;
        return route.payloads && role !== "admin" ? 403 : null;
      },
    }),
  ),
];

describe("what is refused", () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene({ hosts: ["127.0.0.1"] });
  });
  afterAll(() => scene.redrive.close());

  it.each(CASES.map((each) => [each.what, each] as const))(
    "%s: has the promised status, and changes nothing",
    async (_what, each) => {
      const samples = samplesOf(scene);
      const before = await dump(scene.redrive.store);
      for (const route of ROUTES as readonly Route[]) {
        const status = each.expected(route);
        if (status === null) continue;
        const sample = samples[route.name as keyof typeof samples];
        const response = await scene.handler(requestFor(route, sample, each.headers(sample, route)), {
          address: route.name,
        });
        expect.soft(`${route.name} ${response.status}`).toBe(`${route.name} ${status}`);
        const error = (await response.json()) as { code: string; message: string; requestId: string };
        expect.soft(error.requestId).toBe(response.headers.get("x-request-id"));
        expect.soft(error.message).not.toBe("");
      }
      expect(await dump(scene.redrive.store)).toBe(before);
    },
  );

  it("names the right that is missing", async () => {
    const route = ROUTES.find(({ name }) => name === "jobs.payload") as Route;
    const response = await scene.handler(
      requestFor(route, samplesOf(scene)["jobs.payload"], { authorization: "Bearer viewer" }),
    );
    expect(await response.json()).toMatchObject({ code: "forbidden", details: { missing: "payloads" } });
  });
});

describe("what is allowed", () => {
  const UNCHANGED = ["jobs.undo", "redrives.resume", "stuck.fix", "session.start", "session.end"];

  it.each(ROUTES.map((route) => [route.name, route as Route] as const))(
    "%s answers in the form of its schema",
    async (name, route) => {
      const scene = await openScene();
      try {
        const sample = samplesOf(scene)[name];
        const before = await dump(scene.redrive.store);
        const response = await scene.handler(requestFor(route, sample, { authorization: "Bearer admin" }));
        const wanted = sample.status ?? route.status ?? 200;
        if (name === "events.stream") {
          expect(response.headers.get("content-type")).toBe("text/event-stream");
          await response.body?.cancel();
          return;
        }
        const text = await response.text();
        expect(`${response.status} ${response.status === wanted ? "" : text}`).toBe(`${wanted} `);
        if (wanted < 300 && !isText(route.answer)) v.parse(route.answer, JSON.parse(text));
        expect(text).not.toBe("");
        if (!UNCHANGED.includes(name) && isWrite(route)) expect(await dump(scene.redrive.store)).not.toBe(before);
        if (name === "policies.preview" || name === "repairs.preview")
          expect(await dump(scene.redrive.store)).toBe(before);
      } finally {
        await scene.redrive.close();
      }
    },
  );

  it.each(ROLES)("lets %s call what its role allows, also as a signed-in page", async (role) => {
    const scene = await openScene();
    const samples = samplesOf(scene);
    for (const route of ROUTES as readonly Route[]) {
      if (!ALLOWED[route.role].includes(role) || route.name === "events.stream") continue;
      const headers = { cookie: `redrive_1=${role}+payloads`, "sec-fetch-site": "same-origin" };
      const response = await scene.handler(requestFor(route, samples[route.name as keyof typeof samples], headers));
      expect.soft([401, 403, 415, 421, 500], `${route.name} ${await response.text()}`).not.toContain(response.status);
    }
    await scene.redrive.close();
  });
});
