// `redrive dlq retry` and `redrive dlq remove`. Removing cannot be undone, so it asks first.
import type { Command } from "commander";
import { parseDuration } from "../core/duration.ts";
import { JOB_BOUNDS } from "../core/new-job.ts";
import { type Cli, examples, textual, whyFlag, whyOf } from "./command.ts";
import { mayGoOn } from "./confirm.ts";
import { EXIT } from "./exit.ts";
import { letterFilter, letterFilterFlags, oneTarget } from "./job-flags.ts";
import { noMatchHint } from "./no-match-hint.ts";
import { safeLine } from "../core/safe-text.ts";
import { answerChange } from "./whole-ids.ts";
import { counted } from "./format.ts";

/** Registers `dlq retry`. */
export function registerRetry(cli: Cli, dlq: Command): void {
  const command = letterFilterFlags(
    dlq
      .command("retry")
      .description("send dead letters back to work, with their attempts reset")
      .argument("[ids...]", "job ids, or filters"),
  )
    .option("--all", "every dead letter")
    .option("--delay <duration>", "run no sooner than this long from now", "0s");
  whyFlag(command);
  examples(command, cli, [
    "dlq retry --type thumbnail --class network",
    "dlq retry --key order-17",
    "dlq retry --all --delay 10m",
  ]);
  cli.act(command, async (session, ids, flags) => {
    const delay = textual(flags.delay) ?? "0s";
    parseDuration(delay, "delay", { maxMs: JOB_BOUNDS.delayMs });
    const because = whyOf(flags);
    const redrive = await session.openExisting();
    const filter = await letterFilter(flags, async () => redrive.store);
    const target = oneTarget(ids, filter, flags.all === true);
    if (!Array.isArray(target) && !session.json) {
      const { total } = await redrive.deadLetters.stats(target as object);
      if (total === 0) {
        const said = await noMatchHint(redrive, flags);
        session.answer(null, () => `${safeLine(said)}; nothing was redriven.\n`);
        return EXIT.ok;
      }
      session.say(`Sending ${counted(total, "dead letter")} back to work.`);
    }
    const sum = await redrive.deadLetters.retry(target, { delay, ...because });
    answerChange(session, ids, sum, `${counted(sum.redriven, "job")} sent back to work`, [[sum.refused, "not dead"]]);
    return Array.isArray(target) && sum.refused + sum.missing > 0 ? EXIT.failed : EXIT.ok;
  });
}

/** Registers `dlq remove`. */
export function registerRemove(cli: Cli, dlq: Command): void {
  const command = letterFilterFlags(
    dlq
      .command("remove")
      .description("delete dead jobs with their whole history; cannot be undone")
      .argument("[ids...]", "job ids, or filters"),
  )
    .option("--all", "every dead letter")
    .option("--yes", "do not ask");
  whyFlag(command);
  examples(command, cli, ["dlq remove --older-than 30d", "dlq remove --type thumbnail --yes --json"]);
  cli.act(command, async (session, ids, flags) => {
    const because = whyOf(flags);
    const redrive = await session.openExisting();
    const filter = await letterFilter(flags, async () => redrive.store);
    const target = oneTarget(ids, filter, flags.all === true);
    const count = Array.isArray(target) ? target.length : (await redrive.deadLetters.stats(target as object)).total;
    if (count === 0 && !session.json) {
      const said = await noMatchHint(redrive, flags);
      session.answer(null, () => `${safeLine(said)}; nothing was removed.\n`);
      return EXIT.ok;
    }
    if (count > 0 && !(await mayGoOn(session.io, flags, "remove", counted(count, "dead letter")))) {
      session.answer({ removed: 0, refused: 0, missing: 0 }, () => "Nothing was removed.\n");
      return EXIT.ok;
    }
    const sum = await redrive.deadLetters.remove(target, because);
    answerChange(session, ids, sum, `${counted(sum.removed, "dead letter")} removed`, [[sum.refused, "not dead"]]);
    return Array.isArray(target) && sum.refused + sum.missing > 0 ? EXIT.failed : EXIT.ok;
  });
}
