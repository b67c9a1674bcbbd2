// `redrive redrives`: lists redrive runs, shows one, and pauses, resumes, cancels or recalls it.
import type { Command } from "commander";
import { formatDuration } from "../core/duration.ts";
import { RUN_STATES } from "../core/recovery/run.ts";
import { selectionText } from "../core/recovery/selection.ts";
import { safeLine } from "../core/safe-text.ts";
import type { Redrives } from "../operate/redrives.ts";
import type { RedriveRunView } from "../operate/redrive-views.ts";
import { type Cli, defined, examples, numeric, textual, whyFlag, whyOf } from "./command.ts";
import { bar, fullTime, grouped, relativeTime } from "./format.ts";
import { stateStyle } from "./paint.ts";
import { planForm, runForm, wholeRunForm } from "../operate/view-forms.ts";
import { planText, rateText, stepsText } from "./plan-form.ts";
import { booksText, stepText } from "./redrive-form.ts";
import type { Session } from "./session.ts";
import { tableOf } from "./table.ts";

/** Registers `redrives`. */
export function register(cli: Cli): void {
  const group = cli.command;
  const list = group
    .command("list")
    .description("list redrive runs, newest first")
    .option("--state <state>", RUN_STATES.join(", "))
    .option("--limit <n>", "runs per page, 1 to 200", "50")
    .option("--cursor <cursor>", "where the previous page ended");
  examples(list, cli, ["redrives list", "redrives list --state running --json"]);
  cli.act(list, async (session, _args, flags) => {
    const redrive = await session.openExisting();
    const query = { limit: numeric(flags.limit) ?? 50, cursor: textual(flags.cursor) ?? null };
    const state = textual(flags.state) as RedriveRunView["state"] | undefined;
    const { items, next } = await redrive.redrives.list({ ...query, ...defined({ state }) });
    const { now } = await redrive.store.control();
    session.show({ items: items.map(wholeRunForm), next }, () =>
      items.length === 0
        ? `No redrive run. Plan one: ${session.suggest("plan --help")}\n`
        : runsTable(items, now, session),
    );
    if (next !== null && !session.json) session.say(`More: add --cursor ${next}`);
  });
  const show = group
    .command("show")
    .description("show a redrive run, or a plan")
    .argument("<id>", "id of the run or plan");
  examples(show, cli, [
    "redrives show r_01jc4y8n2k",
    "redrives show p_01jc4y8n2k",
    "redrives show r_01jc4y8n2k --json",
  ]);
  cli.act(show, async (session, [id]) => {
    const redrive = await session.openExisting();
    if (id?.startsWith("p_")) {
      const plan = await redrive.redrives.getPlan(id);
      return session.show({ ...planForm(plan), started: plan.started }, () => planText(plan, session));
    }
    const run = await redrive.redrives.get(id as string);
    const { now } = await redrive.store.control();
    session.show(wholeRunForm(run), () => runText(run, now, session));
  });
  change(cli, group, "pause", "send nothing more until it is resumed; jobs that were sent run");
  change(cli, group, "resume", "go on with a paused run; the present step is judged again");
  change(cli, group, "cancel", "end a run: nothing more is sent; jobs that were sent run");
  change(cli, group, "recall", "end a run and take back the jobs that no worker has taken");
}

type Change = "pause" | "resume" | "cancel" | "recall";

const DONE: Readonly<Record<Change, string>> = {
  pause: "is paused",
  resume: "goes on",
  cancel: "is cancelled",
  recall: "is over; what no worker had taken is dead again",
};

function change(cli: Cli, group: Command, verb: Change, description: string): void {
  const command = whyFlag(group.command(verb).description(description).argument("<id>", "id of the run"));
  examples(command, cli, [`redrives ${verb} r_01jc4y8n2k --why 'still failing'`]);
  cli.act(command, async (session, [id], flags) => {
    const because = whyOf(flags);
    const { redrives }: { readonly redrives: Redrives } = await session.openExisting();
    const run = await redrives[verb](id as string, because);
    const done = run.recall ? "is over; a worker takes back what was not taken" : DONE[verb];
    session.answer(runForm(run), () => `${run.id} ${done}: ${booksText(run)}.\n`);
  });
}

function runsTable(runs: readonly RedriveRunView[], now: number, session: Session): string {
  return tableOf(runs, session, [
    { title: "RUN", of: ({ id }) => id },
    { title: "STATE", of: ({ state }) => ({ text: state, style: stateStyle(state) }) },
    { title: "STEP", of: (run) => (run.endedAt === null ? stepText(run) : "") },
    { title: "PROGRESS", of: progressBar },
    { title: "SENT", align: "right", of: ({ counts, toSend }) => `${grouped(counts.sent)}/${grouped(toSend)}` },
    { title: "DONE", align: "right", of: ({ counts }) => grouped(counts.completed) },
    { title: "FAILED", align: "right", of: ({ counts }) => grouped(counts.failed) },
    { title: "STARTED", of: ({ startedAt }) => relativeTime(startedAt, now) },
    { title: "BY", least: 6, optional: true, of: ({ by }) => by },
    { title: "WHAT", least: 12, optional: true, of: (run) => run.reason ?? run.waits ?? selectionText(run.selection) },
  ]);
}

function progressBar({ counts, toSend }: RedriveRunView): string {
  return bar(toSend === 0 ? 1 : counts.sent / toSend, 10);
}

function runText(run: RedriveRunView, now: number, session: Session): string {
  const { paint } = session;
  const lines: readonly (readonly [string, string])[] = [
    ["letters", selectionText(run.selection) || "all"],
    ["state", run.endedAt === null ? `${run.state}, ${stepText(run)}` : run.state],
    ["reason", run.reason ?? ""],
    [
      "waits",
      run.waits === null
        ? ""
        : `${run.waits}${run.waitsUntil === null ? "" : `, until ${fullTime(run.waitsUntil, now)}`}`,
    ],
    ["books", `${grouped(run.counts.sent)} of ${grouped(run.toSend)} sent: ${booksText(run)}`],
    ["steps", `${stepsText(run.steps, run.toSend)}, ${rateText(run.rate)}`],
    ["judged", `within ${formatDuration(run.judgeWithinMs)}, tolerates ${run.tolerate * 100} %`],
    ["patch", run.patch ?? ""],
    ["started", `${fullTime(run.startedAt, now)} by ${run.by}`],
    ["why", run.why ?? ""],
    ["ended", run.endedAt === null ? "" : fullTime(run.endedAt, now)],
  ];
  const shown = lines.filter(([, text]) => text !== "");
  const width = Math.max(...shown.map(([name]) => name.length));
  return `${paint("bold", run.id)}\n${shown.map(([name, text]) => `  ${paint("dim", name.padEnd(width))}  ${safeLine(text)}\n`).join("")}`;
}
