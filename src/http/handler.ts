// The API as one function from Request to Response: finds the route, checks who calls and what came in, calls its handler,
// and turns what it answers, or throws, into a response.
import type * as v from "valibot";
import { isRedriveError, RedriveError } from "../core/errors.ts";
import { textOf } from "../core/failure.ts";
import { namesOf, parseOptions } from "../core/options.ts";
import type { Redrive } from "../redrive-api.ts";
import { type Log, lineLog } from "../system/log.ts";
import { realSystem } from "../system/real.ts";
import type { System } from "../system/system.ts";
import { type PlainAnswer, answerFrom, notFound, responseOf, secured, withoutBody } from "./answers.ts";
import { bodyText, parsedBody } from "./body.ts";
import type { Call, Handler, Server } from "./call.ts";
import { type Dashboard, openDashboard } from "./dashboard.ts";
import { checkAccept, checkHost, checkMedia, checkOrigin, isLines } from "./guard.ts";
import { jobBody } from "./handlers/enqueue.ts";
import { HANDLERS } from "./handlers/index.ts";
import { errorAnswer, errorForm, HttpError } from "./http-error.ts";
import { type Access, type Auth, type Caller, callerFrom, type Peer } from "./identity.ts";
import { bodyFrom, checked, queryFrom } from "./input.ts";
import { gate, throttle, writesPerSecond } from "./rates.ts";
import { openReveals } from "./reveals.ts";
import { isWrite, mayCall, type Route } from "./route.ts";
import { type Match, NO_PARAMS, openRouter } from "./router.ts";
import { PREFIX, ROUTES } from "./routes.ts";
import { type EventStreams, openStreams } from "./streams.ts";
import * as valibot from "valibot";

/** Options of a handler. */
export interface HttpOptions {
  /**
   * Says who calls and with which rights; null refuses the request. Required: there is no default that could let everyone
   * in. `openAccess` makes one from the tokens in the store.
   */
  readonly auth: Auth | Access;
  /** True serves the dashboard beside the API; a text is the folder of its files. Default false. */
  readonly dashboard?: boolean | string;
  /** The names, with or without a port, under which the server may be asked; default any, for applications that check it. */
  readonly hosts?: readonly string[];
  /** What stands before every path, such as `/redrive`; default nothing. */
  readonly basePath?: string;
  /** Most enqueue requests that are open at the same time; default 1,000. */
  readonly openEnqueues?: number;
  /** Says whether the process is ready to be asked, for `/ready`; default true. */
  readonly isReady?: () => boolean;
  /** Where errors of the server are written; default stderr. */
  readonly log?: Log;
}

/** Answers requests. `close` ends the event streams, so that a server can stop. */
export interface HttpHandler {
  (request: Request, peer?: Partial<Peer>): Promise<Response>;
  /** The same as plain data, which a server of Node writes with less work. */
  plain(request: Request, peer?: Partial<Peer>): Promise<PlainAnswer>;
  /** Ends all event streams. */
  close(): void;
  /** How many event streams are open. */
  readonly streams: number;
  /** What stands before every path. */
  readonly basePath: string;
}

const FIELDS = namesOf<HttpOptions>()(["auth", "dashboard", "hosts", "basePath", "openEnqueues", "isReady", "log"]);

/** Bytes of a body besides the payload in it. */
const BESIDES = 65_536;
const WRITES = 100;
const ENQUEUES = 1_000;

/** What the handler works with, once the options are checked. */
interface Parts {
  readonly server: Server;
  readonly identify: Auth;
  readonly hosts: readonly string[] | null;
  readonly log: Log;
  readonly mostBytes: number;
  readonly writes: (actor: string) => void;
  readonly enqueues: ReturnType<typeof gate>;
  readonly failures: ReturnType<typeof throttle>;
}

/** The API of a Redrive. */
export function httpHandler(
  redrive: Redrive,
  options: HttpOptions,
  { system = realSystem }: { readonly system?: System } = {},
): HttpHandler {
  const { auth, hosts, basePath, dashboard, openEnqueues, isReady, log } = optionsFrom(options);
  const access = typeof auth === "function" ? null : auth;
  const streams: EventStreams = openStreams({ redrive, system, log });
  const capabilities = [...(access ? ["sign-in"] : []), ...(redrive.types.length > 0 ? ["types"] : [])];
  const parts: Parts = {
    server: { redrive, system, access, streams, capabilities, reveal: openReveals(redrive, system) },
    identify: typeof auth === "function" ? auth : auth.identify,
    hosts,
    log,
    mostBytes: redrive.maxPayloadBytes + BESIDES,
    writes: writesPerSecond(WRITES, system.monotonic),
    enqueues: gate(openEnqueues, "enqueue requests"),
    failures: throttle(system.monotonic),
  };
  const files: Dashboard | null = dashboard === false ? null : openDashboard(dashboard === true ? null : dashboard);
  const answered = answerer(parts, { files, isReady, basePath });
  const plain = async (request: Request, peer: Partial<Peer> = {}): Promise<PlainAnswer> => {
    const requestId = requestIdOf(request, system);
    const asked = { request, requestId, peer: { address: peer.address ?? null } };
    const answer = await answered(asked).catch((error: unknown) => failed(parts, error, requestId));
    return secured(request.method === "HEAD" ? withoutBody(answer) : answer, requestId);
  };
  const answer = async (request: Request, peer?: Partial<Peer>): Promise<Response> =>
    responseOf(await plain(request, peer));
  return Object.defineProperties(answer, {
    plain: { value: plain },
    close: { value: () => streams.close() },
    streams: { get: () => streams.count },
    basePath: { value: basePath },
  }) as HttpHandler;
}

function optionsFrom(options: HttpOptions) {
  const given = parseOptions(options, FIELDS, "httpHandler");
  const { auth, hosts = null, basePath = "", dashboard = false, isReady = () => true, log = lineLog("warn") } = given;
  const isAuth = typeof auth === "function" || typeof (auth as Access | undefined)?.identify === "function";
  if (!isAuth) {
    const message =
      "auth: expected a function (request) => identity or null, or what openAccess returned; got none; say who may call";
    throw new RedriveError("config_refused", message);
  }
  if (typeof basePath !== "string" || !/^(?:\/[\w.~-]+)*$/.test(basePath))
    throw new RedriveError("config_refused", "basePath: expected a path such as /redrive without a slash at its end");
  if (hosts !== null && (!Array.isArray(hosts) || hosts.some((host) => typeof host !== "string" || host === "")))
    throw new RedriveError("config_refused", "hosts: expected an array of names; got another value; pass one");
  if (typeof dashboard !== "boolean" && typeof dashboard !== "string")
    throw new RedriveError("config_refused", "dashboard: expected true, false or a folder; got another value");
  return {
    auth: auth as Auth | Access,
    hosts: hosts === null ? null : (hosts as string[]).map((host) => host.toLowerCase()),
    basePath,
    dashboard,
    openEnqueues: (given.openEnqueues as number | undefined) ?? ENQUEUES,
    isReady: isReady as () => boolean,
    log: log as Log,
  };
}

/** A request, before its route is known. */
interface Asked {
  readonly request: Request;
  readonly requestId: string;
  readonly peer: Peer;
}

/** Answers requests: the API, the probes, the files of the dashboard. */
function answerer(
  parts: Parts,
  {
    files,
    isReady,
    basePath,
  }: { readonly files: Dashboard | null; readonly isReady: () => boolean; readonly basePath: string },
): (asked: Asked) => Promise<PlainAnswer> {
  const find = openRouter(ROUTES);
  return async (asked) => {
    const { request } = asked;
    const method = request.method === "HEAD" ? "GET" : request.method;
    const { path, search } = splitUrl(request.url);
    const inside = insideOf(path, basePath);
    const match = inside === null ? null : find(method, inside);
    if (match !== null) return call(parts, asked, match, search);
    if (method === "GET" && inside === "/live") return probe(true);
    if (method === "GET" && inside === "/ready") return probe(isReady());
    checkHost(request, parts.hosts);
    if (inside === "" && basePath !== "" && method === "GET") return withSlash(basePath);
    if (inside !== null && !inside.startsWith(`${PREFIX}/`) && files && method === "GET") return files.answer(inside);
    throw notFound(inside, request.method);
  };
}

/** Path and query of a whole address, which a server has normalised before. */
function splitUrl(url: string): { readonly path: string; readonly search: string } {
  const [whole = ""] = url.split("#", 1);
  const from = whole.indexOf("/", whole.indexOf("//") + 2);
  const query = whole.indexOf("?");
  const path = whole.slice(from, query < 0 ? undefined : query);
  return { path, search: query < 0 ? "" : whole.slice(query + 1) };
}

/** The path below the base path; null outside of it. */
function insideOf(path: string, basePath: string): string | null {
  if (!path.startsWith(basePath)) return null;
  const inside = path.slice(basePath.length);
  return inside === "" || inside.startsWith("/") ? inside : null;
}

/** Relative addresses of the page need the slash. */
function withSlash(basePath: string): PlainAnswer {
  return { status: 308, headers: { location: `${basePath.slice(basePath.lastIndexOf("/") + 1)}/` }, body: null };
}

function probe(isGood: boolean): PlainAnswer {
  const headers = { "content-type": "text/plain", "cache-control": "no-store" };
  return { status: isGood ? 200 : 503, headers, body: isGood ? "ok\n" : "no\n" };
}

/** One call of a route: checks first, the handler after. */
async function call(parts: Parts, asked: Asked, { route, params }: Match, search: string): Promise<PlainAnswer> {
  const { request, requestId, peer } = asked;
  const handler = HANDLERS[route.name as keyof typeof HANDLERS] as Handler;
  const { server } = parts;
  checkHost(request, parts.hosts);
  checkOrigin(request);
  const caller = await callerOf(parts, route, request, peer);
  checkMedia(request, route);
  checkAccept(request, route);
  const isEnqueue = route.name === "jobs.enqueue";
  const isSignIn = route.name === "session.start";
  if (isSignIn) parts.failures.check(peer.address);
  if (caller !== null && isWrite(route) && !isEnqueue) parts.writes(caller.actor);
  const leave = isEnqueue ? parts.enqueues.enter() : () => undefined;
  let isHeld = false;
  const hold = (): (() => void) => {
    isHeld = true;
    return leave;
  };
  try {
    const input = await inputOf(parts, route, { request, params, search });
    const { redrive } = server;
    const made = new OneCall({ server, redrive, caller, request, requestId, peer, hold, ...input });
    return answerFrom(await handler(made as unknown as Call), route, request);
  } catch (error) {
    if (isSignIn && error instanceof HttpError && error.code === "unauthenticated") parts.failures.failed(peer.address);
    throw error;
  } finally {
    if (!isHeld) leave();
  }
}

type Given = Omit<Call, "as" | "body"> & { readonly body: unknown };

/** A call as handlers see it. */
class OneCall {
  readonly server: Server;
  readonly redrive: Redrive;
  readonly caller: Caller | null;
  readonly request: Request;
  readonly requestId: string;
  readonly peer: Peer;
  readonly hold: Call["hold"];
  readonly params: Call["params"];
  readonly query: Call["query"];
  readonly body: unknown;
  readonly text: string;
  readonly mostBytes: number;

  constructor(given: Given) {
    this.server = given.server;
    this.redrive = given.redrive;
    this.caller = given.caller;
    this.request = given.request;
    this.requestId = given.requestId;
    this.peer = given.peer;
    this.hold = given.hold;
    this.params = given.params;
    this.query = given.query;
    this.body = given.body;
    this.text = given.text;
    this.mostBytes = given.mostBytes;
  }

  /** Made only where it is used: most calls change nothing. */
  get as(): Call["as"] {
    return this.redrive.as(this.caller?.actor ?? "", { request: this.requestId });
  }
}

/** Who calls, with the right to this route; null only where anyone may. */
async function callerOf(parts: Parts, route: Route, request: Request, peer: Peer): Promise<Caller | null> {
  const identity = await parts.identify(request, peer);
  let caller = callerFrom(identity);
  if (caller?.expiresAt !== undefined && caller?.expiresAt !== null && caller.expiresAt <= parts.server.system.now())
    caller = null;
  if (caller === null) {
    const hasToken = request.headers.has("authorization");
    if (hasToken) {
      parts.failures.failed(peer.address);
      parts.failures.check(peer.address);
    }
    if (route.role === "anyone") return null;
    throw new HttpError("unauthenticated", "The request has no valid token.", {
      hint: "Send `Authorization: Bearer TOKEN`. `redrive tokens add` makes one.",
      headers: { "www-authenticate": "Bearer" },
    });
  }
  if (!mayCall(route, caller.role))
    throw new HttpError("forbidden", `${route.name} needs the role ${route.role}; ${caller.actor} is ${caller.role}.`, {
      details: { missing: route.role },
    });
  if (route.payloads && !caller.payloads)
    throw new HttpError("forbidden", `${route.name} needs the right to see payloads.`, {
      hint: "Make a token with --payloads.",
      details: { missing: "payloads" },
    });
  if (identity !== null) parts.server.access?.used(identity);
  return caller;
}

/** The parameters, the query and the body, checked. */
async function inputOf(
  { mostBytes, server: { system } }: Parts,
  route: Route,
  { request, params: raw, search }: Pick<Asked, "request"> & Pick<Match, "params"> & { readonly search: string },
): Promise<Pick<Call, "params" | "query" | "text" | "mostBytes"> & { readonly body: unknown }> {
  const params = (raw === NO_PARAMS ? raw : checked(paramsOf(route), { ...raw }, "path")) as Call["params"];
  const query = (
    search === "" && !hasNeed(route) ? {} : queryFrom(route.query, new URLSearchParams(search))
  ) as Call["query"];
  const isOfLines = (route.accepts ?? []).length > 0 && isLines(request);
  if (route.body === null || isOfLines) return { params, query, text: "", body: undefined, mostBytes };
  const text = await bodyText(request, mostBytes, system);
  if (route.body === "payload") return { params, query, text, body: undefined, mostBytes };
  // No body says the same as an empty one.
  const value = text.trim() === "" ? {} : parsedBody(text);
  const body = route.name === "jobs.enqueue" ? jobBody(value) : bodyFrom(route.body, value);
  return { params, query, text, body, mostBytes };
}

/** True where a field of the query is needed. */
function hasNeed({ query }: Route): boolean {
  return Object.values(query).some(({ type }) => type !== "optional");
}

const PARAMS = new WeakMap<Route, v.GenericSchema>();
function paramsOf(route: Route): v.GenericSchema {
  const found = PARAMS.get(route) ?? valibot.strictObject({ ...route.params });
  PARAMS.set(route, found);
  return found;
}

/** The answer to a call that threw; what is not meant for callers goes to the log. */
function failed({ log }: Parts, error: unknown, requestId: string): PlainAnswer {
  const { status } = errorForm(error, requestId);
  if (!(error instanceof HttpError) && !isRedriveError(error))
    log.error(
      { request: requestId, error: error instanceof Error ? (error.stack ?? error.message) : textOf(error) },
      "a request failed",
    );
  else if (status >= 500) log.warn({ request: requestId, error: error.message }, "a request could not be answered");
  return errorAnswer(error, requestId);
}

function requestIdOf(request: Request, system: System): string {
  const said = request.headers.get("x-request-id");
  return said !== null && /^[\w-]{1,64}$/.test(said) ? said : system.nonce().slice(0, 16);
}
