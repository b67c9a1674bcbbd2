// What goes over the wire, as types: made from the schemas of the routes. The dashboard and the client import only types of
// this file.
import type * as v from "valibot";
import type * as documents from "./documents.ts";
import type { AnswerShape, Entries } from "./route.ts";
import type { RouteName, RouteOf } from "./routes.ts";

type Document = { [D in keyof typeof documents]: v.InferOutput<(typeof documents)[D]> };

/** A job. */
export type WireJob = Document["job"];
/** A job with its failed runs. */
export type WireJobWithHistory = Document["jobWithHistory"];
/** A dead letter. */
export type WireLetter = Document["letter"];
/** A failed run. */
export type WireAttempt = Document["attempt"];
/** Why a job is not running. */
export type WireExplanation = Document["explanation"];
/** A cause. */
export type WireCause = Document["cause"];
/** A cause with its newest letters and advice. */
export type WireCauseDetails = Document["causeDetails"];
/** A plan. */
export type WirePlan = Document["plan"];
/** A redrive run. */
export type WireRun = Document["run"];
/** A breaker. */
export type WireService = Document["service"];
/** A queue. */
export type WireQueue = Document["queue"];
/** A pause. */
export type WirePause = Document["pause"];
/** A schedule. */
export type WireSchedule = Document["schedule"];
/** An upkeep service. */
export type WireUpkeep = Document["upkeep"];
/** A worker. */
export type WireWorker = Document["worker"];
/** A row of the event log. */
export type WireEvent = Document["event"];
/** The health of the queue. */
export type WireHealth = Document["health"];
/** The first page. */
export type WireOverview = Document["overview"];
/** Who calls. */
export type WireSession = Document["session"];
/** The delays of a policy and what they cover. */
export type WirePolicyPreview = Document["policyPreview"];
/** An error. */
export type WireError = Document["error"];

/** What `event: changed` of the stream carries. */
export interface WireChanged {
  /** What to ask for again. */
  readonly of: readonly WireSubject[];
  /** The time of the store, in ISO 8601. */
  readonly now: string;
}

/** What may change. */
export type WireSubject = "jobs" | "causes" | "redrives" | "control" | "workers" | "flow" | "schedules" | "events";

type OptionalKeys<E extends Entries> = {
  [K in keyof E]: E[K] extends v.OptionalSchema<infer _S, infer _D> ? K : never;
}[keyof E];

/** The fields of entries, as a caller gives them. */
type FieldsOf<E extends Entries> = { [K in Exclude<keyof E, OptionalKeys<E>>]: v.InferInput<E[K]> } & {
  [K in OptionalKeys<E>]?: v.InferInput<E[K]>;
};

type BodyOf<B> = B extends v.GenericSchema
  ? v.InferInput<B>
  : B extends "payload"
    ? { readonly payload: string }
    : unknown;

/** What a call of a route takes: the parameters of its path, its query and its body in one object. */
export type WireInput<N extends RouteName> = FieldsOf<RouteOf<N>["params"]> &
  FieldsOf<RouteOf<N>["query"]> &
  BodyOf<RouteOf<N>["body"]>;

/** What a call of a route answers; a text where the route answers text. */
export type WireAnswer<N extends RouteName> = AnswerOf<RouteOf<N>["answer"]>;

type AnswerOf<A extends AnswerShape> = A extends v.GenericSchema ? v.InferOutput<A> : string;

/** The names of the routes. */
export type WireRouteName = RouteName;
