// The event log: what happened on a store, and who did it. An action of a person is two rows of one kind about one
// subject: the intent, written before, and the outcome, written after, which names the number of the intent. An intent
// without an outcome is an action whose end is not known: it is under way, or its process ended in between.
//
//   intent ──► the action ──► done      it took place
//                        ├──► failed    it was refused, or did only what the counts say
//                        └──► (no row)  unknown: the process ended, or the store did not answer
import { byteLength, checkName, checkText } from "./new-job.ts";
import { fieldsFrom, invalid } from "./options.ts";
import { safeLine } from "./safe-text.ts";
import type { Breaker } from "./service-record.ts";

/** The rows of an action. */
export const ACTION_STEPS = ["intent", "done", "failed"] as const;
/** One of them. */
export type ActionStep = (typeof ACTION_STEPS)[number];

/** An event to be written. Its time and its number are those of the store. */
export interface NewEvent {
  /** What happened, such as `breaker.changed`. */
  readonly kind: string;
  /** The person or program that did it; null for what Redrive did by itself. */
  readonly actor: string | null;
  /** The reason that the actor gave. */
  readonly why: string | null;
  /** What it happened to, such as `queue:mail`; null for none or several. */
  readonly subject: string | null;
  /** JSON text. */
  readonly value: string;
  /** Not written where an event of this kind about this subject was written with `once` before. */
  readonly once?: boolean;
}

/** One row of the event log. */
export interface LoggedEvent {
  /** Its number, in the order in which events were committed. */
  readonly seq: number;
  /** When it was written, in epoch milliseconds by the store's clock. */
  readonly at: number;
  /** What happened, such as `pause` or `breaker.changed`. */
  readonly kind: string;
  /** The person or program that did it; null for what Redrive did by itself. */
  readonly actor: string | null;
  /** The reason that the actor gave; null for none. */
  readonly why: string | null;
  /** What it happened to, such as `queue:mail`; null for none or several. */
  readonly subject: string | null;
  /** The details, as JSON text. */
  readonly value: string;
}

/** Limits of what an event may carry. */
export const EVENT_BOUNDS = { why: 1_000, subject: 300, valueBytes: 16_384 } as const;

/** The kinds of events that are never deleted: the releases that a store has seen, and in which order. */
export const LASTING_EVENTS: readonly string[] = ["release.seen"];

/** Throws unless the event may be stored. */
export function checkNewEvent({ kind, actor, why, subject, value, once = false }: NewEvent): void {
  checkName("kind", kind);
  if (actor !== null) checkText("actor", actor);
  if (why !== null) checkWhy(why);
  if (subject !== null) checkSubject(subject);
  const { valueBytes } = EVENT_BOUNDS;
  if (typeof value !== "string" || !isPlain(value) || byteLength(value) > valueBytes)
    throw invalid("value", `JSON text of up to ${valueBytes} bytes without U+0000`, value, "shorten it");
  if (typeof once !== "boolean") throw invalid("once", "true or false", once, "use one of these");
  if (once && subject === null) throw invalid("subject", "a text, because the event is written once", null, "name it");
}

/** Throws unless the value is a reason that an actor may give. */
export function checkWhy(value: unknown): void {
  checkEventText("why", value, EVENT_BOUNDS.why);
}

/** Throws unless the value may be the subject of an event. */
export function checkSubject(value: unknown): void {
  checkEventText("subject", value, EVENT_BOUNDS.subject);
}

function checkEventText(field: string, value: unknown, most: number): void {
  if (typeof value === "string" && value !== "" && value.length <= most && isPlain(value)) return;
  const expected = `well-formed text of 1 to ${most} characters without U+0000`;
  throw invalid(field, expected, value, "correct it; nothing was written");
}

/** True for text that every store can keep. */
export function isPlain(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

/** The name of a subject, such as `queue:mail`. */
export function subjectOf(kind: string, name: unknown): string {
  return safeLine(`${kind}:${String(name)}`)
    .slice(0, EVENT_BOUNDS.subject)
    .toWellFormed();
}

/** Items of a list and characters of a text that details keep; ids are counted beside them. */
const LIST_MOST = 20;
const TEXT_MOST = 300;

/** Details as JSON text of bounded length: long texts and lists are cut. */
export function eventValue(details: object): string {
  return JSON.stringify(details, (_, value: unknown) => {
    if (typeof value === "string" && value.length > TEXT_MOST) return `${value.slice(0, TEXT_MOST)}…`;
    return Array.isArray(value) ? value.slice(0, LIST_MOST) : value;
  });
}

/** What an event says of its place in an action; null for an event that is no part of one. */
export function stepOf({
  value,
}: Pick<LoggedEvent, "value">): { readonly step: ActionStep; readonly of: number } | null {
  const { step, of = 0 } = fieldsFrom(value);
  const known = ACTION_STEPS.find((each) => each === step);
  return known === undefined || !Number.isSafeInteger(of) ? null : { step: known, of: of as number };
}

/** How the actions among these events ended, by the number of the intent; those without an outcome here are missing. */
export function outcomesIn(events: readonly LoggedEvent[]): Map<number, LoggedEvent> {
  return new Map(
    events.flatMap((event) => {
      const found = stepOf(event);
      return found === null || found.step === "intent" ? [] : [[found.of, event] as const];
    }),
  );
}

/** What Redrive did or noticed by itself, as an event. */
function ownEvent(kind: string, subject: string | null, details: object): NewEvent {
  return { kind, actor: null, why: null, subject, value: eventValue(details) };
}

/** A worker of this release has registered; written for the first one that this store ever saw. */
export function releaseSeen(release: string, worker: string): NewEvent {
  return { ...ownEvent("release.seen", subjectOf("release", release), { worker }), once: true };
}

/** The fleet has given up a worker; written once, whichever workers notice it. */
export function workerGivenUp(
  worker: string,
  details: { readonly host: string; readonly pid: number; readonly release: string | null; readonly running: number },
): NewEvent {
  return { ...ownEvent("worker.given_up", subjectOf("worker", worker), details), once: true };
}

/** A round of retention has deleted something. */
export function retentionPruned(pruned: object): NewEvent {
  return ownEvent("retention.pruned", null, pruned);
}

/**
 * A process has changed the breaker of a service; null for a change that holds back no other work than before: a probe
 * begins, or has failed.
 */
export function breakerChanged(service: string, before: Breaker, after: Breaker, holder: string): NewEvent | null {
  if (after.state === before.state || after.state === "half_open") return null;
  if (after.state === "open" && before.state === "half_open") return null;
  const reason = "reason" in after ? { reason: after.reason } : {};
  const states = { before: before.state, after: after.state };
  return ownEvent("breaker.changed", subjectOf("service", service), { ...states, ...reason, by: holder });
}

/** A redrive run has gone on, or has ended, by itself. */
export function redriveChanged(kind: string, redrive: string, details: object): NewEvent {
  return ownEvent(kind, subjectOf("redrive", redrive), details);
}
