// `redrive stuck`: lists and ends runs that exceed their limit.
import { formatDuration } from "../core/duration.ts";
import { stuckForm } from "../operate/view-forms.ts";
import type { StuckFilter, StuckRun } from "../operate/stuck.ts";
import { type Cli, defined, examples, type Flags, textual, whyFlag, whyOf } from "./command.ts";
import type { Command } from "commander";
import { masked } from "../core/safe-text.ts";
import type { Session } from "./session.ts";
import { type Column, KEY_COLUMN, tableText } from "./table.ts";
import { counted, relativeTime } from "./format.ts";

/** Registers `stuck`. */
export function register(cli: Cli): void {
  const stuck = cli.command;
  const list = filterFlags(
    stuck.command("list").description("list runs over the limit of their type, with the verdict each would get"),
  );
  examples(list, cli, ["stuck list", "stuck list --older-than 30m --json"]);
  cli.act(list, async (session, _args, flags) => {
    const redrive = await session.openExisting();
    const runs = await redrive.stuck.list(filterOf(flags));
    const { now } = await redrive.store.control();
    session.show({ items: runs.map(stuckForm) }, () =>
      runs.length === 0 ? "No run is stuck.\n" : stuckTable(runs, now, session),
    );
  });
  const fix = filterFlags(
    stuck
      .command("fix")
      .description(
        "end stuck runs now: their jobs are retried or dead-lettered, and later reports of the runs are refused",
      ),
  ).option("--dry-run", "only show what would be done");
  whyFlag(fix);
  examples(fix, cli, ["stuck fix --dry-run", "stuck fix --type scrape --older-than 2h"]);
  cli.act(fix, async (session, _args, flags) => {
    const dryRun = flags.dryRun === true;
    const redrive = await session.openExisting();
    const runs = await redrive.stuck.fix({ ...filterOf(flags), ...whyOf(flags), dryRun });
    const { now } = await redrive.store.control();
    const fixed = runs.filter((run) => run.fixed).length;
    session.answer({ dryRun, fixed, items: runs.map(stuckForm) }, () => {
      if (runs.length === 0) return "No run is stuck; nothing was changed.\n";
      const meanwhile = runs.length - fixed;
      const done = dryRun
        ? `${counted(runs.length, "run")} would be ended; nothing was changed.`
        : `${counted(fixed, "run")} ended${meanwhile > 0 ? `, ${meanwhile} had ended meanwhile` : ""}.`;
      return `${stuckTable(runs, now, session)}${done}\n`;
    });
  });
}

function filterFlags(command: Command): Command {
  return command
    .option("--older-than <duration>", "runs longer than this, whatever the limit of their type")
    .option("--type <type>", "runs of this type");
}

function filterOf(flags: Flags): StuckFilter {
  return defined({ olderThan: textual(flags.olderThan), type: textual(flags.type) }) as StuckFilter;
}

const COLUMNS: readonly Column[] = [
  { title: "ID" },
  { title: "TYPE", least: 6 },
  KEY_COLUMN,
  { title: "RAN", align: "right" },
  { title: "LIMIT", align: "right" },
  { title: "WORKER", least: 8, optional: true },
  { title: "THEN" },
  { title: "MESSAGE", least: 16, optional: true },
];

function stuckTable(runs: readonly StuckRun[], now: number, { width, paint }: Session): string {
  const rows = runs.map((run) => {
    const limit = run.limitMs === null ? "-" : formatDuration(run.limitMs);
    const then = run.retryAt === null ? run.verdict : `again ${relativeTime(run.retryAt, now)}`;
    const which = [run.id, run.type, run.key ?? ""];
    return [...which, lasted(run.ranMs), limit, run.worker ?? "-", then, masked(run.message ?? "")];
  });
  return tableText(COLUMNS, rows, { width, paint });
}

/** A duration in whole seconds, because milliseconds do not matter for a stuck run. */
function lasted(ms: number): string {
  return formatDuration(ms < 1_000 ? ms : Math.floor(ms / 1_000) * 1_000);
}
