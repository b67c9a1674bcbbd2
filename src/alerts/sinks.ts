// The sinks of a process: each takes one message and answers, within seconds, whether it was told. None throws, and none
// holds up what asks it for longer than its time.
import { createHmac } from "node:crypto";
import { type AlertMessage, messageForm, messageLine, slackForm } from "../core/alerting/message.ts";
import { eventValue, subjectOf } from "../core/event-log.ts";
import { textOf } from "../core/failure.ts";
import type { Severity } from "../core/job.ts";
import { fieldsFrom } from "../core/options.ts";
import { safeLine } from "../core/safe-text.ts";
import type { Store } from "../store/store.ts";
import { guardedPost } from "../system/guarded-post.ts";
import type { Log } from "../system/log.ts";
import { startSubprocess } from "../system/subprocess.ts";
import type { System } from "../system/system.ts";
import type { SinkSettings } from "./sink-options.ts";

/** Where messages are told. */
export interface AlertSink {
  readonly id: string;
  readonly name: string;
  /** It tells messages of this severity and graver ones. */
  readonly least: Severity;
  /** Null if it was told, else why not. */
  tell(message: AlertMessage): Promise<string | null>;
}

/** What sinks need. */
export interface SinkParts {
  readonly log: Log;
  readonly system: Pick<System, "now" | "sleep">;
}

/** How long a sink has for one message. */
export const TELL_WITHIN_MS = 5_000;
/** How long a command may take to end after it was asked to. */
const KILL_AFTER_MS = 200;
/** How much of its output is kept. */
const OUTPUT_BYTES = 4_096;

/** The sink of these settings. */
export function openSink(settings: SinkSettings, { log, system }: SinkParts): AlertSink {
  const { id, name, least } = settings;
  const told = (tell: AlertSink["tell"]): AlertSink => {
    return { id, name, least, tell: (message) => tell(message).catch((error: unknown) => safeLine(textOf(error))) };
  };
  switch (settings.kind) {
    case "log":
      return told(async (message) => logged(log, message));
    case "call":
      return told((message) => called(settings.call, message, system));
    case "command":
      return told((message) => ran(settings, message, system));
    case "webhook":
    case "slack":
      return told((message) => posted(settings, message, system));
  }
}

const LEVELS = { info: "info", warning: "warn", error: "error", critical: "error" } as const;

function logged(log: Log, message: AlertMessage): null {
  const { rule, subject, severity, value, limit, help, kind } = message;
  const isOver = kind === "cleared" || kind === "test";
  const fields = {
    rule,
    ...(subject !== null && { subject }),
    severity,
    ...(value !== null && { value, limit }),
    help,
  };
  log[isOver ? "info" : LEVELS[severity]](fields, messageLine(message));
  return null;
}

async function called(
  call: (message: AlertMessage) => unknown,
  message: AlertMessage,
  { sleep }: SinkParts["system"],
): Promise<string | null> {
  const done = new AbortController();
  const late = sleep(TELL_WITHIN_MS, done.signal).then(() => `it has not ended within ${TELL_WITHIN_MS} ms`);
  try {
    return await Promise.race([Promise.resolve(call(message)).then(() => null), late]);
  } finally {
    done.abort();
  }
}

async function ran(
  { command, env }: Extract<SinkSettings, { kind: "command" }>,
  message: AlertMessage,
  { sleep }: SinkParts["system"],
): Promise<string | null> {
  const limits = { outputBytes: OUTPUT_BYTES, killAfterMs: KILL_AFTER_MS };
  const child = startSubprocess({ command, env, cwd: undefined, added: {}, ...limits });
  child.write(`${JSON.stringify(messageForm(message))}\n`);
  child.close();
  const done = new AbortController();
  let isLate = false;
  void sleep(TELL_WITHIN_MS, done.signal).then(() => {
    if (done.signal.aborted) return;
    isLate = true;
    child.stop();
  });
  const { code, signal, complaint, refused } = await child.ended;
  done.abort();
  if (refused !== null) return safeLine(refused);
  if (code === 0 && !isLate) return null;
  const last = complaint.trim().split("\n").at(-1) ?? "";
  const how = isLate
    ? `was killed after ${TELL_WITHIN_MS} ms`
    : code === null
      ? `ended by ${signal}`
      : `exited with ${code}`;
  return safeLine(`it ${how}${last === "" ? "" : `: ${last.slice(0, 200)}`}`);
}

async function posted(
  { kind, url, secret, allow }: Extract<SinkSettings, { kind: "webhook" | "slack" }>,
  message: AlertMessage,
  { now }: SinkParts["system"],
): Promise<string | null> {
  const body = JSON.stringify(kind === "slack" ? slackForm(message) : messageForm(message));
  const headers = { "user-agent": "redrive", ...(secret !== null && signature(secret, body, now())) };
  return guardedPost({ url, body, headers, allow, withinMs: TELL_WITHIN_MS });
}

/** Proves who sent a message, and when: a receiver refuses an old timestamp, so that no message can be sent again. */
export function signature(secret: string, body: string, now: number): Record<string, string> {
  const at = String(Math.floor(now / 1_000));
  const sum = createHmac("sha256", secret).update(`${at}.${body}`).digest("hex");
  return { "redrive-timestamp": at, "redrive-signature": `v1=${sum}` };
}

/** The event log, which every process tells; it knows by itself what it has. */
export function eventSink(store: Pick<Store, "events" | "record">): AlertSink {
  return {
    id: "events",
    name: "event log",
    least: "info",
    async tell({ kind, id, rule, subject: about, text, value, limit, severity, since }) {
      if (kind !== "raised" && kind !== "cleared") return null;
      const event = { kind: `alert.${kind}`, subject: subjectOf("alert", about === null ? rule : `${rule} ${about}`) };
      const { items } = await store.events({ ...event, limit: 1 });
      if (items.some((last) => fieldsFrom(last.value).id === id)) return null;
      const details = eventValue({ id, text, value, limit, severity, since });
      await store.record([{ ...event, actor: null, why: null, value: details }]);
      return null;
    },
  };
}
