// `redrive health`: one status, one score, and the reasons, each with what to do next.
import { judgeHealth, resolveHealth } from "../core/health.ts";
import { safeLine } from "../core/safe-text.ts";
import { countText } from "../operate/counts.ts";
import { gatherHealth, readState } from "../operate/health.ts";
import { isoTime } from "../operate/json-form.ts";
import { type Cli, examples, textual } from "./command.ts";
import { EXIT } from "./exit.ts";
import { stateStyle } from "./paint.ts";

/** Registers `health`. */
export function register(cli: Cli): void {
  const command = cli.command
    .description(
      "Report the health of the queue: workers, waiting work, failed runs, breakers, dead letters, upkeep. Exit code 0: healthy or degraded; 1: unhealthy; 3: no store. The success rate is that of the last 5 minutes, or of the last hour where fewer than 20 runs ended; `-` (null) where fewer than 20 did then, too. `health` in the config file sets the limits.",
    )
    .option("--type <type>", "only this job type");
  examples(command, cli, ["health", "health --type mail", "health --json"]);
  cli.act(command, async (session, _args, flags) => {
    const limits = resolveHealth(session.config.health);
    const { store } = await session.openExisting();
    // People see how many jobs wait, which health alone does not count.
    const facts = await gatherHealth(store, { type: textual(flags.type), limits }, readState(store));
    const { reasons, ...health } = judgeHealth(facts, limits);
    const dated = reasons.map(({ text, since, subject, help }) => ({ text, since: isoTime(since), subject, help }));
    const breakers = facts.breakers.map(({ service }) => service);
    session.show({ ...health, reasons: dated, ...facts, breakers }, () => {
      const style = stateStyle(health.status);
      const word = style ? session.paint(style, health.status) : health.status;
      const { jobs, workers, deadLetters } = facts;
      const [waiting, running] = [jobs.queued, jobs.running].map(countText);
      const rate = health.successRate === null ? "-" : `${(Math.floor(health.successRate * 1_000) / 10).toFixed(1)} %`;
      const work = facts.type === null ? `, waiting ${waiting}, running ${running}` : "";
      return [
        `${word} (${health.score.toFixed(2)})`,
        `  workers ${workers}${work}, dead letters ${deadLetters}, success rate ${rate}`,
        ...dated.map(({ text, since, help }) => {
          const when = since === null ? "" : ` (since ${since})`;
          return `  - ${safeLine(text)}${when}: ${help}`;
        }),
        "",
      ].join("\n");
    });
    return health.status === "unhealthy" ? EXIT.failed : EXIT.ok;
  });
}
