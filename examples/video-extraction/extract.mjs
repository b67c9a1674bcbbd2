// An entry point for the exact contract: a line per item in, a line per outcome out. A missing video stays missing;
// a broken one may be uploaded again, so it is worth another try.
import { execFile } from "node:child_process";
import { appendFileSync, existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const run = promisify(execFile);
const folder = process.env.VIDEO_FOLDER ?? "data";
const say = (word) => process.stdout.write(`${JSON.stringify(word)}\n`);

async function extract(code) {
  const video = join(folder, "videos", `${code}.mp4`);
  for (const [kind, ...options] of [["frames"], ["thumbnails", "-vf", "scale=64:-1"]]) {
    const part = join(folder, kind, `.${code}-${process.pid}.jpg`);
    await run("ffmpeg", ["-v", "error", "-y", "-i", video, "-frames:v", "1", ...options, part]);
    renameSync(part, join(folder, kind, `${code}.jpg`));
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  if (line === "") break;
  const { id, input } = JSON.parse(line);
  const { code } = input;
  say({ id, status: "started" });
  appendFileSync(join(folder, "journal.txt"), `node ${code}\n`);
  if (!existsSync(join(folder, "videos", `${code}.mp4`))) say({ id, status: "permanent", error: `no video ${code}` });
  else
    await extract(code).then(
      () => say({ id, status: "done", result: { thumbnail: `thumbnails/${code}.jpg` } }),
      (error) => say({ id, status: "transient", error: `${code}: ffmpeg: ${error.stderr.trim().split("\n").at(-1)}` }),
    );
}
