// The events that programs can listen to. One hub per Redrive; a listener that throws affects no other listener.
import { textOf } from "../core/failure.ts";
import { invalid } from "../core/options.ts";
import type { Log } from "../system/log.ts";
import type { PruneAnswer } from "../store/store.ts";
import type { WorkerEvent } from "./reporter.ts";

/** Every event. */
export type RedriveEvent =
  | WorkerEvent
  /** This process wrote a new job. Not emitted for duplicates, replaced jobs, or jobs written in your transaction. */
  | {
      readonly kind: "job.enqueued";
      /** The id of the job. */
      readonly id: string;
      /** Its type. */
      readonly type: string;
    }
  /** A worker of this process deleted ended jobs whose retention is over. */
  | ({
      readonly kind: "jobs.pruned";
      /** The file that dead letters were appended to before they were deleted; null without one. */
      readonly archive: string | null;
    } & Omit<PruneAnswer, "more">);

/** The name of an event. */
export type EventKind = RedriveEvent["kind"];

/** The events of one kind; `*` for all. */
export type EventOf<K extends EventKind | "*"> = K extends "*" ? RedriveEvent : OfKind<RedriveEvent, K>;

/** One member of the union may cover several kinds. */
type OfKind<E extends RedriveEvent, K> = E extends unknown ? (K extends E["kind"] ? E : never) : never;

/** Sends events to listeners. */
export interface Events {
  /** Adds a listener; returns a function that removes it. */
  on<K extends EventKind | "*">(kind: K, listener: (event: EventOf<K>) => void): () => void;
  emit(event: RedriveEvent): void;
  /** Whether a kind has a listener, for events that cost something to create. */
  isHeard(kind: EventKind): boolean;
}

const KINDS: ReadonlySet<string> = new Set(
  Object.keys({
    "*": 0,
    "job.enqueued": 0,
    "job.completed": 0,
    "job.retried": 0,
    "job.dead": 0,
    "job.released": 0,
    "job.cancelled": 0,
    "job.stale": 0,
    "jobs.pruned": 0,
    "worker.started": 0,
    "worker.stopped": 0,
    "worker.given_up": 0,
    "worker.spent": 0,
    "worker.sick": 0,
    "breaker.changed": 0,
  } satisfies Record<EventKind | "*", 0>),
);

/** A hub without listeners. */
export function openEvents(log: Log): Events {
  const listeners = new Map<string, Set<(event: never) => void>>();
  const failed = (event: RedriveEvent, error: unknown): void =>
    log.error({ event: event.kind, error: textOf(error) }, "an event listener failed");
  const tell = (kind: string, event: RedriveEvent): void => {
    const heard = listeners.get(kind);
    if (heard === undefined) return;
    for (const listener of heard) {
      try {
        const answer = (listener as (event: RedriveEvent) => unknown)(event);
        if (answer instanceof Promise) answer.catch((error: unknown) => failed(event, error));
      } catch (error) {
        failed(event, error);
      }
    }
  };
  return {
    on(kind, listener) {
      if (!KINDS.has(kind)) throw invalid("event", [...KINDS].join(", "), kind, "use one of these");
      if (typeof listener !== "function") throw invalid("listener", "a function (event) => …", listener, "pass one");
      const set = listeners.get(kind) ?? new Set();
      listeners.set(kind, set.add(listener as (event: never) => void));
      return () => set.delete(listener as (event: never) => void);
    },
    emit(event) {
      if (listeners.size === 0) return;
      tell(event.kind, event);
      tell("*", event);
    },
    isHeard: (kind) => [kind, "*"].some((name) => (listeners.get(name)?.size ?? 0) > 0),
  };
}
