// `redrive alerts`: the alerts of the fleet, which of them are muted, and a test of where they are told.
import { alertForm, muteForm, sinkForm } from "../alerts/forms.ts";
import type { AlertSinkView, AlertTest, AlertView } from "../alerts/alerts.ts";
import type { AlertMute } from "../core/alerting/book.ts";
import { ALERT_RULES, type AlertRule } from "../core/alerting/rules.ts";
import { safeLine } from "../core/safe-text.ts";
import { type Cli, defined, examples, textual, whyFlag, whyOf } from "./command.ts";
import { EXIT } from "./exit.ts";
import { relativeTime } from "./format.ts";
import type { Style } from "./paint.ts";
import type { Session } from "./session.ts";
import { tableOf } from "./table.ts";

const NOTES = `
Workers and drains of a config with \`alerts:\` look at the rules, one process of
the fleet at a time, and tell each alert once: when it is raised, again while it
lasts, and when it is cleared. \`alerts: {}\` is enough; it tells in the log.`;

const RULES = `\nRules: ${ALERT_RULES.slice(0, 6).join(", ")},\n${ALERT_RULES.slice(6).join(", ")}.`;

/** Registers `alerts`. */
export function register(cli: Cli): void {
  const alerts = cli.command.addHelpText("after", NOTES);
  const list = alerts.command("list").description("list the alerts of the fleet, and those of the last day");
  examples(list, cli, ["alerts list", "alerts list --json"]);
  cli.act(list, async (session) => {
    const redrive = await session.openExisting();
    const [items, mutes, sinks, { now }] = await Promise.all([
      redrive.alerts.list(),
      redrive.alerts.mutes(),
      redrive.alerts.sinks(),
      redrive.store.control(),
    ]);
    const document = {
      items: items.map(alertForm),
      mutes: mutes.map(muteForm),
      sinks: sinks.map(sinkForm),
      next: null,
    };
    session.show(document, () => listText(items, mutes, now, session));
    for (const line of sinkLines(sinks, now)) session.say(line);
    if (session.config.fleetAlerts === null && items.length === 0)
      session.say("This config has no alerts. Add `alerts: {}` to tell them in the log of workers and drains.");
  });
  const test = alerts.command("test").description("send a test message to every sink of this config");
  examples(test, cli, ["alerts test", "alerts test --json"]);
  cli.act(test, async (session) => tested(session), { level: () => "info" });
  const mute = alerts
    .command("mute")
    .description("tell no alert of a rule, for a time or until it is taken back")
    .argument("<rule>", "the rule, such as errorRate")
    .option("--subject <subject>", "only this subject, such as service:pricing")
    .option("--for <duration>", "end the mute by itself after this long (default: until `unmute`)")
    .addHelpText("after", RULES);
  whyFlag(mute);
  examples(mute, cli, ["alerts mute breakerOpen --subject service:pricing --for 2h --why maintenance"]);
  cli.act(mute, async (session, [rule = ""], flags) => {
    const redrive = await session.openExisting();
    const options = { ...defined({ subject: textual(flags.subject), for: textual(flags.for) }), ...whyOf(flags) };
    const muted = await redrive.alerts.mute(rule as AlertRule, options);
    const { now } = await redrive.store.control();
    session.answer(muteForm(muted), () => `Muted ${muteText(muted, now)}.\n`);
  });
  const unmute = alerts
    .command("unmute")
    .description("take a mute back; what holds is told then")
    .argument("<rule>", "the rule, such as errorRate")
    .option("--subject <subject>", "the mute of this subject")
    .addHelpText("after", RULES);
  whyFlag(unmute);
  examples(unmute, cli, ["alerts unmute errorRate"]);
  cli.act(unmute, async (session, [rule = ""], flags) => {
    const redrive = await session.openExisting();
    const subject = textual(flags.subject);
    const options = { ...defined({ subject }), ...whyOf(flags) };
    const unmuted = await redrive.alerts.unmute(rule as AlertRule, options);
    const about = subject === undefined ? rule : `${rule} ${subject}`;
    const text = unmuted ? `${about} is told again.\n` : `${about} was not muted.\n`;
    session.answer({ unmuted }, () => safeLine(text.trimEnd()).concat("\n"));
  });
}

async function tested(session: Session): Promise<number> {
  const redrive = await session.openExisting();
  const tests = await redrive.alerts.test();
  const line = ({ name, error }: AlertTest): string => safeLine(`${name}: ${error ?? "told"}`);
  session.show({ items: tests, next: null }, () => tests.map((each) => `${line(each)}\n`).join(""));
  return tests.every(({ error }) => error === null) ? EXIT.ok : EXIT.failed;
}

const STYLES: Readonly<Record<AlertView["state"], Style>> = { raised: "red", pending: "yellow", cleared: "green" };

function listText(alerts: readonly AlertView[], mutes: readonly AlertMute[], now: number, session: Session): string {
  const quiet = mutes.map((mute) => `Muted: ${muteText(mute, now)}.\n`).join("");
  if (alerts.length === 0) return `No alert is raised.\n${quiet}`;
  const table = tableOf(alerts, session, [
    { title: "STATE", of: ({ state }) => ({ text: state, style: STYLES[state] }) },
    { title: "RULE", of: ({ rule }) => rule },
    { title: "SINCE", of: ({ since }) => relativeTime(since, now) },
    { title: "SEVERITY", optional: true, of: ({ severity, muted }) => (muted ? "muted" : (severity ?? "-")) },
    { title: "WHAT", least: 20, of: ({ text }) => safeLine(text) },
    { title: "NEXT", least: 12, optional: true, of: ({ help }) => safeLine(help) },
  ]);
  return table + quiet;
}

function muteText({ rule, subject, until, by, why }: AlertMute, now: number): string {
  const end = until === null ? "until it is taken back" : `until ${relativeTime(until, now)}`;
  const about = subject === null ? rule : `${rule} ${subject}`;
  return safeLine(`${about}, ${end}, by ${by}${why === null ? "" : `: ${why}`}`);
}

function sinkLines(sinks: readonly AlertSinkView[], now: number): string[] {
  return sinks.flatMap(({ name, failing }) => {
    if (failing === null) return [];
    const { since, error, next } = failing;
    return [safeLine(`${name} fails since ${relativeTime(since, now)}, next try ${relativeTime(next, now)}: ${error}`)];
  });
}
