// `redrive drain`: works until nothing is left to do, says what it did, and ends with a status. For cron and its likes.
import { formatDuration, parseDuration } from "../core/duration.ts";
import { realSystem } from "../system/real.ts";
import { heldJobs, unservedJobs } from "../upkeep/due-work.ts";
import { type Cli, examples, textual } from "./command.ts";
import { EXIT } from "./exit.ts";
import { supervise } from "./supervise.ts";
import { defaultsOf, jobFileNames, requiredDefinitions, workerFlags, workerOptions } from "./worker-flags.ts";
import { heldLines, runsText, unservedLines } from "./worker-summary.ts";

const NOTES = `
Returns when it holds nothing, nothing is due and no retry falls due within the
grace. Exit code 0: nothing died; 1: something did. Signals as for \`worker\`,
with 25s for running jobs. Due jobs of types that nobody defines stay queued;
they are named at the end (--json: "unserved", counted up to 1,000 a type), and
so is what waits for a breaker, a pause or a Retry-After (--json: "held").

Environment: MAX_RETRY_ATTEMPTS (attempts in all) or MAX_RETRIES (without the
first), and RETRY_DELAY_SECONDS (first delay), for types that set none.`;

/** Registers `drain`. */
export function registerDrain(cli: Cli): void {
  const command = workerFlags(cli.program.command("drain"))
    .description("run what is due, wait for what falls due soon, then end")
    .option("--grace <duration>", "wait for retries that fall due within this time", "1s")
    .addHelpText("after", NOTES);
  examples(command, cli, ["drain --jobs jobs.ts", "drain --jobs jobs.ts --grace 1m --json"]);
  cli.act(
    command,
    async (session, _args, flags) => {
      const grace = textual(flags.grace) ?? "1s";
      parseDuration(grace, "grace");
      const defaults = defaultsOf(session, "retries");
      const options = workerOptions(session, flags, "retries");
      const jobs = await requiredDefinitions(session, flags);
      const redrive = await session.open({ jobs, defaults });
      const worker = redrive.worker(options);
      const from = realSystem.monotonic();
      const hide = session.quiet
        ? () => undefined
        : session.progress.show(() => `drain: ${runsText(worker.counts)}, ${elapsed(from)}`);
      let code: number | null;
      try {
        code = await supervise(session, redrive, worker, { work: () => worker.drain({ grace }), within: "25s" });
      } finally {
        hide();
      }
      const ms = Math.round(realSystem.monotonic() - from);
      // After a signal the store is closed already.
      const types = new Set(jobs.map(({ type }) => type));
      const left = code === null && {
        unserved: await unservedJobs(redrive.store, { types, queues: options.queues }),
        held: await heldJobs(redrive.store),
      };
      session.answer({ ...worker.counts, ms, ...left }, () => `${runsText(worker.counts)} in ${formatDuration(ms)}\n`);
      if (left)
        for (const line of [...unservedLines(left.unserved, jobFileNames(session, flags)), ...heldLines(left.held)])
          session.say(line);
      return code ?? (worker.counts.dead > 0 ? EXIT.failed : EXIT.ok);
    },
    { level: "info" },
  );
}

function elapsed(from: number): string {
  return formatDuration(Math.round((realSystem.monotonic() - from) / 100) * 100);
}
