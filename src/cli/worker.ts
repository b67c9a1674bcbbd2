// `redrive worker`: runs jobs until stopped.
import { formatDuration, parseDuration } from "../core/duration.ts";
import { realSystem } from "../system/real.ts";
import { type Cli, examples, textual } from "./command.ts";
import { supervise } from "./supervise.ts";
import { requiredDefinitions } from "./job-files.ts";
import { defaultsOf, workerFlags, workerOptions } from "./worker-flags.ts";
import { claimedText } from "./worker-summary.ts";

const NOTES = `
On a first SIGINT, SIGTERM or SIGHUP the worker stops claiming, lets running
jobs finish --within the time, then aborts and releases them without using an
attempt. On a second one it does so at once (the same signal within 0.2s counts
once). It prints a summary to stderr at the end. With --json, what your jobs
print on stdout goes to stderr. Exit code 75 means: replace this process, half
of its slots are lost to handlers that ignore their abort signal.

Environment: MAX_RETRY_ATTEMPTS (attempts in total) and RETRY_DELAY_SECONDS (the
wait before every retry), for types that set none. Only \`drain\` and \`batch\`
read MAX_RETRIES.`;

/** Registers `worker`. */
export function register(cli: Cli): void {
  const command = workerFlags(cli.command)
    .option("--within <duration>", "time for running jobs to finish after a stop signal", "25s")
    .addHelpText("after", NOTES);
  examples(command, cli, [
    "worker --jobs jobs.ts",
    "worker --jobs jobs.ts --concurrency 20 --queues mail,media --health-port 8080",
  ]);
  cli.act(
    command,
    async (session, _args, flags) => {
      const within = textual(flags.within) ?? "25s";
      parseDuration(within, "within");
      const defaults = defaultsOf(session, "worker");
      const options = workerOptions(session, flags, "worker");
      const jobs = await requiredDefinitions(session, flags);
      const redrive = await session.open({ jobs, defaults });
      const worker = redrive.worker(options);
      const work = async (): Promise<void> => {
        // A start that was stopped also resolves, but without this event.
        redrive.on("worker.started", () => {
          const types = jobs.map(({ type }) => type).join(",");
          const health = worker.healthPort === null ? {} : { health: worker.healthPort };
          session.log.info({ worker: worker.id, store: session.address.shown, types, ...health }, "worker started");
        });
        await worker.start();
        await new Promise(() => undefined);
      };
      const from = realSystem.monotonic();
      const code = await supervise(session, redrive, worker, { work, within });
      const ran = formatDuration(Math.round((realSystem.monotonic() - from) / 100) * 100);
      session.say(`Worker stopped after ${ran}: ${claimedText(worker.counts)}.`);
      session.answer({ ...worker.counts, exit: code }, () => "");
      return code ?? 0;
    },
    { level: () => "info" },
  );
}
