// `redrive queues`: lists queues, and pauses or resumes queues, job types, services and tenants.
import type { Command } from "commander";
import { formatDuration, parseDuration } from "../core/duration.ts";
import { checkName, checkText, JOB_BOUNDS } from "../core/new-job.ts";
import { didYouMean, invalid } from "../core/options.ts";
import { isoTime } from "../operate/json-form.ts";
import type { QueueView } from "../operate/queue-views.ts";
import { pauseForm, queueForm } from "../operate/view-forms.ts";
import type { Redrive } from "../redrive-api.ts";
import type { Pause, PauseTarget } from "../store/store.ts";
import { type Cli, defined, examples, type Flags, textual, whyFlag, whyOf } from "./command.ts";
import { EXIT } from "./exit.ts";
import { stateStyle } from "./paint.ts";
import { safeLine } from "../core/safe-text.ts";
import type { Session } from "./session.ts";
import { tableOf } from "./table.ts";
import { relativeTime } from "./format.ts";

/** Registers `queues`. */
export function register(cli: Cli): void {
  const queues = cli.command;
  const list = queues
    .command("list")
    .description("list the queues of workers, due jobs and pauses, and everything that is paused");
  examples(list, cli, ["queues list", "queues list --json"]);
  cli.act(list, async (session) => {
    const redrive = await session.openExisting();
    const [views, all, { now }] = await Promise.all([redrive.queues(), redrive.pauses(), redrive.store.control()]);
    const pauses = all.filter(({ kind }) => kind !== "queue");
    session.show({ items: views.map(queueForm), next: null, pauses: pauses.map(pauseForm) }, () => {
      const tables = [
        ...(views.length === 0 ? [] : [queuesTable(views, now, session)]),
        ...(pauses.length === 0 ? [] : [pausesTable(pauses, now, session)]),
      ];
      return tables.length === 0 ? "No queue is known yet.\n" : tables.join("\n");
    });
  });
  const pause = targetFlags(queues.command("pause"))
    .description("stop taking jobs of a queue, job type, service or tenant; running jobs continue")
    .option("--for <duration>", "resume automatically after this long (default: stay paused until resumed)")
    .option("--reason <text>", "reason, shown in lists");
  whyFlag(pause);
  examples(pause, cli, ["queues pause mail --for 30m --reason deploy", "queues pause --tenant acme"]);
  cli.act(pause, async (session, [name], flags) => {
    const target = targetOf(name, flags);
    const span = textual(flags.for);
    const forMs = span === undefined ? null : parseDuration(span, "for", { minMs: 1, maxMs: JOB_BOUNDS.delayMs });
    const redrive = await session.openExisting();
    const unknown = target.kind === "queue" ? await unknownQueue(redrive, target.name) : null;
    await redrive.pause(target, { ...defined({ for: span, reason: textual(flags.reason) }), ...whyOf(flags) });
    const { now } = await redrive.store.control();
    const until = isoTime(forMs === null ? null : now + forMs);
    session.answer({ ...target, paused: true, until }, () => {
      const how = forMs === null ? "until it is resumed" : `for ${formatDuration(forMs)}`;
      return `The ${safeLine(`${target.kind} ${target.name}`)} is paused ${how}.\n`;
    });
    if (unknown !== null) session.say(unknown);
  });
  const resume = targetFlags(queues.command("resume")).description("end a pause");
  whyFlag(resume);
  examples(resume, cli, ["queues resume mail", "queues resume --tenant acme"]);
  cli.act(resume, async (session, [name], flags) => {
    const target = targetOf(name, flags);
    const redrive = await session.openExisting();
    const resumed = await redrive.resume(target, whyOf(flags));
    const paused = resumed ? [] : (await redrive.queues()).filter((view) => view.paused).map((view) => view.name);
    session.answer({ ...target, resumed }, () => {
      const what = safeLine(`${target.kind} ${target.name}`);
      const hint = target.kind === "queue" ? didYouMean(target.name, paused) : "";
      return resumed ? `The ${what} is resumed.\n` : `The ${what} was not paused${hint && ` (${hint})`}.\n`;
    });
    return resumed ? EXIT.ok : EXIT.failed;
  });
}

const KINDS = ["type", "service", "tenant"] as const;

function targetFlags(command: Command): Command {
  return command
    .argument("[queue]", "name of the queue")
    .option("--type <type>", "a job type instead")
    .option("--service <name>", "a service instead")
    .option("--tenant <name>", "a tenant instead");
}

function targetOf(queue: string | undefined, flags: Flags): PauseTarget {
  const others = KINDS.flatMap((kind) => {
    const name = textual(flags[kind]);
    return name === undefined ? [] : [{ kind, name }];
  });
  const given: PauseTarget[] = [...(queue === undefined ? [] : [{ kind: "queue" as const, name: queue }]), ...others];
  const [target] = given;
  if (target === undefined || given.length > 1) {
    const came = target === undefined ? "none of them" : "more than one of them";
    throw invalid("target", "a queue, --type, --service or --tenant", came, "pass exactly one");
  }
  (target.kind === "tenant" ? checkText : checkName)(target.kind, target.name);
  return target;
}

/** The message for an unknown queue; null for one that workers, due jobs, pauses or any job name. */
async function unknownQueue(redrive: Redrive, queue: string): Promise<string | null> {
  const known = (await redrive.queues()).map(({ name }) => name);
  if (known.includes(queue) || (await redrive.jobs.list({ queue, limit: 1 })).items.length > 0) return null;
  const hint = didYouMean(queue, known);
  return `No worker or job knows a queue ${JSON.stringify(queue)}${hint === "" ? "." : `; ${hint}`} It was paused anyway.`;
}

function queuesTable(views: readonly QueueView[], now: number, session: Session): string {
  return tableOf(views, session, [
    { title: "QUEUE", least: 8, of: ({ name }) => name },
    { title: "STATE", of: ({ paused }) => (paused ? { text: "paused", style: stateStyle("paused") } : "open") },
    { title: "UNTIL", of: ({ paused }) => (paused ? untilText(paused.until, now) : "") },
    { title: "TYPES", least: 12, of: ({ types }) => types.join(", ") },
    { title: "WHY", least: 12, optional: true, of: ({ paused }) => paused?.reason ?? "" },
  ]);
}

function pausesTable(pauses: readonly Pause[], now: number, session: Session): string {
  return tableOf(pauses, session, [
    { title: "PAUSED", of: ({ kind }) => ({ text: kind, style: stateStyle("paused") }) },
    { title: "NAME", least: 8, of: ({ name }) => name },
    { title: "UNTIL", of: ({ until }) => untilText(until, now) },
    { title: "WHY", least: 12, optional: true, of: ({ reason }) => reason },
  ]);
}

function untilText(until: number | null, now: number): string {
  return until === null ? "resumed" : relativeTime(until, now);
}
