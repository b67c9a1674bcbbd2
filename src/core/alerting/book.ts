// The book of a fleet's alerts: which are pending, raised and cleared, and how often each was to be told. One step per
// look, by whichever process looks; the book is a plain value that the store keeps in one cell.
//
//   in the book      the rule holds                        it does not hold
//   –                pending                               –
//   pending          for `for`: raised, tell               –
//   raised           `repeat` after it was told: tell      cleared, tell
//   cleared          pending                               gone after a day
//
// A muted alert changes its state and is not told; what still holds when the mute ends is told then, and one that was
// never told is not told as cleared either. Every message has a number that only grows: a sink tells those above the one
// it told last of the alert.
import { fieldsFrom, hasNumbers } from "../options.ts";
import { ALERT_RULES, type AlertRule, type Condition, type Rules } from "./rules.ts";

/** The states of an alert. */
export const ALERT_STATES = ["pending", "raised", "cleared"] as const;
/** One of them. */
export type AlertState = (typeof ALERT_STATES)[number];

/** What a message says of an alert. */
export type MessageKind = "raised" | "repeated" | "cleared";

/** An alert in the book. Times are those of the store. */
export interface AlertRecord extends Omit<Condition, "since"> {
  readonly state: AlertState;
  /** Since when the rule holds, or held. */
  readonly since: number;
  /** When the rule was last seen to hold. */
  readonly seenAt: number;
  /** When it was raised last; null where it never was. */
  readonly raisedAt: number | null;
  /** When it was cleared last; null while it is raised. */
  readonly clearedAt: number | null;
  /** Its last message; null where there is none to tell. */
  readonly message: { readonly n: number; readonly kind: MessageKind; readonly at: number } | null;
}

/** All alerts of a fleet. */
export interface AlertBook {
  /** The number of the last message. */
  readonly n: number;
  /** When a process looked last; 0 for never. */
  readonly lookedAt: number;
  readonly alerts: readonly AlertRecord[];
}

/** What is not told: a rule, or one subject of it. Times are epoch milliseconds by the store's clock. */
export interface AlertMute {
  /** The rule that is muted. */
  readonly rule: AlertRule;
  /** The only subject that is, such as `service:pricing`; null for all. */
  readonly subject: string | null;
  /** When it ends; null for when it is taken back. */
  readonly until: number | null;
  /** Who muted it. */
  readonly by: string;
  /** Why; null for no reason given. */
  readonly why: string | null;
}

/** A book without alerts. */
export const EMPTY_BOOK: AlertBook = { n: 0, lookedAt: 0, alerts: [] };
/** A cleared alert stays in the book so long, for sinks that could not tell it yet, and for people. */
const CLEARED_MS = 86_400_000;
/** An alert that no process watches any more is cleared after so long. */
const UNWATCHED_MS = 3_600_000;

/** The name of an alert: rule and subject. */
export function alertKey({ rule, subject }: Pick<Condition, "rule" | "subject">): string {
  return subject === null ? rule : `${rule} ${subject}`;
}

/** The mute in force for an alert. */
export function muteOf(
  alert: Pick<Condition, "rule" | "subject">,
  mutes: readonly AlertMute[],
  now: number,
): AlertMute | null {
  const isOf = ({ rule, subject, until }: AlertMute): boolean =>
    rule === alert.rule && (subject === null || subject === alert.subject) && (until === null || until > now);
  return mutes.find(isOf) ?? null;
}

/** What a look saw. */
export interface AlertLook {
  readonly conditions: readonly Condition[];
  readonly rules: Rules;
  readonly mutes: readonly AlertMute[];
  readonly now: number;
}

/** The book after a look. */
export function bookAfter(book: AlertBook, look: AlertLook): AlertBook {
  let { n } = book;
  const tell = (alert: Omit<AlertRecord, "message">, kind: MessageKind): AlertRecord => {
    return { ...alert, message: { n: (n += 1), kind, at: look.now } };
  };
  const known = new Map(book.alerts.map((alert) => [alertKey(alert), alert]));
  const holds = new Set(look.conditions.map(alertKey));
  const on = look.conditions.map((condition) => holding(known.get(alertKey(condition)) ?? null, condition, look, tell));
  const over = book.alerts.filter((alert) => !holds.has(alertKey(alert))).flatMap((alert) => ended(alert, look, tell));
  return { n, lookedAt: look.now, alerts: [...on, ...over] };
}

type Tell = (alert: Omit<AlertRecord, "message">, kind: MessageKind) => AlertRecord;

/** An alert whose rule holds. */
function holding(
  before: AlertRecord | null,
  condition: Condition,
  { rules, mutes, now }: AlertLook,
  tell: Tell,
): AlertRecord {
  const { forMs = 0, repeatMs = null } = rules.get(condition.rule) ?? {};
  const isRaised = before?.state === "raised";
  const since = Math.min(condition.since ?? now, before && before.state !== "cleared" ? before.since : now);
  const { raisedAt = null, clearedAt = null, message = null } = before ?? {};
  const alert = { ...condition, since, seenAt: now };
  // A sink may still have to tell that it was cleared before.
  if (!isRaised && now - since < forMs) return { ...alert, state: "pending", raisedAt, clearedAt, message };
  const raised = { ...alert, state: "raised", raisedAt: isRaised ? raisedAt : now, clearedAt: null } as const;
  const told = isRaised ? message : null;
  if (muteOf(condition, mutes, now) !== null) return { ...raised, message: told };
  if (told === null) return tell(raised, "raised");
  const isDue = repeatMs !== null && now - told.at >= repeatMs;
  return isDue ? tell(raised, "repeated") : { ...raised, message: told };
}

/** An alert whose rule does not hold, as it is from now on; none if it is forgotten. */
function ended(alert: AlertRecord, { rules, mutes, now }: AlertLook, tell: Tell): readonly AlertRecord[] {
  // Another process may watch this rule, and will say when it is over.
  if (!rules.has(alert.rule) && now - alert.seenAt < UNWATCHED_MS) return [alert];
  const { clearedAt } = alert;
  if (alert.state !== "raised")
    return clearedAt !== null && now - clearedAt < CLEARED_MS ? [{ ...alert, state: "cleared" }] : [];
  const cleared = { ...alert, state: "cleared", clearedAt: now } as const;
  // Never told, or muted now: no sink waits to tell that it is over.
  const isQuiet = alert.message === null || muteOf(alert, mutes, now) !== null;
  return [isQuiet ? { ...cleared, message: null } : tell(cleared, "cleared")];
}

/** Reads a book from its stored text; an alert that another version wrote in another form is left out. */
export function bookFrom(text: string): AlertBook {
  const { n, lookedAt, alerts } = fieldsFrom(text);
  if (!Number.isSafeInteger(n) || !Array.isArray(alerts)) return EMPTY_BOOK;
  return { n: n as number, lookedAt: Number(lookedAt) || 0, alerts: alerts.filter(isRecord) };
}

function isRecord(value: unknown): value is AlertRecord {
  if (!hasNumbers(value, ["since", "seenAt"])) return false;
  const { rule, subject, text, help, state, message } = value as AlertRecord;
  const isText = (each: unknown): boolean => typeof each === "string";
  return (
    ALERT_RULES.includes(rule) &&
    ALERT_STATES.includes(state) &&
    (subject === null || isText(subject)) &&
    isText(text) &&
    isText(help) &&
    (message === null || hasNumbers(message, ["n", "at"]))
  );
}

/** Reads mutes from their stored text; those that are over are left out. */
export function mutesFrom(text: string, now: number): AlertMute[] {
  const { mutes } = fieldsFrom(text);
  if (!Array.isArray(mutes)) return [];
  return mutes.filter(
    (each: AlertMute | null): each is AlertMute =>
      each !== null &&
      typeof each === "object" &&
      ALERT_RULES.includes(each.rule) &&
      (each.subject === null || typeof each.subject === "string") &&
      (each.until === null || (Number.isSafeInteger(each.until) && each.until > now)),
  );
}
