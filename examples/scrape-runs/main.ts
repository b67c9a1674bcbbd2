// The whole example as one command: schedules make runs, some hang, some kill their worker, one comes back from the dead;
// stuck ones are found and tried again later, and books have to balance in the end. Exits with 0 only if they do.
import { join } from "node:path";
import { emptyFolder } from "../kit/folder.ts";
import { killAll } from "../kit/redrive-command.ts";
import { runExample } from "../kit/run.ts";
import { startDay } from "./day.ts";
import { folder } from "./jobs.ts";

const USAGE = `Usage: node examples/scrape-runs/start.mjs [options]

  --store URL   database of the jobs: sqlite:PATH or postgres://…
                (default: a new SQLite file in the folder data)
  --small       schedules fire for 4 seconds instead of 10
`;

const OURS = /^(journal\.ndjson|worker-\d+\.log|redrive\.db(-wal|-shm)?)$/;

await runExample({
  usage: USAGE,
  flags: { store: { type: "string" }, small: { type: "boolean", default: false } },
  read: (values) => values,
  async story({ store, small }) {
    await emptyFolder(folder, OURS, "stay");
    const where = store ?? `sqlite:${join(folder, "redrive.db")}`;
    return startDay({ store: where, fireMs: small ? 4_000 : 10_000 });
  },
  end: killAll,
});
