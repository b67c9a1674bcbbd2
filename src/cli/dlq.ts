// `redrive dlq`: lists dead letters, sends them back to work, removes or exports them.
import type { DeadLetter } from "../core/job.ts";
import type { Holding } from "../core/holding.ts";
import { readHolding } from "../services/holding.ts";
import { letterForm } from "../operate/json-form.ts";
import type { Redrive } from "../redrive.ts";
import { type Cli, examples, numeric, textual } from "./command.ts";
import { registerCauses } from "./dlq-causes.ts";
import { registerRemove, registerRetry } from "./dlq-changes.ts";
import { registerExport } from "./dlq-export.ts";
import { dlqStats } from "./dlq-stats.ts";
import { letterFilter, letterFilterFlags } from "./job-flags.ts";
import { showLetter } from "./jobs-show.ts";
import { noMatchHint } from "./no-match-hint.ts";
import { safeLine } from "../core/safe-text.ts";
import type { Session } from "./session.ts";
import { type Column, tableText } from "./table.ts";
import { errorLine, relativeTime } from "./format.ts";

/** Registers `dlq`. */
export function register(cli: Cli): void {
  const dlq = cli.command;
  const list = letterFilterFlags(dlq.command("list").description("list dead letters, newest first"))
    .option("--limit <n>", "dead letters per page, 1 to 200", "50")
    .option("--cursor <cursor>", "where the previous page ended");
  examples(list, cli, ["dlq list", "dlq list --type thumbnail --class network --limit 10 --json"]);
  cli.act(list, async (session, _args, flags) => {
    const redrive = await session.openExisting();
    const filter = await letterFilter(flags, async () => redrive.store);
    const page = { limit: numeric(flags.limit) ?? 50, cursor: textual(flags.cursor) ?? null, payloads: session.json };
    const query = { ...filter, ...page };
    const [{ items, next }, holding] = await Promise.all([redrive.deadLetters.list(query), readHolding(redrive.store)]);
    const forms = session.json ? await formsOf(items, redrive, holding) : [];
    const none = items.length === 0 && !session.json ? `${safeLine(await noMatchHint(redrive, flags))}.\n` : "";
    session.show({ items: forms, next }, () => (items.length === 0 ? none : lettersTable(items, holding.now, session)));
    if (next !== null && !session.json) session.say(`More: add --cursor ${next}`);
  });
  const show = dlq.command("show").description("show the newest dead letter of a job").argument("<id>", "job id");
  cli.act(show, async (session, [id = ""]) => showLetter(session, id));
  examples(show, cli, ["dlq show 0199c8a2-7d1e-7a4b-9c3d-2f1e5a6b7c8d"]);
  const stats = letterFilterFlags(
    dlq.command("stats").description("count dead letters by class, type, reason and cause"),
  );
  cli.act(stats, async (session, _args, flags) => dlqStats(session, flags));
  examples(stats, cli, ["dlq stats", "dlq stats --service payments --json"]);
  registerCauses(cli, dlq);
  registerRetry(cli, dlq);
  registerRemove(cli, dlq);
  registerExport(cli, dlq);
}

function formsOf(letters: readonly DeadLetter[], { store }: Redrive, holding: Holding): Promise<object[]> {
  return Promise.all(letters.map(async (letter) => letterForm(letter, await store.history(letter.job.id), holding)));
}

const COLUMNS: readonly Column[] = [
  { title: "ID" },
  { title: "TYPE", least: 6 },
  { title: "REASON" },
  { title: "CLASS", least: 9, optional: true },
  { title: "DIED" },
  { title: "ERROR", least: 12, optional: true },
];

function lettersTable(letters: readonly DeadLetter[], now: number, { width, paint }: Session): string {
  const rows = letters.map(({ job, reason, failure, diedAt }) => [
    job.id,
    job.type,
    reason,
    failure.class,
    relativeTime(diedAt, now),
    errorLine(failure),
  ]);
  return tableText(COLUMNS, rows, { width, paint });
}
