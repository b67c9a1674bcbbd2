// `redrive dlq`: lists dead letters, repairs them, sends them back to work, removes or exports them.
import type { DeadLetter } from "../core/job.ts";
import type { Holding } from "../core/holding.ts";
import { readHolding } from "../services/holding.ts";
import { letterForm } from "../operate/job-forms.ts";
import type { Redrive } from "../redrive-api.ts";
import { type Cli, examples, numeric, textual } from "./command.ts";
import { registerCauses } from "./dlq-causes.ts";
import { registerRemove, registerRetry } from "./dlq-changes.ts";
import { registerEdit } from "./dlq-edit.ts";
import { registerExport } from "./dlq-export.ts";
import { registerRepair } from "./dlq-repair.ts";
import { dlqStats } from "./dlq-stats.ts";
import { registerTriage } from "./dlq-triage.ts";
import { letterFilter, letterFilterFlags } from "./job-flags.ts";
import { pageForm } from "../operate/view-forms.ts";
import { lookAt, lookFlag, noneText, sayMore } from "./look.ts";
import { showLetter } from "./jobs-show.ts";
import { noMatchHint } from "./no-match-hint.ts";
import type { Session } from "./session.ts";
import { KEY_COLUMN, tableOf } from "./table.ts";
import { errorLine, relativeTime } from "./format.ts";

/** Registers `dlq`. */
export function register(cli: Cli): void {
  const dlq = cli.command;
  const list = lookFlag(
    letterFilterFlags(dlq.command("list").description("list dead letters, newest first"))
      .option("--limit <n>", "dead letters per page, 1 to 200", "50")
      .option("--cursor <cursor>", "where the previous page ended"),
    "dead letters",
  );
  examples(list, cli, ["dlq list", "dlq list --type thumbnail --class network --limit 10 --json"]);
  cli.act(list, async (session, _args, flags) => {
    const redrive = await session.openExisting();
    const filter = await letterFilter(flags, async () => redrive.store);
    const where = { limit: numeric(flags.limit) ?? 50, cursor: textual(flags.cursor) ?? null, lookAt: lookAt(flags) };
    const query = { ...filter, ...where, payloads: session.json };
    const [page, holding] = await Promise.all([redrive.deadLetters.list(query), readHolding(redrive.store)]);
    const { items } = page;
    const forms = session.json ? await formsOf(items, redrive, holding) : [];
    const none = items.length === 0 && !session.json ? noneText(page, await noMatchHint(redrive, flags)) : "";
    session.show({ items: forms, ...pageForm(page) }, () =>
      items.length === 0 ? none : lettersTable(items, holding.now, session),
    );
    sayMore(session, page, flags, "dead letter", holding.now);
  });
  const show = dlq
    .command("show")
    .description("show the newest dead letter of a job")
    .argument("[id]", "job id, or --key")
    .option("--key <text>", "the newest dead letter of a job with this key");
  cli.act(show, async (session, [id], flags) => showLetter(session, id, textual(flags.key)));
  examples(show, cli, ["dlq show 0199c8a2-7d1e-7a4b-9c3d-2f1e5a6b7c8d", "dlq show --key order-17"]);
  const stats = lookFlag(
    letterFilterFlags(dlq.command("stats").description("count dead letters by class, type, reason and cause")),
    "dead letters",
  );
  cli.act(stats, async (session, _args, flags) => dlqStats(session, flags));
  examples(stats, cli, ["dlq stats", "dlq stats --service payments --json"]);
  registerCauses(cli, dlq);
  registerTriage(cli, dlq);
  registerEdit(cli, dlq);
  registerRepair(cli, dlq);
  registerRetry(cli, dlq);
  registerRemove(cli, dlq);
  registerExport(cli, dlq);
}

function formsOf(letters: readonly DeadLetter[], { store }: Redrive, holding: Holding): Promise<object[]> {
  return Promise.all(letters.map(async (letter) => letterForm(letter, await store.history(letter.job.id), holding)));
}

function lettersTable(letters: readonly DeadLetter[], now: number, session: Session): string {
  return tableOf(letters, session, [
    { title: "ID", of: ({ job }) => job.id },
    { title: "TYPE", least: 6, of: ({ job }) => job.type },
    { ...KEY_COLUMN, of: ({ job }) => job.key ?? "" },
    { title: "REASON", of: ({ reason }) => reason },
    { title: "CLASS", least: 9, optional: true, of: ({ failure }) => failure.class },
    { title: "DIED", of: ({ diedAt }) => relativeTime(diedAt, now) },
    { title: "ERROR", least: 12, optional: true, of: ({ failure }) => errorLine(failure) },
  ]);
}
