// A small fleet on the memory store with something of everything, a handler on top of it, and one good call of every route.
import { createTestRedrive, type TestRedrive } from "../../src/testing/index.ts";
import { defineJob, PermanentError } from "../../src/index.ts";
import { httpHandler, type HttpHandler, type HttpOptions, type Identity, type Role } from "../../src/http/index.ts";
import { realSystem } from "../../src/system/real.ts";
import { runIdOf } from "../../src/core/recovery/run-id.ts";
import { PREFIX, type RouteName, ROUTES } from "../../src/http/routes.ts";
import type { Route } from "../../src/http/route.ts";
import * as v from "valibot";

/** A payload with a number that no JavaScript program can hold. */
export const PAYLOAD = '{"n": 9007199254740993, "text":"<b>"}';

const jobs = [
  defineJob("mail", {
    input: v.object({ n: v.number() }),
    run() {
      throw new PermanentError("no such address");
    },
  }),
  defineJob("fine", { run: () => ({ ok: true }) }),
];

/** What there is to ask for. */
export interface Scene {
  readonly redrive: TestRedrive;
  readonly handler: HttpHandler;
  /** A dead job of type `mail`, another one, a waiting and a completed one. */
  readonly dead: string;
  readonly other: string;
  readonly waiting: string;
  readonly fingerprint: string;
  readonly plan: string;
  readonly run: string;
}

/** Who calls, by the token of the tests. */
export function identityOf(token: string): Identity | null {
  if (token === "expired") return { actor: "gone", role: "admin", expiresAt: 1 };
  const [role, ...rights] = token.split("+");
  if (!["producer", "viewer", "operator", "admin"].includes(role ?? "")) return null;
  return { actor: `${role}-1`, role: role as Role, payloads: rights.includes("payloads") || role === "admin" };
}

/** The token of a request; a cookie counts as one. */
export const auth = (request: Request): Identity | null => {
  const header = request.headers.get("authorization");
  if (header !== null) return identityOf(header.replace("Bearer ", ""));
  const cookie = request.headers.get("cookie");
  return cookie === null ? null : identityOf(cookie.replace("redrive_1=", ""));
};

/** Builds the fleet; what the handler counts in seconds goes by `monotonic`. */
export async function openScene(options: Partial<HttpOptions> = {}, monotonic = realSystem.monotonic): Promise<Scene> {
  const redrive = await createTestRedrive({ jobs, log: "silent" });
  const { id: dead } = await redrive.enqueueText("mail", PAYLOAD, { key: "k", service: "smtp", tenant: "acme" });
  const { id: other } = await redrive.enqueue("mail", { n: 2 });
  await redrive.enqueue("fine", {});
  await redrive.drain();
  const { id: waiting } = await redrive.enqueue("fine", { secret: 1 }, { delay: "1h" });
  await redrive.schedules.set("nightly", { cron: "0 3 * * *", job: "fine" });
  const [cause] = (await redrive.causes.list()).items;
  const fingerprint = cause?.fingerprint ?? "";
  const { id: plan } = await redrive.redrives.plan({ fingerprint });
  const second = await redrive.redrives.plan({ ids: [other] });
  const started = await redrive.redrives.start(second.id, { rate: 0.01 });
  const handler = httpHandler(redrive, { auth, log: silent, ...options }, { system: { ...realSystem, monotonic } });
  return { redrive, handler, dead, other, waiting, fingerprint, plan, run: started.id };
}

const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** What a call brings. */
export interface Sample {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly body?: unknown;
  /** The status of a caller with every right; default that of the route. */
  readonly status?: number;
}

/** A good call of every route; a route without one does not compile. */
export function samplesOf({ dead, waiting, fingerprint, plan, run, redrive }: Scene): Record<RouteName, Sample> {
  const job = { params: { id: dead } };
  const cause = { params: { fingerprint } };
  const own = { params: { id: run } };
  const smtp = { params: { name: "smtp" } };
  const nightly = { params: { name: "nightly" } };
  const patch = '{"n":1}';
  return {
    "session.get": {},
    "session.start": { body: { code: "x" }, status: 404 },
    "session.end": { status: 404 },
    "overview.get": {},
    "events.list": { query: "limit=5&oldest=true" },
    "events.stream": {},
    "health.get": { query: "type=mail" },
    "metrics.get": {},
    "openapi.get": {},
    "jobs.list": { query: "state=dead&limit=2" },
    "jobs.enqueue": { body: { type: "fine", payload: { a: 1 }, key: "new" } },
    "jobs.get": job,
    "jobs.attempts": job,
    "jobs.explain": { params: { id: waiting } },
    "jobs.payloads": job,
    "jobs.payload": job,
    "jobs.edit": { ...job, query: "why=typo", body: { n: 3 } },
    "jobs.undo": { ...job, body: {}, status: 409 },
    "jobs.cancel": { params: { id: waiting }, body: { why: "not needed" } },
    "jobs.retry": { params: { id: waiting }, body: {} },
    "jobs.reschedule": { params: { id: waiting }, body: { delay: "5m", priority: 3 } },
    "runs.list": { query: "status=failed" },
    "bulk.act": {
      body: { action: "cancel", target: { filter: { type: "fine", state: "queued" } }, expect: { count: 1 } },
    },
    "letters.list": { query: "type=mail&from=-2h" },
    "letters.stats": {},
    "letters.get": { params: { job: dead } },
    "letters.export": { query: "type=mail" },
    "causes.list": {},
    "causes.get": cause,
    "causes.letters": cause,
    "causes.trend": { ...cause, query: "from=-1h&step=1m" },
    "causes.triage": {},
    "causes.change": { ...cause, body: { state: "muted", for: "1h", note: "known", owner: "ada", why: "noise" } },
    "plans.make": { body: { selection: { fingerprint } } },
    "plans.get": { params: { id: plan } },
    "redrives.start": { params: { id: runIdOf(plan) }, body: { canary: "none", alongside: true } },
    "redrives.list": {},
    "redrives.get": own,
    "redrives.pause": { ...own, body: {} },
    "redrives.resume": { ...own, body: {}, status: 409 },
    "redrives.cancel": { ...own, body: {} },
    "redrives.recall": { ...own, body: {} },
    "repairs.preview": { body: { target: { filter: { fingerprint } }, patch } },
    "repairs.make": { body: { target: { ids: [dead] }, patch, why: "fixed" } },
    "services.list": {},
    "services.get": smtp,
    "services.open": { ...smtp, body: { reason: "down", for: "5m" } },
    "services.close": { ...smtp, body: {} },
    "services.reset": { ...smtp, body: {} },
    "queues.list": {},
    "pauses.set": { params: { kind: "queue", name: "mail" }, body: { for: "1h", reason: "full" } },
    "pauses.end": { params: { kind: "queue", name: "mail" }, query: "why=again" },
    "limits.list": {},
    "schedules.list": {},
    "schedules.set": { ...nightly, body: { every: "5m", job: "fine" } },
    "schedules.remove": nightly,
    "schedules.run": { ...nightly, body: {} },
    "schedules.pause": { ...nightly, body: {} },
    "schedules.resume": { ...nightly, body: {} },
    "workers.list": {},
    "stuck.list": { query: "olderThan=1h" },
    "stuck.fix": { body: { dryRun: true } },
    "types.list": {},
    "types.policy": { params: { type: redrive.types[0]?.type ?? "" } },
    "policies.preview": { body: { preset: "handler", backoff: { kind: "exponential", jitter: "full" } } },
  };
}

/** The routes by their names. */
export const BY_NAME = new Map<string, Route>(ROUTES.map((route) => [route.name, route]));

/** A request for a route. */
export function requestFor(
  route: Route,
  { params = {}, query, body }: Sample,
  headers: Readonly<Record<string, string>>,
  origin = "http://127.0.0.1:1",
): Request {
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => encodeURIComponent(params[name] ?? ""));
  const url = `${origin}${PREFIX}${path}${query === undefined ? "" : `?${query}`}`;
  const isWriting = route.method !== "GET";
  const own = { ...(isWriting && { "content-type": "application/json" }), ...headers };
  const sent = isWriting && route.body !== null ? { body: JSON.stringify(body ?? {}) } : {};
  return new Request(url, { method: route.method, headers: own, ...sent });
}
