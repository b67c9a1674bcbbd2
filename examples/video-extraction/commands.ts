// `redrive batch` in a process of its own, whose progress is passed on, and which can be killed in the middle.
import { endOf, startRedrive } from "../kit/redrive-command.ts";
import { folder } from "./videos.ts";

/** How a command ended. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
}

/** Runs a command of Redrive to its end; `kill` is asked a few times a second whether it is to be killed. */
export async function redrive(
  store: string,
  args: readonly string[],
  { kill, env = {} }: { readonly kill?: () => boolean; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<Ended> {
  const [command = "", ...rest] = args;
  const child = startRedrive([command, "--store", store, ...rest], {
    from: import.meta.url,
    env: { ...process.env, VIDEO_FOLDER: folder, ...env },
    stderr: "inherit",
  });
  const looking = kill && setInterval(() => kill() && child.kill("SIGKILL"), 20);
  const { code, stdout } = await endOf(child);
  clearInterval(looking);
  return { code, stdout };
}
