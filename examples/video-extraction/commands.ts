// `redrive batch` in a process of its own, whose progress is passed on, and which can be killed in the middle.
import { type ChildProcess, spawn } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { folder } from "./videos.ts";

const here = fileURLToPath(new URL(".", import.meta.url));
const program = join(dirname(createRequire(import.meta.url).resolve("redrive/package.json")), "bin", "redrive.js");

/** How a command ended. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
}

const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Runs a command of Redrive to its end; `kill` is asked a few times a second whether it is to be killed. */
export async function redrive(
  store: string,
  args: readonly string[],
  { kill, env = {} }: { readonly kill?: () => boolean; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<Ended> {
  const [command = "", ...rest] = args;
  const child = spawn(process.execPath, [program, command, "--store", store, ...rest], {
    cwd: here,
    env: { ...process.env, VIDEO_FOLDER: folder, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  running.add(child);
  const looking = kill && setInterval(() => kill() && child.kill("SIGKILL"), 20);
  let stdout = "";
  child.stdout.on("data", (text) => (stdout += text));
  const code = await new Promise<number | null>((resolve) => {
    child.once("close", resolve);
  });
  clearInterval(looking);
  running.delete(child);
  return { code, stdout };
}
