// `redrive/client`: the API as typed functions, with nothing but `fetch`. The names are those of the routes:
// `client.jobs.enqueue({ type: "mail", payload: {} })`.
import { pause } from "../system/pause.ts";
import { PATHS } from "./paths.ts";
import type { WireAnswer, WireChanged, WireError, WireEvent, WireInput, WireRouteName } from "./wire.ts";

export type * from "./wire.ts";

/** How to reach a server. */
export interface ClientOptions {
  /** The address of the server, such as `http://127.0.0.1:4180`, with what stands before `/api/v1`. */
  readonly url: string;
  /** The token; default none, for a page that is signed in. */
  readonly token?: string;
  /** Default the `fetch` of the platform. */
  readonly fetch?: typeof fetch;
}

/** Options of one call. */
export interface ClientCallOptions {
  /** Ends the call. */
  readonly signal?: AbortSignal;
  /** Carries out the call only if this is still the revision or ETag of what it changes. */
  readonly ifMatch?: string;
}

/** An error that the server has answered. */
export class RedriveHttpError extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string | undefined;
  readonly details: Readonly<Record<string, unknown>>;
  readonly requestId: string;
  /** Seconds after which the call may be tried again; null where the server does not say. */
  readonly retryAfter: number | null;

  constructor(status: number, error: WireError, retryAfter: number | null) {
    super(error.message);
    this.name = "RedriveHttpError";
    this.status = status;
    this.code = error.code;
    this.hint = error.hint;
    this.details = error.details ?? {};
    this.requestId = error.requestId;
    this.retryAfter = retryAfter;
  }
}

type Resource<N extends string> = N extends `${infer R}.${string}` ? R : never;
type Verb<N extends string, R extends string> = N extends `${R}.${infer V}` ? V : never;
type CallName<R extends string, V extends string> = Extract<WireRouteName, `${R}.${V}`>;
type HasNoNeed<T> = Record<never, never> extends T ? true : false;
type ClientCall<N extends WireRouteName> =
  HasNoNeed<WireInput<N>> extends true
    ? (input?: WireInput<N>, options?: ClientCallOptions) => Promise<WireAnswer<N>>
    : (input: WireInput<N>, options?: ClientCallOptions) => Promise<WireAnswer<N>>;

/** A call for every route, by resource and verb. */
export type ClientCalls = {
  readonly [R in Resource<WireRouteName>]: { readonly [V in Verb<WireRouteName, R>]: ClientCall<CallName<R, V>> };
};

/** One message of the event stream. */
export type StreamMessage =
  | { readonly kind: "changed"; readonly id: number; readonly data: WireChanged }
  | { readonly kind: "row"; readonly id: number; readonly data: WireEvent };

/** A client of one server. */
export interface Client extends ClientCalls {
  /** Enqueues any number of jobs in one request, as lines; yields an answer for each, in their order. */
  enqueueMany(
    jobs: Iterable<WireInput<"jobs.enqueue">> | AsyncIterable<WireInput<"jobs.enqueue">>,
    options?: ClientCallOptions,
  ): AsyncGenerator<LineAnswer>;
  /** Follows what happens; comes back after a break where it was, until the signal fires. */
  follow(options?: ClientCallOptions & { readonly after?: number }): AsyncGenerator<StreamMessage>;
}

/** The answer to one line. */
export type LineAnswer = { readonly line: number | null } & (
  | WireAnswer<"jobs.enqueue">
  | { readonly error: WireError }
);

const PREFIX = "/api/v1";
const JSON_TYPE = "application/json";

/** Makes a client. */
export function createClient(options: ClientOptions): Client {
  const base = `${options.url.replace(/\/+$/, "")}${PREFIX}`;
  const send = options.fetch ?? fetch;
  const ask = async (path: string, init: RequestInit, media: string | null): Promise<Response> => {
    const headers = new Headers(init.headers);
    if (options.token !== undefined) headers.set("authorization", `Bearer ${options.token}`);
    if (media !== null) headers.set("content-type", media);
    const response = await send(`${base}${path}`, { ...init, headers });
    if (!response.ok) throw await errorFrom(response);
    return response;
  };
  const calls: Record<string, Record<string, unknown>> = {};
  for (const [name, [method, path, queries]] of Object.entries(PATHS)) {
    const [resource = "", verb = ""] = name.split(".");
    (calls[resource] ??= {})[verb] = callOf(ask, method, path, queries);
  }
  return {
    ...(calls as unknown as ClientCalls),
    enqueueMany: (jobs, given = {}) => enqueueMany(ask, jobs, given),
    follow: (given = {}) => follow(ask, given),
  };
}

type Ask = (path: string, init: RequestInit, media: string | null) => Promise<Response>;

/** Each field of the input goes where the route wants it: into the path, the query or the body. */
function callOf(ask: Ask, method: string, pattern: string, queries: readonly string[]) {
  return async (input: Record<string, unknown> = {}, { signal, ifMatch }: ClientCallOptions = {}): Promise<unknown> => {
    const rest = { ...input };
    let path = pattern;
    for (const [whole, name = ""] of pattern.matchAll(/\{(\w+)\}/g)) {
      path = path.replace(whole, () => encodeURIComponent(textOf(rest[name])));
      delete rest[name];
    }
    const query = new URLSearchParams();
    for (const name of queries) {
      if (rest[name] !== undefined) query.set(name, textOf(rest[name]));
      delete rest[name];
    }
    const search = query.size === 0 ? "" : `?${query.toString()}`;
    const isRaw = method === "PUT" && pattern.endsWith("/payload");
    const hasBody = method !== "GET" && method !== "DELETE";
    const body = hasBody ? { body: isRaw ? textOf(rest["payload"]) : JSON.stringify(rest) } : {};
    const headers = ifMatch === undefined ? {} : { "if-match": `"${ifMatch.replaceAll('"', "")}"` };
    const init = { method, headers, ...body, ...(signal && { signal }) };
    const response = await ask(`${path}${search}`, init, method === "GET" ? null : JSON_TYPE);
    const isDocument = response.headers.get("content-type")?.startsWith(JSON_TYPE) && !pattern.endsWith("/payload");
    return isDocument || isRaw ? response.json() : response.text();
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

async function errorFrom(response: Response): Promise<RedriveHttpError> {
  const seconds = response.headers.get("retry-after");
  const text = await response.text();
  let error: WireError = { code: "internal", message: text.slice(0, 200) || `HTTP ${response.status}`, requestId: "" };
  try {
    const said = JSON.parse(text) as WireError;
    if (typeof said.message === "string") error = said;
  } catch {
    // Another program, such as a proxy, has answered.
  }
  return new RedriveHttpError(response.status, error, seconds === null ? null : Number(seconds));
}

async function* enqueueMany(
  ask: Ask,
  jobs: Iterable<object> | AsyncIterable<object>,
  { signal }: ClientCallOptions,
): AsyncGenerator<LineAnswer> {
  const encoder = new TextEncoder();
  const source = Symbol.asyncIterator in jobs ? jobs[Symbol.asyncIterator]() : jobs[Symbol.iterator]();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await source.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(`${JSON.stringify(value)}\n`));
    },
    cancel: async () => void (await source.return?.()),
  });
  const init = { method: "POST", body, duplex: "half", ...(signal && { signal }) } as RequestInit;
  const response = await ask("/jobs", init, "application/x-ndjson");
  for await (const line of linesOf(response)) yield JSON.parse(line) as LineAnswer;
}

async function* linesOf(response: Response): AsyncGenerator<string> {
  if (!response.body) return;
  let rest = "";
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const lines = `${rest}${value}`.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line !== "") yield line;
    }
    if (rest !== "") yield rest;
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

async function* follow(
  ask: Ask,
  { signal, after }: ClientCallOptions & { readonly after?: number },
): AsyncGenerator<StreamMessage> {
  let last = after ?? null;
  while (!signal?.aborted) {
    try {
      const headers = last === null ? {} : { "last-event-id": String(last) };
      const response = await ask("/events/stream", { headers, ...(signal && { signal }) }, null);
      let [kind, data] = ["", ""];
      for await (const message of messagesOf(response)) {
        for (const line of message) {
          if (line.startsWith("id: ")) last = Number(line.slice(4));
          else if (line.startsWith("event: ")) kind = line.slice(7);
          else if (line.startsWith("data: ")) data += line.slice(6);
        }
        if (data !== "") yield { kind, id: last ?? 0, data: JSON.parse(data) } as StreamMessage;
        [kind, data] = ["", ""];
      }
    } catch (error) {
      // What the server has refused it would refuse again; anything else is a break, after which it goes on.
      if (error instanceof RedriveHttpError && error.status < 500 && error.status !== 429) throw error;
    }
    if (!signal?.aborted) await pause(1_000);
  }
}

/** The lines of each message of a stream. */
async function* messagesOf(response: Response): AsyncGenerator<string[]> {
  if (!response.body) return;
  let rest = "";
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const messages = `${rest}${value}`.split("\n\n");
      rest = messages.pop() ?? "";
      for (const message of messages) yield message.split("\n");
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
