// The whole example as one command: a service with a bad day, jobs and visitors that call it, and books that have to
// balance in the end. Exits with 0 only if they do.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { emptyFolder } from "../kit/folder.ts";
import { runExample } from "../kit/run.ts";
import { startDay } from "./day.ts";

const USAGE = `Usage: node examples/api-client/start.mjs [options]

  --store URL   database of the jobs: sqlite:PATH or postgres://…
                (default: a new SQLite file in the folder data)
  --small       a short day of about 12 seconds instead of 30
`;

const folder = fileURLToPath(new URL("data", import.meta.url));

/** A new file in the folder `data`; that of an earlier run is removed. */
async function freshFile(): Promise<string> {
  await emptyFolder(folder, /^redrive\.db(-\w+)?$/, "stay");
  return `sqlite:${join(folder, "redrive.db")}`;
}

await runExample({
  usage: USAGE,
  flags: { store: { type: "string" }, small: { type: "boolean", default: false } },
  read: (values) => values,
  story: async ({ store, small }) => startDay({ store: store ?? (await freshFile()), size: small ? "small" : "full" }),
});
