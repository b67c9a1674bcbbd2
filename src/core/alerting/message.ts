// A message about an alert, as the sinks send it: a line of text, JSON, and the form that Slack and Mattermost take.
import type { Severity } from "../job.ts";
import { safeLine } from "../safe-text.ts";
import { alertKey, type AlertRecord, type MessageKind } from "./book.ts";
import type { AlertRule } from "./rules.ts";

/** A message about an alert. */
export interface AlertMessage {
  /** The same when a message is told twice, as it may be after a kill. */
  readonly id: string;
  /** `raised`, `repeated`, `cleared`, or `test`. */
  readonly kind: MessageKind | "test";
  /** The rule, such as `errorRate`. */
  readonly rule: AlertRule | "test";
  /** What it is about, such as `service:pricing`; null for the whole queue. */
  readonly subject: string | null;
  /** How grave it is. */
  readonly severity: Severity;
  /** What is wrong, or was, as a sentence. */
  readonly text: string;
  /** The figure and its limit; null for rules without one. */
  readonly value: number | null;
  /** The limit of the figure. */
  readonly limit: number | null;
  /** Since when, in epoch milliseconds by the store's clock. */
  readonly since: number;
  /** When it was raised. */
  readonly raisedAt: number | null;
  /** When it was cleared; null unless it is. */
  readonly clearedAt: number | null;
  /** The command that shows more, or mends it. */
  readonly help: string;
}

/** The message that is to be told of an alert. */
export function messageOf(alert: AlertRecord, severity: Severity): AlertMessage {
  const { rule, subject, value, limit, since, raisedAt, clearedAt, help } = alert;
  const { n = 0, kind = "raised" } = alert.message ?? {};
  const text = safeLine(alert.text);
  const id = `${alertKey(alert)}#${n}`;
  return { id, kind, rule, subject, severity, text, value, limit, since, raisedAt, clearedAt, help };
}

/** A message that says only that a sink works. */
export function testMessage(now: number): AlertMessage {
  const text = "This is a test of the alerts of Redrive. Nothing is wrong.";
  const about = { rule: "test", subject: null, severity: "info", text, value: null, limit: null } as const;
  const help = "redrive alerts list";
  return { id: `test#${now}`, kind: "test", ...about, since: now, raisedAt: null, clearedAt: null, help };
}

const WORDS = { raised: "alert", repeated: "alert, still", cleared: "alert cleared", test: "test" } as const;

/** One line. */
export function messageLine({ kind, rule, text }: AlertMessage): string {
  return kind === "test" ? text : `${WORDS[kind]} (${rule}): ${text}`;
}

const iso = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString());

/** JSON for webhooks and commands. */
export function messageForm(message: AlertMessage): object {
  const { since, raisedAt, clearedAt } = message;
  return { version: 1, ...message, since: iso(since), raisedAt: iso(raisedAt), clearedAt: iso(clearedAt) };
}

const SIGNS = { raised: "🔴", repeated: "🔴", cleared: "🟢", test: "⚪" } as const;

/** JSON in the form of Slack's incoming webhooks. */
export function slackForm(message: AlertMessage): object {
  const line = slackText(`${SIGNS[message.kind]} ${messageLine(message)}`);
  const { subject, severity, help, since } = message;
  const about = [severity, subject, `since ${iso(since)}`].filter((part) => part !== null).join(" · ");
  return {
    text: line,
    blocks: [
      { type: "section", text: { type: "mrkdwn", text: line } },
      { type: "context", elements: [{ type: "mrkdwn", text: slackText(`${about}\n${help}`) }] },
    ],
  };
}

/** A block may have 3,000 characters; these three mean something to Slack. */
function slackText(text: string): string {
  const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return escaped.length <= 2_900 ? escaped : `${escaped.slice(0, 2_900).toWellFormed()}…`;
}
