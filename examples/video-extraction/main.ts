// The whole example as one command: real videos through a Python and a Node entry point, killed in the middle and resumed,
// and books that have to balance in the end. Exits with 0 only if they do.
import { join } from "node:path";
import { runExample, wholeFlag } from "../kit/run.ts";
import { startDay } from "./day.ts";
import { folder, missingTool } from "./videos.ts";

const USAGE = `Usage: node examples/video-extraction/start.mjs [options]

  --store URL   database of the jobs: sqlite:PATH or postgres://…
                (default: a new SQLite file in the folder data)
  --videos N    how many videos, 15 to 1,000 (default 45)
`;

await runExample({
  usage: USAGE,
  flags: { store: { type: "string" }, videos: { type: "string", default: "45" } },
  read: ({ store = `sqlite:${join(folder, "redrive.db")}`, videos }) => ({
    store,
    videos: wholeFlag("videos", videos, 15, 1_000),
  }),
  async story(settings) {
    const tool = await missingTool();
    if (tool !== null)
      throw new Error(`The example needs ${tool}, and it is not there; install it, for example: apt install ${tool}`);
    return startDay(settings);
  },
});
