// One call of a route, as its handler sees it, and what a handler answers.
import type * as v from "valibot";
import type { Operator, Redrive } from "../redrive-api.ts";
import type { System } from "../system/system.ts";
import type { Access, Caller, Peer } from "./identity.ts";
import type { Entries } from "./route.ts";
import type { RouteName, RouteOf } from "./routes.ts";
import type { EventStreams } from "./streams.ts";

/** What all calls of a server share. */
export interface Server {
  readonly redrive: Redrive;
  readonly system: System;
  readonly access: Access | null;
  readonly streams: EventStreams;
  readonly capabilities: readonly string[];
  /** Writes that a person has looked at payloads. */
  reveal(caller: Caller, ids: readonly string[], requestId: string): Promise<void>;
}

type Output<E extends Entries> = v.InferOutput<v.StrictObjectSchema<E, undefined>>;

/** One call. */
export interface Call<N extends RouteName = RouteName> {
  readonly server: Server;
  readonly redrive: Redrive;
  /** What changes things, under the name of the caller. */
  readonly as: Operator;
  /** Null only on routes for anyone. */
  readonly caller: Caller | null;
  readonly request: Request;
  readonly requestId: string;
  readonly peer: Peer;
  readonly params: Output<RouteOf<N>["params"]>;
  readonly query: Output<RouteOf<N>["query"]>;
  readonly body: RouteOf<N>["body"] extends v.GenericSchema ? v.InferOutput<RouteOf<N>["body"]> : undefined;
  /** The body as it came. */
  readonly text: string;
  /** The most bytes of a body. */
  readonly mostBytes: number;
  /** Keeps the call open, for an answer that is a stream; answers how to end it. */
  hold(): () => void;
}

/** An answer that is more than a document with the usual status. */
export class HttpReply {
  readonly body: object | string | ReadableStream<Uint8Array> | null;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  constructor(
    body: HttpReply["body"],
    {
      status = 200,
      headers = {},
    }: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
  ) {
    this.body = body;
    this.status = status;
    this.headers = headers;
  }
}

/** Answers a call. */
export type Handler<N extends RouteName = RouteName> = (call: Call<N>) => Promise<object | HttpReply>;

/** A handler for every route of these names. */
export type Handlers<N extends RouteName = RouteName> = { readonly [K in N]: Handler<K> };
