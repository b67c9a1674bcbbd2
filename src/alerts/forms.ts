// Alerts as JSON for callers: the command line and the HTTP API answer in the same forms. Scripts rely on them.
import { isoTime } from "../operate/json-form.ts";
import type { AlertMute } from "../core/alerting/book.ts";
import type { AlertSinkView, AlertView } from "./alerts.ts";

/** An alert. */
export function alertForm({ since, raisedAt, clearedAt, muted, ...alert }: AlertView): object {
  const times = { since: isoTime(since), raisedAt: isoTime(raisedAt), clearedAt: isoTime(clearedAt) };
  return { ...alert, ...times, muted: muted && muteForm(muted) };
}

/** A mute. */
export function muteForm({ rule, subject, until, by, why }: AlertMute): object {
  return { rule, subject, until: isoTime(until), by, why };
}

/** A sink of the fleet. */
export function sinkForm({ name, lastAt, failing }: AlertSinkView): object {
  const how = failing && { since: isoTime(failing.since), error: failing.error, next: isoTime(failing.next) };
  return { name, lastAt: isoTime(lastAt), failing: how };
}
