// `redrive health`: one status, one score, and the reasons.
import { gatherHealth, judgeHealth } from "../operate/health.ts";
import { type Cli, examples } from "./command.ts";
import { countText } from "../operate/counts.ts";
import { EXIT } from "./exit.ts";
import { stateStyle } from "./paint.ts";
import { safeLine } from "../core/safe-text.ts";

/** Registers `health`. */
export function register(cli: Cli): void {
  const command = cli.command.description(
    "Report the health of the queue: store, workers, waiting work. Exit code 0: healthy or degraded; 1: unhealthy; 3: no store. The success rate is always null (unknown): retention deletes completed jobs sooner than dead ones, so the stored jobs do not tell it. `drain` reports its own rate.",
  );
  examples(command, cli, ["health", "health --json"]);
  cli.act(command, async (session) => {
    const { store } = await session.openExisting();
    const facts = await gatherHealth(store);
    const health = judgeHealth(facts);
    session.show({ ...health, ...facts }, () => {
      const style = stateStyle(health.status);
      const word = style ? session.paint(style, health.status) : health.status;
      const { jobs, workers, deadLetters } = facts;
      const [waiting, running, dead] = [jobs.queued, jobs.running, deadLetters].map(countText);
      const counts = `workers ${workers}, waiting ${waiting}, running ${running}, dead letters ${dead}`;
      return [
        `${word} (${health.score.toFixed(2)})`,
        `  ${counts}`,
        ...health.reasons.map((reason) => `  - ${safeLine(reason)}`),
        "",
      ].join("\n");
    });
    return health.status === "unhealthy" ? EXIT.failed : EXIT.ok;
  });
}
