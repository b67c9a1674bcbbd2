// The alerts of a fleet as people see and change them: what is raised, what is muted, which sinks fail, and a test of the
// sinks of this process.
import { type AlertRecord, type AlertState, type AlertMute, muteOf } from "../core/alerting/book.ts";
import { testMessage } from "../core/alerting/message.ts";
import { ALERT_RULES, type AlertRule } from "../core/alerting/rules.ts";
import { type Duration, parseDuration } from "../core/duration.ts";
import { RedriveError } from "../core/errors.ts";
import { checkSubject, subjectOf } from "../core/event-log.ts";
import type { Severity } from "../core/job.ts";
import { didYouMean, invalid, parseOptions } from "../core/options.ts";
import type { ActionOptions, EventLog } from "../report/event-log.ts";
import type { Store } from "../store/store.ts";
import type { System } from "../system/system.ts";
import { mutesChange, readNotes } from "../operate/alert-cells.ts";
import type { FleetAlertSettings } from "./sink-options.ts";
import { openSink, type SinkParts } from "./sinks.ts";

/** An alert. Times are epoch milliseconds by the store's clock. */
export interface AlertView {
  /** The rule, such as `errorRate`. */
  readonly rule: AlertRule;
  /** What it is about, such as `service:pricing`; null for the whole queue. */
  readonly subject: string | null;
  /** `pending` while the rule holds, but not for long enough; `raised`; `cleared` for a day after it. */
  readonly state: AlertState;
  /** How grave it is; null where this process has the rule switched off. */
  readonly severity: Severity | null;
  /** What is wrong, or was, as a sentence. */
  readonly text: string;
  /** The figure; null for rules without a limit. */
  readonly value: number | null;
  /** Its limit. */
  readonly limit: number | null;
  /** Since when the rule holds, or held. */
  readonly since: number;
  /** When it was raised; null for never. */
  readonly raisedAt: number | null;
  /** When it was cleared; null while it is raised. */
  readonly clearedAt: number | null;
  /** The mute in force; null for none. */
  readonly muted: AlertMute | null;
  /** The command that shows more, or mends it. */
  readonly help: string;
}

/** A sink that some process of the fleet tells. */
export interface AlertSinkView {
  /** Such as `webhook hooks.example.com`. */
  readonly name: string;
  /** When it last told a message; null for never. */
  readonly lastAt: number | null;
  /** Since when it fails, how it failed last, and when it is tried again; null while it does not. */
  readonly failing: { readonly since: number; readonly error: string; readonly next: number } | null;
}

/** How the test of a sink ended. */
export interface AlertTest {
  /** The sink. */
  readonly name: string;
  /** Null if it told the message, else why not. */
  readonly error: string | null;
}

/** Lists the alerts of the fleet, mutes them, and tests the sinks of this process. */
export interface Alerts {
  /** Every alert: the raised first, then the pending, then those that were cleared within a day. */
  list(): Promise<AlertView[]>;
  /** Every mute in force. */
  mutes(): Promise<AlertMute[]>;
  /** Every sink of the fleet that has told something or failed. */
  sinks(): Promise<AlertSinkView[]>;
  /** Tells no alert of a rule, or of one subject of it: for a time (1 s to 366 d), or until `unmute`. */
  mute(
    rule: AlertRule,
    options?: { readonly subject?: string; readonly for?: Duration } & ActionOptions,
  ): Promise<AlertMute>;
  /** Takes a mute back; false if there was none. */
  unmute(rule: AlertRule, options?: { readonly subject?: string } & ActionOptions): Promise<boolean>;
  /** Sends a test message to every sink of this process; answers how each ended. */
  test(): Promise<AlertTest[]>;
}

/** What they work with. */
export interface AlertsParts extends SinkParts {
  readonly store: Store;
  readonly system: System;
  readonly eventLog: EventLog;
  /** Null where this process has no alerts. */
  readonly settings: FleetAlertSettings | null;
}

const ORDER: readonly AlertState[] = ["raised", "pending", "cleared"];

/** Opens them. */
export function openAlerts(parts: AlertsParts): Alerts {
  const { store, eventLog, settings, system } = parts;
  return {
    async list() {
      const { book, mutes, now } = await readNotes(store);
      const place = ({ state, since }: AlertRecord): [number, number] => [ORDER.indexOf(state), since];
      const sorted = book.value.alerts.toSorted((a, b) => {
        const [[stateA, sinceA], [stateB, sinceB]] = [place(a), place(b)];
        return stateA - stateB || sinceA - sinceB;
      });
      return sorted.map(({ message: _message, seenAt: _seenAt, ...alert }) => ({
        ...alert,
        severity: settings?.rules.get(alert.rule)?.severity ?? null,
        muted: muteOf(alert, mutes.value, now),
      }));
    },
    mutes: async () => [...(await readNotes(store)).mutes.value],
    async sinks() {
      const { sinks } = await readNotes(store);
      return [...sinks.values()].map(({ value: { name, lastAt, failing, next } }) => {
        return { name, lastAt, failing: failing && { ...failing, next } };
      });
    },
    async mute(rule, options = {}) {
      const { why, for: span, subject } = aboutOf(rule, options, ["subject", "for", "why"]);
      const forMs = span === undefined ? null : parseDuration(span, "for", { minMs: 1_000, maxMs: 366 * 86_400_000 });
      const about = { rule, subject, by: eventLog.actor, why: why ?? null };
      const action = { kind: "alert.muted", subject: eventSubject(rule, subject), why, details: { forMs } };
      return eventLog.act(action, async () => {
        const changed = await changeMutes(store, (mutes, now) => {
          const mute: AlertMute = { ...about, until: forMs === null ? null : now + forMs };
          return [...mutes.filter((each) => !isSame(each, mute)), mute];
        });
        return changed.at(-1) as AlertMute;
      });
    },
    async unmute(rule, options = {}) {
      const { why, subject } = aboutOf(rule, options, ["subject", "why"]);
      const { mutes } = await readNotes(store);
      const isEmpty = !mutes.value.some((each) => isSame(each, { rule, subject }));
      const action = { kind: "alert.unmuted", subject: eventSubject(rule, subject), why, isEmpty };
      return eventLog.act(action, async () => {
        if (!isEmpty) await changeMutes(store, (all) => all.filter((each) => !isSame(each, { rule, subject })));
        return !isEmpty;
      });
    },
    async test() {
      if (settings === null)
        throw new RedriveError("config_refused", "alerts: expected settings; got none; add `alerts: {}` to the config");
      const message = testMessage(system.now());
      return Promise.all(
        settings.sinks.map(async (each) => ({ name: each.name, error: await openSink(each, parts).tell(message) })),
      );
    },
  };
}

type About = { readonly why?: string; readonly for?: unknown; readonly subject: string | null };

function aboutOf(rule: unknown, options: unknown, fields: readonly ("subject" | "for" | "why")[]): About {
  if (!ALERT_RULES.includes(rule as AlertRule))
    throw invalid("rule", ALERT_RULES.join(", "), rule, didYouMean(rule, ALERT_RULES, "use one of these"));
  const { subject = null, why, for: span } = parseOptions(options, fields, "alerts");
  if (subject !== null) checkSubject(subject);
  return { subject: subject as string | null, for: span, ...(why !== undefined && { why: why as string }) };
}

function eventSubject(rule: string, subject: string | null): string {
  return subjectOf("alert", subject === null ? rule : `${rule} ${subject}`);
}

function isSame(a: Pick<AlertMute, "rule" | "subject">, b: Pick<AlertMute, "rule" | "subject">): boolean {
  return a.rule === b.rule && a.subject === b.subject;
}

const TRIES = 10;
const MUTES_MOST = 100;

/** Changes the mutes after those that others wrote meanwhile. */
async function changeMutes(
  store: Store,
  change: (mutes: readonly AlertMute[], now: number) => readonly AlertMute[],
): Promise<readonly AlertMute[]> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const { mutes, now } = await readNotes(store);
    const after = change(mutes.value, now);
    if (after.length > MUTES_MOST)
      throw new RedriveError("conflict", `alerts: expected at most ${MUTES_MOST} mutes; got more; take one back first`);
    const [isOurs] = await store.setCells([mutesChange(after, mutes.version)]);
    if (isOurs) return after;
  }
  throw new RedriveError("conflict", "The mutes were changed by others again and again. Try again.");
}
