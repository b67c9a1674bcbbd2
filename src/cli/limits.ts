// `redrive limits`: shows the rate limits, retry budgets and weights that workers are configured with, and what is
// left.
import { formatDuration } from "../core/duration.ts";
import { limitForm } from "../operate/view-forms.ts";
import type { LimitView } from "../operate/limit-views.ts";
import { type Cli, examples } from "./command.ts";
import type { Session } from "./session.ts";
import { type Column, tableText } from "./table.ts";
import { relativeTime } from "./format.ts";

/** Registers `limits`. */
export function register(cli: Cli): void {
  const command = cli.command;
  examples(command, cli, ["limits", "limits --json"]);
  cli.act(command, async (session) => {
    const redrive = await session.openExisting();
    const [views, { now }] = await Promise.all([redrive.limits(), redrive.store.control()]);
    session.show({ items: views.map(limitForm), next: null }, () =>
      views.length === 0 ? "No worker has declared a limit.\n" : limitsTable(views, now, session),
    );
  });
}

const COLUMNS: readonly Column[] = [
  { title: "OF", least: 12 },
  { title: "STARTS" },
  { title: "NEXT" },
  { title: "RETRIES" },
  { title: "LEFT", align: "right" },
  { title: "WEIGHT", align: "right" },
];

function limitsTable(views: readonly LimitView[], now: number, { width, paint }: Session): string {
  const rows = views.map(({ kind, name, rate, budget, weight }) => [
    `${kind} ${name}`,
    rate ? `${rate.limit} per ${formatDuration(rate.perMs)}${rate.burst > 1 ? `, ${rate.burst} at once` : ""}` : "",
    rate ? (rate.nextAt === null ? "now" : relativeTime(rate.nextAt, now)) : "",
    budget ? `${Math.round(budget.share * 100)} % and ${budget.floorPerSecond} per 1s` : "",
    budget ? budget.tokens : "",
    weight ?? "",
  ]);
  return tableText(COLUMNS, rows, { width, paint });
}
