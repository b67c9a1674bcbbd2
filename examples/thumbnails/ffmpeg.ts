// ffmpeg as a child process: a picture of a video, and the short videos the example is made of. The abort signal of the
// run ends the process at once, so a timeout or a shutdown leaves none behind.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { BrokenFileError } from "./broken-file.ts";

const execute = promisify(execFile);
const QUIET = ["-v", "error", "-nostdin", "-y"];
const MOST_BYTES = 64 * 1024 * 1024;

/** What to type where ffmpeg is missing. */
export const INSTALL_FFMPEG = "apt-get install -y ffmpeg (macOS: brew install ffmpeg)";

/** Thrown where the program is not installed: a fault of this machine, not of the file. */
export class FfmpegMissingError extends Error {
  override readonly name = "FfmpegMissingError";
}

/** True where ffmpeg can be run. */
export async function hasFfmpeg(): Promise<boolean> {
  return execute("ffmpeg", ["-version"]).then(
    () => true,
    () => false,
  );
}

/** A typical picture of a video, as PNG. */
export async function pictureOf(path: string, signal: AbortSignal): Promise<Buffer> {
  const output = ["-frames:v", "1", "-f", "image2pipe", "-c:v", "png", "-"];
  const picture = await ffmpeg(["-threads", "1", "-i", path, "-vf", "thumbnail=10", ...output], signal);
  if (picture.length === 0) throw new BrokenFileError("ffmpeg found no picture in it");
  return picture;
}

/** Writes a test video of one second. */
export async function makeVideo(path: string, size: string): Promise<void> {
  const source = `testsrc=duration=1:size=${size}:rate=10`;
  const form = ["-c:v", "mpeg4", "-pix_fmt", "yuv420p", "-f", "mp4"];
  await ffmpeg(["-f", "lavfi", "-i", source, ...form, path], new AbortController().signal);
}

async function ffmpeg(args: readonly string[], signal: AbortSignal): Promise<Buffer> {
  const options = { encoding: "buffer", maxBuffer: MOST_BYTES, killSignal: "SIGKILL", signal } as const;
  try {
    return (await execute("ffmpeg", [...QUIET, ...args], options)).stdout;
  } catch (cause) {
    signal.throwIfAborted();
    const { code, stderr } = cause as { code?: unknown; stderr?: Buffer };
    if (code === "ENOENT") throw new FfmpegMissingError(`ffmpeg is not installed: ${INSTALL_FFMPEG}`, { cause });
    // An exit code is its word about the file; anything else, such as a signal, is not.
    if (typeof code !== "number") throw cause;
    const said = stderr?.toString().split("\n")[0] ?? "";
    throw new BrokenFileError(`ffmpeg cannot read it: ${said.replace(/^\[.*?\] /, "")}`, { cause });
  }
}
