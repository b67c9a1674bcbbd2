// `redrive stats`: counts the jobs in each state.
import { STATES } from "../core/job.ts";
import { type Cli, examples } from "./command.ts";
import { stateStyle } from "./paint.ts";
import { tableText } from "./table.ts";
import { livingAmong } from "../services/holding.ts";

/** Registers `stats`. */
export function register(cli: Cli): void {
  const command = cli.command;
  examples(command, cli, ["stats", "stats --json"]);
  cli.act(command, async (session) => {
    const { store } = await session.openExisting();
    const [jobs, workers, { now }, tally] = await Promise.all([
      store.count(),
      store.workers(),
      store.control(),
      store.tally({}),
    ]);
    const alive = livingAmong(workers, now).length;
    const { total, byClass, byType, byReason } = tally;
    session.show({ jobs, workers: alive, deadLetters: { total, byClass, byType, byReason } }, () => {
      const columns = [{ title: "JOBS" }, { title: "COUNT", align: "right" as const }];
      const rows = STATES.map((state) => [
        { text: state, style: stateStyle(state) },
        jobs[state].toLocaleString("en-US"),
      ]);
      const table = tableText(columns, [...rows, ["workers", alive]], session);
      return total > 0 ? `${table}\nWhy jobs died: ${session.suggest("dlq stats")}\n` : table;
    });
  });
}
