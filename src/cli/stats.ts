// `redrive stats`: counts the jobs in each state, up to a number, and the newest dead letters.
import { STATES } from "../core/job.ts";
import { type Cli, examples } from "./command.ts";
import { stateStyle } from "./paint.ts";
import { tableText } from "./table.ts";
import { LOOK_AT } from "../enqueue/paging.ts";
import { COUNTED_TO } from "../operate/counts.ts";
import { isoTime } from "../operate/json-form.ts";
import { livingAmong } from "../services/holding.ts";

/** Registers `stats`. */
export function register(cli: Cli): void {
  const command = cli.command;
  examples(command, cli, ["stats", "stats --json"]);
  cli.act(command, async (session) => {
    const { store } = await session.openExisting();
    const [jobs, workers, { now }, tally] = await Promise.all([
      store.count(COUNTED_TO),
      store.workers(),
      store.control(),
      store.tally({ lookAt: LOOK_AT }),
    ]);
    const alive = livingAmong(workers, now).length;
    const { total, byClass, byType, byReason } = tally;
    const seen = tally.seenTo === undefined ? {} : { seenTo: isoTime(tally.seenTo) };
    const deadLetters = { total, byClass, byType, byReason, ...seen };
    session.show({ jobs, countedTo: COUNTED_TO, workers: alive, deadLetters }, () => {
      const columns = [{ title: "JOBS" }, { title: "COUNT", align: "right" as const }];
      const rows = STATES.map((state) => [
        { text: state, style: stateStyle(state) },
        `${jobs[state].toLocaleString("en-US")}${jobs[state] >= COUNTED_TO ? "+" : ""}`,
      ]);
      const table = tableText(columns, [...rows, ["workers", alive]], session);
      return total > 0 ? `${table}\nWhy jobs died: ${session.suggest("dlq stats")}\n` : table;
    });
  });
}
