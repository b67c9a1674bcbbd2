// An example as a user runs it: its command in a process of its own, in a folder that goes with the tests, and its types.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The stores an example runs on: `npm run prove -- examples` takes both, the test command the one it has by default. */
export const STORES = process.env["REDRIVE_PROVE"] === "examples" ? ["SQLite", "Postgres"] : ["SQLite"];

/** How a process ended. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The way to one example. */
export interface Example {
  /** Where it lies. */
  readonly place: string;
  /** A folder of its own. */
  readonly folder: string;
  /** Runs it to its end, with these arguments and this in its environment. */
  run(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Ended>;
  /** What the compiler has to say about it; nothing if it fits. */
  typeErrors(): string;
}

/** Opens an example; its folder and its processes go with the tests of the file. */
export function openExample(name: string): Example {
  const place = join(ROOT, "examples", name);
  const folder = mkdtempSync(join(tmpdir(), `redrive-${name}-`));
  const children = new Set<ChildProcess>();
  afterAll(() => {
    // A group each, so that workers end with the run they belong to.
    for (const { pid } of children) if (pid !== undefined) process.kill(-pid, "SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    place,
    folder,
    async run(args, env = {}) {
      const start = [join(place, "start.mjs"), ...args];
      const options = { cwd: folder, env: { ...process.env, ...env }, detached: true, stdio: "pipe" } as const;
      const child = spawn(process.execPath, start, options);
      children.add(child);
      let [stdout, stderr] = ["", ""];
      child.stdout.on("data", (text) => (stdout += text));
      child.stderr.on("data", (text) => (stderr += text));
      const code = await new Promise<number | null>((resolve) => {
        child.once("close", resolve);
      });
      children.delete(child);
      return { code, stdout, stderr };
    },
    typeErrors() {
      const compiler = join(ROOT, "node_modules", "typescript", "bin", "tsc");
      return spawnSync(process.execPath, [compiler, "-p", place], { encoding: "utf8" }).stdout;
    },
  };
}
