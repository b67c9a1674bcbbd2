// The videos of the example: real ones, a second long, drawn by ffmpeg; one is cut off in the middle, some are not there.
import { execFile } from "node:child_process";
import { mkdir, readdir, rm, truncate } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Where everything of the example lies. */
export const folder: string = process.env.VIDEO_FOLDER ?? fileURLToPath(new URL("data", import.meta.url));

/** A video that frames are wanted of. */
export interface Video {
  readonly platform: "instagram" | "youtube";
  readonly code: string;
  readonly fate: "good" | "missing" | "corrupt";
}

/** So many videos, one in seven missing, one in eleven corrupt. */
export function planVideos(count: number): Video[] {
  return Array.from({ length: count }, (_, at) => {
    const code = `V${String(at + 1).padStart(3, "0")}`;
    const fate = at % 7 === 4 ? "missing" : at % 11 === 8 ? "corrupt" : "good";
    return { platform: at % 2 === 0 ? "instagram" : "youtube", code, fate };
  });
}

/** Says what is missing on this machine; null if nothing is. */
export async function missingTool(): Promise<string | null> {
  for (const tool of ["ffmpeg", "python3"]) {
    const found = await run(tool, [tool === "ffmpeg" ? "-version" : "--version"]).then(
      () => true,
      () => false,
    );
    if (!found) return tool;
  }
  return null;
}

/** An empty folder with the videos in it; what an earlier run left is removed, anything else stays. */
export async function makeVideos(videos: readonly Video[]): Promise<void> {
  await mkdir(folder, { recursive: true });
  const ours = /^(videos|frames|thumbnails|journal\.txt|redrive\.db(-wal|-shm)?)$/;
  for (const name of await readdir(folder)) if (ours.test(name)) await rm(join(folder, name), { recursive: true });
  for (const name of ["videos", "frames", "thumbnails"]) await mkdir(join(folder, name));
  for (const [at, { code, fate }] of videos.entries()) if (fate !== "missing") await makeVideo(code, at, fate);
}

async function makeVideo(code: string, number: number, fate: Video["fate"]): Promise<void> {
  const path = join(folder, "videos", `${code}.mp4`);
  const picture = `testsrc2=size=160x120:rate=10:duration=1,hue=h=${(number * 37) % 360}`;
  await run("ffmpeg", ["-v", "error", "-f", "lavfi", "-i", picture, "-pix_fmt", "yuv420p", path]);
  // Its index stands at the end, so what was cut off cannot be played at all.
  if (fate === "corrupt") await truncate(path, 2_000);
}
