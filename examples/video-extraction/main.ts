// The whole example as one command: real videos through a Python and a Node entry point, killed in the middle and resumed,
// and books that have to balance in the end. Exits with 0 only if they do.
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startDay } from "./day.ts";
import { folder, missingTool } from "./videos.ts";

const USAGE = `Usage: node examples/video-extraction/start.mjs [options]

  --store URL   where the jobs live: sqlite:PATH or postgres://…
                (default: a new SQLite file in the folder data)
  --videos N    how many videos, 15 to 1,000 (default 45)
`;

function refuse(message: string): never {
  process.stderr.write(`${message}\n\n${USAGE}`);
  process.exit(2);
}

function parse(): { store: string; videos: number } {
  try {
    const options = { store: { type: "string" }, videos: { type: "string", default: "45" } } as const;
    const { store, videos } = parseArgs({ options }).values;
    if (!/^\d+$/.test(videos) || Number(videos) < 15 || Number(videos) > 1_000)
      refuse(`--videos: expected a whole number from 15 to 1000; got ${videos}`);
    return { store: store ?? `sqlite:${join(folder, "redrive.db")}`, videos: Number(videos) };
  } catch (error) {
    return refuse((error as Error).message);
  }
}

for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)
  process.once(signal, () => process.exit(code));

const settings = parse();
const tool = await missingTool();
if (tool !== null) {
  process.stderr.write(
    `The example needs ${tool}, and it is not there; install it, for example: apt install ${tool}\n`,
  );
  process.exit(1);
}
try {
  process.exitCode = (await startDay(settings)) ? 0 : 1;
} catch (error) {
  process.stderr.write(`\n${(error as Error).message}\n`);
  process.exitCode = 1;
}
