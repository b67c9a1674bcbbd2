// The whole example as one command: records through a flaky API, a turn of the scheduler after the other, one of them killed
// in the middle, and books that have to balance in the end. Exits with 0 only if they do.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { emptyFolder } from "../kit/folder.ts";
import { runExample, wholeFlag } from "../kit/run.ts";
import { startDay } from "./day.ts";

const USAGE = `Usage: node examples/records/start.mjs [options]

  --store URL   database of the records: sqlite:PATH or postgres://…
                (default: a new SQLite file in the folder data)
  --records N   how many, 100 to 100000 (default 3000)
`;

const OURS = /^(incoming\.ndjson|results\.ndjson(\.part)?|redrive\.db(-\w+)?)$/;
const folder = process.env.RECORDS_FOLDER ?? fileURLToPath(new URL("data", import.meta.url));

await runExample({
  usage: USAGE,
  flags: { store: { type: "string" }, records: { type: "string", default: "3000" } },
  read: ({ store, records }) => ({ store, records: wholeFlag("records", records, 100, 100_000) }),
  async story({ store, records }) {
    await emptyFolder(folder, OURS, "refused");
    return startDay({ store: store ?? `sqlite:${join(folder, "redrive.db")}`, records, folder });
  },
});
