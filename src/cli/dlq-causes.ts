// `redrive dlq causes`: lists what dead letters died of, the most frequent first.
import type { Command } from "commander";
import { causeForm, listCauses } from "../operate/causes.ts";
import type { Cause } from "../store/store.ts";
import { type Cli, examples, numeric, textual } from "./command.ts";
import { errorLine, relativeTime } from "./format.ts";
import type { Session } from "./session.ts";
import { type Column, tableText } from "./table.ts";

/** Registers `dlq causes`. */
export function registerCauses(cli: Cli, dlq: Command): void {
  const causes = dlq
    .command("causes")
    .description("list the causes of dead letters, those with the most first")
    .option("--limit <n>", "causes per page, 1 to 200", "50")
    .option("--cursor <cursor>", "where the previous page ended");
  examples(causes, cli, ["dlq causes", "dlq causes --limit 5 --json"]);
  cli.act(causes, async (session, _args, flags) => {
    const { store } = await session.openExisting();
    const query = { limit: numeric(flags.limit) ?? 50, cursor: textual(flags.cursor) ?? null };
    const [{ items, next }, { now }] = await Promise.all([listCauses(store, query), store.control()]);
    session.show({ items: items.map(causeForm), next }, () =>
      items.length === 0 ? "No dead letters.\n" : causesTable(items, now, session),
    );
    if (next !== null && !session.json) session.say(`More: add --cursor ${next}`);
  });
}

const COLUMNS: readonly Column[] = [
  { title: "CAUSE" },
  { title: "DEAD", align: "right" },
  { title: "FIRST" },
  { title: "LAST" },
  { title: "TYPES", least: 6 },
  { title: "WHAT", least: 12, optional: true },
];

function causesTable(causes: readonly Cause[], now: number, { width, paint }: Session): string {
  const rows = causes.map(({ fingerprint, live, firstAt, lastAt, types, sample }) => [
    fingerprint,
    live,
    relativeTime(firstAt, now),
    relativeTime(lastAt, now),
    types.join(", "),
    sample ? errorLine(sample) : "",
  ]);
  return tableText(COLUMNS, rows, { width, paint });
}
