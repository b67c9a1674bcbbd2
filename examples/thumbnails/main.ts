// The whole example as one command: makes media, lets real worker processes work on a bad day, kills one of them, looks
// at the dead letters with SQL, recovers by hand, and balances the books. Exits with 0 only if they balance.
import { emptyFolder } from "../kit/folder.ts";
import { killAll } from "../kit/redrive-command.ts";
import { runExample } from "../kit/run.ts";
import { startDay } from "./day.ts";
import { defaultStore, folder } from "./object-store.ts";

const USAGE = `Usage: npm start -- [options]

  --store URL   database of the jobs: sqlite:PATH or postgres://…
                (default: a new SQLite file in the folder data)
  --small       about a dozen files instead of 85
  RETRY_DELAY_SECONDS in the environment is the wait before every retry (default here 1)
`;

const OURS = /^(objects|thumbnails|faults|unfinished|worker-\d+\.log|redrive\.db(-wal|-shm)?|drawing-.*)$/;

await runExample({
  usage: USAGE,
  flags: { store: { type: "string" }, small: { type: "boolean", default: false } },
  read: (values) => values,
  async story({ store, small }) {
    await emptyFolder(folder, OURS, "refused");
    const delaySeconds = process.env.RETRY_DELAY_SECONDS ?? (small ? "0.2" : "1");
    return startDay({ store: store ?? defaultStore, size: small ? "small" : "full", delaySeconds });
  },
  end: killAll,
});
